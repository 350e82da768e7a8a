//! Gemini's `generateContent`: requests are written and replies are read. No caller uses it.

mod ask;
mod reply;
mod stream;

pub(super) use ask::write as write_ask;
pub(super) use reply::{read as read_reply, usage};
pub(super) use stream::GeminiReader;
