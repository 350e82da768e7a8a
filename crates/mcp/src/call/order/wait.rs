//! Calls in their order, as whoever asks has them.

use gate::facts::{Facts, Touched};
use gate::inspect::Inspected;

use super::super::client::Asker;
use super::super::read::{Asked, Step};
use super::super::under_way::CallGuard;
use super::turn::Turn;

/// What became of a call that had to wait for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::call) enum Waited {
    /// It goes on, judged by what was found last.
    On,
    /// Its client has gone meanwhile, or has taken it back.
    Withdrawn,
}

impl Asker {
    /// What had been settled so far, for whoever reads a call now.
    pub(in crate::call) fn settled(&self) -> u64 {
        self.server.order().map_or(0, |order| order.settled())
    }

    /// Takes a call into the order, where its order matters: what was read when `seen` had been settled. Gives
    /// its turn, and whether it may go on at once.
    pub(in crate::call) fn take_turn(&self, facts: &Facts, seen: u64) -> Option<(Turn, bool)> {
        let order = self.server.order()?;
        let touched = Touched::of(facts)?;
        Some(order.enter(touched, &self.caller.subject, seen))
    }

    /// The same for a request that was read just now.
    pub(in crate::call) fn first_turn(&self, asked: &Asked) -> Option<(Turn, bool)> {
        self.take_turn(asked.step.facts()?, asked.seen)
    }

    /// Waits until a request may go on, and has it read again.
    pub(in crate::call) async fn wait_for_others(
        &self,
        turn: &mut Turn,
        frame: &Inspected<Vec<u8>>,
        asked: &mut Asked,
        guard: Option<&CallGuard>,
    ) -> Waited {
        let is_long = asked.is_long;
        let read = || {
            if is_long {
                // Read again below, without a serving thread.
                return asked.step.facts().and_then(Touched::of);
            }
            // It was read before, so it can be again; else it is judged by what was known then.
            drop(self.read_again(frame, asked));
            asked.step.facts().and_then(Touched::of)
        };
        let (holds, mut is_withdrawn) = self.before_judging(guard, turn.wait(read)).await;
        if is_long && holds.is_some() && !is_withdrawn {
            let read = Box::pin(self.read_whole_again(frame, asked));
            let (read, is_taken_back) = self.before_judging(guard, read).await;
            is_withdrawn = is_taken_back || read.is_none();
        }
        if let Step::Judge(facts, origin) = &mut asked.step {
            origin.waited = true;
            facts.unsettled |= holds == Some(false);
        }
        match holds {
            Some(_) if !is_withdrawn => Waited::On,
            Some(_) | None => Waited::Withdrawn,
        }
    }
}
