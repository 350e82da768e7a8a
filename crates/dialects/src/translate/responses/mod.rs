//! OpenAI's Responses, as callers ask them and are answered by providers of another dialect.
//!
//! Thoughts are reasoning items: the text is their summary, the provider's signature their `encrypted_content`,
//! which the caller has to send back with them. Nothing is stored here, so what refers to something stored is refused.

mod items;
mod read;
mod reply;
mod tools;
mod turns;
mod write;

pub(super) use read::read as read_ask;
pub(super) use reply::write as write_reply;
pub(super) use write::ResponsesWriter;
