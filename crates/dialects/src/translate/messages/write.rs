//! Writing a stream.

use std::borrow::Cow;

use super::super::arguments::ArgumentScan;
use super::super::ask::{StopReason, StreamPiece};
use super::{reply, usage};
use crate::usage::Tokens;
use crate::write::ObjectWriter;
use wire::sse::push_named_event;

/// The block that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
}

/// A call, and how far its arguments have come.
#[derive(Debug)]
struct BlockCall {
    block: usize,
    is_open: bool,
    scan: ArgumentScan,
}

/// Writes the events of a stream.
#[derive(Debug, Default)]
pub(in super::super) struct MessagesWriter {
    /// Blocks so far.
    blocks: usize,
    open: Option<OpenBlock>,
    calls: Vec<BlockCall>,
    tokens: Tokens,
    stop: Option<StopReason>,
}

impl MessagesWriter {
    /// Writes a piece.
    pub fn write(&mut self, piece: &StreamPiece<'_>, out: &mut Vec<u8>) {
        match piece {
            StreamPiece::Start { id, model } => start(id, model, out),
            StreamPiece::Text(text) | StreamPiece::Refusal(text) => {
                self.enter(OpenBlock::Text, out);
                self.delta(
                    ObjectWriter::new()
                        .text("type", "text_delta")
                        .text("text", text),
                    out,
                );
                if matches!(piece, StreamPiece::Refusal(_)) {
                    self.stop = Some(StopReason::Refusal);
                }
            }
            StreamPiece::Thinking(text) => {
                self.enter(OpenBlock::Thinking, out);
                let delta = ObjectWriter::new().text("type", "thinking_delta");
                self.delta(delta.text("thinking", text), out);
            }
            StreamPiece::Signature(text) => {
                self.enter(OpenBlock::Thinking, out);
                let delta = ObjectWriter::new().text("type", "signature_delta");
                self.delta(delta.text("signature", text), out);
                self.leave(out);
            }
            StreamPiece::Redacted(data) => {
                self.leave(out);
                self.begin(&reply::redacted(data), out);
                self.finish(self.blocks.saturating_sub(1), out);
            }
            StreamPiece::Call { call, .. } => {
                self.leave(out);
                if let Some(signature) = &call.signature {
                    self.write(&StreamPiece::Signature(Cow::Borrowed(signature)), out);
                }
                self.begin(&reply::call(&call.id, &call.name, "{}"), out);
                let block = self.blocks.saturating_sub(1);
                self.calls.push(BlockCall {
                    block,
                    is_open: true,
                    scan: ArgumentScan::default(),
                });
            }
            StreamPiece::Arguments { at, json } => {
                // Blanks may come behind an object.
                let says = |call: &&mut BlockCall| call.is_open || !json.trim().is_empty();
                if let Some(call) = self.calls.get_mut(*at).filter(says) {
                    call.scan.read(json);
                    let delta = ObjectWriter::new().text("type", "input_json_delta");
                    delta_of(call.block, delta.text("partial_json", json), out);
                }
            }
            StreamPiece::CallEnds(at) => self.call_ends(*at, out),
            StreamPiece::Usage(tokens) => self.tokens.overlay(*tokens),
            StreamPiece::Stop(stop) => {
                self.stop.get_or_insert_with(|| stop.clone());
            }
            StreamPiece::End => self.end(out),
            StreamPiece::Failed(_) | StreamPiece::LeftOut(_) => {}
        }
    }

    /// Goes on with a block of this kind, or begins one.
    fn enter(&mut self, kind: OpenBlock, out: &mut Vec<u8>) {
        if self.open == Some(kind) {
            return;
        }
        self.leave(out);
        let block = match kind {
            OpenBlock::Text => ObjectWriter::new()
                .text("type", "text")
                .text("text", "")
                .end(),
            OpenBlock::Thinking => reply::thinking("", ""),
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
        let data = ObjectWriter::new()
            .text("type", "content_block_start")
            .raw("index", self.blocks.to_string())
            .raw("content_block", block);
        self.blocks += 1;
        push_named_event(out, b"content_block_start", &data.end());
    }

    fn finish(&self, block: usize, out: &mut Vec<u8>) {
        let data = ObjectWriter::new()
            .text("type", "content_block_stop")
            .raw("index", block.to_string());
        push_named_event(out, b"content_block_stop", &data.end());
    }

    fn delta(&self, delta: ObjectWriter, out: &mut Vec<u8>) {
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
        let stop = self.stop.clone().unwrap_or(StopReason::End);
        let delta = ObjectWriter::new()
            .text("stop_reason", reply::reason(&stop))
            .raw("stop_sequence", reply::sequence(&stop));
        let data = ObjectWriter::new()
            .text("type", "message_delta")
            .raw("delta", delta.end())
            .raw("usage", usage::write(self.tokens));
        push_named_event(out, b"message_delta", &data.end());
        push_named_event(out, b"message_stop", b"{\"type\":\"message_stop\"}");
    }
}

fn start(id: &str, model: &str, out: &mut Vec<u8>) {
    // The input count is known at the end only.
    let message = ObjectWriter::new()
        .text("id", id)
        .text("type", "message")
        .text("role", "assistant")
        .text("model", model)
        .raw("content", "[]")
        .raw("stop_reason", "null")
        .raw("stop_sequence", "null")
        .raw("usage", usage::write(Tokens::default()));
    let data = ObjectWriter::new()
        .text("type", "message_start")
        .raw("message", message.end());
    push_named_event(out, b"message_start", &data.end());
}

fn delta_of(block: usize, delta: ObjectWriter, out: &mut Vec<u8>) {
    let data = ObjectWriter::new()
        .text("type", "content_block_delta")
        .raw("index", block.to_string())
        .raw("delta", delta.end());
    push_named_event(out, b"content_block_delta", &data.end());
}
