//! Computing a population chunk by chunk, on several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pbpk::watch::{Question, Watch};
use serde_json::json;
use toolkit::jobs::Claimed;

use super::compute::note;
use super::counted::AttemptCount;
use super::{ResultKeeper, RunWork, SolutionInfo, StopSignal, WorkPiece};
use crate::fault::{Fault, Kind};
use crate::figures::number;
use crate::population::{Aggregate, CohortRecord, PopulationChunk, USUAL};
use crate::results::{StoredResult, metrics};

/// Most individuals of one chunk.
const CHUNK_SUBJECTS_MAX: usize = 100;
/// Most chunks of a population, as far as the numbers of one allow.
const CHUNKS_MAX: usize = 1_000;
/// Most chunks of which a few numbers are shown at a glance.
const PREVIEWS_MAX: usize = 4;
/// Most individuals of a chunk of which it is kept why they could not be computed.
const FAILED_TOLD_MAX: usize = 5;
/// Numbers of a curve that make a unit of work.
const NUMBERS_OF_A_UNIT: usize = 256;
/// Most numbers of one chunk.
const CHUNK_NUMBERS_MAX: usize = 8 << 20;

/// A population that is to be computed.
struct PopulationRun<'a> {
    keeper: &'a ResultKeeper,
    claimed: &'a Claimed,
    work: &'a RunWork,
    stop: &'a StopSignal<'a>,
    size: usize,
    chunk_subjects: usize,
    next: AtomicUsize,
    done: Mutex<BTreeMap<usize, PopulationChunk>>,
    fault: Mutex<Option<Fault>>,
    counted: AttemptCount<'a>,
}

/// Computes what the work asks for; gives the name of the result. The handles of the chunks are noted in `made`, also
/// where something is wrong.
///
/// # Errors
/// [`Fault`].
pub fn carry_out(
    keeper: &ResultKeeper,
    claimed: &Claimed,
    (work, cohort): (&RunWork, &CohortRecord),
    stop: &StopSignal<'_>,
    made: &Mutex<Vec<String>>,
) -> Result<String, Fault> {
    let size = usize::try_from(cohort.size).unwrap_or(usize::MAX);
    let fit = CHUNK_NUMBERS_MAX / work.numbers.max(1);
    let before = before(claimed);
    let counted = AttemptCount::new(
        &keeper.jobs,
        &claimed.attempt,
        before.values().map(PopulationChunk::len).sum(),
        size,
    );
    let run = PopulationRun {
        keeper,
        claimed,
        work,
        stop,
        size,
        chunk_subjects: fit.clamp(1, CHUNK_SUBJECTS_MAX.max(size / CHUNKS_MAX)),
        next: AtomicUsize::new(0),
        done: Mutex::new(before),
        fault: Mutex::new(None),
        counted,
    };
    std::thread::scope(|scope| {
        for _ in 1..keeper.threads {
            scope.spawn(|| run.take());
        }
        run.take();
    });
    let fault = run
        .fault
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let chunks = run
        .done
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let chunks: Vec<PopulationChunk> = chunks.into_values().collect();
    made.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(chunks.iter().map(|chunk| chunk.handle.clone()));
    if let Some(fault) = fault {
        return Err(fault);
    }
    keep(keeper, claimed, work, (cohort, &chunks), &|| stop.ask())
}

/// Returns the chunks that an earlier attempt has computed and that are still there.
fn before(claimed: &Claimed) -> BTreeMap<usize, PopulationChunk> {
    let noted = claimed.job.checkpoint.clone().unwrap_or_default();
    let chunks: BTreeMap<usize, PopulationChunk> =
        serde_json::from_value(noted).unwrap_or_default();
    chunks
}

impl PopulationRun<'_> {
    fn chunks(&self) -> usize {
        self.size.div_ceil(self.chunk_subjects)
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
            // Keeping the chunk before may have waited for the disk: no other is begun after the end.
            let stopped = self.stop.fault().map_or(Ok(()), Err);
            let is_done = stopped.and_then(|()| self.is_done(number));
            let done = is_done.and_then(|is_done| match is_done {
                true => Ok(()),
                false => self.one(number),
            });
            if let Err(fault) = done {
                let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(fault);
                return;
            }
        }
    }

    /// Returns whether an earlier attempt has computed the chunk and its numbers are whole.
    fn is_done(&self, number: usize) -> Result<bool, Fault> {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(chunk) = done.get(&number).cloned() else {
            return Ok(false);
        };
        drop(done);
        let caller = &self.claimed.job.caller;
        let ask = || self.stop.ask();
        match self.keeper.columns_asking(caller, &chunk.handle, &ask) {
            Ok(_) => Ok(true),
            Err(fault) if matches!(fault.kind, Kind::Cancelled | Kind::Timeout) => Err(fault),
            Err(_) => {
                self.counted.gone(chunk.len());
                Ok(false)
            }
        }
    }

    fn one(&self, number: usize) -> Result<(), Fault> {
        let first = number * self.chunk_subjects;
        let rows = first..(first + self.chunk_subjects).min(self.size);
        // Individuals are numbered by their rows.
        let subject = |row: usize| i64::try_from(row).unwrap_or(i64::MAX);
        let subjects = [subject(rows.start), subject(rows.end.saturating_sub(1))];
        let piece = WorkPiece {
            work: self.work.clone(),
            rows: Some(rows),
            over_r: self.keeper.engine.over_r().cloned(),
        };
        let part = self
            .counted
            .part(piece.rows.clone().unwrap_or_default().len());
        let computed = self
            .keeper
            .engine
            .compute(&piece, self.stop, &|done| part.tell(done))?;
        let stored = self
            .keeper
            .store(&self.claimed.job.caller, &computed.bytes, &|| {
                self.stop.ask()
            })?;
        let chunk = PopulationChunk {
            chunk_id: format!("{}-chunk-{}", self.work.results_id, number + 1),
            handle: stored.handle,
            subjects,
            times: computed.about.times,
            bytes: stored.bytes,
            sha256: stored.sha256,
            failures: computed.about.failed.len(),
            failed: computed
                .about
                .failed
                .into_iter()
                .take(FAILED_TOLD_MAX)
                .collect(),
            preview: if number < PREVIEWS_MAX {
                computed.about.preview
            } else {
                serde_json::Value::Null
            },
            states: computed.about.states,
            steps: computed.about.steps,
            engine: computed.about.engine,
            warnings: computed.about.warnings,
        };
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.insert(number, chunk);
        let jobs = &self.keeper.jobs;
        // Under the lock, so that an older list never replaces a newer one.
        jobs.checkpoint(&self.claimed.attempt, json!(*done))?;
        drop(done);
        part.end();
        Ok(())
    }
}

/// Returns how the chunks were computed, all together.
fn solution(cohort: &CohortRecord, chunks: &[PopulationChunk]) -> SolutionInfo {
    let first = chunks.first();
    let mut warnings: Vec<String> = cohort.alike().into_iter().collect();
    for chunk in chunks {
        note(&mut warnings, chunk.warnings.iter().cloned());
    }
    SolutionInfo {
        engine: first
            .map_or(crate::BACKEND, |chunk| chunk.engine.as_str())
            .to_owned(),
        states: first.map_or(0, |chunk| chunk.states),
        steps: chunks.iter().map(|chunk| chunk.steps).sum(),
        warnings,
    }
}

/// Refuses figures over no individual.
fn some_are_left(chunks: &[PopulationChunk]) -> Result<(), Fault> {
    let size: usize = chunks.iter().map(PopulationChunk::len).sum();
    let failures: usize = chunks.iter().map(|chunk| chunk.failures).sum();
    let first = chunks.iter().find_map(|chunk| chunk.failed.iter().next());
    match first {
        Some((individual, why)) if failures == size => {
            let wrong = format!(
                "none of {size} individuals could be computed; individual {individual}: {why}"
            );
            Err(Fault::new(Kind::SolverFailure, wrong))
        }
        _ => Ok(()),
    }
}

/// Computes the figures over all individuals out of the chunks, and keeps the result under its name.
fn keep(
    keeper: &ResultKeeper,
    claimed: &Claimed,
    work: &RunWork,
    (cohort, chunks): (&CohortRecord, &[PopulationChunk]),
    ask: Question<'_>,
) -> Result<String, Fault> {
    let (caller, watch) = (&claimed.job.caller, Watch::new(Some(ask)));
    some_are_left(chunks)?;
    // By output, in the order of the first chunk.
    let mut measured: Vec<(String, Vec<[f64; 3]>)> = Vec::new();
    for chunk in chunks {
        let columns = keeper.columns_asking(caller, &chunk.handle, ask)?;
        for (at, column) in columns.columns.iter().enumerate() {
            watch.work(1 + columns.times.len() / NUMBERS_OF_A_UNIT)?;
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
        let aggregate = Aggregate::from_name(name)?;
        for (at, (path, all)) in measured.iter().enumerate() {
            watch.ask()?;
            let figure = number(aggregate.over(all));
            if at == 0 {
                aggregates.insert(name.clone(), figure.clone());
            }
            if measured.len() > 1 {
                aggregates.insert(format!("{name}:{path}"), figure);
            }
        }
    }
    let kept = StoredResult {
        results_id: work.results_id.clone(),
        handles: chunks.iter().map(|chunk| chunk.handle.clone()).collect(),
        job_id: claimed.job.id.as_str().to_owned(),
        simulation_id: work.simulation_id.clone(),
        generated_ms: keeper.now_ms(),
        metadata: work.solved(&solution(cohort, chunks)),
        population: json!({"cohort": cohort, "aggregates": aggregates, "chunks": chunks}),
    };
    keeper.index.store(caller, &kept)?;
    Ok(work.results_id.clone())
}
