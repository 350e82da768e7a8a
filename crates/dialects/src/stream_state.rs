//! State of a stream, and the meaning of one event.

use super::usage::Tokens;

/// Meaning of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEvent {
    /// A part of the reply.
    Part,
    /// Nothing but what was used.
    UsageOnly,
    /// The reply has ended.
    End,
    /// The provider gives up, in the dialect's own words.
    Failed,
    /// It is no event of this dialect.
    Malformed,
}

/// State of a stream so far.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    pub tokens: Tokens,
    /// The model has said why it stopped, in every choice that has begun.
    pub finished: bool,
    /// The choices of chat completions that have begun, and those that have ended: a bit each.
    pub choices: (u128, u128),
    /// Parts that carry something the model wrote.
    pub pieces: u64,
}
