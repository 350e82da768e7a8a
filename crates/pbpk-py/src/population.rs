//! Populations: a table of individuals, run in ranges that any scheduler may spread.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use solver::population::{Population as Table, PopulationPlan};
use solver::run::{OspVersion, RunOptions};
use solver::watch::{Interrupt, Question, Watch};

use crate::errors::raised;
use crate::results::shaped;
use crate::signals::interruptible;
use crate::simulation::{Simulation, release};

/// Most threads.
const THREADS_MAX: usize = 256;
/// How long is waited before it is asked again whether to go on.
const WAIT: Duration = Duration::from_millis(1);
/// Why an individual has no curves whose run starts at another time than those of the others.
const OTHER_TIMES: &str = "its rows are not at the times of the others: the run starts before 0";
/// Individuals that a thread takes at once.
const BATCH: usize = 16;

/// Parameter values of individuals, as the suite writes them.
#[pyclass(module = "pbpk", frozen)]
pub(crate) struct Population(Table);

/// Reads a population of the suite (CSV).
#[pyfunction]
pub(crate) fn load_population(py: Python<'_>, path: PathBuf) -> PyResult<Population> {
    interruptible(py, |ask| opened(&path, ask)).map(Population)
}

fn opened(path: &std::path::Path, ask: Question<'_>) -> PyResult<Table> {
    let name = path.display();
    let file = File::open(path).map_err(|e| raised(format!("cannot read {name}: {e}")))?;
    let read = Table::read_watched(&mut BufReader::new(file), &Watch::new(Some(ask)));
    read.map_err(|e| raised(format!("{name}: {e}")))
}

#[pymethods]
impl Population {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Paths of the parameters.
    #[getter]
    fn all_parameter_paths(&self) -> Vec<String> {
        self.0.columns.iter().map(|c| c.path.clone()).collect()
    }

    /// Returns the names of the covariates: columns that are not parameters of a model.
    #[getter]
    fn all_covariate_names(&self) -> Vec<String> {
        self.0.covariates.iter().map(|c| c.name.clone()).collect()
    }

    /// Returns the texts of the covariate with this name, one for each individual.
    fn get_covariate_values(&self, name: &str) -> PyResult<Vec<String>> {
        let found = self.0.covariates.iter().find(|c| c.name == name);
        let names = || self.all_covariate_names().join(", ");
        found.map(|c| c.values.clone()).ok_or_else(|| {
            raised(format!(
                "there is no covariate '{name}'; there are: {}",
                names()
            ))
        })
    }

    /// Returns the numbers of the individuals.
    #[getter]
    fn all_individual_ids(&self) -> Vec<i64> {
        (0..self.0.len()).map(|row| self.0.id(row)).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "Population({} individuals, {} parameters)",
            self.0.len(),
            self.0.columns.len()
        )
    }
}

/// Curves of individuals.
#[pyclass(module = "pbpk", frozen)]
pub(crate) struct PopulationResults {
    /// Numbers of the individuals that ran.
    #[pyo3(get)]
    ids: Vec<i64>,
    /// Output times in minutes.
    #[pyo3(get)]
    times: Py<PyArray1<f64>>,
    /// By individual, time and output.
    #[pyo3(get)]
    values: Py<PyAny>,
    /// Paths of the outputs.
    #[pyo3(get)]
    paths: Vec<String>,
    /// Why individuals have no curves, by number.
    #[pyo3(get)]
    failures: Vec<(i64, String)>,
    /// Parameters of the population that the model does not have.
    #[pyo3(get)]
    unmatched: Vec<String>,
    /// Warnings of the population and of the runs, without repetitions.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// Release of OSP whose rules the runs followed.
    #[pyo3(get)]
    osp_version: &'static str,
}

/// Runs all individuals on this many threads, by default as many as the machine has. The numbers do not depend on it.
/// `osp_version` as in `Simulation.run`.
#[pyfunction]
#[pyo3(signature = (simulation, population, threads=None, osp_version=None))]
pub(crate) fn run_population(
    py: Python<'_>,
    simulation: &Simulation,
    population: &Population,
    threads: Option<usize>,
    osp_version: Option<&str>,
) -> PyResult<PopulationResults> {
    let release = release(osp_version)?;
    let known = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(known).clamp(1, THREADS_MAX);
    let rows = 0..population.0.len();
    let done = interruptible(py, |ask| {
        Done::all(simulation, &population.0, rows, (threads, release), ask)
    })?;
    done.results(py, release)
}

/// Runs the individuals in rows start to stop of a population file: a pure function of its arguments, to be spread over
/// processes by any executor. Returns (ids, values, failures); values are by individual, time and output.
#[pyfunction]
#[pyo3(signature = (model, population, start, stop, outputs=None, osp_version=None))]
#[expect(clippy::type_complexity, reason = "a tuple is what Python takes apart")]
pub(crate) fn run_chunk<'py>(
    py: Python<'py>,
    model: PathBuf,
    population: PathBuf,
    start: usize,
    stop: usize,
    outputs: Option<Vec<String>>,
    osp_version: Option<&str>,
) -> PyResult<(Vec<i64>, Bound<'py, PyAny>, Vec<(i64, String)>)> {
    let release = release(osp_version)?;
    let done = interruptible(py, |ask| {
        let simulation = Simulation::open(&model, outputs.as_deref(), &[], ask)?;
        let table = opened(&population, ask)?;
        if start > stop || stop > table.len() {
            let count = table.len();
            return Err(raised(format!(
                "rows {start} to {stop} of {count} individuals"
            )));
        }
        Done::all(&simulation, &table, start..stop, (1, release), ask)
    })?;
    let shape = [done.ids.len(), done.times.len(), done.paths.len()];
    Ok((done.ids, shaped(py, done.values, shape)?, done.failures))
}

/// Results of a range of individuals.
struct Done {
    ids: Vec<i64>,
    times: Vec<f64>,
    values: Vec<f64>,
    paths: Vec<String>,
    failures: Vec<(i64, String)>,
    unmatched: Vec<String>,
    warnings: Vec<String>,
}

/// Most warnings that are kept.
const WARNINGS_MAX: usize = 50;

/// Adds warnings that are not there yet, up to the bound.
fn note(all: &mut Vec<String>, more: Vec<String>) {
    for warning in more {
        if all.len() < WARNINGS_MAX && !all.contains(&warning) {
            all.push(warning);
        }
    }
}

/// Curves of one batch, with its place.
struct Batch {
    place: usize,
    ids: Vec<i64>,
    times: Vec<f64>,
    values: Vec<f64>,
    failures: Vec<(i64, String)>,
    warnings: Vec<String>,
}

impl Done {
    fn all(
        simulation: &Simulation,
        table: &Table,
        rows: Range<usize>,
        (threads, release): (usize, OspVersion),
        ask: Question<'_>,
    ) -> PyResult<Self> {
        let base = simulation.individual.clone();
        let bound = PopulationPlan::with_watch(base, table, &Watch::new(Some(ask)));
        let (plan, unmatched) = bound.map_err(raised)?;
        let paths = plan.outputs().map(|(path, _)| path.to_owned()).collect();
        let (next, batches) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let count = rows.len().div_ceil(BATCH);
        let take = || {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= count {
                    return Ok(());
                }
                let from = rows.start + place * BATCH;
                let some = from..rows.end.min(from + BATCH);
                let batch = batch(&plan, table, (place, some), release, ask)?;
                if let Ok(mut batches) = batches.lock() {
                    batches.push(batch);
                }
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(take)).collect();
            let done = take();
            // Only the calling thread hears of signals: it asks for the others until the last is done.
            while !others.iter().all(|other| other.is_finished()) {
                // Where the answer is yes, they hear of it by themselves.
                ask();
                std::thread::park_timeout(WAIT);
            }
            done
        })
        .map_err(|cause: Interrupt| raised(cause))?;
        let mut batches: Vec<Batch> = batches.into_inner().unwrap_or_default();
        batches.sort_by_key(|b| b.place);
        let mut done = Self {
            ids: Vec::new(),
            times: Vec::new(),
            values: Vec::new(),
            paths,
            failures: Vec::new(),
            unmatched,
            warnings: plan.warnings().to_vec(),
        };
        for mut batch in batches {
            if done.times.is_empty() {
                done.times = batch.times;
            } else if !batch.ids.is_empty() && done.times != batch.times {
                let ids = std::mem::take(&mut batch.ids);
                batch
                    .failures
                    .extend(ids.into_iter().map(|id| (id, OTHER_TIMES.to_owned())));
                batch.values.clear();
            }
            done.ids.extend(batch.ids);
            done.values.extend(batch.values);
            done.failures.extend(batch.failures);
            note(&mut done.warnings, batch.warnings);
        }
        Ok(done)
    }

    fn results(self, py: Python<'_>, release: OspVersion) -> PyResult<PopulationResults> {
        let shape = [self.ids.len(), self.times.len(), self.paths.len()];
        Ok(PopulationResults {
            values: shaped(py, self.values, shape)?.unbind(),
            times: self.times.into_pyarray(py).unbind(),
            ids: self.ids,
            paths: self.paths,
            failures: self.failures,
            unmatched: self.unmatched,
            warnings: self.warnings,
            osp_version: release.name(),
        })
    }
}

fn batch(
    plan: &PopulationPlan,
    table: &Table,
    (place, rows): (usize, Range<usize>),
    osp_version: OspVersion,
    ask: Question<'_>,
) -> Result<Batch, Interrupt> {
    let mut batch = Batch {
        place,
        ids: Vec::new(),
        times: Vec::new(),
        values: Vec::new(),
        failures: Vec::new(),
        warnings: Vec::new(),
    };
    let options = RunOptions {
        interrupt: Some(ask),
        osp_version,
        ..RunOptions::default()
    };
    solver::population::run_chunk(plan, table, rows, &options, |outcome| {
        match outcome.result {
            Ok(results) if !batch.times.is_empty() && batch.times != results.times => {
                batch.failures.push((outcome.id, OTHER_TIMES.to_owned()));
            }
            Ok(results) => {
                note(&mut batch.warnings, results.warnings);
                batch.ids.push(outcome.id);
                batch.times = results.times;
                batch.values.extend(results.values);
            }
            Err(why) => batch.failures.push((outcome.id, why)),
        }
    })?;
    Ok(batch)
}
