//! What there is for the client of standard streams, until the edge writes it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gate::{Ended, Gate};

use crate::call::{Client, Work};
use crate::notes::{Noted, Notes};

/// Frames and work for the edge. It is emptied after every step, so it holds what one step has made.
#[derive(Default)]
pub(super) struct Outbox {
    kept: Mutex<Kept>,
    notes: Mutex<Notes>,
    is_slow: AtomicBool,
    missed: AtomicU64,
}

#[derive(Default)]
struct Kept {
    frames: Vec<Vec<u8>>,
    work: Vec<Work>,
    over: Vec<Ended>,
}

impl Outbox {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be written.
    pub fn frames(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.kept().frames)
    }

    /// What is to be carried on with.
    pub fn work(&self) -> Vec<Work> {
        std::mem::take(&mut self.kept().work)
    }

    /// A call is over: it is recorded once its answer has left.
    pub fn end(&self, over: Ended) {
        self.kept().over.push(over);
    }

    /// What is to be recorded now that the answers have left.
    pub fn over(&self) -> Vec<Ended> {
        std::mem::take(&mut self.kept().over)
    }

    /// Whether the client reads so slowly that it can do without some news.
    pub fn set_slow(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::Relaxed);
    }

    /// How many news were not sent because of that.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Writes notes down.
    pub fn flush_notes(&self, gate: &Gate, session_id: &str, server: &str) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .flush(gate, session_id, server);
    }
}

impl Client for Outbox {
    fn tell(&self, frame: Vec<u8>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.post(frame);
        Box::pin(std::future::ready(()))
    }

    fn post(&self, frame: Vec<u8>) {
        self.kept().frames.push(frame);
    }

    fn beside(&self, work: Work) {
        self.kept().work.push(work);
    }

    /// The edge itself ends what waits when its client is gone.
    fn gone(&self) -> Work {
        Box::pin(std::future::pending())
    }

    fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    fn has_missed_news(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    fn is_over_http(&self) -> bool {
        false
    }

    fn note(&self, noted: Noted<'_>) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(noted);
    }
}
