//! Who says yes: watches on one connection, answers on another, so long after the question came.
//!
//! The yes is acknowledged when the next question comes, not at once: a second wake-up of this thread
//! would fall into the time of the call that was just let through.

use super::socket::{ControlConnection, refusal};
use crate::processes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After so long without an answer the connection for answers is renewed: the other end closes it after 5 s of silence.
const REST_MAX: Duration = Duration::from_secs(3);
/// How long before the end of the delay sleeping gives way to spinning: a sleep ends late.
const SPIN: Duration = Duration::from_micros(300);

#[derive(Debug, Default)]
struct ApproverState {
    leaving: AtomicBool,
    held_us: Mutex<Vec<f64>>,
    fault: Mutex<Option<String>>,
}

/// A thread that answers the questions of one variant.
#[derive(Debug)]
pub(crate) struct Approver {
    shared: Arc<ApproverState>,
    watching: UnixStream,
    thread: Option<JoinHandle<()>>,
}

/// A line while watching.
#[derive(Debug, Deserialize)]
struct ApprovalEvent {
    #[serde(default)]
    item: Option<ApprovalItem>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct ApprovalItem {
    #[serde(default)]
    asked: Option<ApprovalQuestion>,
}

#[derive(Debug, Deserialize)]
struct ApprovalQuestion {
    id: String,
}

/// The connection on which answers are given.
struct AnswerConnection {
    control: ControlConnection,
    used: Instant,
    /// Whether the last answer is not acknowledged yet.
    owed: bool,
}

impl Approver {
    /// Watches the process `pid` and its descendants, with their socket in this directory; up to `at_once` questions
    /// are open at the same time.
    pub(super) fn start(
        directory: &Path,
        pid: u32,
        delay: Duration,
        at_once: usize,
    ) -> Result<Self, String> {
        let mut watch = ControlConnection::of(directory, pid)?;
        let pen = AnswerConnection {
            control: watch.again()?,
            used: Instant::now(),
            owed: false,
        };
        watch.send(&json!({ "do": "watch_approvals" }))?;
        watch.wait_without_end()?;
        let (shared, watching) = (Arc::<ApproverState>::default(), watch.handle()?);
        let seen = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let done = match at_once {
                0 | 1 => approve(watch, pen, delay, &seen),
                // A queue that is as long as there are questions never makes the reader wait.
                several => approve_together(watch, pen, delay, several, &seen),
            };
            let Err(fault) = done else {
                return;
            };
            if !seen.leaving.load(Ordering::Acquire) {
                *lock(&seen.fault) = Some(fault);
                // Ends the variant: its calls would wait for an answer for long.
                processes::kill_tree(pid);
            }
        });
        Ok(Self {
            shared,
            watching,
            thread: Some(thread),
        })
    }

    /// Starts to record waits.
    pub(super) fn begin(&self) {
        lock(&self.shared.held_us).clear();
    }

    /// Returns how many questions were answered since then.
    #[cfg(test)]
    pub(super) fn count_held(&self) -> usize {
        lock(&self.shared.held_us).len()
    }

    /// Returns why it answers no more.
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

/// Answers one question after the other until the connection ends, which is always an error.
fn approve(
    mut watch: ControlConnection,
    mut pen: AnswerConnection,
    delay: Duration,
    shared: &ApproverState,
) -> Result<(), String> {
    loop {
        let (id, came) = question(&mut watch)?;
        answer(&mut pen, &id, came, delay, shared)?;
    }
}

/// The same with several questions open: one thread reads them, so that each waits its own delay and not that
/// of those before it; this one answers. All delays are alike: who came first is answered first.
fn approve_together(
    mut watch: ControlConnection,
    mut pen: AnswerConnection,
    delay: Duration,
    at_once: usize,
    shared: &ApproverState,
) -> Result<(), String> {
    let handle = watch.handle()?;
    let (asked, open) = sync_channel(at_once);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            loop {
                let asking = question(&mut watch)?;
                if asked.send(asking).is_err() {
                    return Ok(());
                }
            }
        });
        for (id, came) in open {
            if let Err(fault) = answer(&mut pen, &id, came, delay, shared) {
                // Who still reads is to end as well.
                let _ = handle.shutdown(Shutdown::Both);
                return Err(fault);
            }
        }
        reader
            .join()
            .unwrap_or_else(|_| Err("its questions are not read any more".into()))
    })
}

/// Returns the next question, and when it came.
fn question(watch: &mut ControlConnection) -> Result<(String, Instant), String> {
    loop {
        let news: ApprovalEvent = watch.next()?;
        let came = Instant::now();
        if let Some(error) = news.error {
            return Err(refusal(&json!({ "error": error })));
        }
        if let Some(asked) = news.item.and_then(|item| item.asked) {
            return Ok((asked.id, came));
        }
    }
}

/// Says yes so long after the question came.
fn answer(
    pen: &mut AnswerConnection,
    id: &str,
    came: Instant,
    delay: Duration,
    shared: &ApproverState,
) -> Result<(), String> {
    pause_until(came + delay);
    pen.write(id)?;
    let held = came.elapsed();
    lock(&shared.held_us).push(held.as_secs_f64() * 1e6);
    Ok(())
}

impl AnswerConnection {
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
