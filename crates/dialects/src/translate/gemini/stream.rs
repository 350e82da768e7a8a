//! Reading a stream.

use super::super::ask::{Part, Piece};
use super::reply;
use crate::error::message_of;
use crate::json::{self, member};

/// Reads the events of a stream. It has no end mark: it ends behind the reason.
#[derive(Debug)]
pub(in super::super) struct Reader {
    started: bool,
    calls: usize,
    /// The id of a reply that has none of its own.
    id: String,
}

impl Reader {
    pub fn new(id: &str) -> Self {
        Self {
            started: false,
            calls: 0,
            id: id.to_owned(),
        }
    }

    /// Reads the data of one event; `None` where it is no event of a stream.
    pub fn read<'a>(&mut self, data: &'a str, out: &mut Vec<Piece<'a>>) -> Option<()> {
        let own = json::members(data);
        if own.is_empty() {
            return None;
        }
        if member(&own, "error").is_some() {
            out.push(Piece::Failed(message_of(data)));
            return Some(());
        }
        let mut at = self.calls;
        let read = reply::answer(&own, &self.id, &mut self.calls);
        if !self.started {
            self.started = true;
            out.push(Piece::Start {
                id: read.id,
                model: read.model,
            });
        }
        for part in read.parts {
            match part {
                Part::Text(text) => out.push(Piece::Text(text)),
                Part::Thinking { text, .. } => out.push(Piece::Thinking(text)),
                Part::Call(call) => {
                    let json = call.input.clone();
                    out.push(Piece::Call { at, call });
                    out.push(Piece::Arguments { at, json });
                    out.push(Piece::CallEnds(at));
                    at += 1;
                }
                _ => {}
            }
        }
        out.extend(read.left_out.into_iter().map(Piece::LeftOut));
        out.extend(read.tokens.map(Piece::Usage));
        out.extend(read.stop.map(Piece::Stop));
        Some(())
    }
}
