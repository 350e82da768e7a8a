//! Copies of an application for further doses.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are quantities and formulas of one model"
)]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{
    DOSES_MAX, DoseAmount, QUANTITIES_ADDED_MAX, Regimen, RegimenError, RegimenReport,
    TIMES_ADDED_MAX,
};
use crate::compile::{Instance, Structure};
use crate::formula::{BinaryOperation, Expr, FormulaBody};
use crate::model::{
    AliasReference, BoundFormula, EventAssignment, FormulaKind, Model, OutputGrid, RhsTerm,
    TimePrecision, ValueSource,
};
use crate::path::{self, PathPattern};
use crate::watch::Watch;

/// Container of PK-Sim inside an application, which holds times and doses.
const SCHEMA_ITEM: &str = "ProtocolSchemaItem";
const START_TIME: &str = "Start time";
const INFUSION_TIME: &str = "Infusion time";
const DRUG_MASS: &str = "DrugMass";
const DOSE: &str = "Dose";
const DOSE_PER_WEIGHT: &str = "DosePerBodyWeight";
const WEIGHT: &str = "Organism|Weight";

/// An application of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Application {
    /// Path of its container.
    container: String,
    /// Path of the container of its times and doses.
    item: String,
    /// Time of its dose in minutes, at the start.
    pub(super) start: f64,
}

impl Application {
    /// All applications of the model, by container.
    fn all(model: &Model) -> Vec<Self> {
        let delimiter = model.delimiter;
        let suffix = format!("{delimiter}{START_TIME}");
        let items = model
            .quantities
            .iter()
            .enumerate()
            .filter_map(|(q, quantity)| {
                let item = quantity.path.strip_suffix(&suffix)?;
                let has = |name: &str| {
                    model
                        .position(&format!("{item}{delimiter}{name}"))
                        .is_some()
                };
                (has(DRUG_MASS) || has(DOSE)).then_some((q, item))
            });
        let items: Vec<(usize, &str)> = items.collect();
        let values = start_values(model);
        items
            .into_iter()
            .map(|(q, item)| {
                let inner = format!("{delimiter}{SCHEMA_ITEM}");
                let container = item.strip_suffix(&inner).unwrap_or(item);
                Self {
                    container: container.to_owned(),
                    item: item.to_owned(),
                    start: values.get(q).copied().unwrap_or(f64::NAN),
                }
            })
            .collect()
    }

    /// Returns the application that a regimen names: by path, pattern or last part of a path.
    pub(super) fn find(model: &Model, regimen: &Regimen) -> Result<Self, RegimenError> {
        let all = Self::all(model);
        let is_named = |application: &&Self| {
            let Some(wanted) = &regimen.container else {
                return true;
            };
            let path = application.container.as_str();
            let short = path.strip_prefix(&format!("{}{}", model.name, model.delimiter));
            let pattern = PathPattern::new(wanted, model.delimiter);
            let parts: Vec<&str> = path.split(model.delimiter).collect();
            pattern.matches(path)
                || short.is_some_and(|short| pattern.matches(short))
                || parts.contains(&wanted.as_str())
        };
        let mut found: Vec<&Self> = all.iter().filter(is_named).collect();
        found.sort_by(|a, b| a.start.total_cmp(&b.start));
        // Repeated doses of one protocol are one application for a regimen: the first is the template.
        let parent = |application: &Self| {
            let path = application.container.rsplit_once(model.delimiter);
            path.map_or_else(String::new, |(parent, _)| parent.to_owned())
        };
        match found.as_slice() {
            [first, others @ ..] if others.iter().all(|other| parent(other) == parent(first)) => {
                Ok((*first).clone())
            }
            _ => Err(RegimenError::Container {
                wanted: regimen
                    .container
                    .as_ref()
                    .map_or_else(String::new, |wanted| format!(" '{wanted}'")),
                known: all.into_iter().map(|one| one.container).collect(),
            }),
        }
    }

    fn position(&self, model: &Model, name: &str) -> Option<usize> {
        let (item, container) = (&self.item, &self.container);
        let at = |place: &str| model.position(&format!("{place}{}{name}", model.delimiter));
        at(item).or_else(|| at(container))
    }

    fn unfit(&self, what: impl Into<String>) -> RegimenError {
        RegimenError::Unfit {
            container: self.container.clone(),
            what: what.into(),
        }
    }

    /// Sets the dose, in the quantity that its unit belongs to.
    fn set_dose(&self, model: &mut Model, dose: &DoseAmount) -> Result<(), RegimenError> {
        for name in [DOSE, DOSE_PER_WEIGHT, DRUG_MASS] {
            let Some(q) = self.position(model, name) else {
                continue;
            };
            let value = path::to_base(&model.quantities[q], dose.value, Some(&dose.unit));
            let Ok(value) = value else {
                continue;
            };
            model.quantities[q].source = ValueSource::Constant(value);
            if name == DOSE_PER_WEIGHT {
                self.follow_weight(model, q)?;
            }
            if name != DRUG_MASS && !self.is_used(model, q) {
                return Err(self.unfit(format!(
                    "does not depend on its parameter {name}; give the dose in the unit of DrugMass, µmol"
                )));
            }
            return Ok(());
        }
        // A mass is taken for an amount by molecular weight.
        let q = self.position(model, DRUG_MASS);
        let value = q.and_then(|q| mass_as_amount(model, q, dose).map(|value| (q, value)));
        match value {
            Some((q, value)) => {
                model.quantities[q].source = ValueSource::Constant(value);
                Ok(())
            }
            None => Err(self.unfit(format!(
                "takes no dose in '{}': write a mass (mg), a mass per body weight (mg/kg) or an amount (µmol)",
                dose.unit
            ))),
        }
    }

    /// Makes the dose follow the dose per body weight, if it does not.
    fn follow_weight(&self, model: &mut Model, per_weight: usize) -> Result<(), RegimenError> {
        if self.is_used(model, per_weight) {
            return Ok(());
        }
        let weight = [WEIGHT.to_owned(), format!("{}|{WEIGHT}", model.name)];
        let weight = weight.iter().find_map(|path| {
            let path = path.replace('|', &model.delimiter.to_string());
            model.position(&path)
        });
        let (Some(dose), Some(weight)) = (self.position(model, DOSE), weight) else {
            return Err(self.unfit("has no body weight to which a dose could be relative"));
        };
        let aliases = ["DosePerBodyWeight".to_owned(), "BW".to_owned()];
        let body = FormulaBody::parse("DosePerBodyWeight*BW", &aliases)
            .map_err(|error| self.unfit(error.to_string()))?;
        let arguments = [per_weight, weight].map(AliasReference::Quantity).to_vec();
        model.formulas.push(BoundFormula {
            name: "dose of the regimen".to_owned(),
            kind: FormulaKind::Explicit {
                body: Arc::new(body),
                arguments,
            },
        });
        model.quantities[dose].source = ValueSource::Formula(model.formulas.len() - 1);
        Ok(())
    }

    /// Returns whether a formula in force uses the quantity.
    fn is_used(&self, model: &Model, q: usize) -> bool {
        let uses = |f: usize| {
            let mut references = model.formulas[f].references();
            references.any(|reference| reference == AliasReference::Quantity(q))
        };
        let sources = model.quantities.iter().any(|quantity| {
            matches!(quantity.source, ValueSource::Formula(f) if uses(f))
                || quantity.rhs.iter().any(|term| uses(term.formula))
        });
        let assigned = model.events.iter().flat_map(|event| &event.assignments);
        sources
            || assigned
                .into_iter()
                .any(|assignment| uses(assignment.formula))
    }

    fn set_time(&self, model: &mut Model, name: &str, minutes: f64) -> Result<(), RegimenError> {
        let q = self.position(model, name).ok_or_else(|| {
            self.unfit(format!(
                "has no '{name}': only the infusions of a model can be given another duration"
            ))
        })?;
        model.quantities[q].source = ValueSource::Constant(minutes);
        Ok(())
    }
}

/// Values of all quantities at the start; empty for a model that does not compile.
fn start_values(model: &Model) -> Vec<f64> {
    let structure = Structure::new(Arc::new(model.clone()), Vec::new());
    structure.map_or_else(
        |_| Vec::new(),
        |structure| Instance::new(&structure).values().to_vec(),
    )
}

fn mass_as_amount(model: &Model, q: usize, dose: &DoseAmount) -> Option<f64> {
    let structure = Structure::new(Arc::new(model.clone()), Vec::new()).ok()?;
    let individual = Instance::new(&structure);
    path::in_base(&individual, q, dose.value, Some(&dose.unit)).ok()
}

/// Returns the model with these doses instead of its own.
pub(super) fn give_doses(
    mut model: Model,
    regimens: &[Regimen],
    mut report: RegimenReport,
    watch: &Watch<'_>,
) -> Result<(Model, RegimenReport), RegimenError> {
    watch.ask()?;
    if regimens.iter().map(|regimen| regimen.number).sum::<usize>() > DOSES_MAX {
        return Err(RegimenError::TooMany {
            what: "doses",
            limit: DOSES_MAX,
        });
    }
    let file = Application::all(&model);
    let mut templates: Vec<Application> = Vec::new();
    for regimen in regimens {
        let template = Application::find(&model, regimen)?;
        templates.push(template);
    }
    let mut taken = HashSet::new();
    let mut doses = Vec::new();
    for (regimen, template) in regimens.iter().zip(&templates) {
        let interval = regimen.interval.unwrap_or(0.0);
        let first = regimen.start.unwrap_or(template.start);
        for number in 0..regimen.number {
            watch.ask()?;
            // The file's own application has the first dose of the first regimen that names it.
            let application = if taken.insert(template.container.clone()) {
                template.clone()
            } else {
                copy_application(&mut model, template, &mut report, watch)?
            };
            let dose = match &regimen.loading {
                Some(loading) if number == 0 => loading,
                _ => &regimen.dose,
            };
            let time = first + number as f64 * interval;
            doses.push((application, dose.clone(), time, regimen.infusion));
        }
    }
    // Copies are of the file's application, so doses are set when all are made.
    for (application, dose, time, infusion) in &doses {
        application.set_dose(&mut model, dose)?;
        application.set_time(&mut model, START_TIME, *time)?;
        if let Some(infusion) = infusion {
            application.set_time(&mut model, INFUSION_TIME, *infusion)?;
        }
        report.doses.push((application.container.clone(), *time));
    }
    for other in file {
        if !taken.contains(&other.container) {
            let names = [DRUG_MASS, DOSE];
            let q = names.iter().find_map(|name| other.position(&model, name));
            if let Some(q) = q {
                model.quantities[q].source = ValueSource::Constant(0.0);
            }
            report.warnings.push(format!(
                "the application '{}' of the file is given no dose: the regimen replaces it",
                other.container
            ));
        }
    }
    report.doses.sort_by(|a, b| a.1.total_cmp(&b.1));
    add_times(&mut model, regimens, &templates)?;
    model.warnings.extend(report.warnings.iter().cloned());
    Ok((model, report))
}

/// Adds the file's output times of the first interval to each dose, and the ends of all intervals.
fn add_times(
    model: &mut Model,
    regimens: &[Regimen],
    templates: &[Application],
) -> Result<(), RegimenError> {
    let file = model.grid.sorted(TimePrecision::Double);
    let mut added = Vec::new();
    for (regimen, template) in regimens.iter().zip(templates) {
        let first = regimen.start.unwrap_or(template.start);
        let interval = regimen.interval.unwrap_or(f64::INFINITY);
        let from = template.start;
        let inside = file.iter().filter(|t| **t >= from && **t < from + interval);
        let inside: Vec<f64> = inside.map(|t| t - from).collect();
        if regimen.number.saturating_mul(inside.len()) > TIMES_ADDED_MAX {
            return Err(RegimenError::TooMany {
                what: "output times",
                limit: TIMES_ADDED_MAX,
            });
        }
        for number in 0..regimen.number {
            let dose = match number {
                0 => first,
                number => first + number as f64 * interval,
            };
            added.push(dose);
            added.extend(inside.iter().map(|t| dose + t));
            added.extend(regimen.interval.map(|interval| dose + interval));
        }
    }
    let all = OutputGrid {
        intervals: model.grid.intervals.clone(),
        times: model.grid.times.iter().copied().chain(added).collect(),
    };
    if all.is_too_large() {
        return Err(RegimenError::TooMany {
            what: "output times",
            limit: OutputGrid::TIMES_MAX,
        });
    }
    model.grid = all;
    Ok(())
}

/// Returns the path of a container that the model does not have yet, with the next number at its end.
fn free_container(model: &Model, container: &str, prefix: &str) -> String {
    let digits = container.len()
        - container
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .len();
    let stem = match container.len() - digits {
        stem if digits > 0 && container[..stem].ends_with('_') => &container[..stem - 1],
        _ => container,
    };
    let known: HashSet<&str> = model
        .quantities
        .iter()
        .filter_map(|quantity| {
            let rest = quantity.path.strip_prefix(prefix)?;
            let end = rest.find(model.delimiter)?;
            quantity.path.get(..prefix.len() + end)
        })
        .collect();
    let mut number = 2_usize;
    loop {
        let name = format!("{stem}_{number}");
        if !known.contains(name.as_str()) {
            return name;
        }
        number += 1;
    }
}

/// Adds a copy of an application: quantities, formulas, events, and terms in rates outside of it.
fn copy_application(
    model: &mut Model,
    template: &Application,
    report: &mut RegimenReport,
    watch: &Watch<'_>,
) -> Result<Application, RegimenError> {
    let delimiter = model.delimiter;
    let container = &template.container;
    let parent = container
        .rsplit_once(delimiter)
        .map_or("", |(parent, _)| parent);
    let prefix = match parent {
        "" => String::new(),
        parent => format!("{parent}{delimiter}"),
    };
    let inner = format!("{container}{delimiter}");
    let name = free_container(model, container, &prefix);
    let own: Vec<usize> = (0..model.quantities.len())
        .filter(|q| model.quantities[*q].path.starts_with(&inner))
        .collect();
    if model.quantities.len().saturating_add(own.len()) > QUANTITIES_ADDED_MAX {
        return Err(RegimenError::TooMany {
            what: "quantities",
            limit: QUANTITIES_ADDED_MAX,
        });
    }
    let base = model.quantities.len();
    let places: HashMap<usize, usize> = own
        .iter()
        .enumerate()
        .map(|(i, q)| (*q, base + i))
        .collect();
    let mut copier = FormulaCopier {
        places: &places,
        copies: HashMap::new(),
    };
    // Terms in rates of states outside.
    for q in 0..base {
        watch.check()?;
        if places.contains_key(&q) {
            continue;
        }
        let terms: Vec<RhsTerm> = model.quantities[q].rhs.clone();
        for term in terms {
            if copier.touches(&model.formulas[term.formula]) {
                let formula = copier.copy(model, term.formula);
                model.quantities[q].rhs.push(RhsTerm { formula, ..term });
            }
        }
        let ValueSource::Formula(f) = model.quantities[q].source else {
            continue;
        };
        if !copier.touches(&model.formulas[f]) {
            continue;
        }
        let of_template = copier.count_of(&model.formulas[f]);
        match copier.extended_sum(&model.formulas[f]) {
            Some(sum) => {
                model.formulas.push(sum);
                model.quantities[q].source = ValueSource::Formula(model.formulas.len() - 1);
            }
            None if of_template > 0 => {
                let warning = format!(
                    "'{}' is computed from the first dose of '{container}' alone",
                    model.quantities[q].path
                );
                if !report.warnings.contains(&warning) {
                    report.warnings.push(warning);
                }
            }
            None => {}
        }
    }
    for &q in &own {
        let mut quantity = model.quantities[q].clone();
        let rest = quantity.path.get(container.len()..).unwrap_or_default();
        quantity.path = format!("{name}{rest}");
        if !quantity.entity_id.is_empty() {
            quantity.entity_id = format!("{}-{}", quantity.entity_id, base);
        }
        if let ValueSource::Formula(f) = quantity.source {
            quantity.source = ValueSource::Formula(copier.copy(model, f));
        }
        for term in &mut quantity.rhs {
            term.formula = copier.copy(model, term.formula);
        }
        model.quantities.push(quantity);
    }
    let events = model.events.clone();
    for event in events {
        let is_own = copier.touches(&model.formulas[event.condition])
            || event.assignments.iter().any(|assignment| {
                places.contains_key(&assignment.target)
                    || copier.touches(&model.formulas[assignment.formula])
            });
        if !is_own {
            continue;
        }
        let mut copy = event;
        copy.name = format!("{} ({name})", copy.name);
        copy.condition = copier.copy(model, copy.condition);
        for assignment in &mut copy.assignments {
            *assignment = EventAssignment {
                target: copier.place(assignment.target),
                formula: copier.copy(model, assignment.formula),
                ..*assignment
            };
        }
        model.events.push(copy);
    }
    let item = template.item.get(container.len()..).unwrap_or_default();
    Ok(Application {
        item: format!("{name}{item}"),
        container: name,
        start: template.start,
    })
}

/// Copies formulas to other quantities, each once.
struct FormulaCopier<'a> {
    places: &'a HashMap<usize, usize>,
    copies: HashMap<usize, usize>,
}

impl FormulaCopier<'_> {
    fn place(&self, q: usize) -> usize {
        self.places.get(&q).copied().unwrap_or(q)
    }

    fn reference(&self, reference: AliasReference) -> AliasReference {
        match reference {
            AliasReference::Quantity(q) => AliasReference::Quantity(self.place(q)),
            AliasReference::Time => reference,
        }
    }

    /// Returns whether the formula uses a quantity that is copied.
    fn touches(&self, formula: &BoundFormula) -> bool {
        self.count_of(formula) > 0
    }

    fn count_of(&self, formula: &BoundFormula) -> usize {
        let is_own = |reference: &AliasReference| match reference {
            AliasReference::Quantity(q) => self.places.contains_key(q),
            AliasReference::Time => false,
        };
        formula.references().filter(is_own).count()
    }

    /// Returns the position of the formula that uses the copies; the same one if it uses none.
    fn copy(&mut self, model: &mut Model, f: usize) -> usize {
        if !self.touches(&model.formulas[f]) {
            return f;
        }
        if let Some(known) = self.copies.get(&f) {
            return *known;
        }
        let of = &model.formulas[f];
        let kind = match &of.kind {
            FormulaKind::Explicit { body, arguments } => FormulaKind::Explicit {
                body: Arc::clone(body),
                arguments: arguments.iter().map(|a| self.reference(*a)).collect(),
            },
            FormulaKind::Table(table) => FormulaKind::Table(Arc::clone(table)),
            FormulaKind::TableWithOffset { table, offset } => FormulaKind::TableWithOffset {
                table: self.place(*table),
                offset: self.reference(*offset),
            },
            FormulaKind::TableWithArgument { table, argument } => FormulaKind::TableWithArgument {
                table: self.place(*table),
                argument: self.reference(*argument),
            },
        };
        let copy = BoundFormula {
            name: of.name.clone(),
            kind,
        };
        model.formulas.push(copy);
        let position = model.formulas.len() - 1;
        self.copies.insert(f, position);
        position
    }

    /// Returns a sum of quantities, such as the total drug mass, with the copies of its terms added.
    fn extended_sum(&self, formula: &BoundFormula) -> Option<BoundFormula> {
        let FormulaKind::Explicit { body, arguments } = &formula.kind else {
            return None;
        };
        let is_sum = body.nodes.iter().all(|node| {
            matches!(
                node,
                Expr::Argument(_) | Expr::Binary(BinaryOperation::Add, _, _)
            )
        });
        if !is_sum {
            return None;
        }
        let terms = body.nodes.iter().filter_map(|node| match node {
            Expr::Argument(i) => arguments.get(*i as usize).copied(),
            _ => None,
        });
        let mut terms: Vec<AliasReference> = terms.collect();
        let further: Vec<AliasReference> = terms
            .iter()
            .filter(|term| self.reference(**term) != **term)
            .map(|term| self.reference(*term))
            .collect();
        terms.extend(further);
        let aliases: Vec<String> = (0..terms.len()).map(|i| format!("term_{i}")).collect();
        let body = FormulaBody::parse(&aliases.join("+"), &aliases).ok()?;
        Some(BoundFormula {
            name: formula.name.clone(),
            kind: FormulaKind::Explicit {
                body: Arc::new(body),
                arguments: terms,
            },
        })
    }
}
