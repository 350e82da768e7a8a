//! One timer for many waits.
//!
//! Most waits end long before their time is over. A timer that is set for each of them costs more than the wait: this one is
//! moved only when it fires early or a nearer end is set.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, Sleep};

use crate::timers::kept;

/// Since the machine was started, up to a few milliseconds ago: a tenth of what the exact time costs.
pub(crate) fn about() -> Duration {
    Duration::try_from(clock_gettime(ClockId::MonotonicCoarse)).unwrap_or_default()
}

/// The timer. Its times are milliseconds since the moment that it was given.
#[derive(Debug)]
pub(crate) struct Alarm {
    start: Instant,
    timer: Pin<Box<Sleep>>,
    /// When the timer fires.
    armed_ms: u64,
}

impl Alarm {
    /// One whose times count from `start`, set to `at_ms`.
    pub fn new(start: Instant, at_ms: u64) -> Self {
        Self {
            start,
            timer: kept(|| Box::pin(tokio::time::sleep_until(at(start, at_ms)))),
            armed_ms: at_ms,
        }
    }

    /// Ready when the time is over. Otherwise the task is woken by then at the latest.
    pub fn poll_until(&mut self, until_ms: u64, cx: &mut Context<'_>) -> Poll<()> {
        if until_ms < self.armed_ms {
            self.arm(until_ms);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.armed_ms >= until_ms {
                return Poll::Ready(());
            }
            self.arm(until_ms);
        }
        Poll::Pending
    }

    /// Keeps it set where no end is near, so that the task is woken again: by `next_ms`, which is asked when it has fired.
    pub fn keep(&mut self, next_ms: impl Fn() -> u64, cx: &mut Context<'_>) {
        while self.timer.as_mut().poll(cx).is_ready() {
            self.arm(next_ms());
        }
    }

    fn arm(&mut self, at_ms: u64) {
        self.armed_ms = at_ms;
        let at = at(self.start, at_ms);
        self.timer.as_mut().reset(at);
    }
}

/// The moment so many milliseconds after another; in thirty years where that is never.
fn at(start: Instant, ms: u64) -> Instant {
    const NEVER_MS: u64 = 30 * 365 * 24 * 60 * 60 * 1_000;
    start + Duration::from_millis(ms.min(NEVER_MS))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Waits, and gives how long it took since `start`, in milliseconds.
    async fn waited(alarm: &mut Alarm, until_ms: u64) -> u128 {
        poll_fn(|cx| alarm.poll_until(until_ms, cx)).await;
        alarm.start.elapsed().as_millis()
    }

    #[tokio::test]
    async fn a_wait_ends_neither_with_an_earlier_one_nor_with_a_later() {
        let mut alarm = Alarm::new(Instant::now(), 3_600_000);
        // Nearer than it was set to: without that it would take an hour.
        let patience = Duration::from_secs(60);
        let first = tokio::time::timeout(patience, waited(&mut alarm, 20)).await;
        assert!(first.unwrap() >= 20);
        // Later than it was set to: it has fired already.
        let second = tokio::time::timeout(patience, waited(&mut alarm, 60)).await;
        assert!(second.unwrap() >= 60);
    }
}
