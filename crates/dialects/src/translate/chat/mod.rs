//! Chat completions, as they are read and written on the way to and from another dialect.

mod ask;
mod read;
mod reply;
mod stream;
mod turns;
mod usage;
mod write;

pub(super) use ask::write as write_ask;
pub(super) use read::read as read_ask;
pub(super) use reply::{read as read_reply, write as write_reply};
pub(super) use stream::ChatReader;
pub(super) use write::ChatWriter;
