//! Ids to positions: the lists become a model.

use std::collections::HashMap;
use std::sync::Arc;

use super::RawSimModel;
use super::formulas::{AliasSpace, SimModelFormula, SimModelFormulaKind};
use super::id::ObjectId;
use super::lists::{RawAssignment, RawQuantity};
use crate::error::LoadError;
use crate::formula::FormulaBody;
use crate::model::{
    AliasReference, BoundFormula, EventAssignment, FormulaKind, Model, ModelEvent, ModelFormat,
    PointTable, Quantity, QuantityKind, RhsTerm, SolverSettings, ValueSource,
};
use crate::watch::Watch;

/// Objects by id, each list on its own: ids may repeat across lists.
struct ObjectTable {
    variables: HashMap<ObjectId, usize>,
    parameters: HashMap<ObjectId, usize>,
    observers: HashMap<ObjectId, usize>,
    formulas: HashMap<ObjectId, usize>,
}

impl ObjectTable {
    /// Returns the object behind an alias; the alias's own list is searched first.
    fn quantity(&self, id: &ObjectId, space: AliasSpace) -> Option<usize> {
        let lists = match space {
            AliasSpace::Parameter => [&self.parameters, &self.variables, &self.observers],
            AliasSpace::Any | AliasSpace::Variable => {
                [&self.variables, &self.parameters, &self.observers]
            }
        };
        lists.into_iter().find_map(|list| list.get(id)).copied()
    }

    fn reference(
        &self,
        id: &ObjectId,
        space: AliasSpace,
        used_by: &str,
    ) -> Result<AliasReference, LoadError> {
        if *id == ObjectId::TIME {
            return Ok(AliasReference::Time);
        }
        self.quantity(id, space)
            .map(AliasReference::Quantity)
            .ok_or_else(|| unknown(id, used_by))
    }

    fn formula(&self, id: &ObjectId, used_by: &str) -> Result<usize, LoadError> {
        self.formulas
            .get(id)
            .copied()
            .ok_or_else(|| unknown(id, used_by))
    }
}

fn unknown(id: &ObjectId, used_by: &str) -> LoadError {
    LoadError::UnknownId {
        id: id.to_string(),
        used_by: used_by.to_owned(),
    }
}

pub(super) fn bind(
    mut raw: RawSimModel,
    name: String,
    format: ModelFormat,
    watch: &Watch<'_>,
) -> Result<Model, LoadError> {
    let delimiter = raw.delimiter.unwrap_or('|');
    let full = raw.version.is_some_and(|v| v >= 4);
    let lists = [
        (QuantityKind::Variable, &raw.variables),
        (QuantityKind::Observer, &raw.observers),
        (QuantityKind::Parameter, &raw.parameters),
    ];
    let (variables, observers) = (raw.variables.len(), raw.observers.len());
    let objects = ObjectTable {
        variables: ids(&raw.variables, 0),
        observers: ids(&raw.observers, variables),
        parameters: ids(&raw.parameters, variables + observers),
        formulas: raw
            .formulas
            .iter()
            .enumerate()
            .map(|(i, f)| (f.id.clone(), i))
            .collect(),
    };
    let marked = lists
        .iter()
        .any(|(_, list)| list.iter().any(|q| q.persistable.is_some()));
    let mut warnings = Vec::new();
    let mut quantities = Vec::with_capacity(variables + observers + raw.parameters.len());
    for (kind, list) in lists {
        for q in list {
            watch.check()?;
            let path = if full && !q.path.is_empty() {
                q.path.clone()
            } else {
                join(&q.path, &q.name, delimiter)
            };
            let mut quantity = quantity(q, kind, path, &objects, &mut warnings)?;
            quantity.persistable = if marked {
                q.persistable == Some(true)
            } else {
                kind != QuantityKind::Parameter
            };
            quantities.push(quantity);
        }
    }
    let kinds = std::mem::take(&mut raw.kinds);
    let formulas = formulas(&raw.formulas, kinds, &objects, watch)?;
    let events = events(&raw, &objects)?;
    let solver = settings(&raw, &quantities, &formulas, &objects)?;
    let name = if name.is_empty() {
        simulation_name(&quantities, delimiter)
    } else {
        name
    };
    Ok(Model {
        name,
        format,
        delimiter,
        quantities,
        formulas,
        events,
        grid: raw.grid,
        solver,
        selections: Vec::new(),
        warnings,
    })
}

fn ids(list: &[RawQuantity], offset: usize) -> HashMap<ObjectId, usize> {
    list.iter()
        .enumerate()
        .rev()
        .filter_map(|(i, q)| Some((q.id.clone()?, offset + i)))
        .collect()
}

fn join(container: &str, name: &str, delimiter: char) -> String {
    if container.is_empty() {
        name.to_owned()
    } else {
        format!("{container}{delimiter}{name}")
    }
}

/// Returns the first path element that all variables and observers share.
fn simulation_name(quantities: &[Quantity], delimiter: char) -> String {
    let first = quantities
        .iter()
        .find(|q| q.kind != QuantityKind::Parameter)
        .or_else(|| quantities.first());
    first
        .and_then(|q| q.path.split(delimiter).next())
        .unwrap_or_default()
        .to_owned()
}

fn quantity(
    raw: &RawQuantity,
    kind: QuantityKind,
    path: String,
    objects: &ObjectTable,
    warnings: &mut Vec<String>,
) -> Result<Quantity, LoadError> {
    let source = match (&raw.formula, raw.value) {
        (Some(id), _) => ValueSource::Formula(objects.formula(id, &path)?),
        (None, Some(value)) => ValueSource::Constant(value),
        (None, None) => {
            warnings.push(format!(
                "line {}: '{path}' has neither value nor formula; it is not a number",
                raw.line
            ));
            ValueSource::Constant(f64::NAN)
        }
    };
    let mut rhs = Vec::with_capacity(raw.rhs.len());
    for id in &raw.rhs {
        rhs.push(RhsTerm {
            formula: objects.formula(id, &path)?,
            factor: 1.0,
        });
    }
    let mut quantity = Quantity::new(kind, path, raw.name.clone(), source);
    quantity.rhs = rhs;
    quantity.entity_id.clone_from(&raw.entity_id);
    quantity.scale = raw.scale.unwrap_or(1.0);
    quantity.negative_allowed = raw.negative_allowed.unwrap_or(true);
    quantity.can_be_varied = raw.can_be_varied.unwrap_or(true);
    quantity.unit.clone_from(&raw.unit);
    Ok(quantity)
}

fn formulas(
    raw: &[SimModelFormula],
    kinds: Vec<SimModelFormulaKind>,
    objects: &ObjectTable,
    watch: &Watch<'_>,
) -> Result<Vec<BoundFormula>, LoadError> {
    let each = raw.iter().zip(kinds).map(|(f, kind)| {
        watch.check()?;
        formula(f, kind, objects)
    });
    each.collect()
}

fn formula(
    raw: &SimModelFormula,
    kind: SimModelFormulaKind,
    objects: &ObjectTable,
) -> Result<BoundFormula, LoadError> {
    let name = format!("formula {}", raw.id);
    let kind = match kind {
        SimModelFormulaKind::Explicit {
            equation,
            aliases,
            targets,
        } => explicit(&name, &equation, aliases, &targets, objects)?,
        SimModelFormulaKind::Table { points, slope_mode } => {
            let table = PointTable::new(&points, slope_mode);
            let table = table.map_err(|e| LoadError::Invalid {
                line: raw.line,
                message: format!("{name}: {e}"),
            })?;
            FormulaKind::Table(Arc::new(table))
        }
        SimModelFormulaKind::Offset { table, offset } => FormulaKind::TableWithOffset {
            table: objects
                .quantity(&table, AliasSpace::Parameter)
                .ok_or_else(|| unknown(&table, &name))?,
            offset: objects.reference(&offset, AliasSpace::Parameter, &name)?,
        },
        SimModelFormulaKind::Argument { table, argument } => FormulaKind::TableWithArgument {
            table: objects
                .quantity(&table, AliasSpace::Parameter)
                .ok_or_else(|| unknown(&table, &name))?,
            argument: objects.reference(&argument, AliasSpace::Parameter, &name)?,
        },
    };
    Ok(BoundFormula { name, kind })
}

fn explicit(
    name: &str,
    equation: &str,
    aliases: Vec<String>,
    targets: &[(ObjectId, AliasSpace)],
    objects: &ObjectTable,
) -> Result<FormulaKind, LoadError> {
    let (text, names) = crate::read::aliases::without_spaces(equation, aliases);
    let body = FormulaBody::with_aliases(&text, names);
    let body = body.map_err(|source| LoadError::Formula {
        owner: name.to_owned(),
        text: equation.to_owned(),
        source,
    })?;
    let arguments = targets
        .iter()
        .map(|(id, space)| objects.reference(id, *space, name))
        .collect::<Result<_, _>>()?;
    Ok(FormulaKind::Explicit {
        body: Arc::new(body),
        arguments,
    })
}

fn events(raw: &RawSimModel, objects: &ObjectTable) -> Result<Vec<ModelEvent>, LoadError> {
    let assignment = |a: &RawAssignment, used_by: &str| {
        let target = objects
            .quantity(&a.object, AliasSpace::Any)
            .ok_or_else(|| unknown(&a.object, used_by))?;
        Ok(EventAssignment {
            target,
            formula: objects.formula(&a.formula, used_by)?,
            as_value: a.as_value,
        })
    };
    let mut events = Vec::with_capacity(raw.events.len());
    for event in &raw.events {
        let name = format!("event {} (line {})", event.id, event.line);
        let condition = objects.formula(&event.condition, &name)?;
        let assignments = event
            .assignments
            .iter()
            .map(|a| assignment(a, &name))
            .collect::<Result<_, LoadError>>()?;
        events.push(ModelEvent {
            name,
            condition,
            one_time: event.one_time,
            assignments,
        });
    }
    Ok(events)
}

fn settings(
    raw: &RawSimModel,
    quantities: &[Quantity],
    formulas: &[BoundFormula],
    objects: &ObjectTable,
) -> Result<SolverSettings, LoadError> {
    let mut settings = SolverSettings::default();
    for (name, id) in &raw.solver {
        let used_by = format!("solver setting {name}");
        let position = objects
            .quantity(id, AliasSpace::Parameter)
            .ok_or_else(|| unknown(id, &used_by))?;
        let value = quantities.get(position).and_then(|q| match q.source {
            ValueSource::Constant(value) => Some(value),
            ValueSource::Formula(f) => formulas.get(f).and_then(BoundFormula::as_number),
        });
        let Some(value) = value else {
            return Err(LoadError::Invalid {
                line: 0,
                message: format!("{used_by} is neither a number nor a constant formula"),
            });
        };
        settings
            .set(name, value)
            .map_err(|message| LoadError::Invalid { line: 0, message })?;
    }
    Ok(settings)
}
