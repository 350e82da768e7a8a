//! How many individuals of a population are done, counted over the threads that compute it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use toolkit::jobs::{Attempt, JobProgress, Jobs};

use super::pool::PROGRESS_MS;

/// The count of one attempt.
pub(super) struct AttemptCount<'a> {
    jobs: &'a Jobs,
    attempt: &'a Attempt,
    /// How many an earlier attempt has done.
    began: AtomicUsize,
    done: AtomicUsize,
    total: usize,
    told: Mutex<Option<Instant>>,
}

/// Work of one thread.
pub(super) struct ThreadPart<'a> {
    of: &'a AttemptCount<'a>,
    size: usize,
    done: AtomicUsize,
}

impl<'a> AttemptCount<'a> {
    /// Counts up to `total`; `began` of them were done before.
    pub(super) fn new(jobs: &'a Jobs, attempt: &'a Attempt, began: usize, total: usize) -> Self {
        let counted = Self {
            jobs,
            attempt,
            began: AtomicUsize::new(began),
            done: AtomicUsize::new(began),
            total,
            told: Mutex::new(None),
        };
        counted.tell(true);
        counted
    }

    /// So many that were done before are to be done again.
    pub(super) fn gone(&self, size: usize) {
        self.began.fetch_sub(size, Ordering::Relaxed);
        self.done.fetch_sub(size, Ordering::Relaxed);
    }

    /// So many are begun.
    pub(super) fn part(&self, size: usize) -> ThreadPart<'_> {
        ThreadPart {
            of: self,
            size,
            done: AtomicUsize::new(0),
        }
    }

    fn tell(&self, is_due: bool) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = told.is_some_and(|told| told.elapsed().as_millis() < PROGRESS_MS);
        if recent && !is_due {
            return;
        }
        *told = Some(Instant::now());
        // Under the lock, so that an older count never replaces a newer one.
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 individuals")]
        let number = |count: usize| count as f64;
        let progress = JobProgress {
            done: number(self.done.load(Ordering::Relaxed).min(self.total)),
            total: Some(number(self.total)),
            message: None,
            began: number(self.began.load(Ordering::Relaxed)),
        };
        // A job that has ended meanwhile needs no progress.
        let _ = self.jobs.progress(self.attempt, progress);
    }
}

impl ThreadPart<'_> {
    /// So many of the part are done.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count; a cast from float to integer saturates"
    )]
    pub(super) fn tell(&self, done: f64) {
        self.count((done as usize).min(self.size));
        self.of.tell(false);
    }

    /// The part is done and kept.
    pub(super) fn end(self) {
        self.count(self.size);
        self.of.tell(true);
    }

    fn count(&self, done: usize) {
        let before = self.done.fetch_max(done, Ordering::Relaxed);
        if done > before {
            self.of.done.fetch_add(done - before, Ordering::Relaxed);
        }
    }
}
