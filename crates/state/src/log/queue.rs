//! The state of a file log that its threads share.

use super::LogError;

/// Batches are numbered. Two exist at any moment at most: one being written, one being collected.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) batch: Vec<u8>,
    pub(super) spare: Vec<u8>,
    /// Records in `batch` that an appender waits for or will finish.
    pub(super) members: u32,
    /// Threads that wait for it at this moment.
    pub(super) at_once: u32,
    /// Whether one of them needs the path inspected first.
    pub(super) look: bool,
    /// The last batch had several.
    pub(super) crowded: bool,
    /// Number of the batch being collected.
    pub(super) collecting: u64,
    /// Batches below this number are settled: written or failed.
    pub(super) settled: u64,
    pub(super) leading: bool,
    waiting_even: u32,
    waiting_odd: u32,
    pub(super) written_bytes: u64,
    /// Bytes written, and those in batches.
    pub(super) accepted_bytes: u64,
    pub(super) synced_bytes: u64,
    pub(super) helper_idle: bool,
    pub(super) stopping: bool,
    pub(super) failure: Option<LogError>,
    /// The first batch that was not written because of the failure.
    failed_batch: u64,
}

impl Queue {
    /// Returns the state of a log with a file of this length, all of it synced.
    pub(super) fn starting_at(len_bytes: u64) -> Queue {
        Queue {
            written_bytes: len_bytes,
            accepted_bytes: len_bytes,
            synced_bytes: len_bytes,
            ..Queue::default()
        }
    }

    /// Returns whether records are collected, and no thread writes or is about to.
    pub(super) fn waits_alone(&self) -> bool {
        !self.batch.is_empty() && self.members == 0 && !self.leading
    }

    /// Returns the number of threads that sleep for a batch, or for one two before or after it.
    pub(super) fn waiting(&mut self, batch: u64) -> &mut u32 {
        if batch.is_multiple_of(2) {
            &mut self.waiting_even
        } else {
            &mut self.waiting_odd
        }
    }

    /// Records a failure outside of a write: the batch being collected will not be written.
    pub(super) fn fail(&mut self, error: LogError) {
        if self.failure.is_none() {
            self.failure = Some(error);
            self.failed_batch = self.collecting;
        }
    }

    /// Records that batch `id` could not be written, and settles the batch collected meanwhile as failed too.
    pub(super) fn end(&mut self, error: LogError, id: u64) {
        self.failed_batch = if self.failure.is_some() {
            self.failed_batch.min(id)
        } else {
            id
        };
        self.failure.get_or_insert(error);
        self.abandon();
    }

    /// Settles the batch being collected as failed, without writing it.
    pub(super) fn abandon(&mut self) {
        self.batch.clear();
        self.look = false;
        self.collecting = self.collecting.saturating_add(1);
        self.settled = self.collecting;
    }

    /// Returns the result for the members of a settled batch: the cause for the first that failed, that the log has failed for
    /// later ones.
    pub(super) fn outcome(&self, batch: u64) -> Result<(), LogError> {
        match &self.failure {
            Some(error) if batch == self.failed_batch => Err(error.clone()),
            Some(error) if batch > self.failed_batch => Err(error.poison()),
            _ => Ok(()),
        }
    }

    /// Returns the error that a new append meets.
    pub(super) fn rejection(&self) -> Option<LogError> {
        self.failure.as_ref().map(LogError::poison)
    }
}
