//! Entities to quantities, rates and events.

use std::sync::Arc;

use super::RawPkml;
use super::bind::PkmlBinder;
use super::formulas::PkmlFormulaKind;
use super::tree::{EntityKind, TreeEntity};
use crate::error::LoadError;
use crate::model::{
    AliasReference, BoundFormula, EventAssignment, FormulaKind, Model, ModelEvent, ModelFormat,
    Quantity, QuantityKind, RhsTerm, SolverSettings, ValueSource,
};
use crate::units::normal;
use crate::watch::Watch;

/// Position of the quantity of each entity.
struct EntityPositions {
    of_entity: Vec<Option<usize>>,
}

struct ModelAssembly<'a> {
    binder: PkmlBinder<'a>,
    entities: &'a [TreeEntity],
    positions: EntityPositions,
    quantities: Vec<Quantity>,
    formulas: Vec<BoundFormula>,
    warnings: Vec<String>,
    watch: &'a Watch<'a>,
}

pub(super) fn assemble(raw: RawPkml, watch: &Watch<'_>) -> Result<Model, LoadError> {
    let RawPkml {
        version,
        name,
        tree,
        formulas: cache,
        settings,
        warnings,
        ..
    } = raw;
    let mut assembly = ModelAssembly {
        binder: PkmlBinder::new(&tree, &cache),
        entities: &tree.entities,
        positions: EntityPositions {
            of_entity: vec![None; tree.entities.len()],
        },
        quantities: Vec::new(),
        formulas: Vec::new(),
        warnings,
        watch,
    };
    assembly.quantities()?;
    assembly.sources()?;
    assembly.rates()?;
    let events = assembly.events()?;
    let ModelAssembly {
        quantities,
        formulas,
        mut warnings,
        ..
    } = assembly;
    let mut solver = SolverSettings::default();
    if settings.solver.is_empty() {
        warnings.push("the file has no solver settings; the defaults apply".to_owned());
    }
    for (name, setting) in &settings.solver {
        if let Some(value) = settings.value(setting) {
            solver
                .set(name, value)
                .map_err(|message| LoadError::Invalid { line: 0, message })?;
        }
    }
    let grid = settings.grid()?;
    Ok(Model {
        name: tree.entities.first().map_or(name, |root| root.name.clone()),
        format: ModelFormat::Pkml { version },
        delimiter: '|',
        quantities,
        formulas,
        events,
        grid,
        solver,
        selections: settings.selections,
        warnings,
    })
}

impl ModelAssembly<'_> {
    /// First the positions, so that formulas can refer forwards.
    fn quantities(&mut self) -> Result<(), LoadError> {
        for (i, entity) in self.entities.iter().enumerate() {
            self.watch.check()?;
            let kind = match entity.kind {
                EntityKind::Amount => QuantityKind::Variable,
                EntityKind::Observer => QuantityKind::Observer,
                EntityKind::Parameter | EntityKind::Distributed => QuantityKind::Parameter,
                _ => continue,
            };
            let parent = self.entities.get(entity.parent).map(|p| p.kind);
            if parent == Some(EntityKind::Distributed) {
                continue; // Mean, percentile and the like are no quantities of the model.
            }
            let quantity = self.quantity(i, entity, kind);
            self.place(i, quantity);
        }
        Ok(())
    }

    fn place(&mut self, entity: usize, quantity: Quantity) -> usize {
        let position = self.quantities.len();
        if let Some(slot) = self.positions.of_entity.get_mut(entity) {
            *slot = Some(position);
        }
        self.quantities.push(quantity);
        position
    }

    fn quantity(&self, i: usize, entity: &TreeEntity, kind: QuantityKind) -> Quantity {
        let mut q = Quantity::new(
            kind,
            self.binder.index.path(i),
            entity.name.clone(),
            ValueSource::Constant(f64::NAN),
        );
        q.entity_id.clone_from(&entity.id);
        q.scale = entity
            .scale
            .filter(|s| s.is_finite() && *s > 0.0)
            .unwrap_or(1.0);
        q.negative_allowed = entity.negative_allowed.unwrap_or(true);
        q.persistable = match kind {
            QuantityKind::Variable => true,
            QuantityKind::Observer => true,
            QuantityKind::Parameter => entity.persistable || entity.rhs_formula.is_some(),
        };
        q.can_be_varied = entity.can_be_varied.unwrap_or(true);
        q.min = entity.min;
        q.max = entity.max;
        q.dimension.clone_from(&entity.dimension);
        q.unit = entity
            .dimension
            .as_deref()
            .and_then(crate::units::base_unit)
            .unwrap_or_default()
            .to_owned();
        q.display_unit.clone_from(&entity.display_unit);
        q
    }

    /// Values and start formulas.
    fn sources(&mut self) -> Result<(), LoadError> {
        for (i, entity) in self.entities.iter().enumerate() {
            self.watch.check()?;
            let Some(position) = self.positions.of_entity.get(i).copied().flatten() else {
                continue;
            };
            let source = match entity.kind {
                EntityKind::Distributed => {
                    let value = self.distributed(i, entity)?;
                    if !value.is_finite() {
                        let path = self.binder.index.path(i);
                        self.warnings.push(format!(
                            "distributed parameter '{path}' is {value}; its percentile must lie between 0 and 1"
                        ));
                    }
                    ValueSource::Constant(value)
                }
                _ => self.source(i, entity)?,
            };
            if let Some(q) = self.quantities.get_mut(position) {
                q.source = source;
            }
        }
        Ok(())
    }

    fn source(&mut self, i: usize, entity: &TreeEntity) -> Result<ValueSource, LoadError> {
        match (&entity.formula, entity.value) {
            (Some(_), Some(value)) if entity.fixed => Ok(ValueSource::Constant(value)),
            (Some(id), _) => self.formula(id, i),
            (None, Some(value)) => Ok(ValueSource::Constant(value)),
            (None, None) => {
                self.warnings.push(format!(
                    "'{}' has neither value nor formula; it is not a number",
                    self.binder.index.path(i)
                ));
                Ok(ValueSource::Constant(f64::NAN))
            }
        }
    }

    /// Returns a formula as a source; constants stay numbers.
    fn formula(&mut self, id: &str, user: usize) -> Result<ValueSource, LoadError> {
        if let PkmlFormulaKind::Constant(value) = self.binder.raw(id, user)?.kind {
            return Ok(ValueSource::Constant(value.unwrap_or(f64::NAN)));
        }
        self.bound(id, user).map(ValueSource::Formula)
    }

    /// Position of the formula as this entity uses it.
    fn bound(&mut self, id: &str, user: usize) -> Result<usize, LoadError> {
        let positions = &self.positions;
        let mut missing = None;
        let attempt = self.binder.bind(id, user, &mut |entity| {
            let position = positions.of_entity.get(entity).copied().flatten();
            if position.is_none() {
                missing = Some(entity);
            }
            position
        });
        // A formula may read the mean of a distributed parameter; only then does that become a quantity.
        match (attempt, missing) {
            (Err(_), Some(entity)) if self.is_hidden_parameter(entity) => {
                self.reveal(entity)?;
                self.bound(id, user)
            }
            (attempt, _) => {
                self.formulas.push(attempt?);
                Ok(self.formulas.len() - 1)
            }
        }
    }

    /// Returns whether an entity that is no quantity has a value anyway: parts of a distributed parameter, and
    /// processes, which have their rate as value.
    fn is_hidden_parameter(&self, entity: usize) -> bool {
        let kind = self.entities.get(entity).map(|e| e.kind);
        matches!(
            kind,
            Some(EntityKind::Parameter | EntityKind::Reaction | EntityKind::Transport)
        )
    }

    fn reveal(&mut self, entity: usize) -> Result<(), LoadError> {
        let Some(raw) = self.entities.get(entity) else {
            return Ok(());
        };
        let quantity = self.quantity(entity, raw, QuantityKind::Parameter);
        let position = self.place(entity, quantity);
        let source = self.source(entity, raw)?;
        if let Some(q) = self.quantities.get_mut(position) {
            q.source = source;
        }
        Ok(())
    }

    /// Returns a distributed parameter's value: its own, or from its distribution's parameters.
    fn distributed(&mut self, i: usize, entity: &TreeEntity) -> Result<f64, LoadError> {
        if let Some(value) = entity.value {
            return Ok(value);
        }
        let Some(id) = &entity.formula else {
            return Ok(f64::NAN);
        };
        let part = |name: &str| {
            self.binder
                .index
                .child(i, name)
                .and_then(|c| self.entities.get(c))
                .and_then(|e| self.plain_value(e))
        };
        let missing = |what: &str| LoadError::Invalid {
            line: entity.line,
            message: format!(
                "distributed parameter '{}' has no usable {what}",
                self.binder.index.path(i)
            ),
        };
        let percentile = || part("Percentile").ok_or_else(|| missing("Percentile"));
        let mean = || part("Mean").ok_or_else(|| missing("Mean"));
        match &self.binder.raw(id, i)?.kind {
            PkmlFormulaKind::Discrete => mean(),
            PkmlFormulaKind::Normal => {
                let deviation = part("Deviation").ok_or_else(|| missing("Deviation"))?;
                Ok(mean()? + deviation * normal::quantile(percentile()?))
            }
            PkmlFormulaKind::LogNormal => {
                let deviation =
                    part("GeometricDeviation").ok_or_else(|| missing("GeometricDeviation"))?;
                Ok((mean()?.ln() + deviation.ln() * normal::quantile(percentile()?)).exp())
            }
            PkmlFormulaKind::Uniform => {
                let (min, max) = (part("Minimum"), part("Maximum"));
                let min = min.ok_or_else(|| missing("Minimum"))?;
                Ok(min + percentile()? * (max.ok_or_else(|| missing("Maximum"))? - min))
            }
            PkmlFormulaKind::Constant(Some(value)) => Ok(*value),
            _ => Err(missing("distribution formula")),
        }
    }

    /// Returns the number of a parameter that needs no other quantity.
    fn plain_value(&self, entity: &TreeEntity) -> Option<f64> {
        let constant = || match self
            .binder
            .cache
            .formulas
            .get(entity.formula.as_ref()?)?
            .kind
        {
            PkmlFormulaKind::Constant(value) => value,
            _ => None,
        };
        if entity.fixed {
            entity.value
        } else {
            constant().or(entity.value)
        }
    }

    /// Rates of reactions, transports and parameters.
    fn rates(&mut self) -> Result<(), LoadError> {
        for (i, entity) in self.entities.iter().enumerate() {
            self.watch.check()?;
            match entity.kind {
                EntityKind::Parameter => {
                    let Some(id) = &entity.rhs_formula else {
                        continue;
                    };
                    let Some(position) = self.positions.of_entity.get(i).copied().flatten() else {
                        continue;
                    };
                    let formula = self.bound(id, i)?;
                    self.add_rate(
                        position,
                        RhsTerm {
                            formula,
                            factor: 1.0,
                        },
                    );
                }
                EntityKind::Reaction | EntityKind::Transport => self.process(i, entity)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn process(&mut self, i: usize, entity: &TreeEntity) -> Result<(), LoadError> {
        if entity.partners.is_empty() {
            return Ok(());
        }
        let Some(id) = &entity.formula else {
            return Err(LoadError::Invalid {
                line: entity.line,
                message: format!("'{}' has no formula", self.binder.index.path(i)),
            });
        };
        let rate = self.bound(id, i)?;
        let per_volume = entity
            .dimension
            .as_deref()
            .is_some_and(|d| d.starts_with("Concentration"));
        for (partner, factor) in &entity.partners {
            let (amount, position) = self.partner(partner, i)?;
            let formula = if per_volume && self.is_amount(position) {
                self.times_volume(rate, amount)?
            } else {
                rate
            };
            self.add_rate(
                position,
                RhsTerm {
                    formula,
                    factor: *factor,
                },
            );
        }
        Ok(())
    }

    /// Entity and quantity of a process's partner.
    fn partner(&self, id: &str, used_by: usize) -> Result<(usize, usize), LoadError> {
        let entity = self.binder.index.by_id.get(id).copied();
        let position = entity.and_then(|e| self.positions.of_entity.get(e).copied().flatten());
        match (entity, position) {
            (Some(entity), Some(position)) => Ok((entity, position)),
            _ => Err(LoadError::UnknownId {
                id: id.to_owned(),
                used_by: self.binder.index.path(used_by),
            }),
        }
    }

    fn is_amount(&self, position: usize) -> bool {
        self.quantities
            .get(position)
            .is_some_and(|q| q.dimension.as_deref() == Some("Amount"))
    }

    fn add_rate(&mut self, position: usize, term: RhsTerm) {
        if let Some(q) = self.quantities.get_mut(position) {
            q.rhs.push(term);
        }
    }

    /// Returns a rate per volume, times the volume of the container of `amount`.
    fn times_volume(&mut self, rate: usize, amount: usize) -> Result<usize, LoadError> {
        let container = self.entities.get(amount).map_or(0, |e| e.parent);
        let volume = self
            .binder
            .index
            .child(container, "Volume")
            .and_then(|v| self.positions.of_entity.get(v).copied().flatten());
        let Some(volume) = volume else {
            return Err(LoadError::UnresolvedPath {
                path: "..|Volume".to_owned(),
                used_by: self.binder.index.path(amount),
            });
        };
        let Some(BoundFormula {
            name,
            kind: FormulaKind::Explicit { body, arguments },
        }) = self.formulas.get(rate).cloned()
        else {
            return Err(LoadError::Invalid {
                line: 0,
                message: format!(
                    "the rate of '{}' is a table",
                    self.binder.index.path(amount)
                ),
            });
        };
        let mut arguments = arguments;
        arguments.push(AliasReference::Quantity(volume));
        let body = Arc::new(body.times_argument("container_Volume"));
        self.formulas.push(BoundFormula {
            name,
            kind: FormulaKind::Explicit { body, arguments },
        });
        Ok(self.formulas.len() - 1)
    }

    fn events(&mut self) -> Result<Vec<ModelEvent>, LoadError> {
        let mut events = Vec::new();
        for (i, entity) in self.entities.iter().enumerate() {
            if entity.kind != EntityKind::Event {
                continue;
            }
            let path = self.binder.index.path(i);
            let Some(id) = &entity.formula else {
                return Err(LoadError::Invalid {
                    line: entity.line,
                    message: format!("event '{path}' has no condition"),
                });
            };
            let condition = self.bound(id, i)?;
            let mut assignments = Vec::new();
            for (a, assignment) in self.entities.iter().enumerate().skip(i) {
                if assignment.kind == EntityKind::Assignment && assignment.parent == i {
                    assignments.push(self.assignment(a, assignment)?);
                }
            }
            events.push(ModelEvent {
                name: path,
                condition,
                one_time: entity.one_time,
                assignments,
            });
        }
        Ok(events)
    }

    fn assignment(&mut self, i: usize, entity: &TreeEntity) -> Result<EventAssignment, LoadError> {
        let by_path = entity
            .object_path
            .as_deref()
            .map(|p| self.binder.cache.string(p));
        let position = |found: usize| self.positions.of_entity.get(found).copied().flatten();
        let by_path = by_path.and_then(|p| self.binder.index.resolve(i, p, position));
        let target = match (entity.partners.first(), by_path) {
            (Some((id, _)), _) => self.partner(id, i).map(|(_, position)| position)?,
            (None, Some(found)) => found,
            (None, None) => return Err(self.no_target(i)),
        };
        let Some(id) = &entity.formula else {
            return Err(LoadError::Invalid {
                line: entity.line,
                message: format!("assignment '{}' has no formula", self.binder.index.path(i)),
            });
        };
        let formula = self.bound(id, i)?;
        Ok(EventAssignment {
            target,
            formula,
            as_value: entity.as_value,
        })
    }

    fn no_target(&self, i: usize) -> LoadError {
        LoadError::UnresolvedPath {
            path: "changed entity".to_owned(),
            used_by: self.binder.index.path(i),
        }
    }
}
