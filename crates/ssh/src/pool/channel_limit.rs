//! Limit of the channels to a host: a share for each caller that has to leave room for others.

use std::sync::Arc;
use std::time::Duration;

use share::{ShareLimits, SharePermit, SharePool};
use tokio::time::Instant;

use super::SlotFault;

/// Channels that a caller may have in any case: one with a terminal can run a command beside it.
const CHANNELS_MIN: usize = 2;

/// Channels of a host. A caller has half of them at most, and half of the queue; a quarter is reserved for callers with less than
/// [`CHANNELS_MIN`].
#[derive(Debug)]
pub(super) struct ChannelLimit {
    channels: SharePool,
    /// Calls without a channel.
    calls: SharePool,
    waiting_of_caller_max: usize,
}

impl ChannelLimit {
    /// Returns the limit of a host with so many channels, for which `queue_max` calls may wait.
    pub fn new(channels: usize, queue_max: usize) -> Self {
        let waiting_of_caller_max = (queue_max / 2).max(1);
        let of_calls = ShareLimits::of_caller(waiting_of_caller_max, usize::MAX);
        Self {
            channels: SharePool::new(limits(channels)),
            calls: SharePool::new(of_calls),
            waiting_of_caller_max,
        }
    }

    /// Replaces the number of channels. Permits beyond the new one remain.
    pub fn set_channels(&self, channels: usize) {
        self.channels.set_limits(limits(channels));
    }

    /// Returns a permit for one more call of a caller that has no channel yet.
    ///
    /// # Errors
    /// [`SlotFault::QueueFull`].
    pub fn call_permit(&self, caller: &Arc<str>) -> Result<SharePermit, SlotFault> {
        let permit = self.calls.try_acquire(Some(caller), 1);
        permit.map_err(|_| SlotFault::QueueFull(self.waiting_of_caller_max))
    }

    /// Waits until the caller may have one more channel.
    ///
    /// # Errors
    /// [`SlotFault::QueueWait`] after `wait`.
    pub async fn channel_permit(
        &self,
        caller: &Arc<str>,
        wait: Duration,
    ) -> Result<SharePermit, SlotFault> {
        let asked = Instant::now();
        let mut permit = self.channels.permit(Some(caller));
        match tokio::time::timeout(wait, permit.grow(1)).await {
            Ok(Ok(())) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(SlotFault::QueueWait(asked.elapsed())),
        }
    }
}

/// Returns the limits of so many channels. Those of a first part may exceed them: the lane makes connections, or waits for a
/// channel.
fn limits(channels: usize) -> ShareLimits {
    ShareLimits {
        all: usize::MAX,
        common: channels - channels / 4,
        first: CHANNELS_MIN,
        caller: (channels / 2).max(CHANNELS_MIN),
        // Call permits are the bound.
        waiting: usize::MAX,
        waiting_of_caller: usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_callers_that_take_all_they_may_leave_channels_for_a_third() {
        let limit = ChannelLimit::new(20, 10);
        let [one, other, third] = ["one", "other", "third"].map(Arc::<str>::from);
        let take = async |caller: &Arc<str>, wait| limit.channel_permit(caller, wait).await.ok();
        let mut held = Vec::new();
        let mut counts = Vec::new();
        for caller in [&one, &other, &third] {
            let before = held.len();
            while let Some(permit) = take(caller, Duration::ZERO).await {
                held.push(permit);
            }
            counts.push(held.len() - before);
        }
        assert_eq!(counts, [10, 5, 2]);
        // What one caller gives back is for another that waits for it.
        let waits = take(&other, Duration::from_secs(60));
        let given_back = async {
            // The third caller's two, and one more.
            held.truncate(15);
            held.remove(0);
        };
        let (taken, ()) = tokio::join!(waits, given_back);
        assert!(taken.is_some());
    }

    #[tokio::test]
    async fn fewer_channels_than_were_thought_are_fewer_for_each_caller() {
        let limit = ChannelLimit::new(20, 10);
        let caller: Arc<str> = "one".into();
        let mut held = Vec::new();
        for _ in 0..6 {
            held.extend(limit.channel_permit(&caller, Duration::ZERO).await);
        }
        limit.set_channels(8);
        held.truncate(4);
        assert!(limit.channel_permit(&caller, Duration::ZERO).await.is_err());
        held.truncate(3);
        assert!(limit.channel_permit(&caller, Duration::ZERO).await.is_ok());
    }

    #[tokio::test]
    async fn every_channel_and_every_call_is_shared_and_comes_back() {
        let limit = Arc::new(ChannelLimit::new(12, 6));
        let channel = |caller: &Arc<str>| {
            let (limit, caller) = (Arc::clone(&limit), Arc::clone(caller));
            let wait = Duration::from_secs(60);
            Box::pin(async move { limit.channel_permit(&caller, wait).await.ok() }) as _
        };
        let checked = share::contract::check_user(&limit.channels, 1, channel);
        assert_eq!(checked, Ok(()));
        let call =
            |caller: &Arc<str>| Box::pin(std::future::ready(limit.call_permit(caller).ok())) as _;
        assert_eq!(share::contract::check_user(&limit.calls, 1, call), Ok(()));
    }
}
