//! Store between calls, and the threads that run jobs.
//!
//! The database is opened at the first call that needs it. One process has it at a time; a second process of the same
//! server takes the next free place, with jobs and results of its own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gate::Clock;
use pbpk::run::Tell;
use pbpk::watch::{Question, Watch};
use serde_json::{Value, json};
use state::KvError;
use toolkit::jobs::{Bounds, Claimed, End, Job, JobProgress, JobState, Jobs, OnEnd};
use toolkit::options::Setup;
use toolkit::outputs::{OutputBounds, OutputError, OutputWriter, Outputs, Written};
use toolkit::results::HandleBounds;
use toolkit::store::{PLACES_MAX, Store};

use super::compute::WorkPiece;
use super::ended::EndedJobs;
use super::engine::PieceEngine;
use super::ospsuite::OspsuiteLauncher;
use super::stop::StopSignal;
use super::work::{KIND_POPULATION, KIND_RUN, RunWork, SolutionInfo};
use crate::fault::{Fault, Kind};
use crate::models::{ModelLibrary, digest};
use crate::results::{Columns, ResultIndex, StoredResult};

/// How long a thread without work waits before it looks again, in milliseconds.
const IDLE_MS: u64 = 1_000;
/// Most results and chunks of one caller.
const HANDLES_MAX: usize = 100_000;
/// How often progress is written, in milliseconds.
pub(super) const PROGRESS_MS: u128 = 100;

/// How much is kept and done at a time.
#[derive(Debug, Clone, Copy)]
pub struct PoolSettings {
    /// Runs at a time.
    pub workers: usize,
    /// How long jobs and results are kept, in milliseconds.
    pub kept_ms: u64,
    /// Most bytes of results.
    pub results_bytes_max: u64,
    /// Most jobs of one caller that have not ended.
    pub open_per_caller_max: usize,
}

/// Store of results and jobs between calls.
pub struct ResultKeeper {
    /// The jobs.
    pub jobs: Jobs,
    /// Numbers of results.
    pub outputs: Outputs,
    /// Names of results and snapshots.
    pub index: ResultIndex,
    /// What computes.
    pub engine: PieceEngine,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Threads of one population.
    pub threads: usize,
    is_over: AtomicBool,
    waiting: (Mutex<u64>, Condvar),
}

/// Columns that are kept.
pub struct StoredColumns {
    /// The handle to them.
    pub handle: String,
    /// Their length, header included.
    pub bytes: u64,
    /// SHA-256 of all those bytes, in hex.
    pub sha256: String,
}

/// The threads that carry out jobs. They end with it.
pub struct JobPool {
    keeper: Arc<ResultKeeper>,
    threads: Vec<JoinHandle<()>>,
}

impl ResultKeeper {
    fn open(
        setup: &Setup,
        settings: PoolSettings,
        (library, over_r): (Arc<ModelLibrary>, Option<OspsuiteLauncher>),
        ended: Arc<EndedJobs>,
    ) -> Result<Self, Fault> {
        let store = place(&setup.state, setup.random)?;
        let (clock, program) = (Arc::clone(&setup.clock), setup.program.clone());
        let now_ms = clock.wall_ms();
        let bounds = Bounds {
            kept_ms: settings.kept_ms,
            open_per_caller_max: settings.open_per_caller_max,
            running_per_caller_max: settings.workers,
            ..Bounds::default()
        };
        let outputs = OutputBounds {
            bytes_max: settings.results_bytes_max,
            // A quarter is kept for callers who have less.
            caller_bytes_max: settings.results_bytes_max - settings.results_bytes_max / 4,
            handles: HandleBounds {
                kept_ms: settings.kept_ms,
                per_caller_max: HANDLES_MAX,
            },
            ..OutputBounds::default()
        };
        let index = ResultIndex::open(&store.1, settings.kept_ms)?;
        let on_end: OnEnd = Box::new(move |job| ended.tell(job));
        let jobs = Jobs::open_telling(Arc::clone(&store.0), bounds, Some(on_end), now_ms)?;
        Ok(Self {
            jobs: jobs.0,
            outputs: Outputs::open(&store.0, outputs)?,
            index,
            engine: PieceEngine::new(program, settings.workers, library, over_r),
            clock,
            threads: settings.workers,
            is_over: AtomicBool::new(false),
            waiting: (Mutex::new(0), Condvar::new()),
        })
    }

    /// Now, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    /// There is work to do.
    pub fn wake(&self) {
        let mut asked = self
            .waiting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *asked += 1;
        self.waiting.1.notify_one();
    }

    fn wait(&self, seen: &mut u64) {
        let asked = self
            .waiting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let same = |asked: &mut u64| *asked == *seen && !self.is_over.load(Ordering::Relaxed);
        let waited = self
            .waiting
            .1
            .wait_timeout_while(asked, Duration::from_millis(IDLE_MS), same);
        *seen = *waited.unwrap_or_else(PoisonError::into_inner).0;
    }

    /// Takes jobs and carries them out until the end.
    fn work(&self) {
        let mut seen = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            match self.jobs.claim(&[KIND_RUN, KIND_POPULATION], self.now_ms()) {
                Ok(Some(claimed)) => self.carry_out(&claimed),
                Ok(None) | Err(_) => self.wait(&mut seen),
            }
        }
    }

    /// Ends what took too long, and removes what is too old.
    fn sweep(&self) {
        let now_ms = self.now_ms();
        // What cannot be removed now is tried again.
        let _ = self.jobs.sweep(now_ms);
        let _ = self.outputs.sweep(now_ms);
    }

    fn carry_out(&self, claimed: &Claimed) {
        let allowed = claimed.job.timeout_ms.map(Duration::from_millis);
        // Its time began when it was claimed, which may have waited for the disk.
        let allowed = allowed.map(|allowed| allowed.saturating_sub(self.since_claimed(claimed)));
        let stop = StopSignal::new(&claimed.cancel, &self.is_over, allowed);
        let told = Mutex::new(Instant::now());
        let progress = |done: f64| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.elapsed().as_millis() < PROGRESS_MS {
                return;
            }
            *told = Instant::now();
            let progress = JobProgress {
                done,
                total: Some(1.0),
                ..JobProgress::default()
            };
            // A job that has ended meanwhile needs no progress.
            let _ = self.jobs.progress(&claimed.attempt, progress);
        };
        let made = Mutex::default();
        let done = catch_unwind(AssertUnwindSafe(|| {
            self.run(claimed, &stop, &progress, &made)
        }));
        if self.is_over.load(Ordering::Relaxed) {
            // It stays as it is, and is taken up again at the next start.
            return;
        }
        let end = match done {
            Ok(Ok(result)) => End::Succeeded(result),
            Ok(Err(fault)) => match fault.kind {
                Kind::Cancelled if claimed.cancel.is_cancelled() => End::Cancelled,
                Kind::Timeout => End::TimedOut,
                Kind::InteropError => End::Retryable(fault.of_job()),
                _ => End::Failed(fault.of_job()),
            },
            Err(_) => {
                let fault = Fault::new(
                    Kind::InternalError,
                    "the run ended in an error of the engine",
                );
                End::Failed(fault.of_job())
            }
        };
        // An attempt that was given up meanwhile has nothing more to say.
        let _ = self.jobs.finish(&claimed.attempt, end, self.now_ms());
        self.tidy(&claimed.job, made);
    }

    /// Returns how long ago the attempt was claimed.
    fn since_claimed(&self, claimed: &Claimed) -> Duration {
        let claimed_ms = claimed.job.attempt_ms;
        let since_ms = claimed_ms.map_or(0, |claimed_ms| self.now_ms().saturating_sub(claimed_ms));
        Duration::from_millis(u64::try_from(since_ms).unwrap_or(0))
    }

    /// Removes what a job has made that ended without a result.
    fn tidy(&self, job: &Job, made: Mutex<Vec<String>>) {
        let caller = &job.caller;
        let ended = self.jobs.get(caller, &job.id).map(|job| job.state);
        if matches!(ended, Ok(state) if state.is_end() && state != JobState::Succeeded) {
            let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
            for handle in made {
                self.forget(caller, &handle);
            }
        }
    }

    /// Returns the name of the result, and the handle of a single run's numbers: another job may use the same name.
    ///
    /// The handles of all that it keeps are noted in `made`.
    fn run(
        &self,
        claimed: &Claimed,
        stop: &StopSignal<'_>,
        progress: Tell<'_>,
        made: &Mutex<Vec<String>>,
    ) -> Result<Value, Fault> {
        let work: RunWork =
            serde_json::from_value(claimed.job.request.clone()).map_err(|error| {
                Fault::new(
                    Kind::InternalError,
                    format!("the job cannot be read: {error}"),
                )
            })?;
        if let Some(cohort) = &work.cohort {
            let results_id =
                super::population::carry_out(self, claimed, (&work, cohort), stop, made)?;
            return Ok(json!({"resultsId": results_id}));
        }
        let piece = WorkPiece {
            work,
            rows: None,
            over_r: self.engine.over_r().cloned(),
        };
        let computed = self.engine.compute(&piece, stop, progress)?;
        let stored = self.store(&claimed.job.caller, &computed.bytes, &|| stop.ask())?;
        made.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(stored.handle.clone());
        let about = computed.about;
        let work = piece.work;
        let metadata = work.solved(&SolutionInfo {
            engine: about.engine,
            states: about.states,
            steps: about.steps,
            warnings: about.warnings,
        });
        let kept = StoredResult {
            results_id: work.results_id.clone(),
            handles: vec![stored.handle],
            job_id: claimed.job.id.as_str().to_owned(),
            simulation_id: work.simulation_id,
            generated_ms: self.now_ms(),
            metadata,
            population: Value::Null,
        };
        self.index.store(&claimed.job.caller, &kept)?;
        Ok(json!({"resultsId": work.results_id, "handles": kept.handles}))
    }

    /// Keeps columns, as they are encoded, for a caller.
    ///
    /// # Errors
    /// [`Fault`] if they cannot be written, or if too much is kept already.
    pub fn store(
        &self,
        caller: &str,
        bytes: &[u8],
        ask: Question<'_>,
    ) -> Result<StoredColumns, Fault> {
        // The last step that may be interrupted: a write is whole.
        let sha256 = digest(bytes, &Watch::new(Some(ask)))?;
        let (handle, writer) = self.outputs.create(caller, 1, self.now_ms())?;
        let written = write(writer, bytes);
        if !matches!(written, Ok(written) if written.dropped == 0) {
            // A part is of no use to anybody.
            self.forget(caller, &handle);
        }
        let written = written?;
        if written.dropped > 0 {
            let wrong = format!(
                "the result has {} bytes, and there is room for {}; results go after some time",
                bytes.len(),
                written.kept
            );
            return Err(Fault::new(Kind::Busy, wrong));
        }
        Ok(StoredColumns {
            handle,
            bytes: bytes.len() as u64,
            sha256,
        })
    }

    /// Removes columns that no result has. What cannot be removed now goes with its time.
    pub fn forget(&self, caller: &str, handle: &str) {
        let _ = self.outputs.forget(caller, handle, self.now_ms());
    }

    /// Returns the columns behind a handle.
    ///
    /// # Errors
    /// [`Fault`] if they are gone or damaged.
    pub fn columns(&self, caller: &str, handle: &str) -> Result<Columns, Fault> {
        self.columns_asking(caller, handle, &|| None)
    }

    /// As [`ResultKeeper::columns`]; of large ones it is asked now and then whether to go on.
    ///
    /// # Errors
    /// As [`ResultKeeper::columns`], and the answer.
    pub fn columns_asking(
        &self,
        caller: &str,
        handle: &str,
        ask: Question<'_>,
    ) -> Result<Columns, Fault> {
        let watch = Watch::new(Some(ask));
        watch.ask()?;
        let reader = self.outputs.stream(caller, handle, 0, self.now_ms())?;
        let range = toolkit::results::ByteRange::new(0, reader.length());
        let bytes = match range {
            Some(range) => reader
                .range(range)
                .map_err(|error| Fault::new(Kind::InternalError, error.to_string()))?,
            None => Vec::new(),
        };
        let columns = Columns::decode(&bytes, &watch)?;
        columns.map_err(|fault| Fault::new(Kind::InternalError, fault.to_string()))
    }
}

fn write(mut writer: OutputWriter, bytes: &[u8]) -> Result<Written, OutputError> {
    let written = writer.append(0, bytes)?;
    writer.finish()?;
    Ok(written)
}

/// The first place that no other process has.
fn place(
    directory: &Path,
    random: fn(&mut [u8]) -> io::Result<()>,
) -> Result<(Arc<Store>, PathBuf), Fault> {
    match Store::open_free(directory, generator(random)?) {
        Ok(found) => Ok(found),
        Err(KvError::Busy { .. }) => {
            let wrong = format!(
                "{PLACES_MAX} processes of this server are running, which is as many as may be"
            );
            Err(Fault::new(Kind::Busy, wrong))
        }
        Err(other) => Err(other.into()),
    }
}

/// Randomness that cannot fail after it has begun.
fn generator(random: fn(&mut [u8]) -> io::Result<()>) -> Result<toolkit::store::Random, Fault> {
    let mut seed = [0; 32];
    random(&mut seed).map_err(|error| {
        Fault::new(
            Kind::InternalError,
            format!("the system has no randomness: {error}"),
        )
    })?;
    let mut number = 0_u64;
    Ok(Box::new(move |bytes: &mut [u8]| {
        number += 1;
        let mut hasher = blake3::Hasher::new_keyed(&seed);
        hasher.update(&number.to_le_bytes());
        hasher.finalize_xof().fill(bytes);
    }))
}

impl JobPool {
    /// Opens the store of this server and begins to work. Models are solved with this library, and over R if it is
    /// configured.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be opened, or no thread can be started.
    pub fn open(
        setup: &Setup,
        settings: PoolSettings,
        solver: (Arc<ModelLibrary>, Option<OspsuiteLauncher>),
        ended: Arc<EndedJobs>,
    ) -> Result<Self, Fault> {
        let keeper = Arc::new(ResultKeeper::open(setup, settings, solver, ended)?);
        let mut threads = Vec::new();
        let start = |name: String, body: fn(&ResultKeeper)| {
            let keeper = Arc::clone(&keeper);
            let thread = std::thread::Builder::new().name(name);
            thread.spawn(move || body(&keeper)).map_err(|error| {
                Fault::new(
                    Kind::InternalError,
                    format!("no thread can be started: {error}"),
                )
            })
        };
        for number in 0..settings.workers {
            threads.push(start(format!("simulation-{number}"), ResultKeeper::work)?);
        }
        threads.push(start("simulation-sweep".to_owned(), |keeper| {
            while !keeper.is_over.load(Ordering::Relaxed) {
                keeper.sweep();
                std::thread::park_timeout(Duration::from_millis(IDLE_MS));
            }
        })?);
        Ok(Self { keeper, threads })
    }

    /// Returns the store.
    #[must_use]
    pub fn keeper(&self) -> &Arc<ResultKeeper> {
        &self.keeper
    }
}

impl Drop for JobPool {
    fn drop(&mut self) {
        self.keeper.is_over.store(true, Ordering::Relaxed);
        self.keeper.waiting.1.notify_all();
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A thread that has panicked has ended too.
            let _ = thread.join();
        }
    }
}
