//! Pieces of work: a single run, or some individuals of a population. The result of a piece depends on the piece alone,
//! not on the computing process.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use pbpk::compile::Instance;
use pbpk::model::{Model, Quantity};
use pbpk::population::{Population, PopulationPlan, run_chunk};
use pbpk::run::{Results, RunOptions, Tell, run};
use pbpk::watch::{Interrupt, Question, Watch};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::engine::ASK_MS;
use super::ospsuite::{IndividualRequest, OspsuiteLauncher, OspsuiteSession};
use super::work::RunWork;
use crate::fault::{Fault, Kind};
use crate::models::ModelLibrary;
use crate::population::{CohortRecord, preview};
use crate::results::{Columns, ResultColumn};
use crate::session::apply;

/// A piece of work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkPiece {
    /// The whole run.
    pub work: RunWork,
    /// Which individuals, if there is a cohort.
    pub rows: Option<Range<usize>>,
    /// How R is started, if it runs them.
    #[serde(default)]
    pub over_r: Option<OspsuiteLauncher>,
}

/// Result of a piece.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputedPiece {
    /// The numbers, as [`Columns::encode`] writes them.
    pub bytes: Vec<u8>,
    /// Summary of the numbers.
    pub about: PieceSummary,
}

/// Summary of the numbers of a piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PieceSummary {
    /// First and last time, in minutes.
    pub times: [f64; 2],
    /// Individuals that could not be computed, with the reason.
    pub failed: BTreeMap<i64, String>,
    /// The first individuals at a glance; null for a single run.
    pub preview: Value,
    /// States of the model.
    pub states: usize,
    /// Steps of the solver, all individuals together; none if R does not report them.
    pub steps: usize,
    /// Name of the solver.
    pub engine: String,
    /// Warnings of the run, without repetitions.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Most warnings that are kept of a piece.
const WARNINGS_MAX: usize = 50;

/// Adds warnings that are not there yet, up to the bound.
pub(super) fn note(all: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for warning in more {
        if all.len() < WARNINGS_MAX && !all.contains(&warning) {
            all.push(warning);
        }
    }
}

/// An individual of a cohort, or the one of the file, and all that is set in it.
type Individual = (Option<i64>, BTreeMap<String, f64>);

/// Computes pieces, in this process.
#[derive(Debug, Default)]
pub struct PieceComputer {
    library: Arc<ModelLibrary>,
    /// The population that was computed last, by all that was asked for: names of results are chosen by callers.
    prepared: Mutex<Option<(RunWork, Arc<PreparedPiece>)>>,
    /// The R that is kept warm.
    r: Mutex<Option<OspsuiteSession>>,
}

#[derive(Debug)]
struct PreparedPiece {
    plan: PopulationPlan,
    states: usize,
    population: Population,
}

impl PieceComputer {
    /// Computes with these models.
    #[must_use]
    pub fn new(library: Arc<ModelLibrary>) -> Self {
        Self {
            library,
            prepared: Mutex::default(),
            r: Mutex::default(),
        }
    }

    /// Computes a piece. `progress` gets the part of a single run that is done, from 0 to 1, or the number of
    /// individuals that are done.
    ///
    /// # Errors
    /// [`Fault`]; `Cancelled` and `Timeout` if `ask` ended it.
    pub fn compute(
        &self,
        piece: &WorkPiece,
        ask: Question<'_>,
        progress: Tell<'_>,
    ) -> Result<ComputedPiece, Fault> {
        if let Some(how) = &piece.over_r {
            return self.over_r(how, piece, ask, progress);
        }
        let options = RunOptions {
            interrupt: Some(ask),
            progress: Some(progress),
            osp_version: piece.work.release(),
            ..RunOptions::default()
        };
        match (&piece.work.cohort, &piece.rows) {
            (Some(cohort), Some(rows)) => {
                let prepared = self.prepared(&piece.work, cohort, ask)?;
                some(&prepared, rows.clone(), &options, ask)
            }
            _ => {
                let instance = self.individual(&piece.work, ask)?;
                let results =
                    run(&instance, &options).map_err(|failure| Fault::from(&failure.error))?;
                let (mut columns, steps) = (Columns::default(), results.statistics.steps);
                let warnings = results.warnings.clone();
                add(&mut columns, None, results);
                let mut computed = computed(&columns, BTreeMap::new(), Value::Null, ask)?;
                computed.about.steps = steps;
                note(&mut computed.about.warnings, warnings);
                computed.about.states = instance.structure().states().len();
                Ok(computed)
            }
        }
    }

    /// Computes a piece over R. One that ends in the middle, or is stopped, is not used again.
    fn over_r(
        &self,
        how: &OspsuiteLauncher,
        piece: &WorkPiece,
        ask: Question<'_>,
        progress: Tell<'_>,
    ) -> Result<ComputedPiece, Fault> {
        let individual = self.individual(&piece.work, ask)?;
        // R reads the file itself.
        piece.work.model.content(&Watch::new(Some(ask)))?;
        let mut kept = locked(&self.r, ask)?;
        let warm = kept.take().filter(|session| session.how == *how);
        let mut session = warm.map_or_else(|| OspsuiteSession::start(how, ask), Ok)?;
        let structure = individual.structure();
        let (mut columns, mut failed) = (Columns::default(), BTreeMap::new());
        let chosen: Vec<&Quantity> = {
            let all = structure.outputs().iter();
            all.filter_map(|at| structure.model().quantities.get(*at))
                .collect()
        };
        let outputs: Vec<String> = chosen.iter().map(|one| one.path.clone()).collect();
        for (done, (subject, parameters)) in self
            .asked_for(piece, structure.model(), ask)?
            .into_iter()
            .enumerate()
        {
            let request = IndividualRequest {
                file: &piece.work.model.path,
                sha256: &piece.work.model.sha256,
                outputs: &outputs,
                parameters: &parameters,
            };
            match (session.run(&request, ask)?, subject) {
                (Ok(curves), _) => {
                    let named = chosen.iter().map(|one| ResultColumn {
                        parameter: one.path.clone(),
                        unit: one.unit.clone(),
                        subject,
                    });
                    columns.columns.extend(named);
                    columns.values.extend(curves.values);
                    columns.times = curves.times;
                }
                (Err(wrong), Some(subject)) => drop(failed.insert(subject, wrong)),
                (Err(wrong), None) => {
                    *kept = Some(session);
                    return Err(Fault::new(Kind::SolverFailure, wrong));
                }
            }
            if subject.is_some() {
                #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
                progress(1.0 + done as f64);
            }
        }
        let seen = match piece.rows {
            Some(_) => preview(&columns),
            None => Value::Null,
        };
        let mut computed = computed(&columns, failed, seen, ask)?;
        computed.about.states = structure.states().len();
        computed.about.engine = session.told.name().to_owned();
        *kept = Some(session);
        Ok(computed)
    }

    /// Returns the individuals of a piece, each with all that is set in it.
    fn asked_for(
        &self,
        piece: &WorkPiece,
        model: &Model,
        ask: Question<'_>,
    ) -> Result<Vec<Individual>, Fault> {
        let (Some(cohort), Some(rows)) = (&piece.work.cohort, &piece.rows) else {
            return Ok(vec![(None, piece.work.changed.clone())]);
        };
        let prepared = self.prepared(&piece.work, cohort, ask)?;
        let population = &prepared.population;
        let mut all = Vec::new();
        for row in rows.clone() {
            let mut parameters = piece.work.changed.clone();
            for (column, value) in population.columns.iter().zip(population.row(row)) {
                // The individual has the model's value then.
                if value.is_nan() {
                    continue;
                }
                let at = pbpk::path::find_one(model, &column.path)?;
                let unit = Some(column.unit.as_str()).filter(|unit| !unit.is_empty());
                if let Some(quantity) = model.quantities.get(at) {
                    let base = pbpk::path::to_base(quantity, *value, unit)?;
                    parameters.insert(quantity.path.clone(), base);
                }
            }
            all.push((Some(population.id(row)), parameters));
        }
        Ok(all)
    }

    /// Returns the individual of a work: the file's, with what the caller has set.
    fn individual(&self, work: &RunWork, ask: Question<'_>) -> Result<Instance, Fault> {
        let watch = Watch::new(Some(ask));
        let structure = self.library.open(&work.model, &work.selection, &watch)?;
        let mut instance = Instance::with_watch(&structure, &watch)?;
        let changed = work.changed.iter();
        apply(
            &mut instance,
            changed.map(|(path, value)| (path.as_str(), *value)),
        )?;
        Ok(instance)
    }

    fn prepared(
        &self,
        work: &RunWork,
        cohort: &CohortRecord,
        ask: Question<'_>,
    ) -> Result<Arc<PreparedPiece>, Fault> {
        let mut kept = locked(&self.prepared, ask)?;
        if let Some((of, prepared)) = &*kept
            && of == work
        {
            return Ok(Arc::clone(prepared));
        }
        let watch = Watch::new(Some(ask));
        let mut population = cohort.draw(&watch)?;
        let base = self.individual(work, ask)?;
        let model = base.structure().model();
        for column in &mut population.columns {
            // A part of a path that names one quantity is good enough, as it is for every other tool.
            let found = pbpk::path::find_one(model, &column.path).ok();
            if let Some(quantity) = found.and_then(|at| model.quantities.get(at)) {
                column.path.clone_from(&quantity.path);
            }
        }
        let states = base.structure().states().len();
        let (plan, unknown) = PopulationPlan::with_watch(base, &population, &watch)?;
        if let Some(unknown) = unknown.first() {
            let wrong = format!("no quantity has the path '{unknown}'");
            return Err(Fault::missing("cohort.covariates", wrong));
        }
        let prepared = Arc::new(PreparedPiece {
            plan,
            states,
            population,
        });
        *kept = Some((work.clone(), Arc::clone(&prepared)));
        Ok(prepared)
    }
}

/// Some individuals of a population; one that cannot be computed does not end the others.
fn some(
    prepared: &PreparedPiece,
    rows: Range<usize>,
    options: &RunOptions<'_>,
    ask: Question<'_>,
) -> Result<ComputedPiece, Fault> {
    let (mut columns, mut failed) = (Columns::default(), BTreeMap::new());
    // Progress counts the individuals that are done, not the part of each.
    let tell = options.progress;
    let options = RunOptions {
        progress: None,
        ..*options
    };
    let (mut done, mut steps, mut warnings) = (0.0, 0, Vec::new());
    let ran = run_chunk(
        &prepared.plan,
        &prepared.population,
        rows,
        &options,
        |outcome| {
            match outcome.result {
                Ok(results) if columns.times.is_empty() || columns.times == results.times => {
                    steps += results.statistics.steps;
                    note(&mut warnings, results.warnings.iter().cloned());
                    add(&mut columns, Some(outcome.id), results);
                }
                Ok(results) => {
                    note(&mut warnings, results.warnings);
                    let wrong =
                        "its rows are not at the times of the others: the run starts before 0";
                    failed.insert(outcome.id, wrong.to_owned());
                }
                Err(wrong) => {
                    failed.insert(outcome.id, wrong);
                }
            }
            done += 1.0;
            if let Some(tell) = tell {
                tell(done);
            }
        },
    );
    match ran {
        Ok(()) => {
            let preview = preview(&columns);
            let mut computed = computed(&columns, failed, preview, ask)?;
            computed.about.steps = steps;
            computed.about.warnings = warnings;
            computed.about.states = prepared.states;
            Ok(computed)
        }
        Err(cause) => Err(cause.into()),
    }
}

/// What another thread may hold for as long as it takes to prepare a population; it is asked meanwhile whether to go
/// on.
fn locked<'a, T>(shared: &'a Mutex<T>, ask: Question<'_>) -> Result<MutexGuard<'a, T>, Interrupt> {
    loop {
        match shared.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Watch::new(Some(ask)).ask()?,
        }
        std::thread::park_timeout(Duration::from_millis(ASK_MS));
    }
}

fn computed(
    columns: &Columns,
    failed: BTreeMap<i64, String>,
    preview: Value,
    ask: Question<'_>,
) -> Result<ComputedPiece, Fault> {
    let ends = [columns.times.first(), columns.times.last()];
    Ok(ComputedPiece {
        bytes: columns.encode(ask)?,
        about: PieceSummary {
            times: ends.map(|time| time.copied().unwrap_or_default()),
            failed,
            preview,
            states: 0,
            steps: 0,
            engine: crate::BACKEND.to_owned(),
            warnings: Vec::new(),
        },
    })
}

/// Adds the curves of an individual.
fn add(columns: &mut Columns, subject: Option<i64>, results: Results) {
    for (at, (path, unit)) in results.paths.iter().zip(results.units.iter()).enumerate() {
        columns.columns.push(ResultColumn {
            parameter: path.clone(),
            unit: unit.clone(),
            subject,
        });
        columns.values.extend(results.column(at));
    }
    columns.times = results.times;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn whoever_waits_for_a_population_that_another_prepares_can_be_told_to_stop() {
        let shared = Mutex::new(1);
        let held = shared.lock().unwrap();
        let asked = AtomicUsize::new(0);
        let ask = || (asked.fetch_add(1, Relaxed) == 2).then_some(Interrupt::Deadline);
        let ended = locked(&shared, &ask).map(|guard| *guard);
        assert_eq!(ended, Err(Interrupt::Deadline));
        assert_eq!(Fault::from(Interrupt::Deadline).kind, Kind::Timeout);
        drop(held);
        assert_eq!(locked(&shared, &ask).map(|guard| *guard), Ok(1));
    }
}
