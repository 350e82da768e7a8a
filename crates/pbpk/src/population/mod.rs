//! Many individuals of one model: a table of parameter values, one row each, in the format of the suite or drawn from
//! distributions.
//!
//! The model is compiled once. [`run_chunk`] is pure: its result depends on the model, the rows of its range and the
//! options, not on what ran before or beside it.

mod ageing;
mod cohort;
mod correlation;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use ageing::AgeingTables;
pub(crate) use cohort::uniform;
pub use cohort::{Cohort, Distribution, VariedParameter};
pub use correlation::ScoreCorrelation;
pub use table::{Covariate, ParameterColumn, Population, PopulationError};

use crate::compile::{CompileError, Instance, QuantityChanges, Structure};
use crate::error::SetError;
use crate::model::{
    BoundFormula, FormulaKind, Model, PointTable, Quantity, QuantityKind, ValueSource,
};
use crate::path;
use crate::run::{Results, RunOptions, run};
use crate::watch::{Interrupt, Watch};

/// Most individuals of a population.
pub const INDIVIDUALS_MAX: usize = 10_000_000;

/// A population bound to a model: which column sets which quantity.
#[derive(Debug)]
pub struct PopulationPlan {
    base: Instance,
    changes: QuantityChanges,
    /// The same, as far as runs read it.
    for_runs: QuantityChanges,
    /// Column of the population for each change, with the factor and offset of its unit.
    columns: Vec<(usize, f64, f64)>,
    warnings: Vec<String>,
    /// Parameters of individuals that follow the time.
    ageing: BTreeMap<i64, Vec<(usize, Arc<PointTable>)>>,
}

/// Why an individual cannot be made.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanError {
    /// A value that cannot be set.
    Set(SetError),
    /// A model with tables over time that cannot be compiled.
    Compile(CompileError),
    /// The caller asked to stop.
    Interrupted(Interrupt),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(e) => e.fmt(f),
            Self::Compile(e) => e.fmt(f),
            Self::Interrupted(cause) => write!(f, "{cause} while individuals were made"),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<SetError> for PlanError {
    fn from(e: SetError) -> Self {
        Self::Set(e)
    }
}

impl From<CompileError> for PlanError {
    fn from(e: CompileError) -> Self {
        match e {
            CompileError::Interrupted { cause } => Self::Interrupted(cause),
            e => Self::Compile(e),
        }
    }
}

impl From<Interrupt> for PlanError {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted(cause)
    }
}

/// The quantities of a model by the names that tables of the suite give them: with and without the simulation's name.
struct QuantityNames<'a> {
    by_path: HashMap<&'a str, (usize, &'a Quantity)>,
    prefix: String,
}

impl<'a> QuantityNames<'a> {
    fn new(model: &'a Model, watch: &Watch<'_>) -> Result<Self, Interrupt> {
        let mut by_path = HashMap::with_capacity(model.quantities.len());
        for (i, q) in model.quantities.iter().enumerate() {
            watch.check()?;
            by_path.insert(q.path.as_str(), (i, q));
        }
        Ok(Self {
            by_path,
            prefix: format!("{}{}", model.name, model.delimiter),
        })
    }

    fn find(&self, path: &str) -> Option<(usize, &'a Quantity)> {
        let full = format!("{}{path}", self.prefix);
        let short = path.strip_prefix(&self.prefix).unwrap_or(path);
        let mut names = [path, &full, short].into_iter();
        names.find_map(|name| self.by_path.get(name).copied())
    }
}

impl PopulationPlan {
    /// Binds the columns to the quantities of the model; also returns the names of the columns that the model does not
    /// have.
    ///
    /// # Errors
    /// [`PlanError::Set`] if a unit does not belong to its quantity, or a quantity cannot be set.
    pub fn new(base: Instance, population: &Population) -> Result<(Self, Vec<String>), PlanError> {
        Self::with_watch(base, population, &Watch::default())
    }

    /// As [`PopulationPlan::new`], asking `watch` now and then whether to go on.
    ///
    /// # Errors
    /// As [`PopulationPlan::new`], and [`PlanError::Interrupted`].
    pub fn with_watch(
        base: Instance,
        population: &Population,
        watch: &Watch<'_>,
    ) -> Result<(Self, Vec<String>), PlanError> {
        watch.ask()?;
        let structure = Arc::clone(base.structure());
        let model = structure.model();
        let names = QuantityNames::new(model, watch)?;
        let (mut positions, mut columns, mut unmatched) = (Vec::new(), Vec::new(), Vec::new());
        let mut warnings = population.warnings.clone();
        for (c, column) in population.columns.iter().enumerate() {
            watch.check()?;
            let Some((position, quantity)) = names.find(&column.path) else {
                unmatched.push(column.path.clone());
                continue;
            };
            let unit = (!column.unit.is_empty()).then_some(column.unit.as_str());
            // Units are linear: two values give factor and offset.
            let offset = path::to_base(quantity, 0.0, unit)?;
            let factor = path::to_base(quantity, 1.0, unit)? - offset;
            if population.is_read() && (factor != 1.0 || offset != 0.0) {
                warnings.push(format!(
                    "'{}' is converted from {} to {}; OSP takes the numbers of the file as {}",
                    column.path, column.unit, quantity.unit, quantity.unit
                ));
            }
            positions.push(position);
            columns.push((c, factor, offset));
        }
        let changes = QuantityChanges::new(&base, positions)?;
        watch.ask()?;
        let plan = Self {
            for_runs: changes.for_runs(&base),
            base,
            changes,
            columns,
            warnings,
            ageing: BTreeMap::new(),
        };
        Ok((plan, unmatched))
    }

    /// Lets parameters of individuals follow the time. These come before what the population says of the same
    /// parameters. Gives back the paths that the model does not have.
    ///
    /// # Errors
    /// [`SetError::NotSettable`] for what is no parameter, has a rate of its own, or is named twice for an individual.
    /// The plan is then as before.
    pub fn age(&mut self, ageing: &AgeingTables) -> Result<Vec<String>, PlanError> {
        self.age_watched(ageing, &Watch::default())
    }

    /// As [`PopulationPlan::age`], asking `watch` now and then whether to go on.
    ///
    /// # Errors
    /// As [`PopulationPlan::age`], and [`PlanError::Interrupted`].
    pub fn age_watched(
        &mut self,
        ageing: &AgeingTables,
        watch: &Watch<'_>,
    ) -> Result<Vec<String>, PlanError> {
        watch.ask()?;
        let structure = Arc::clone(self.base.structure());
        let names = QuantityNames::new(structure.model(), watch)?;
        let mut unmatched = Vec::new();
        let mut fresh: BTreeMap<i64, Vec<(usize, Arc<PointTable>)>> = BTreeMap::new();
        for (id, tables) in ageing.tables() {
            for (path, table) in tables {
                watch.check()?;
                let Some((position, quantity)) = names.find(path) else {
                    unmatched.push(path.clone());
                    continue;
                };
                if quantity.kind != QuantityKind::Parameter || !quantity.rhs.is_empty() {
                    return Err(SetError::NotSettable {
                        path: quantity.path.clone(),
                        reason: "only a parameter without a rate can follow ageing data",
                    }
                    .into());
                }
                let own = fresh.entry(id).or_default();
                let known = self.ageing.get(&id).into_iter().flatten();
                if known.chain(&*own).any(|(other, _)| *other == position) {
                    return Err(SetError::NotSettable {
                        path: quantity.path.clone(),
                        reason: "the ageing data of an individual name it twice",
                    }
                    .into());
                }
                own.push((position, Arc::clone(table)));
            }
        }
        for (id, mut own) in fresh {
            self.ageing.entry(id).or_default().append(&mut own);
        }
        unmatched.sort_unstable();
        unmatched.dedup();
        Ok(unmatched)
    }

    /// Returns the parameters of an individual that follow the time.
    #[cfg(feature = "cli")]
    pub(crate) fn aged(&self, id: i64) -> Option<impl fmt::Debug + '_> {
        self.ageing.get(&id)
    }

    /// Warnings of reading and binding the population.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns how many columns set a quantity.
    #[must_use]
    pub fn matched(&self) -> usize {
        self.columns.len()
    }

    /// For each column that sets a quantity its place in the population, the factor and offset of its unit, and the
    /// quantity's position.
    #[cfg(feature = "cli")]
    pub(crate) fn columns(&self) -> impl std::fmt::Debug + '_ {
        (&self.columns, self.changes.positions())
    }

    /// Path and unit of each output.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &str)> {
        let structure = self.base.structure();
        let quantities = &structure.model().quantities;
        let found = structure
            .outputs()
            .iter()
            .filter_map(|q| quantities.get(*q));
        found.map(|q| (q.path.as_str(), q.unit.as_str()))
    }

    /// Returns the individual of a row.
    ///
    /// # Errors
    /// [`PlanError`] if a value cannot be set.
    pub fn individual(&self, population: &Population, row: usize) -> Result<Instance, PlanError> {
        self.with_row(&self.changes, population, row, &Watch::default())
    }

    /// Returns the base with the values of a row.
    fn with_row(
        &self,
        changes: &QuantityChanges,
        population: &Population,
        row: usize,
        watch: &Watch<'_>,
    ) -> Result<Instance, PlanError> {
        let numbers = population.row(row);
        let value = |&(c, factor, offset): &(usize, f64, f64)| {
            let value = numbers.get(c).copied().unwrap_or(f64::NAN);
            if factor == 1.0 && offset == 0.0 {
                value
            } else {
                value * factor + offset
            }
        };
        let values: Vec<f64> = self.columns.iter().map(value).collect();
        if let Some(tables) = self.ageing.get(&population.id(row)) {
            return self.with_tables(tables, &values, watch);
        }
        // A value that is not a number leaves the individual that of the model, formula included.
        if values.iter().any(|value| value.is_nan()) {
            let set = changes.positions().iter().copied().zip(values);
            let set = set.filter(|(_, value)| !value.is_nan());
            let (positions, values): (Vec<usize>, Vec<f64>) = set.unzip();
            let changes = QuantityChanges::new(&self.base, positions)?;
            let mut individual = self.base.clone();
            individual.take(&changes, &values)?;
            individual.follow(&changes, watch)?;
            return Ok(individual);
        }
        let mut individual = self.base.copied_for(changes);
        individual.take(changes, &values)?;
        individual.follow(changes, watch)?;
        Ok(individual)
    }

    /// Returns the base with tables over time in the place of parameters, and with these values of the columns. It is
    /// compiled again.
    fn with_tables(
        &self,
        tables: &[(usize, Arc<PointTable>)],
        values: &[f64],
        watch: &Watch<'_>,
    ) -> Result<Instance, PlanError> {
        let structure = self.base.structure();
        let mut model = structure.model().clone();
        for (position, table) in tables {
            let Some(quantity) = model.quantities.get_mut(*position) else {
                continue;
            };
            quantity.source = ValueSource::Formula(model.formulas.len());
            model.formulas.push(BoundFormula {
                name: format!("ageing of '{}'", quantity.path),
                kind: FormulaKind::Table(Arc::clone(table)),
            });
        }
        let outputs = structure.outputs().to_vec();
        let compiled = Structure::with_watch(Arc::new(model), outputs, watch)?;
        let mut individual = Instance::with_watch(&compiled, watch)?;
        let mut set = BTreeMap::new();
        let of_base = self.base.values().iter().copied().enumerate();
        set.extend(of_base.filter(|(q, _)| self.base.is_set(*q)));
        let of_row = values.iter().copied();
        let of_row = self.changes.positions().iter().copied().zip(of_row);
        set.extend(of_row.filter(|(_, value)| !value.is_nan()));
        for (position, _) in tables {
            set.remove(position);
        }
        let (positions, values): (Vec<usize>, Vec<f64>) = set.into_iter().unzip();
        let changes = QuantityChanges::new(&individual, positions)?;
        individual.take(&changes, &values)?;
        individual.follow(&changes, watch)?;
        Ok(individual)
    }
}

/// What became of one individual.
#[derive(Debug)]
pub struct IndividualOutcome {
    /// Its number in the population.
    pub id: i64,
    /// Its curves, or why there are none.
    pub result: Result<Results, String>,
}

/// Runs the individuals of a range of rows, one after another. An individual that fails does not end the others; an
/// interruption does, and is the error of the first one that it met.
pub fn run_chunk(
    plan: &PopulationPlan,
    population: &Population,
    range: Range<usize>,
    options: &RunOptions<'_>,
    mut each: impl FnMut(IndividualOutcome),
) -> Result<(), Interrupt> {
    let watch = Watch::new(options.interrupt);
    for row in range {
        watch.ask()?;
        let id = population.id(row);
        let result = match plan.with_row(&plan.for_runs, population, row, &watch) {
            Err(PlanError::Interrupted(cause)) => return Err(cause),
            Err(e) => Err(e.to_string()),
            Ok(individual) => match run(&individual, options) {
                Ok(results) => Ok(results),
                Err(failure) => match failure.error {
                    crate::run::RunError::Interrupted { cause, .. } => return Err(cause),
                    error => Err(error.to_string()),
                },
            },
        };
        each(IndividualOutcome { id, result });
    }
    Ok(())
}
