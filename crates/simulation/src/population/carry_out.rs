//! Computing a population chunk by chunk, on several threads.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pbpk::population::{Plan, Population, run_chunk};
use pbpk::run::RunOptions;
use pbpk::watch::Interrupt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolkit::jobs::{Claimed, JobProgress};

use super::aggregate::{Aggregate, USUAL};
use super::cohort::Cohort;
use crate::fault::{Fault, Kind};
use crate::jobs::{Keeper, Stop, Work, individual};
use crate::results::{Column, Columns, Kept, metrics, number};

/// Most individuals of one chunk.
const CHUNK_SUBJECTS_MAX: usize = 100;
/// Most numbers of one chunk.
const CHUNK_NUMBERS_MAX: usize = 8 << 20;

/// The type of a chunk as it is kept; see [`crate::results::Columns`].
pub const CONTENT_TYPE: &str = "application/vnd.durward.columns";

/// A part of the individuals, computed and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// Its name.
    pub chunk_id: String,
    /// Where its numbers are.
    pub handle: String,
    /// First and last individual.
    pub subjects: [i64; 2],
    /// First and last time, in minutes.
    pub times: [f64; 2],
    /// Bytes of its numbers, header included.
    pub bytes: u64,
    /// Individuals that could not be computed, with the reason.
    pub failed: BTreeMap<i64, String>,
    /// The first individuals at a glance.
    pub preview: Value,
}

/// A population that is to be computed.
struct Run<'a> {
    keeper: &'a Keeper,
    claimed: &'a Claimed,
    work: &'a Work,
    plan: &'a Plan,
    population: &'a Population,
    stop: &'a Stop<'a>,
    chunk_subjects: usize,
    next: AtomicUsize,
    done: Mutex<BTreeMap<usize, Chunk>>,
    fault: Mutex<Option<Fault>>,
}

/// Computes what the work asks for; gives the name of the result.
///
/// # Errors
/// [`Fault`].
pub fn carry_out(
    keeper: &Keeper,
    claimed: &Claimed,
    work: &Work,
    cohort: &Cohort,
    stop: &Stop<'_>,
) -> Result<String, Fault> {
    let ask = || stop.ask();
    let base = individual(work, &keeper.library, &ask)?;
    let population = cohort.draw()?;
    let (plan, unknown) = Plan::new(base, &population)?;
    if let Some(unknown) = unknown.first() {
        let wrong = format!("no quantity has the path '{unknown}'");
        return Err(Fault::missing("cohort.covariates", wrong));
    }
    let numbers = plan.outputs().count().max(1) * work.rows.max(1);
    let run = Run {
        keeper,
        claimed,
        work,
        chunk_subjects: (CHUNK_NUMBERS_MAX / numbers).clamp(1, CHUNK_SUBJECTS_MAX),
        plan: &plan,
        population: &population,
        stop,
        next: AtomicUsize::new(0),
        done: Mutex::new(before(claimed)),
        fault: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for _ in 1..keeper.threads {
            scope.spawn(|| run.take());
        }
        run.take();
    });
    if let Some(fault) = run
        .fault
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
    {
        return Err(fault);
    }
    let chunks = run
        .done
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let chunks: Vec<Chunk> = chunks.into_values().collect();
    keep(keeper, claimed, work, cohort, &chunks)
}

/// The chunks that an earlier attempt has computed and that are still there.
fn before(claimed: &Claimed) -> BTreeMap<usize, Chunk> {
    let noted = claimed.job.checkpoint.clone().unwrap_or_default();
    let chunks: BTreeMap<usize, Chunk> = serde_json::from_value(noted).unwrap_or_default();
    chunks
}

impl Run<'_> {
    fn chunks(&self) -> usize {
        self.population.len().div_ceil(self.chunk_subjects)
    }

    /// Computes chunks until there is none left or something is wrong.
    fn take(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let failed = self
                .fault
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some();
            if number >= self.chunks() || failed {
                return;
            }
            if self.is_done(number) {
                continue;
            }
            if let Err(fault) = self.one(number) {
                let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(fault);
                return;
            }
        }
    }

    /// Whether an earlier attempt has computed the chunk and its numbers are whole.
    fn is_done(&self, number: usize) -> bool {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = done.get(&number).map(|chunk| chunk.handle.clone());
        drop(done);
        let caller = &self.claimed.job.caller;
        handle.is_some_and(|handle| self.keeper.columns(caller, &handle).is_ok())
    }

    fn one(&self, number: usize) -> Result<(), Fault> {
        let first = number * self.chunk_subjects;
        let range = first..(first + self.chunk_subjects).min(self.population.len());
        let (columns, failed) = self.compute(range.clone())?;
        let (handle, bytes) = self.keeper.store(&self.claimed.job.caller, &columns)?;
        let last = range.end.saturating_sub(1);
        let ends = [columns.times.first(), columns.times.last()];
        let chunk = Chunk {
            chunk_id: format!("{}-chunk-{}", self.work.results_id, number + 1),
            handle,
            subjects: [self.population.id(first), self.population.id(last)],
            times: ends.map(|time| time.copied().unwrap_or_default()),
            bytes,
            failed,
            preview: preview(&columns),
        };
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.insert(number, chunk);
        let jobs = &self.keeper.jobs;
        // Under the lock, so that an older list never replaces a newer one.
        jobs.checkpoint(&self.claimed.attempt, json!(*done))?;
        #[expect(clippy::cast_precision_loss, reason = "at most a million chunks")]
        let progress = JobProgress {
            done: done.len() as f64,
            total: Some(self.chunks() as f64),
            message: Some("chunks of the population".to_owned()),
        };
        jobs.progress(&self.claimed.attempt, progress)?;
        Ok(())
    }

    fn compute(&self, range: Range<usize>) -> Result<(Columns, BTreeMap<i64, String>), Fault> {
        let ask = || self.stop.ask();
        let options = RunOptions {
            interrupt: Some(&ask),
            ..RunOptions::default()
        };
        let (mut columns, mut failed) = (Columns::default(), BTreeMap::new());
        let ran = run_chunk(self.plan, self.population, range, &options, |outcome| {
            let results = match outcome.result {
                Ok(results) => results,
                Err(wrong) => {
                    failed.insert(outcome.id, wrong);
                    return;
                }
            };
            for (at, (path, unit)) in results.paths.iter().zip(&results.units).enumerate() {
                columns.columns.push(Column {
                    parameter: path.clone(),
                    unit: unit.clone(),
                    subject: Some(outcome.id),
                });
                columns.values.extend(results.column(at));
            }
            columns.times = results.times;
        });
        match ran {
            Ok(()) => Ok((columns, failed)),
            Err(Interrupt::Cancelled) => Err(Fault::new(Kind::Cancelled, "cancelled")),
            Err(Interrupt::Deadline) => Err(Fault::new(Kind::Timeout, "the time is over")),
        }
    }
}

/// At most five individuals, and the first curve.
fn preview(columns: &Columns) -> Value {
    let mut subjects: Vec<i64> = columns.columns.iter().filter_map(|c| c.subject).collect();
    subjects.dedup();
    subjects.truncate(5);
    let list = |values: &[f64]| -> Vec<Value> { values.iter().copied().map(number).collect() };
    json!({
        "subjects": subjects, "time": list(&columns.times), "concentration": list(columns.column(0)),
    })
}

/// Computes the figures over all individuals out of the chunks, and keeps the result under its name.
fn keep(
    keeper: &Keeper,
    claimed: &Claimed,
    work: &Work,
    cohort: &Cohort,
    chunks: &[Chunk],
) -> Result<String, Fault> {
    let caller = &claimed.job.caller;
    // By output, in the order of the first chunk.
    let mut measured: Vec<(String, Vec<[f64; 3]>)> = Vec::new();
    for chunk in chunks {
        let columns = keeper.columns(caller, &chunk.handle)?;
        for (at, column) in columns.columns.iter().enumerate() {
            let one = metrics(&columns.times, columns.column(at));
            match measured
                .iter_mut()
                .find(|(path, _)| *path == column.parameter)
            {
                Some((_, all)) => all.push(one),
                None => measured.push((column.parameter.clone(), vec![one])),
            }
        }
    }
    let usual = USUAL.map(str::to_owned).to_vec();
    let names = if cohort.aggregates.is_empty() {
        &usual
    } else {
        &cohort.aggregates
    };
    let mut aggregates = serde_json::Map::new();
    for name in names {
        let aggregate = Aggregate::named(name)?;
        for (at, (path, all)) in measured.iter().enumerate() {
            let figure = number(aggregate.over(all));
            if at == 0 {
                aggregates.insert(name.clone(), figure.clone());
            }
            if measured.len() > 1 {
                aggregates.insert(format!("{name}:{path}"), figure);
            }
        }
    }
    let kept = Kept {
        results_id: work.results_id.clone(),
        handles: chunks.iter().map(|chunk| chunk.handle.clone()).collect(),
        job_id: claimed.job.id.as_str().to_owned(),
        simulation_id: work.simulation_id.clone(),
        generated_ms: keeper.now_ms(),
        metadata: work.metadata.clone(),
        population: json!({"cohort": cohort, "aggregates": aggregates, "chunks": chunks}),
    };
    keeper.index.put(caller, &kept)?;
    Ok(work.results_id.clone())
}

impl Chunk {
    /// As clients read of it.
    #[must_use]
    pub fn told(&self, results_id: &str) -> Value {
        json!({
            "chunkId": self.chunk_id,
            "uri": format!("/population_results/{results_id}/chunks/{}", self.chunk_id),
            "contentType": CONTENT_TYPE,
            "sizeBytes": self.bytes,
            "subjectRange": self.subjects,
            "timeRange": self.times,
            "preview": self.preview,
        })
    }
}
