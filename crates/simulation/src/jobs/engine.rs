//! Engine of pieces: in worker processes, so that one that breaks harms no other; or on the calling thread, without a
//! program to start.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use net::worker::Worker;
use pbpk::run::Tell;

use super::compute::{ComputedPiece, PieceComputer, WorkPiece};
use super::ospsuite::OspsuiteLauncher;
use super::stop::StopSignal;
use super::worker::{PIECE, PROGRESS, STOP, WORKER_COMMAND, read_end};
use crate::fault::{Fault, Kind};
use crate::models::ModelLibrary;

/// How often it is asked whether a worker is to stop, in milliseconds.
pub(super) const ASK_MS: u64 = 5;
/// Grace period of a worker after a stop request, in milliseconds; then it is killed.
const STOP_MS_MAX: u64 = 1_000;

/// Computes pieces.
pub struct PieceEngine {
    program: PathBuf,
    workers_max: usize,
    state: Mutex<EngineState>,
    freed: Condvar,
    here: PieceComputer,
    over_r: Option<OspsuiteLauncher>,
}

#[derive(Default)]
struct EngineState {
    idle: Vec<Worker>,
    busy: usize,
}

impl PieceEngine {
    /// Computes with at most so many processes of this program; an empty one means on the asking thread.
    #[must_use]
    pub fn new(
        program: PathBuf,
        workers_max: usize,
        library: Arc<ModelLibrary>,
        over_r: Option<OspsuiteLauncher>,
    ) -> Self {
        Self {
            program,
            workers_max,
            state: Mutex::default(),
            freed: Condvar::new(),
            here: PieceComputer::new(library),
            over_r,
        }
    }

    /// How R is started, if it solves the models.
    #[must_use]
    pub fn over_r(&self) -> Option<&OspsuiteLauncher> {
        self.over_r.as_ref()
    }

    /// Computes a piece.
    ///
    /// # Errors
    /// [`Fault`]; [`Kind::InteropError`] if the worker broke.
    pub fn compute(
        &self,
        piece: &WorkPiece,
        stop: &StopSignal<'_>,
        progress: Tell<'_>,
    ) -> Result<ComputedPiece, Fault> {
        if self.program.as_os_str().is_empty() {
            return self.here.compute(piece, &|| stop.ask(), progress);
        }
        let mut worker = self.take(stop)?;
        let done = converse(&mut worker, piece, stop, progress);
        // One that has said its last word is used again; any other is killed.
        let whole = done.is_some();
        self.give_back(whole.then_some(worker));
        match done {
            // A worker that was stopped reports a cancellation, for any cause.
            Some(Err(fault)) if fault.kind == Kind::Cancelled => Err(stop.fault().unwrap_or(fault)),
            Some(done) => done,
            None => Err(stop.fault().unwrap_or_else(|| {
                Fault::new(
                    Kind::InteropError,
                    "the worker process ended in the middle of a run",
                )
            })),
        }
    }

    /// Returns a worker that has nothing to do; a new one if there may be one more.
    fn take(&self, stop: &StopSignal<'_>) -> Result<Worker, Fault> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.busy >= self.workers_max {
            if let Some(fault) = stop.fault() {
                return Err(fault);
            }
            let wait = Duration::from_millis(ASK_MS);
            let waited = self.freed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.busy += 1;
        if let Some(worker) = state.idle.pop() {
            return Ok(worker);
        }
        drop(state);
        Worker::start(&self.program, WORKER_COMMAND).map_err(|error| {
            self.give_back(None);
            Fault::new(
                Kind::InteropError,
                format!("no worker process can be started: {error}"),
            )
        })
    }

    fn give_back(&self, worker: Option<Worker>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.busy = state.busy.saturating_sub(1);
        state.idle.extend(worker);
        self.freed.notify_one();
    }
}

/// Computes a piece in a worker; returns `None` if it breaks, or does not stop on request.
fn converse(
    worker: &mut Worker,
    piece: &WorkPiece,
    stop: &StopSignal<'_>,
    progress: Tell<'_>,
) -> Option<Result<ComputedPiece, Fault>> {
    let speaker = worker.speaker();
    let process = worker.id();
    let asked = serde_json::to_vec(piece).ok()?;
    speaker.say(PIECE, &asked).ok()?;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut left = STOP_MS_MAX / ASK_MS;
            let mut told = false;
            while !is_done.load(Ordering::Relaxed) {
                if !told && stop.ask().is_some() {
                    told = true;
                    // One that does not hear it is killed a little later.
                    let _ = speaker.say(STOP, b"");
                }
                if told {
                    left = left.saturating_sub(1);
                    if left == 0 {
                        net::worker::kill(process);
                        return;
                    }
                }
                std::thread::park_timeout(Duration::from_millis(ASK_MS));
            }
        });
        let end = loop {
            match worker.listen() {
                Ok((PROGRESS, bytes)) => {
                    if let Ok(bytes) = bytes.try_into() {
                        progress(f64::from_le_bytes(bytes));
                    }
                }
                Ok(frame) => break read_end(frame, || worker.listen()),
                Err(_) => break None,
            }
        };
        is_done.store(true, Ordering::Relaxed);
        watching.thread().unpark();
        end
    })
}
