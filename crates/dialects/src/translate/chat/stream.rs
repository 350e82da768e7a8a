//! Reading a stream.

use std::borrow::Cow;

use super::super::arguments::{self, ArgumentScan};
use super::super::ask::{ContentPart, StopReason, StreamPiece, ToolCall};
use super::super::fields::LeftOut;
use super::reply;
use crate::dialect::Dialect;
use crate::error::message_of;
use crate::json::{self, member};
use crate::usage::Tokens;
use wire::scan::Member;

/// Most calls of tools in one reply.
const CALLS_MAX: usize = 1_024;

/// Longest arguments that are kept for a call without a name yet, in bytes.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// A call of a tool as it comes.
#[derive(Debug, Default)]
struct StreamedCall {
    /// The provider's own number.
    index: u64,
    /// The provider's own id; empty if it has none.
    id: String,
    /// Which call of the reply it is, once its name has come.
    at: Option<usize>,
    /// Arguments that came before the name.
    waiting: String,
    scan: ArgumentScan,
}

/// Reads the events of a stream.
#[derive(Debug, Default)]
pub(in super::super) struct ChatReader {
    started: bool,
    /// The id of the reply.
    reply: String,
    /// The id of the request, and when it was answered.
    stamp: (String, u64),
    /// The calls that have begun, in their order.
    calls: Vec<StreamedCall>,
    /// How many of them have a name.
    named: usize,
    /// The last call with arguments.
    current: Option<usize>,
}

impl ChatReader {
    /// Returns a stream that has not begun, with the id of its request and the time of its answer.
    pub fn new(stamp: (&str, u64)) -> Self {
        Self {
            stamp: (stamp.0.to_owned(), stamp.1),
            ..Self::default()
        }
    }

    /// Reads the data of one event; `None` if it is not an event of a stream.
    pub fn read<'a>(&mut self, data: &'a str, out: &mut Vec<StreamPiece<'a>>) -> Option<()> {
        if data.trim() == "[DONE]" {
            out.push(StreamPiece::End);
            return Some(());
        }
        let own = json::members(data);
        if own.is_empty() {
            return None;
        }
        if member(&own, "error").is_some() {
            out.push(StreamPiece::Failed(message_of(data)));
            return Some(());
        }
        if !self.started {
            self.started = true;
            let text = |name: &str| member(&own, name).and_then(json::text).unwrap_or_default();
            self.reply = text("id").into_owned();
            out.push(StreamPiece::Start {
                id: text("id"),
                model: text("model"),
            });
        }
        for choice in json::elements(member(&own, "choices").unwrap_or_default()) {
            self.choice(&json::members(choice), &own, out);
        }
        if let Some(usage) = member(&own, "usage") {
            out.push(StreamPiece::Usage(Tokens::read(Dialect::OpenAi, usage)));
        }
        Some(())
    }

    fn choice<'a>(
        &mut self,
        choice: &[Member<'a>],
        own: &[Member<'a>],
        out: &mut Vec<StreamPiece<'a>>,
    ) {
        // One reply was asked for.
        if member(choice, "index").is_some_and(|index| json::number(index).unwrap_or(0) != 0) {
            let beside = reply::left_out(own, &[], &[]).into_iter();
            out.extend(beside.map(StreamPiece::LeftOut));
            out.push(StreamPiece::LeftOut("choices".into()));
            return;
        }
        let delta = json::members(member(choice, "delta").unwrap_or_default());
        let text = |name: &str| {
            let text = member(&delta, name).and_then(json::text);
            text.filter(|text| !text.is_empty())
        };
        let mut left_out: LeftOut = reply::left_out(own, choice, &delta).into_iter().collect();
        let thoughts = text("reasoning_content").or_else(|| text("reasoning"));
        out.extend(thoughts.map(StreamPiece::Thinking));
        if let Some(content) = member(&delta, "content") {
            let parts = reply::content(content, &mut left_out);
            out.extend(parts.into_iter().filter_map(piece));
        }
        out.extend(text("refusal").map(StreamPiece::Refusal));
        for call in json::elements(member(&delta, "tool_calls").unwrap_or_default()) {
            self.call(&json::members(call), &mut left_out, out);
        }
        if let Some(call) = member(&delta, "function_call") {
            let call = [("function".into(), call), ("index".into(), "0")];
            self.call(&call, &mut left_out, out);
        }
        if member(choice, "finish_reason").is_some() {
            let mut stop = reply::stop(choice, &mut left_out);
            if stop == StopReason::End && self.named > 0 {
                stop = StopReason::Calls;
            }
            // A call without a name cannot be made.
            if self.named < self.calls.len() {
                left_out.insert("tool_calls");
            }
            out.extend(left_out.into_iter().map(StreamPiece::LeftOut));
            out.push(StreamPiece::Stop(stop));
        } else {
            out.extend(left_out.into_iter().map(StreamPiece::LeftOut));
        }
    }

    /// Finds the call that a piece belongs to, or begins one; `None` if there are too many.
    fn find(&mut self, index: Option<u64>, id: &str, has_name: bool) -> Option<usize> {
        let known = match index {
            // The latest one: some servers give every call the same number.
            Some(index) => self.calls.iter().rposition(|own| own.index == index),
            // Some leave the number out: an id begins a call, and what has none goes on with the last.
            None if !id.is_empty() => self.calls.iter().rposition(|own| own.id == id),
            None => self.current,
        };
        let is_another = |own: &StreamedCall| {
            let has_other_id = !id.is_empty() && !own.id.is_empty() && own.id != id;
            has_other_id
                || has_name && own.scan.is_whole() && own.at.is_some() && own.id != id
                || has_name && id.is_empty() && own.scan.is_whole()
        };
        let known = known.filter(|at| !self.calls.get(*at).is_some_and(is_another));
        if known.is_some() {
            return known;
        }
        if self.calls.len() >= CALLS_MAX {
            return None;
        }
        let next = self.calls.iter().map(|own| own.index).max();
        let next = next.map_or(0, |most| most.saturating_add(1));
        self.calls.push(StreamedCall {
            index: index.unwrap_or(next),
            id: id.to_owned(),
            ..StreamedCall::default()
        });
        Some(self.calls.len() - 1)
    }

    fn call<'a>(
        &mut self,
        call: &[Member<'a>],
        left_out: &mut LeftOut,
        out: &mut Vec<StreamPiece<'a>>,
    ) {
        let function = json::members(member(call, "function").unwrap_or_default());
        let id = member(call, "id").and_then(json::text).unwrap_or_default();
        let name = member(&function, "name").and_then(json::text);
        let name = name.filter(|name| !name.is_empty());
        let index = member(call, "index").and_then(json::number);
        let Some(found) = self.find(index, &id, name.is_some()) else {
            left_out.insert("tool_calls");
            return;
        };
        self.current = Some(found);
        let named = self.named;
        let (reply, stamp) = (&self.reply, (self.stamp.0.as_str(), self.stamp.1));
        let Some(own) = self.calls.get_mut(found) else {
            return;
        };
        if own.id.is_empty() {
            own.id = id.into_owned();
        }
        if let (None, Some(name)) = (own.at, name) {
            if own.id.is_empty() {
                own.id = arguments::id_of(reply, stamp, named);
            }
            let call = ToolCall {
                id: own.id.clone().into(),
                name,
                input: Cow::default(),
                signature: None,
            };
            out.push(StreamPiece::Call { at: named, call });
            own.at = Some(named);
            self.named += 1;
            if !own.waiting.is_empty() {
                let json = std::mem::take(&mut own.waiting).into();
                out.push(StreamPiece::Arguments { at: named, json });
            }
        }
        let json = member(&function, "arguments").and_then(arguments::of_server);
        let Some(json) = json.filter(|json| !json.is_empty()) else {
            return;
        };
        own.scan.read(&json);
        match own.at {
            Some(at) => out.push(StreamPiece::Arguments { at, json }),
            None if own.waiting.len() + json.len() <= WAITING_BYTES_MAX => {
                own.waiting.push_str(&json);
            }
            None => {
                left_out.insert("tool_calls");
            }
        }
    }
}

/// Returns a part of a content, as in a stream.
fn piece(part: ContentPart<'_>) -> Option<StreamPiece<'_>> {
    match part {
        ContentPart::Text(text) => Some(StreamPiece::Text(text)),
        ContentPart::Refusal(text) => Some(StreamPiece::Refusal(text)),
        ContentPart::Thinking { text, .. } => Some(StreamPiece::Thinking(text)),
        _ => None,
    }
}
