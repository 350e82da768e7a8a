//! Ctrl-C: long work is ended when Python wants it, with Python's exception.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use pyo3::prelude::*;
use solver::watch::{Interrupt, Question};

/// How often Python is asked, in milliseconds.
const ASK_MS: u64 = 20;
/// How many questions are answered without looking at the clock, where they come more often than once a millisecond.
const UNTIMED: u32 = 15;

/// What Python says of signals, asked now and then by the thread that called: it is the one that runs their handlers.
struct Signals {
    caller: ThreadId,
    began: Instant,
    /// When Python was asked last, in milliseconds since it began.
    asked_ms: AtomicU64,
    /// When the clock was looked at last, in microseconds since it began, and how many questions follow without.
    looked_us: AtomicU64,
    untimed: AtomicU32,
    is_over: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Signals {
    fn ask(&self) -> Option<Interrupt> {
        if self.is_over.load(Ordering::Relaxed) {
            return Some(Interrupt::Cancelled);
        }
        // Looking at the clock at each question made a call some 20 µs longer.
        let left = self.untimed.load(Ordering::Relaxed);
        if left > 0 {
            self.untimed.store(left - 1, Ordering::Relaxed);
            return None;
        }
        let now_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let since_us = now_us.saturating_sub(self.looked_us.swap(now_us, Ordering::Relaxed));
        // Where questions are rare, each of them looks: work that is to end ends in time.
        let untimed = if since_us < 1_000 { UNTIMED } else { 0 };
        self.untimed.store(untimed, Ordering::Relaxed);
        let now_ms = now_us / 1_000;
        if now_ms.saturating_sub(self.asked_ms.load(Ordering::Relaxed)) < ASK_MS
            || std::thread::current().id() != self.caller
        {
            return None;
        }
        self.asked_ms.store(now_ms, Ordering::Relaxed);
        let raised = Python::attach(|py| py.check_signals()).err()?;
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
        self.is_over.store(true, Ordering::Relaxed);
        Some(Interrupt::Cancelled)
    }
}

/// Does work without the interpreter's lock. It is given the question whether to go on, for all its threads; the calling
/// one has to take part in the work. What a signal's handler raises is the error, whatever the work says.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(Question<'_>) -> PyResult<T> + Send,
) -> PyResult<T> {
    let signals = Signals {
        caller: std::thread::current().id(),
        began: Instant::now(),
        asked_ms: AtomicU64::new(0),
        looked_us: AtomicU64::new(0),
        untimed: AtomicU32::new(0),
        is_over: AtomicBool::new(false),
        raised: Mutex::new(None),
    };
    let done = py.detach(|| work(&|| signals.ask()));
    let raised = signals.raised.into_inner();
    match raised.unwrap_or_else(PoisonError::into_inner) {
        Some(raised) => Err(raised),
        None => done,
    }
}
