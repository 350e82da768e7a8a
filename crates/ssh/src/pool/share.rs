//! What one caller may have of the channels to a host, where it has to leave room for others: half of them, two at
//! least, and half of the queue. A quarter of the channels is kept for callers who have less than two.

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
pub(super) struct Shares {
    callers: Mutex<HashMap<Arc<str>, Arc<Own>>>,
    all: Arc<All>,
}

/// What all of them have.
#[derive(Debug, Default)]
struct All {
    held: AtomicUsize,
    freed: Notify,
}

/// What one caller has.
#[derive(Debug, Default)]
pub(super) struct Own {
    held: AtomicUsize,
    asking: AtomicUsize,
    all: Arc<All>,
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
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS_MAX {
            callers.retain(|_, own| Arc::strong_count(own) > 1);
        }
        let fresh = || {
            Arc::new(Own {
                all: Arc::clone(&self.all),
                ..Own::default()
            })
        };
        Arc::clone(callers.entry(Arc::clone(caller)).or_insert_with(fresh))
    }
}

impl Own {
    /// A place in the queue, of which the caller may have half.
    pub fn ask(self: &Arc<Self>, queue_max: usize) -> Result<Asking, SlotFault> {
        let most = (queue_max / 2).max(1);
        if more(&self.asking, most).is_none() {
            return Err(SlotFault::QueueFull(most));
        }
        Ok(Asking(Arc::clone(self)))
    }

    /// A part, as soon as the caller has less than half of so many channels, and enough are left for others.
    pub async fn take(
        self: &Arc<Self>,
        channels: impl Fn() -> usize,
        wait: Duration,
    ) -> Result<Share, SlotFault> {
        let asked = Instant::now();
        loop {
            let mut freed = std::pin::pin!(self.all.freed.notified());
            // From here on no change is missed.
            freed.as_mut().enable();
            if self.has_one_more_of(channels()) {
                return Ok(Share(Arc::clone(self)));
            }
            let left = wait.saturating_sub(asked.elapsed());
            if tokio::time::timeout(left, freed).await.is_err() {
                return Err(SlotFault::QueueWait(asked.elapsed()));
            }
        }
    }

    /// Counts one more channel of so many, where the caller may have it.
    fn has_one_more_of(&self, channels: usize) -> bool {
        let Some(before) = more(&self.held, (channels / 2).max(CHANNELS_MIN)) else {
            return false;
        };
        let most = match before < CHANNELS_MIN {
            true => usize::MAX,
            false => channels.saturating_sub(channels / 4),
        };
        let has = more(&self.all.held, most).is_some();
        if !has {
            self.held.fetch_sub(1, Ordering::AcqRel);
        }
        has
    }
}

/// Counts one more, where there are fewer; how many there were.
fn more(count: &AtomicUsize, most: usize) -> Option<usize> {
    let next = |count: usize| (count < most).then_some(count + 1);
    count
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
        .ok()
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::AcqRel);
        self.0.all.held.fetch_sub(1, Ordering::AcqRel);
        self.0.all.freed.notify_waiters();
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_callers_that_take_all_they_may_leave_channels_for_a_third() {
        let shares = Shares::default();
        let [one, other, third] = ["one", "other", "third"].map(|name| shares.of(&name.into()));
        let take = async |own: &Arc<Own>, wait| own.take(|| 20, wait).await.ok();
        let mut held = Vec::new();
        let mut counts = Vec::new();
        for own in [&one, &other, &third] {
            let before = held.len();
            while let Some(share) = take(own, Duration::ZERO).await {
                held.push(share);
            }
            counts.push(held.len() - before);
        }
        assert_eq!(counts, [10, 5, 2]);
        // What one caller gives back is for another who waits for it.
        let waits = take(&other, Duration::from_secs(60));
        let given_back = async {
            // The third caller's two, and one more.
            held.truncate(15);
            held.remove(0);
        };
        let (taken, ()) = tokio::join!(waits, given_back);
        assert!(taken.is_some());
    }
}
