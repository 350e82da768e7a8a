//! Reading a stream.

use std::borrow::Cow;

use super::super::ask::{Call, Part, Piece, Stop};
use super::reply;
use crate::model::endpoint::Dialect;
use crate::model::error::message_of;
use crate::model::json::{self, member};
use crate::model::usage::Tokens;
use crate::scan::Member;

/// Most calls of tools in one reply.
const CALLS_MAX: usize = 1_024;

/// Reads the events of a stream.
#[derive(Debug, Default)]
pub(in super::super) struct Reader {
    started: bool,
    /// The provider's own numbers of the calls that have begun, in their order.
    calls: Vec<u64>,
    /// The last call whose arguments came.
    current: Option<usize>,
}

impl Reader {
    /// Reads the data of one event; `None` where it is no event of a stream, or says what no other dialect
    /// can say.
    pub fn read<'a>(&mut self, data: &'a str, out: &mut Vec<Piece<'a>>) -> Option<()> {
        if data.trim() == "[DONE]" {
            out.push(Piece::End);
            return Some(());
        }
        let own = json::members(data);
        if own.is_empty() {
            return None;
        }
        if member(&own, "error").is_some() {
            out.push(Piece::Failed(message_of(data)));
            return Some(());
        }
        if !self.started {
            self.started = true;
            let text = |name: &str| member(&own, name).and_then(json::text).unwrap_or_default();
            out.push(Piece::Start {
                id: text("id"),
                model: text("model"),
            });
        }
        for choice in json::elements(member(&own, "choices").unwrap_or_default()) {
            self.choice(&json::members(choice), &own, out)?;
        }
        if let Some(usage) = member(&own, "usage") {
            out.push(Piece::Usage(Tokens::read(Dialect::OpenAi, usage)));
        }
        Some(())
    }

    fn choice<'a>(
        &mut self,
        choice: &[Member<'a>],
        own: &[Member<'a>],
        out: &mut Vec<Piece<'a>>,
    ) -> Option<()> {
        // One reply was asked for.
        if member(choice, "index").is_some_and(|index| json::number(index) != Some(0)) {
            return None;
        }
        let delta = json::members(member(choice, "delta").unwrap_or_default());
        let text = |name: &str| {
            let text = member(&delta, name).and_then(json::text);
            text.filter(|text| !text.is_empty())
        };
        let thoughts = text("reasoning_content").or_else(|| text("reasoning"));
        out.extend(thoughts.map(Piece::Thinking));
        if let Some(content) = member(&delta, "content") {
            out.extend(reply::content(content)?.into_iter().filter_map(piece));
        }
        out.extend(text("refusal").map(Piece::Refusal));
        out.extend(
            reply::left_out(own, choice, &delta)
                .into_iter()
                .map(Piece::LeftOut),
        );
        if reply::has_more(&delta) {
            return None;
        }
        for call in json::elements(member(&delta, "tool_calls").unwrap_or_default()) {
            self.call(&json::members(call), out)?;
        }
        if member(choice, "finish_reason").is_some() {
            let mut stop = reply::stop(choice);
            if stop == Stop::End && !self.calls.is_empty() {
                stop = Stop::Calls;
            }
            out.push(Piece::Stop(stop));
        }
        Some(())
    }

    fn call<'a>(&mut self, call: &[Member<'a>], out: &mut Vec<Piece<'a>>) -> Option<()> {
        let function = json::members(member(call, "function").unwrap_or_default());
        let id = member(call, "id").and_then(json::text);
        let id = id.filter(|id| !id.is_empty());
        let name = member(&function, "name").and_then(json::text);
        let name = name.filter(|name| !name.is_empty());
        let index = member(call, "index").and_then(json::number);
        let known = match index {
            Some(index) => self.calls.iter().position(|own| *own == index),
            // Some servers leave the index out: an id begins a call, and what has none goes on with the last.
            None if id.is_some() => None,
            None => self.current,
        };
        let at = match (known, name) {
            (Some(at), _) => at,
            (None, Some(name)) if self.calls.len() < CALLS_MAX => {
                let at = self.calls.len();
                let next = self.calls.iter().max().map_or(0, |most| most + 1);
                self.calls.push(index.unwrap_or(next));
                let id = id.unwrap_or_else(|| format!("call_{at}").into());
                let call = Call {
                    id,
                    name,
                    input: Cow::default(),
                    signature: None,
                };
                out.push(Piece::Call { at, call });
                at
            }
            (None, _) => return None,
        };
        self.current = Some(at);
        let json = member(&function, "arguments").and_then(json::text);
        if let Some(json) = json.filter(|json: &Cow<'_, str>| !json.is_empty()) {
            out.push(Piece::Arguments { at, json });
        }
        Some(())
    }
}

/// A part of a content, as it stands in a stream.
fn piece(part: Part<'_>) -> Option<Piece<'_>> {
    match part {
        Part::Text(text) => Some(Piece::Text(text)),
        Part::Thinking { text, .. } => Some(Piece::Thinking(text)),
        _ => None,
    }
}
