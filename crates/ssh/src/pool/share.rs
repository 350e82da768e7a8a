//! What one caller may have of the channels to a host, where it has to leave room for others: half of them, two at
//! least, and half of the queue.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::SlotFault;

/// A caller may have so many in any case: whoever has a terminal can run a command beside it.
const CHANNELS_MIN: usize = 2;
/// Callers beyond this number are forgotten where they have and wait for nothing.
const CALLERS_MAX: usize = 1_024;

/// What each caller has.
#[derive(Debug, Default)]
pub(super) struct Shares(Mutex<HashMap<Arc<str>, Arc<Own>>>);

/// What one caller has.
#[derive(Debug, Default)]
pub(super) struct Own {
    held: AtomicUsize,
    asking: AtomicUsize,
    freed: Notify,
}

/// A channel's part of what its caller has.
#[derive(Debug)]
pub(super) struct Share(Arc<Own>);

/// A call of a caller that has no channel yet.
#[derive(Debug)]
pub(super) struct Asking(Arc<Own>);

impl Shares {
    /// What this caller has.
    pub fn of(&self, caller: &Arc<str>) -> Arc<Own> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= CALLERS_MAX {
            all.retain(|_, own| Arc::strong_count(own) > 1);
        }
        Arc::clone(all.entry(Arc::clone(caller)).or_default())
    }
}

impl Own {
    /// A place in the queue, of which the caller may have half.
    pub fn ask(self: &Arc<Self>, queue_max: usize) -> Result<Asking, SlotFault> {
        let most = (queue_max / 2).max(1);
        if !more(&self.asking, most) {
            return Err(SlotFault::QueueFull(most));
        }
        Ok(Asking(Arc::clone(self)))
    }

    /// A part, as soon as the caller has less than half of so many channels.
    pub async fn take(
        self: &Arc<Self>,
        channels: impl Fn() -> usize,
        wait: Duration,
    ) -> Result<Share, SlotFault> {
        let asked = Instant::now();
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // From here on no change is missed.
            freed.as_mut().enable();
            if more(&self.held, (channels() / 2).max(CHANNELS_MIN)) {
                return Ok(Share(Arc::clone(self)));
            }
            let left = wait.saturating_sub(asked.elapsed());
            if tokio::time::timeout(left, freed).await.is_err() {
                return Err(SlotFault::QueueWait(asked.elapsed()));
            }
        }
    }
}

/// Counts one more, where there are fewer.
fn more(count: &AtomicUsize, most: usize) -> bool {
    let next = |count: usize| (count < most).then_some(count + 1);
    count
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
        .is_ok()
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::AcqRel);
        self.0.freed.notify_one();
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
    }
}
