//! Reading a stream.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::super::ask::{Call, Piece};
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
pub(in super::super) struct Reader {
    /// The blocks that call tools: their index, and which call of the reply each is.
    calls: BTreeMap<u64, usize>,
    /// The blocks that are left out, by their index.
    ignored: BTreeSet<u64>,
}

impl Reader {
    /// Reads the data of one event; `None` where it is no event of a stream.
    pub fn read<'a>(&mut self, data: &'a str, out: &mut Vec<Piece<'a>>) -> Option<()> {
        let own = json::members(data);
        let index = member(&own, "index").and_then(json::number);
        match member(&own, "type").and_then(json::text)?.as_ref() {
            "message_start" => {
                let message = json::members(member(&own, "message")?);
                let text = |name: &str| member(&message, name).and_then(json::text);
                out.push(Piece::Start {
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
                out.extend(call.map(|at| Piece::CallEnds(*at)));
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
                    out.push(Piece::Stop(stop));
                }
            }
            "message_stop" => out.push(Piece::End),
            "error" => out.push(Piece::Failed(message_of(data))),
            // Pings, and what is yet to be invented between blocks.
            _ => {}
        }
        Some(())
    }

    fn begin<'a>(&mut self, index: u64, block: &[Member<'a>], out: &mut Vec<Piece<'a>>) {
        let text = |name: &str| {
            let text = member(block, name).and_then(json::text);
            text.filter(|text| !text.is_empty())
        };
        leave_out(reply::left_out(block), out);
        let kind = text("type").unwrap_or_default();
        match kind.as_ref() {
            "text" => out.extend(text("text").map(Piece::Text)),
            "thinking" => {
                out.extend(text("thinking").map(Piece::Thinking));
                out.extend(text("signature").map(Piece::Signature));
            }
            "redacted_thinking" => out.extend(text("data").map(Piece::Redacted)),
            "tool_use" if self.calls.len() < BLOCKS_MAX && text("name").is_some() => {
                let at = self.calls.len();
                self.calls.insert(index, at);
                let call = Call {
                    id: text("id").unwrap_or_else(|| format!("toolu_{at}").into()),
                    name: text("name").unwrap_or_default(),
                    input: Cow::default(),
                    signature: None,
                };
                out.push(Piece::Call { at, call });
                // Some servers give the whole input at once.
                let input = member(block, "input");
                let input = input.filter(|raw| !json::members(raw).is_empty());
                out.extend(input.map(|raw| Piece::Arguments {
                    at,
                    json: raw.into(),
                }));
            }
            kind => {
                if self.ignored.len() < BLOCKS_MAX {
                    self.ignored.insert(index);
                }
                out.push(Piece::LeftOut(unknown("content", kind)));
            }
        }
    }

    fn go_on<'a>(&mut self, index: u64, delta: &[Member<'a>], out: &mut Vec<Piece<'a>>) {
        if self.ignored.contains(&index) {
            return;
        }
        let text = |name: &str| member(delta, name).and_then(json::text);
        let kind = text("type").unwrap_or_default();
        match kind.as_ref() {
            "text_delta" => out.extend(text("text").map(Piece::Text)),
            "thinking_delta" => out.extend(text("thinking").map(Piece::Thinking)),
            "signature_delta" => out.extend(text("signature").map(Piece::Signature)),
            "citations_delta" => out.push(Piece::LeftOut("citations".into())),
            "input_json_delta" => {
                let json = text("partial_json").filter(|json| !json.is_empty());
                match (json, self.calls.get(&index)) {
                    (Some(json), Some(at)) => out.push(Piece::Arguments { at: *at, json }),
                    (Some(_), None) => out.push(Piece::LeftOut("delta.input_json_delta".into())),
                    (None, _) => {}
                }
            }
            kind => out.push(Piece::LeftOut(unknown("delta", kind))),
        }
    }
}

fn leave_out<N: Into<Cow<'static, str>>>(
    names: impl IntoIterator<Item = N>,
    out: &mut Vec<Piece<'_>>,
) {
    out.extend(names.into_iter().map(|name| Piece::LeftOut(name.into())));
}

fn usage(of: &[Member<'_>], out: &mut Vec<Piece<'_>>) {
    if let Some(raw) = member(of, "usage") {
        out.push(Piece::Usage(Tokens::read(Dialect::Anthropic, raw)));
    }
}
