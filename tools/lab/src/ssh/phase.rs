//! Calls of one worker, and their recorder.

use std::time::Instant;

use super::client::{CallFailure, CallOutcome};
use crate::wall_clock;

/// One call.
#[derive(Debug, Clone)]
pub(super) struct TimedCall {
    /// When it ended, in milliseconds since 1970.
    pub ts_ms: u64,
    /// The same, in seconds from the beginning of its phase.
    pub at_s: f64,
    pub name: &'static str,
    pub latency_ms: f64,
    pub error: Option<CallFailure>,
}

/// All calls of a worker in one phase.
#[derive(Debug, Default)]
pub(super) struct WorkerCalls {
    pub ops: Vec<TimedCall>,
    /// It ran: it had a session with the server, and a connection if it needed one.
    pub is_running: bool,
}

/// A stretch of a run with one number of workers on one host.
#[derive(Debug)]
pub(super) struct WorkerPhase {
    pub name: String,
    pub host: String,
    pub asked: u32,
    pub seconds: f64,
    pub workers: Vec<WorkerCalls>,
}

/// Recorder of a worker's calls.
pub(super) struct CallRecorder {
    pub began: Instant,
    pub worked: WorkerCalls,
}

impl CallRecorder {
    pub fn new(began: Instant) -> Self {
        Self {
            began,
            worked: WorkerCalls::default(),
        }
    }

    /// Records a call; returns its result if it succeeded.
    pub fn add(&mut self, name: &'static str, called: CallOutcome) -> Option<serde_json::Value> {
        let (said, error) = match called.said {
            Ok(said) => (Some(said), None),
            Err(wrong) => (None, Some(wrong)),
        };
        self.worked.ops.push(TimedCall {
            ts_ms: wall_clock::now_ms(),
            at_s: self.began.elapsed().as_secs_f64(),
            name,
            latency_ms: called.latency_ms,
            error,
        });
        said
    }
}

impl WorkerPhase {
    pub fn ops(&self) -> impl Iterator<Item = &TimedCall> {
        self.workers.iter().flat_map(|worker| &worker.ops)
    }

    pub fn running(&self) -> usize {
        self.workers.iter().filter(|of| of.is_running).count()
    }
}
