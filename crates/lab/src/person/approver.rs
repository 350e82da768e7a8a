//! Who says yes: watches on one connection, answers on another, so long after the question came.
//!
//! The yes is acknowledged when the next question comes, not at once: a second wake-up of this thread
//! would fall into the time of the call that was just let through.

use super::socket::{Control, refusal};
use crate::processes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After so long without an answer the connection for answers is made anew: the other end closes it
/// after 5 s of silence.
const REST_MAX: Duration = Duration::from_secs(3);
/// How long before the end of the delay sleeping gives way to spinning: a sleep ends late.
const SPIN: Duration = Duration::from_micros(300);

#[derive(Debug, Default)]
struct Shared {
    leaving: AtomicBool,
    held_us: Mutex<Vec<f64>>,
    fault: Mutex<Option<String>>,
}

/// A thread that answers the questions of one arm.
#[derive(Debug)]
pub(crate) struct Approver {
    shared: Arc<Shared>,
    watching: UnixStream,
    thread: Option<JoinHandle<()>>,
}

/// A line while watching.
#[derive(Debug, Deserialize)]
struct News {
    #[serde(default)]
    item: Option<Item>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Item {
    #[serde(default)]
    asked: Option<Asked>,
}

#[derive(Debug, Deserialize)]
struct Asked {
    id: String,
}

/// The connection on which answers are given.
struct Pen {
    control: Control,
    used: Instant,
    /// Whether the last answer is not acknowledged yet.
    owed: bool,
}

impl Approver {
    /// Watches the process `pid` and its descendants, whose socket is in this directory.
    pub(super) fn start(directory: &Path, pid: u32, delay: Duration) -> Result<Self, String> {
        let mut watch = Control::of(directory, pid)?;
        let pen = Pen {
            control: watch.again()?,
            used: Instant::now(),
            owed: false,
        };
        watch.send(&json!({ "do": "watch_approvals" }))?;
        watch.wait_without_end()?;
        let (shared, watching) = (Arc::<Shared>::default(), watch.handle()?);
        let seen = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let Err(fault) = approve(watch, pen, delay, &seen) else {
                return;
            };
            if !seen.leaving.load(Ordering::Acquire) {
                *lock(&seen.fault) = Some(fault);
                // Who waits for an answer would wait for long; the end tells at once.
                processes::kill_tree(pid);
            }
        });
        Ok(Self {
            shared,
            watching,
            thread: Some(thread),
        })
    }

    /// What was held counts from here.
    pub(super) fn begin(&self) {
        lock(&self.shared.held_us).clear();
    }

    /// How many questions were answered since then.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        lock(&self.shared.held_us).len()
    }

    /// Why it answers no more.
    pub(super) fn fault(&self) -> Option<String> {
        lock(&self.shared.fault).clone()
    }

    /// Ends the thread; gives how long each question since [`Self::begin`] was held, in microseconds.
    pub(super) fn leave(mut self) -> Result<Vec<f64>, String> {
        self.end();
        match self.fault() {
            Some(fault) => Err(fault),
            None => Ok(std::mem::take(&mut *lock(&self.shared.held_us))),
        }
    }

    fn end(&mut self) {
        self.shared.leaving.store(true, Ordering::Release);
        // It may be closed already.
        let _ = self.watching.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Drop for Approver {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers until the connection ends, which is always an error.
fn approve(
    mut watch: Control,
    mut pen: Pen,
    delay: Duration,
    shared: &Shared,
) -> Result<(), String> {
    loop {
        let news: News = watch.next()?;
        let came = Instant::now();
        if let Some(error) = news.error {
            return Err(refusal(&json!({ "error": error })));
        }
        let Some(asked) = news.item.and_then(|item| item.asked) else {
            continue;
        };
        pause_until(came + delay);
        pen.write(&asked.id)?;
        let held = came.elapsed();
        lock(&shared.held_us).push(held.as_secs_f64() * 1e6);
    }
}

impl Pen {
    fn write(&mut self, id: &str) -> Result<(), String> {
        self.acknowledge()?;
        if self.used.elapsed() >= REST_MAX {
            self.control = self.control.again()?;
        }
        let answer = json!({ "do": "answer", "id": id, "answer": "once" });
        self.control.send(&answer)?;
        (self.owed, self.used) = (true, Instant::now());
        Ok(())
    }

    /// Reads the acknowledgement that is owed.
    fn acknowledge(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.owed) {
            self.control.answer()?;
        }
        Ok(())
    }
}

fn pause_until(end: Instant) {
    while let Some(rest) = end
        .checked_duration_since(Instant::now())
        .filter(|r| !r.is_zero())
    {
        match rest.checked_sub(SPIN) {
            Some(sleep) => std::thread::park_timeout(sleep),
            None => std::hint::spin_loop(),
        }
    }
}
