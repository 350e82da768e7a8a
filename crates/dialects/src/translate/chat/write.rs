//! Writing a stream.

use super::super::ask::{StopReason, StreamPiece};
use super::{reply, usage};
use crate::usage::Tokens;
use crate::write::{ObjectWriter, list, quote};
use wire::sse::push_event;

/// Writes the events of a stream.
#[derive(Debug, Default)]
pub(in super::super) struct ChatWriter {
    /// When, in seconds since 1970.
    created: u64,
    id: String,
    model: String,
    /// Thoughts since the last signature.
    thoughts: String,
    /// Blocks of thoughts so far.
    blocks: usize,
    /// Calls with the begin of their arguments written.
    begun: Vec<bool>,
    tokens: Tokens,
}

impl ChatWriter {
    pub fn new(created: u64) -> Self {
        Self {
            created,
            ..Self::default()
        }
    }

    /// Writes a piece; the usage only if `wants_usage` is set.
    pub fn write(&mut self, piece: &StreamPiece<'_>, wants_usage: bool, out: &mut Vec<u8>) {
        match piece {
            StreamPiece::Start { id, model } => {
                (self.id, self.model) = (id.to_string(), model.to_string());
                let role = ObjectWriter::new()
                    .text("role", "assistant")
                    .text("content", "");
                self.delta(role, out);
            }
            StreamPiece::Text(text) => self.delta(ObjectWriter::new().text("content", text), out),
            StreamPiece::Refusal(text) => {
                self.delta(ObjectWriter::new().text("refusal", text), out)
            }
            StreamPiece::Thinking(text) => {
                self.thoughts.push_str(text);
                self.delta(ObjectWriter::new().text("reasoning_content", text), out);
            }
            StreamPiece::Signature(signature) => {
                let thoughts = std::mem::take(&mut self.thoughts);
                self.block(reply::thinking(&thoughts, signature), out);
            }
            StreamPiece::Redacted(data) => self.block(reply::redacted(data), out),
            StreamPiece::Call { at, call } => {
                self.begun.push(false);
                let call = super::ask::call(call, "").raw("index", at.to_string());
                self.delta(
                    ObjectWriter::new().raw("tool_calls", list([call.end()])),
                    out,
                );
            }
            StreamPiece::Arguments { at, json } => self.arguments(*at, json, out),
            // A call without arguments has an object of none.
            StreamPiece::CallEnds(at) if self.begun.get(*at) == Some(&false) => {
                self.arguments(*at, "{}", out);
            }
            StreamPiece::Usage(tokens) => self.tokens.overlay(*tokens),
            StreamPiece::Stop(stop) => self.stop(stop, out),
            StreamPiece::End => self.end(wants_usage, out),
            StreamPiece::CallEnds(_) | StreamPiece::Failed(_) | StreamPiece::LeftOut(_) => {}
        }
    }

    /// Writes a block of thoughts. Clients put the elements of a list together by their index.
    fn block(&mut self, block: ObjectWriter, out: &mut Vec<u8>) {
        let block = block.raw("index", self.blocks.to_string()).end();
        self.blocks += 1;
        self.delta(
            ObjectWriter::new().raw("thinking_blocks", list([block])),
            out,
        );
    }

    fn arguments(&mut self, at: usize, json: &str, out: &mut Vec<u8>) {
        if let Some(begun) = self.begun.get_mut(at) {
            *begun = true;
        }
        let function = ObjectWriter::new().text("arguments", json).end();
        let call = ObjectWriter::new().raw("index", at.to_string());
        let call = call.raw("function", function).end();
        self.delta(ObjectWriter::new().raw("tool_calls", list([call])), out);
    }

    fn stop(&self, stop: &StopReason, out: &mut Vec<u8>) {
        let choice = ObjectWriter::new()
            .raw("index", "0")
            .raw("delta", "{}")
            .text("finish_reason", reply::reason(stop))
            .raw_if("stop_reason", reply::sequence(stop));
        self.chunk(list([choice.end()]), None, out);
    }

    fn end(&self, wants_usage: bool, out: &mut Vec<u8>) {
        if wants_usage && self.tokens != Tokens::default() {
            self.chunk(list([""; 0]), Some(usage::write(self.tokens)), out);
        }
        push_event(out, None, b"[DONE]");
    }

    fn delta(&self, delta: ObjectWriter, out: &mut Vec<u8>) {
        let choice = ObjectWriter::new()
            .raw("index", "0")
            .raw("delta", delta.end())
            .raw("finish_reason", "null");
        self.chunk(list([choice.end()]), None, out);
    }

    fn chunk(&self, choices: Vec<u8>, usage: Option<Vec<u8>>, out: &mut Vec<u8>) {
        let chunk = ObjectWriter::new()
            .raw("id", quote(&self.id))
            .text("object", "chat.completion.chunk")
            .raw("created", self.created.to_string())
            .text("model", &self.model)
            .raw("choices", choices)
            .raw_if("usage", usage);
        push_event(out, None, &chunk.end());
    }
}
