//! Ctrl-C: long work is ended when Python wants it, with Python's exception.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use pyo3::prelude::*;
use solver::watch::{Interrupt, Question};

/// How often Python is asked, in milliseconds.
const ASK_MS: u64 = 20;

/// What Python says of signals, asked now and then by the thread that called: it is the one that runs their handlers.
struct Signals {
    caller: ThreadId,
    began: Instant,
    /// When Python was asked last, in milliseconds since it began.
    asked_ms: AtomicU64,
    is_over: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Signals {
    fn ask(&self) -> Option<Interrupt> {
        if self.is_over.load(Ordering::Relaxed) {
            return Some(Interrupt::Cancelled);
        }
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
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
