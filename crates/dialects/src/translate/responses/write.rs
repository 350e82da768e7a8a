//! Writing a stream.

use super::super::ReplyStamp;
use super::super::ask::{StopReason, StreamPiece, ToolCall};
use super::items::{self, REDACTED, ResponseHead};
use crate::usage::Tokens;
use crate::write::ObjectWriter;
use wire::sse::push_named_event;

/// The longest that a streamed reply may be, in bytes: its last event repeats all of it.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An item that is being written.
#[derive(Debug)]
enum OpenItem {
    Text(String),
    Refusal(String),
    Thinking(String),
}

/// A call with incomplete arguments.
#[derive(Debug)]
struct ItemCall {
    /// Its place in the output.
    place: usize,
    call: String,
    name: String,
    arguments: String,
    is_open: bool,
}

/// Writes the events of a stream.
#[derive(Debug, Default)]
pub(in super::super) struct ResponsesWriter {
    head: ResponseHead,
    /// Events so far.
    number: u64,
    /// The items, as they are at the end; empty if one is incomplete.
    output: Vec<Vec<u8>>,
    open: Option<OpenItem>,
    calls: Vec<ItemCall>,
    tokens: Tokens,
    stop: Option<StopReason>,
    /// Bytes of text so far.
    bytes: usize,
}

impl ResponsesWriter {
    pub fn new(stamp: ReplyStamp<'_>) -> Self {
        Self {
            head: ResponseHead::new(stamp),
            ..Self::default()
        }
    }

    /// Returns whether more was said than the last event may repeat.
    pub fn is_full(&self) -> bool {
        self.bytes > TEXT_BYTES_MAX
    }

    /// Writes a piece.
    pub fn write(&mut self, piece: &StreamPiece<'_>, out: &mut Vec<u8>) {
        match piece {
            StreamPiece::Start { id, model } => {
                (self.head.id, self.head.model) = (id.to_string(), model.to_string());
                for name in ["response.created", "response.in_progress"] {
                    let response = self.head.response(&[], None);
                    self.say(name, ObjectWriter::new().raw("response", response), out);
                }
            }
            StreamPiece::Text(text) => self.text(text, out),
            StreamPiece::Refusal(text) => {
                self.stop = Some(StopReason::Refusal);
                self.refusal(text, out);
            }
            StreamPiece::Thinking(text) => self.thinking(text, out),
            StreamPiece::Signature(text) => self.signature(text, out),
            StreamPiece::Redacted(data) => {
                self.leave(None, out);
                self.add("rs", |id| items::reasoning(id, "", None), out);
                let data = format!("{REDACTED}{data}");
                self.finish(items::reasoning(&self.id("rs"), "", Some(&data)), out);
            }
            StreamPiece::Call { call, .. } => self.call(call, out),
            StreamPiece::Arguments { at, json } => self.arguments(*at, json, out),
            StreamPiece::CallEnds(at) => self.call_ends(*at, out),
            StreamPiece::Usage(tokens) => self.tokens.overlay(*tokens),
            StreamPiece::Stop(stop) => {
                self.stop.get_or_insert_with(|| stop.clone());
            }
            StreamPiece::End => self.end(out),
            StreamPiece::Failed(_) | StreamPiece::LeftOut(_) => {}
        }
    }

    /// Writes an event with its number.
    fn say(&mut self, name: &str, members: ObjectWriter, out: &mut Vec<u8>) {
        let data = members
            .text("type", name)
            .raw("sequence_number", self.number.to_string());
        self.number += 1;
        push_named_event(out, name.as_bytes(), &data.end());
    }

    /// Returns the place of the last item.
    fn place(&self) -> usize {
        self.output.len().saturating_sub(1)
    }

    /// Returns the id of the last item.
    fn id(&self, prefix: &str) -> String {
        items::id(&self.head, prefix, self.place())
    }

    /// Begins an item.
    fn add(&mut self, prefix: &str, item: impl Fn(&str) -> Vec<u8>, out: &mut Vec<u8>) {
        self.output.push(Vec::new());
        let item = item(&self.id(prefix));
        let place = self.place().to_string();
        let members = ObjectWriter::new()
            .raw("output_index", place)
            .raw("item", item);
        self.say("response.output_item.added", members, out);
    }

    /// Ends the last item.
    fn finish(&mut self, item: Vec<u8>, out: &mut Vec<u8>) {
        self.finish_at(self.place(), item, out);
    }

    fn finish_at(&mut self, place: usize, item: Vec<u8>, out: &mut Vec<u8>) {
        let members = ObjectWriter::new()
            .raw("output_index", place.to_string())
            .raw("item", &item);
        self.say("response.output_item.done", members, out);
        if let Some(slot) = self.output.get_mut(place) {
            *slot = item;
        }
    }

    /// Returns the members of an event about a part of the last item.
    fn about(&self, prefix: &str, index: &str) -> ObjectWriter {
        ObjectWriter::new()
            .text("item_id", &self.id(prefix))
            .raw("output_index", self.place().to_string())
            .raw(index, "0")
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenItem::Text(_))) {
            self.begin_message(items::text_part(""), out);
            self.open = Some(OpenItem::Text(String::new()));
        }
        let members = self.about("msg", "content_index").text("delta", text);
        self.say(
            "response.output_text.delta",
            members.raw("logprobs", "[]"),
            out,
        );
        self.keep(text);
    }

    fn refusal(&mut self, text: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenItem::Refusal(_))) {
            self.begin_message(items::refusal_part(""), out);
            self.open = Some(OpenItem::Refusal(String::new()));
        }
        let members = self.about("msg", "content_index").text("delta", text);
        self.say("response.refusal.delta", members, out);
        self.keep(text);
    }

    fn begin_message(&mut self, part: Vec<u8>, out: &mut Vec<u8>) {
        self.leave(None, out);
        self.add("msg", |id| items::message(id, "in_progress", &[]), out);
        let members = self.about("msg", "content_index").raw("part", part);
        self.say("response.content_part.added", members, out);
    }

    fn thinking(&mut self, text: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenItem::Thinking(_))) {
            self.leave(None, out);
            self.add("rs", |id| items::reasoning(id, "", None), out);
            let part = items::summary_part("");
            let members = self.about("rs", "summary_index").raw("part", part);
            self.say("response.reasoning_summary_part.added", members, out);
            self.open = Some(OpenItem::Thinking(String::new()));
        }
        let members = self.about("rs", "summary_index").text("delta", text);
        self.say("response.reasoning_summary_text.delta", members, out);
        self.keep(text);
    }

    fn signature(&mut self, signature: &str, out: &mut Vec<u8>) {
        if matches!(self.open, Some(OpenItem::Thinking(_))) {
            return self.leave(Some(signature), out);
        }
        self.leave(None, out);
        self.add("rs", |id| items::reasoning(id, "", None), out);
        self.finish(items::reasoning(&self.id("rs"), "", Some(signature)), out);
    }

    fn keep(&mut self, more: &str) {
        self.bytes = self.bytes.saturating_add(more.len());
        match &mut self.open {
            Some(OpenItem::Text(text) | OpenItem::Refusal(text) | OpenItem::Thinking(text)) => {
                text.push_str(more);
            }
            None => {}
        }
    }

    /// Ends the item that is open.
    fn leave(&mut self, signature: Option<&str>, out: &mut Vec<u8>) {
        let Some(open) = self.open.take() else { return };
        match open {
            OpenItem::Text(text) => {
                let members = self.about("msg", "content_index").text("text", &text);
                let members = members.raw("logprobs", "[]");
                self.say("response.output_text.done", members, out);
                self.end_message(items::text_part(&text), out);
            }
            OpenItem::Refusal(text) => {
                let members = self.about("msg", "content_index").text("refusal", &text);
                self.say("response.refusal.done", members, out);
                self.end_message(items::refusal_part(&text), out);
            }
            OpenItem::Thinking(text) => {
                let members = self.about("rs", "summary_index").text("text", &text);
                self.say("response.reasoning_summary_text.done", members, out);
                let part = items::summary_part(&text);
                let members = self.about("rs", "summary_index").raw("part", part);
                self.say("response.reasoning_summary_part.done", members, out);
                self.finish(items::reasoning(&self.id("rs"), &text, signature), out);
            }
        }
    }

    fn end_message(&mut self, part: Vec<u8>, out: &mut Vec<u8>) {
        let members = self.about("msg", "content_index").raw("part", &part);
        self.say("response.content_part.done", members, out);
        let status = match self.stop {
            Some(StopReason::Length) => "incomplete",
            _ => "completed",
        };
        self.finish(items::message(&self.id("msg"), status, &[part]), out);
    }

    fn call(&mut self, call: &ToolCall<'_>, out: &mut Vec<u8>) {
        self.leave(None, out);
        if let Some(signature) = &call.signature {
            self.signature(signature, out);
        }
        let of = (call.id.as_ref(), call.name.as_ref());
        self.add("fc", |id| items::call(id, "in_progress", of, ""), out);
        self.calls.push(ItemCall {
            place: self.place(),
            call: call.id.to_string(),
            name: call.name.to_string(),
            arguments: String::new(),
            is_open: true,
        });
    }

    fn arguments(&mut self, at: usize, json: &str, out: &mut Vec<u8>) {
        let Some(calling) = self.calls.get_mut(at) else {
            return;
        };
        calling.arguments.push_str(json);
        let place = calling.place;
        self.bytes = self.bytes.saturating_add(json.len());
        let members = ObjectWriter::new()
            .text("item_id", &items::id(&self.head, "fc", place))
            .raw("output_index", place.to_string())
            .text("delta", json);
        self.say("response.function_call_arguments.delta", members, out);
    }

    fn call_ends(&mut self, at: usize, out: &mut Vec<u8>) {
        let is_empty = |calling: &ItemCall| calling.is_open && calling.arguments.is_empty();
        if self.calls.get(at).is_some_and(is_empty) {
            // A call without arguments has an object of none.
            self.arguments(at, "{}", out);
        }
        let Some(calling) = self.calls.get_mut(at).filter(|own| own.is_open) else {
            return;
        };
        calling.is_open = false;
        let place = calling.place;
        let arguments = std::mem::take(&mut calling.arguments);
        let id = items::id(&self.head, "fc", place);
        let of = (calling.call.as_str(), calling.name.as_str());
        let item = items::call(&id, "completed", of, &arguments);
        let members = ObjectWriter::new()
            .text("item_id", &id)
            .text("name", &calling.name)
            .raw("output_index", place.to_string())
            .text("arguments", &arguments);
        self.say("response.function_call_arguments.done", members, out);
        self.finish_at(place, item, out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.leave(None, out);
        // The arguments of calls may have come by turns, so all of them end here.
        for at in 0..self.calls.len() {
            self.call_ends(at, out);
        }
        let stop = self.stop.clone().unwrap_or(StopReason::End);
        let response = self.head.response(&self.output, Some((&stop, self.tokens)));
        let name = if items::is_incomplete(&response) {
            "response.incomplete"
        } else {
            "response.completed"
        };
        self.say(name, ObjectWriter::new().raw("response", response), out);
    }
}
