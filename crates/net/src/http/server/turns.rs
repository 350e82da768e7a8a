//! Whose turn it is: one connection that sends on without waiting for its answers (pipelining) does not take the time of the
//! others. No client of MCP or of a model does so; who floods may.

use std::time::Duration;

/// Most requests of a connection in a row that had come before the answer to the one before.
const AHEAD_MAX: u32 = 4;
/// How long it waits then.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// What one connection has had.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// How often its stream had been read when its last request was taken.
    reads: u64,
    /// Requests since the last count that had come before their turn.
    ahead: u32,
    /// Requests of its own since then.
    own: u64,
    /// Those of the whole server at that time.
    served: u64,
}

impl Turns {
    /// Takes a request: whether the connection has to wait first. `reads` is how often its stream was read, `served` how many
    /// requests the server has taken, this one among them.
    pub fn take(&mut self, reads: u64, served: u64) -> bool {
        self.own += 1;
        let is_ahead = std::mem::replace(&mut self.reads, reads) == reads;
        self.ahead += u32::from(is_ahead);
        if self.ahead < AHEAD_MAX {
            return false;
        }
        let others_came = served.saturating_sub(self.served) > self.own;
        *self = Self {
            reads,
            served,
            ..Self::default()
        };
        others_came
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many waits there are in 1,000 requests, so many of which come with one read, and one of another connection behind
    /// each so many.
    fn waits(in_a_read: u64, other_behind: Option<u64>) -> u32 {
        let (mut turns, mut served) = (Turns::default(), 0);
        let mut taken = 0;
        for number in 0..1_000 {
            served += 1;
            taken += u32::from(turns.take(1 + number / in_a_read, served));
            served += u64::from(other_behind.is_some_and(|every| number % every == 0));
        }
        taken
    }

    #[test]
    fn who_waits_for_each_answer_never_waits_for_a_turn() {
        assert_eq!(waits(1, Some(1)), 0);
        assert_eq!(waits(1, None), 0);
    }

    #[test]
    fn who_sends_on_waits_where_others_come() {
        assert_eq!(waits(1_000, Some(1)), 249);
        assert!((220..=249).contains(&waits(20, Some(1))));
        assert_eq!(waits(1_000, Some(100)), 10);
    }

    #[test]
    fn who_is_alone_does_not_wait() {
        assert_eq!(waits(1_000, None), 0);
        assert_eq!(waits(20, None), 0);
    }
}
