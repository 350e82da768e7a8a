//! Reading a stream.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::super::ask::{StreamPiece, ToolCall};
use super::super::fields::{LeftOut, unknown};
use super::reply;
use crate::dialect::Dialect;
use crate::error::message_of;
use crate::json::{self, member};
use crate::usage::Tokens;
use wire::scan::Member;

/// Most blocks of one reply.
const BLOCKS_MAX: usize = 4_096;

/// Reads the events of a stream.
#[derive(Debug, Default)]
pub(in super::super) struct MessagesReader {
    /// The blocks that call tools: their index, and which call of the reply each is.
    calls: BTreeMap<u64, usize>,
    /// The blocks that are left out, by their index.
    ignored: BTreeSet<u64>,
}

impl MessagesReader {
    /// Reads the data of one event; `None` if it is not an event of a stream.
    pub fn read<'a>(&mut self, data: &'a str, out: &mut Vec<StreamPiece<'a>>) -> Option<()> {
        let own = json::members(data);
        let index = member(&own, "index").and_then(json::number);
        match member(&own, "type").and_then(json::text)?.as_ref() {
            "message_start" => {
                let message = json::members(member(&own, "message")?);
                let text = |name: &str| member(&message, name).and_then(json::text);
                out.push(StreamPiece::Start {
                    id: text("id").unwrap_or_default(),
                    model: text("model").unwrap_or_default(),
                });
                usage(&message, out);
                leave_out(reply::left_out(&message), out);
            }
            "content_block_start" => {
                self.begin(index?, &json::members(member(&own, "content_block")?), out);
            }
            "content_block_delta" => {
                self.go_on(index?, &json::members(member(&own, "delta")?), out);
            }
            "content_block_stop" => {
                let call = self.calls.get(&index?);
                out.extend(call.map(|at| StreamPiece::CallEnds(*at)));
            }
            "message_delta" => {
                usage(&own, out);
                let delta = json::members(member(&own, "delta").unwrap_or_default());
                let text = |name: &str| member(&delta, name).and_then(json::text);
                let mut left_out: LeftOut = reply::left_out(&delta).into_iter().collect();
                let reason = text("stop_reason");
                let sequence = text("stop_sequence");
                let calls = !self.calls.is_empty();
                let stop = reason.map(|reason| {
                    reply::stop(Some(&reason), sequence.as_deref(), calls, &mut left_out)
                });
                leave_out(left_out, out);
                if let Some(stop) = stop {
                    out.push(StreamPiece::Stop(stop));
                }
            }
            "message_stop" => out.push(StreamPiece::End),
            "error" => out.push(StreamPiece::Failed(message_of(data))),
            // Pings, and what is yet to be invented between blocks.
            _ => {}
        }
        Some(())
    }

    fn begin<'a>(&mut self, index: u64, block: &[Member<'a>], out: &mut Vec<StreamPiece<'a>>) {
        let text = |name: &str| {
            let text = member(block, name).and_then(json::text);
            text.filter(|text| !text.is_empty())
        };
        leave_out(reply::left_out(block), out);
        let kind = text("type").unwrap_or_default();
        match kind.as_ref() {
            "text" => out.extend(text("text").map(StreamPiece::Text)),
            "thinking" => {
                out.extend(text("thinking").map(StreamPiece::Thinking));
                out.extend(text("signature").map(StreamPiece::Signature));
            }
            "redacted_thinking" => out.extend(text("data").map(StreamPiece::Redacted)),
            "tool_use" if self.calls.len() < BLOCKS_MAX && text("name").is_some() => {
                let at = self.calls.len();
                self.calls.insert(index, at);
                let call = ToolCall {
                    id: text("id").unwrap_or_else(|| format!("toolu_{at}").into()),
                    name: text("name").unwrap_or_default(),
                    input: Cow::default(),
                    signature: None,
                };
                out.push(StreamPiece::Call { at, call });
                // Some servers give the whole input at once.
                let input = member(block, "input");
                let input = input.filter(|raw| !json::members(raw).is_empty());
                out.extend(input.map(|raw| StreamPiece::Arguments {
                    at,
                    json: raw.into(),
                }));
            }
            kind => {
                if self.ignored.len() < BLOCKS_MAX {
                    self.ignored.insert(index);
                }
                out.push(StreamPiece::LeftOut(unknown("content", kind)));
            }
        }
    }

    fn go_on<'a>(&mut self, index: u64, delta: &[Member<'a>], out: &mut Vec<StreamPiece<'a>>) {
        if self.ignored.contains(&index) {
            return;
        }
        let text = |name: &str| member(delta, name).and_then(json::text);
        let kind = text("type").unwrap_or_default();
        match kind.as_ref() {
            "text_delta" => out.extend(text("text").map(StreamPiece::Text)),
            "thinking_delta" => out.extend(text("thinking").map(StreamPiece::Thinking)),
            "signature_delta" => out.extend(text("signature").map(StreamPiece::Signature)),
            "citations_delta" => out.push(StreamPiece::LeftOut("citations".into())),
            "input_json_delta" => {
                let json = text("partial_json").filter(|json| !json.is_empty());
                match (json, self.calls.get(&index)) {
                    (Some(json), Some(at)) => out.push(StreamPiece::Arguments { at: *at, json }),
                    (Some(_), None) => {
                        out.push(StreamPiece::LeftOut("delta.input_json_delta".into()))
                    }
                    (None, _) => {}
                }
            }
            kind => out.push(StreamPiece::LeftOut(unknown("delta", kind))),
        }
    }
}

fn leave_out<N: Into<Cow<'static, str>>>(
    names: impl IntoIterator<Item = N>,
    out: &mut Vec<StreamPiece<'_>>,
) {
    out.extend(
        names
            .into_iter()
            .map(|name| StreamPiece::LeftOut(name.into())),
    );
}

fn usage(of: &[Member<'_>], out: &mut Vec<StreamPiece<'_>>) {
    if let Some(raw) = member(of, "usage") {
        out.push(StreamPiece::Usage(Tokens::read(Dialect::Anthropic, raw)));
    }
}
