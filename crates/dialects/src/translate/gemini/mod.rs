//! Gemini's `generateContent`: requests are written and replies are read. Nobody asks in its words.

mod ask;
mod reply;
mod stream;

pub(super) use ask::write as write_ask;
pub(super) use reply::{read as read_reply, usage};
pub(super) use stream::Reader;
