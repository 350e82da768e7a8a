//! Writing a stream.

use std::borrow::Cow;

use super::super::arguments::ArgumentScan;
use super::super::ask::{Piece, Stop};
use super::{reply, usage};
use crate::usage::Tokens;
use crate::write::Object;
use wire::sse::push_named_event;

/// The block that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
}

/// A call, and how far its arguments have come.
#[derive(Debug)]
struct Calling {
    block: usize,
    is_open: bool,
    scan: ArgumentScan,
}

/// Writes the events of a stream.
#[derive(Debug, Default)]
pub(in super::super) struct Writer {
    /// Blocks so far.
    blocks: usize,
    open: Option<Open>,
    calls: Vec<Calling>,
    tokens: Tokens,
    stop: Option<Stop>,
}

impl Writer {
    /// Writes a piece.
    pub fn write(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        match piece {
            Piece::Start { id, model } => start(id, model, out),
            Piece::Text(text) | Piece::Refusal(text) => {
                self.enter(Open::Text, out);
                self.delta(
                    Object::new().text("type", "text_delta").text("text", text),
                    out,
                );
                if matches!(piece, Piece::Refusal(_)) {
                    self.stop = Some(Stop::Refusal);
                }
            }
            Piece::Thinking(text) => {
                self.enter(Open::Thinking, out);
                let delta = Object::new().text("type", "thinking_delta");
                self.delta(delta.text("thinking", text), out);
            }
            Piece::Signature(text) => {
                self.enter(Open::Thinking, out);
                let delta = Object::new().text("type", "signature_delta");
                self.delta(delta.text("signature", text), out);
                self.leave(out);
            }
            Piece::Redacted(data) => {
                self.leave(out);
                self.begin(&reply::redacted(data), out);
                self.finish(self.blocks.saturating_sub(1), out);
            }
            Piece::Call { call, .. } => {
                self.leave(out);
                if let Some(signature) = &call.signature {
                    self.write(&Piece::Signature(Cow::Borrowed(signature)), out);
                }
                self.begin(&reply::call(&call.id, &call.name, "{}"), out);
                let block = self.blocks.saturating_sub(1);
                self.calls.push(Calling {
                    block,
                    is_open: true,
                    scan: ArgumentScan::default(),
                });
            }
            Piece::Arguments { at, json } => {
                // Blanks may come behind an object.
                let says = |call: &&mut Calling| call.is_open || !json.trim().is_empty();
                if let Some(call) = self.calls.get_mut(*at).filter(says) {
                    call.scan.read(json);
                    let delta = Object::new().text("type", "input_json_delta");
                    delta_of(call.block, delta.text("partial_json", json), out);
                }
            }
            Piece::CallEnds(at) => self.call_ends(*at, out),
            Piece::Usage(tokens) => self.tokens.overlay(*tokens),
            Piece::Stop(stop) => {
                self.stop.get_or_insert_with(|| stop.clone());
            }
            Piece::End => self.end(out),
            Piece::Failed(_) | Piece::LeftOut(_) => {}
        }
    }

    /// Goes on with a block of this kind, or begins one.
    fn enter(&mut self, kind: Open, out: &mut Vec<u8>) {
        if self.open == Some(kind) {
            return;
        }
        self.leave(out);
        let block = match kind {
            Open::Text => Object::new().text("type", "text").text("text", "").end(),
            Open::Thinking => reply::thinking("", ""),
        };
        self.begin(&block, out);
        self.open = Some(kind);
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            self.finish(self.blocks.saturating_sub(1), out);
        }
    }

    fn begin(&mut self, block: &[u8], out: &mut Vec<u8>) {
        // One block ends before the next begins, unless the arguments of calls come by turns.
        for at in 0..self.calls.len() {
            if self.calls.get(at).is_some_and(|call| call.scan.is_whole()) {
                self.call_ends(at, out);
            }
        }
        let data = Object::new()
            .text("type", "content_block_start")
            .raw("index", self.blocks.to_string())
            .raw("content_block", block);
        self.blocks += 1;
        push_named_event(out, b"content_block_start", &data.end());
    }

    fn finish(&self, block: usize, out: &mut Vec<u8>) {
        let data = Object::new()
            .text("type", "content_block_stop")
            .raw("index", block.to_string());
        push_named_event(out, b"content_block_stop", &data.end());
    }

    fn delta(&self, delta: Object, out: &mut Vec<u8>) {
        delta_of(self.blocks.saturating_sub(1), delta, out);
    }

    fn call_ends(&mut self, at: usize, out: &mut Vec<u8>) {
        if let Some(call) = self.calls.get_mut(at).filter(|call| call.is_open) {
            call.is_open = false;
            let block = call.block;
            self.finish(block, out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.leave(out);
        for at in 0..self.calls.len() {
            self.call_ends(at, out);
        }
        let stop = self.stop.clone().unwrap_or(Stop::End);
        let delta = Object::new()
            .text("stop_reason", reply::reason(&stop))
            .raw("stop_sequence", reply::sequence(&stop));
        let data = Object::new()
            .text("type", "message_delta")
            .raw("delta", delta.end())
            .raw("usage", usage::write(self.tokens));
        push_named_event(out, b"message_delta", &data.end());
        push_named_event(out, b"message_stop", b"{\"type\":\"message_stop\"}");
    }
}

fn start(id: &str, model: &str, out: &mut Vec<u8>) {
    // What was read is known at the end only.
    let message = Object::new()
        .text("id", id)
        .text("type", "message")
        .text("role", "assistant")
        .text("model", model)
        .raw("content", "[]")
        .raw("stop_reason", "null")
        .raw("stop_sequence", "null")
        .raw("usage", usage::write(Tokens::default()));
    let data = Object::new()
        .text("type", "message_start")
        .raw("message", message.end());
    push_named_event(out, b"message_start", &data.end());
}

fn delta_of(block: usize, delta: Object, out: &mut Vec<u8>) {
    let data = Object::new()
        .text("type", "content_block_delta")
        .raw("index", block.to_string())
        .raw("delta", delta.end());
    push_named_event(out, b"content_block_delta", &data.end());
}
