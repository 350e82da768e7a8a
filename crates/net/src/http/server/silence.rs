//! A handler that has waited for a second: its connection polls and tells it, and it may begin to answer.
//!
//! Whatever stands between the two peers may give up on a connection on which nothing is said. One timer a connection: a
//! request that is answered in time sets none.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::alarm::{Alarm, about};

/// How long a handler may wait before it is told, in milliseconds.
const SILENT_MS: u64 = 1_000;

thread_local! {
    /// What the connection that is being polled, and the handler of its request, tell each other.
    static TOLD: Cell<Told> = const { Cell::new(Told::Nothing) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// By the handler: it waits from now on.
    Begun,
    /// By the handler: it waits no more.
    Ended,
    /// By the connection: the wait has lasted for a second.
    Silent,
}

/// What `future` gives; none once it has taken a second. For handlers, in the task in which they are polled: elsewhere it waits
/// for as long as `future` takes.
pub async fn unless_silent<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut has_begun = false;
    poll_fn(|cx| {
        let is_silent = has_begun && TOLD.get() == Told::Silent;
        let polled = future.as_mut().poll(cx);
        let (told, polled) = match polled {
            Poll::Ready(output) => (Told::Ended, Poll::Ready(Some(output))),
            Poll::Pending if is_silent => (Told::Ended, Poll::Ready(None)),
            Poll::Pending if !has_begun => (Told::Begun, Poll::Pending),
            Poll::Pending => return Poll::Pending,
        };
        has_begun = true;
        TOLD.set(told);
        polled
    })
    .await
}

/// Watches over the handlers of a connection's requests, one after the other.
pub(super) struct Silence {
    /// When it was made, by the clock of [`about`].
    begun: Duration,
    alarm: Alarm,
    /// When the wait becomes too long, in milliseconds since then.
    until_ms: Option<u64>,
}

impl Default for Silence {
    fn default() -> Self {
        Self {
            begun: about(),
            // Set with the first wait.
            alarm: Alarm::new(Instant::now(), u64::MAX),
            until_ms: None,
        }
    }
}

impl Silence {
    /// Polls the connection, and once more when its handler has waited for too long.
    pub fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut connection: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut tell = Told::Nothing;
        loop {
            TOLD.set(tell);
            let polled = connection(cx);
            match TOLD.replace(Told::Nothing) {
                Told::Begun => self.until_ms = Some(self.about_ms().saturating_add(SILENT_MS)),
                Told::Ended => self.until_ms = None,
                Told::Nothing | Told::Silent => {}
            }
            let Some(until_ms) = self.until_ms else {
                return polled;
            };
            if polled.is_ready() || self.alarm.poll_until(until_ms, cx).is_pending() {
                return polled;
            }
            self.until_ms = None;
            tell = Told::Silent;
        }
    }

    fn about_ms(&self) -> u64 {
        let since = about().saturating_sub(self.begun);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock of a wait is a few milliseconds behind.
    const WAIT: Duration = Duration::from_millis(SILENT_MS - 20);

    /// Polls a handler as its connection does.
    async fn handled<T>(silence: &mut Silence, handler: impl Future<Output = T>) -> T {
        let mut handler = pin!(handler);
        poll_fn(|cx| silence.poll(cx, |cx| handler.as_mut().poll(cx))).await
    }

    #[tokio::test]
    async fn each_wait_has_a_second_and_one_that_ends_is_not_told() {
        let mut silence = Silence::default();
        for _ in 0..2 {
            let begun = Instant::now();
            // What came before the wait, as a body that was slow, does not count.
            let told = handled(&mut silence, async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                unless_silent(std::future::pending::<()>()).await
            });
            assert!(told.await.is_none());
            assert!(begun.elapsed() >= WAIT + Duration::from_millis(300));
        }
        let soon = handled(&mut silence, async {
            let first = unless_silent(tokio::time::sleep(Duration::from_millis(10))).await;
            // One that nobody is told of.
            tokio::time::sleep(WAIT + Duration::from_millis(100)).await;
            (
                first,
                unless_silent(tokio::time::sleep(Duration::from_millis(10))).await,
            )
        });
        assert_eq!(soon.await, (Some(()), Some(())));
    }

    #[tokio::test]
    async fn without_a_connection_it_takes_as_long_as_it_takes() {
        let late = tokio::time::sleep(WAIT + Duration::from_millis(100));
        assert!(unless_silent(late).await.is_some());
    }
}
