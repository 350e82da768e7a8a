//! What the loop seldom hears of: signals that ask for the end, and the tick. Each look at them costs as much as
//! reading a short frame, so they are looked at only when one of them has woken the loop.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use net::timers::kept;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior};

use crate::bell::Bell;

/// Number of the signal for a file that grows beyond its limit (Linux; absent constant in tokio).
const SIGXFSZ: i32 = 25;

/// Which of them it was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seldom {
    Signal,
    Tick,
}

pub(super) struct Sources {
    terminate: Signal,
    interrupt: Signal,
    /// A file-size limit would end the process before it could say why; taking the signal makes the
    /// write fail instead.
    _file_size: Signal,
    tick: Interval,
    /// Rung by whichever has something.
    bell: Arc<Bell>,
    waker: Waker,
}

impl Sources {
    /// Listens from now on.
    ///
    /// # Errors
    /// Where signals cannot be listened to.
    pub fn listen(tick: Duration) -> io::Result<Self> {
        let mut tick = kept(|| tokio::time::interval(tick));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let bell = Arc::new(Bell::default());
        // The first look has them know whom to wake.
        bell.ring();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _file_size: signal(SignalKind::from_raw(SIGXFSZ))?,
            tick,
            waker: Waker::from(Arc::clone(&bell)),
            bell,
        })
    }

    /// Waits for one of them. Cancel-safe.
    pub async fn next(&mut self) -> Seldom {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Seldom> {
        if self.bell.poll_heard(cx).is_pending() {
            return Poll::Pending;
        }
        let mut own = Context::from_waker(&self.waker);
        if self.terminate.poll_recv(&mut own).is_ready()
            || self.interrupt.poll_recv(&mut own).is_ready()
        {
            // There may be more, and who had something does not ring again before it was asked again.
            self.bell.ring();
            return Poll::Ready(Seldom::Signal);
        }
        if self.tick.poll_tick(&mut own).is_ready() {
            self.bell.ring();
            return Poll::Ready(Seldom::Tick);
        }
        // Rung meanwhile, as by a source that was asked when the budget of this turn was used up: in the next turn.
        if self.bell.poll_heard(cx).is_ready() {
            self.bell.ring();
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ticks_go_on_though_nobody_waits_for_some_of_them() {
        let mut sources = Sources::listen(Duration::from_millis(5)).unwrap();
        for _ in 0..20 {
            assert_eq!(sources.next().await, Seldom::Tick);
            // Given up before its end, as by a frame that comes first.
            let ended = tokio::time::timeout(Duration::from_millis(1), sources.next()).await;
            assert!(ended.is_err() || ended == Ok(Seldom::Tick));
        }
    }
}
