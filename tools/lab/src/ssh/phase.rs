//! What one worker did, and how it is remembered.

use std::time::Instant;

use super::client::{Called, Wrong};
use crate::wall_clock;

/// One call.
#[derive(Debug, Clone)]
pub(super) struct Op {
    /// When it ended, in milliseconds since 1970.
    pub ts_ms: u64,
    /// The same, in seconds from the beginning of its phase.
    pub at_s: f64,
    pub name: &'static str,
    pub latency_ms: f64,
    pub error: Option<Wrong>,
}

/// All calls of a worker in one phase.
#[derive(Debug, Default)]
pub(super) struct Worked {
    pub ops: Vec<Op>,
    /// It had a session with the server, and where it needed one a connection: it ran.
    pub is_running: bool,
}

/// A stretch of a run with one number of workers on one host.
#[derive(Debug)]
pub(super) struct Phase {
    pub name: String,
    pub host: String,
    pub asked: u32,
    pub seconds: f64,
    pub workers: Vec<Worked>,
}

/// What a worker writes its calls down with.
pub(super) struct Notes {
    pub began: Instant,
    pub worked: Worked,
}

impl Notes {
    pub fn new(began: Instant) -> Self {
        Self {
            began,
            worked: Worked::default(),
        }
    }

    /// Remembers a call; gives what it said where it went well.
    pub fn add(&mut self, name: &'static str, called: Called) -> Option<serde_json::Value> {
        let (said, error) = match called.said {
            Ok(said) => (Some(said), None),
            Err(wrong) => (None, Some(wrong)),
        };
        self.worked.ops.push(Op {
            ts_ms: wall_clock::now_ms(),
            at_s: self.began.elapsed().as_secs_f64(),
            name,
            latency_ms: called.latency_ms,
            error,
        });
        said
    }
}

impl Phase {
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.workers.iter().flat_map(|worker| &worker.ops)
    }

    pub fn running(&self) -> usize {
        self.workers.iter().filter(|of| of.is_running).count()
    }
}
