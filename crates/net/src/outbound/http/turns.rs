//! The turns of a connection's driver and of whoever waits for what it reads.

use std::task::{Context, Poll};

use crate::quiet::{Quiet, quietly};

/// How many turns they have before the task is woken for more.
const TURNS_MAX: usize = 2;

/// What the driver wakes.
#[derive(Debug, Default)]
pub(super) struct Turns(Quiet);

impl Turns {
    /// Polls again where polling has woken the task that polls.
    pub fn take<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut own = Context::from_waker(self.0.of(cx));
        let mut turn = 1;
        loop {
            let (polled, woken) = quietly(|| poll(&mut own));
            match woken {
                Some(_) if polled.is_pending() && turn < TURNS_MAX => turn += 1,
                Some(woken) if polled.is_pending() => {
                    woken.wake();
                    return polled;
                }
                _ => return polled,
            }
        }
    }
}
