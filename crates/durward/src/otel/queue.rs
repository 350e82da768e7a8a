//! Spans on their way from the calls to the exporter.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use otlp::Span;
use tokio::sync::Notify;

/// A bounded queue. The exporter is woken when the first span comes and when many wait, not for each.
pub struct Queue {
    spans: Mutex<Vec<Span>>,
    /// How many there are, to be read without the lock.
    length: AtomicUsize,
    places: usize,
    wake: Notify,
    closed: AtomicBool,
}

impl Queue {
    pub fn new(places: usize) -> Self {
        Self {
            spans: Mutex::default(),
            length: AtomicUsize::new(0),
            places,
            wake: Notify::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// Whether a span would find a place: to be asked before one is made.
    pub fn has_room(&self) -> bool {
        self.length.load(Ordering::Relaxed) < self.places
    }

    /// Whether the span found a place.
    pub fn push(&self, span: Span) -> bool {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() >= self.places {
            return false;
        }
        spans.push(span);
        let length = spans.len();
        self.length.store(length, Ordering::Relaxed);
        drop(spans);
        if length == 1 || length == self.places / 2 {
            self.wake.notify_one();
        }
        true
    }

    /// Takes all that wait.
    pub fn take(&self) -> Vec<Span> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        self.length.store(0, Ordering::Relaxed);
        std::mem::take(&mut *spans)
    }

    /// Whether so many wait that they should be sent at once.
    pub fn is_half_full(&self) -> bool {
        self.length.load(Ordering::Relaxed) >= self.places / 2
    }

    pub fn is_empty(&self) -> bool {
        self.length.load(Ordering::Relaxed) == 0
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns when there may be something to do.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }
}
