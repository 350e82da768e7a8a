//! Reading a stream.

use super::super::ask::{ContentPart, StreamPiece};
use super::reply;
use crate::error::message_of;
use crate::json::{self, member};

/// Reads the events of a stream. It has no end mark: it ends behind the reason.
#[derive(Debug)]
pub(in super::super) struct GeminiReader {
    started: bool,
    calls: usize,
    /// The id of a reply that has none of its own.
    id: String,
}

impl GeminiReader {
    pub fn new(id: &str) -> Self {
        Self {
            started: false,
            calls: 0,
            id: id.to_owned(),
        }
    }

    /// Reads the data of one event; `None` if it is not an event of a stream.
    pub fn read<'a>(&mut self, data: &'a str, out: &mut Vec<StreamPiece<'a>>) -> Option<()> {
        let own = json::members(data);
        if own.is_empty() {
            return None;
        }
        if member(&own, "error").is_some() {
            out.push(StreamPiece::Failed(message_of(data)));
            return Some(());
        }
        let mut at = self.calls;
        let read = reply::answer(&own, &self.id, &mut self.calls);
        if !self.started {
            self.started = true;
            out.push(StreamPiece::Start {
                id: read.id,
                model: read.model,
            });
        }
        for part in read.parts {
            match part {
                ContentPart::Text(text) => out.push(StreamPiece::Text(text)),
                ContentPart::Thinking { text, .. } => out.push(StreamPiece::Thinking(text)),
                ContentPart::Call(call) => {
                    let json = call.input.clone();
                    out.push(StreamPiece::Call { at, call });
                    out.push(StreamPiece::Arguments { at, json });
                    out.push(StreamPiece::CallEnds(at));
                    at += 1;
                }
                _ => {}
            }
        }
        out.extend(read.left_out.into_iter().map(StreamPiece::LeftOut));
        out.extend(read.tokens.map(StreamPiece::Usage));
        out.extend(read.stop.map(StreamPiece::Stop));
        Some(())
    }
}
