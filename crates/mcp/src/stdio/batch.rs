//! Batches of the oldest revisions: several messages in one frame, answered in one.

use std::sync::{Arc, Mutex, PoisonError};

use super::outbox::Outbox;
use crate::call::Client as _;
use crate::message::batch;

/// Where the answers of a batch are collected; each of its messages holds one. The last one that is
/// dropped sends the array.
#[derive(Clone)]
pub(super) struct Part {
    batch: Arc<Batch>,
}

struct Batch {
    answers: Mutex<Vec<Vec<u8>>>,
    outbox: Arc<Outbox>,
}

impl Part {
    /// The first part of a batch.
    pub fn of(outbox: &Arc<Outbox>) -> Self {
        Self {
            batch: Arc::new(Batch {
                answers: Mutex::default(),
                outbox: Arc::clone(outbox),
            }),
        }
    }

    /// This part's answer.
    pub fn answer(self, answer: Vec<u8>) {
        self.batch
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(answer);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let answers = std::mem::take(
            self.answers
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if let Some(frame) = batch::joined(&answers) {
            self.outbox.post(frame);
        }
    }
}
