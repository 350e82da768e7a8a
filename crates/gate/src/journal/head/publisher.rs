//! The thread that brings the head up to date behind the writers, and takes it to the witness. Waiting for the disk happens
//! here and nowhere else.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Keeper, Witness};
use crate::journal::JournalError;
use crate::journal::segment::Segment;

/// Longest wait for the witness when the journal is closed, in milliseconds.
const GOODBYE_MS_MAX: u64 = 5_000;

/// Brings heads up to date, one errand at a time. Of errands that wait, the latest counts.
pub(in crate::journal) struct Courier {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Errands {
    /// The segment whose end the head shall state, and the time.
    follow: Option<(Arc<Segment>, i64)>,
    /// A head that the witness has not been given.
    line: Option<(Vec<u8>, i64)>,
    running: bool,
    stopping: bool,
    failure: Option<Arc<str>>,
}

struct Shared {
    errands: Mutex<Errands>,
    changed: Condvar,
    keeper: Arc<Keeper>,
    witness: Option<Arc<dyn Witness>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Errands> {
        self.errands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Courier {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`JournalError::Head`] where the system gives none.
    pub(in crate::journal) fn start(
        keeper: Arc<Keeper>,
        witness: Option<Arc<dyn Witness>>,
    ) -> Result<Courier, JournalError> {
        let shared = Arc::new(Shared {
            errands: Mutex::default(),
            changed: Condvar::new(),
            keeper,
            witness,
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("journal-head".to_owned())
            .spawn(move || run(&own))
            .map_err(|error| JournalError::Failed {
                cause: format!("the thread that keeps the head cannot be started: {error}"),
            })?;
        Ok(Courier {
            shared,
            thread: Some(thread),
        })
    }

    /// Has the head state how far this segment has come.
    ///
    /// # Errors
    /// What made an earlier errand fail: the journal is over.
    pub(in crate::journal) fn follow(
        &self,
        segment: &Arc<Segment>,
        now_ms: i64,
    ) -> Result<(), JournalError> {
        let mut errands = self.shared.lock();
        if let Some(cause) = &errands.failure {
            return Err(JournalError::Failed {
                cause: cause.to_string(),
            });
        }
        errands.follow = Some((Arc::clone(segment), now_ms));
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Has the witness given this head.
    pub(in crate::journal) fn hand_over(&self, line: Vec<u8>, now_ms: i64) {
        if self.shared.witness.is_some() {
            self.shared.lock().line = Some((line, now_ms));
            self.shared.changed.notify_all();
        }
    }

    /// What made an errand fail.
    pub(in crate::journal) fn failure(&self) -> Option<Arc<str>> {
        self.shared.lock().failure.clone()
    }

    /// Waits until nothing is left to do, at most [`GOODBYE_MS_MAX`]: a witness that does not answer is left behind.
    pub(in crate::journal) fn settle(&self) -> bool {
        let since = Instant::now();
        let most = Duration::from_millis(GOODBYE_MS_MAX);
        let mut errands = self.shared.lock();
        while errands.running || errands.follow.is_some() || errands.line.is_some() {
            let Some(left) = most.checked_sub(since.elapsed()) else {
                return false;
            };
            let waited = self.shared.changed.wait_timeout(errands, left);
            errands = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        let settled = {
            let mut errands = self.shared.lock();
            errands.stopping = true;
            errands.follow = None;
            self.shared.changed.notify_all();
            drop(errands);
            self.settle()
        };
        // A thread that waits for a witness ends with the program.
        let thread = self.thread.take().filter(|_| settled);
        let _ = thread.map(JoinHandle::join);
    }
}

fn run(shared: &Shared) {
    let mut troubled = false;
    loop {
        let mut errands = shared.lock();
        while errands.follow.is_none() && errands.line.is_none() && !errands.stopping {
            let waited = shared.changed.wait(errands);
            errands = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let (follow, line) = (errands.follow.take(), errands.line.take());
        if follow.is_none() && line.is_none() {
            return;
        }
        errands.running = true;
        drop(errands);
        let failure = errand(shared, follow, line, &mut troubled).err();
        let mut errands = shared.lock();
        errands.running = false;
        if let Some(error) = failure {
            errands.failure.get_or_insert(error.to_string().into());
        }
        shared.changed.notify_all();
    }
}

fn errand(
    shared: &Shared,
    follow: Option<(Arc<Segment>, i64)>,
    mut line: Option<(Vec<u8>, i64)>,
    troubled: &mut bool,
) -> Result<(), JournalError> {
    let mut written = None;
    if let Some((segment, now_ms)) = follow {
        if let Some(kept) = segment.tell(&shared.keeper, now_ms)? {
            line = Some((kept.line, now_ms));
        }
        written = Some(segment);
    }
    if let (Some(witness), Some((line, now_ms))) = (&shared.witness, line) {
        let result = witness.take(&line);
        let changed = result.is_err() != *troubled;
        *troubled = result.is_err();
        if changed && let Some(segment) = written {
            segment.witnessed(shared.keeper.keys(), now_ms, &witness.name(), result)?;
        }
    }
    Ok(())
}
