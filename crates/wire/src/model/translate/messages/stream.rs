//! Reading a stream.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::super::ask::{Call, Piece};
use super::reply;
use crate::model::endpoint::Dialect;
use crate::model::error::message_of;
use crate::model::json::{self, member};
use crate::model::usage::Tokens;
use crate::scan::Member;

/// Most blocks of one reply.
const BLOCKS_MAX: usize = 4_096;

/// Reads the events of a stream.
#[derive(Debug, Default)]
pub(in super::super) struct Reader {
    /// The blocks that call tools: their index, and which call of the reply each is.
    calls: BTreeMap<u64, usize>,
}

impl Reader {
    /// Reads the data of one event; `None` where it is no event of a stream, or says what no other dialect
    /// can say.
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
                out.extend(reply::left_out(&message).into_iter().map(Piece::LeftOut));
            }
            "content_block_start" => {
                self.begin(index?, &json::members(member(&own, "content_block")?), out)?;
            }
            "content_block_delta" => {
                self.go_on(index?, &json::members(member(&own, "delta")?), out)?;
            }
            "content_block_stop" => {
                let call = self.calls.get(&index?);
                out.extend(call.map(|at| Piece::CallEnds(*at)));
            }
            "message_delta" => {
                usage(&own, out);
                let delta = json::members(member(&own, "delta").unwrap_or_default());
                let text = |name: &str| member(&delta, name).and_then(json::text);
                out.extend(reply::left_out(&delta).into_iter().map(Piece::LeftOut));
                let reason = text("stop_reason");
                if reason.is_some() {
                    let sequence = text("stop_sequence");
                    let stop = reply::stop(reason.as_deref(), sequence.as_deref())?;
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

    fn begin<'a>(
        &mut self,
        index: u64,
        block: &[Member<'a>],
        out: &mut Vec<Piece<'a>>,
    ) -> Option<()> {
        let text = |name: &str| {
            let text = member(block, name).and_then(json::text);
            text.filter(|text| !text.is_empty())
        };
        out.extend(reply::left_out(block).into_iter().map(Piece::LeftOut));
        match text("type")?.as_ref() {
            "text" => out.extend(text("text").map(Piece::Text)),
            "thinking" => {
                out.extend(text("thinking").map(Piece::Thinking));
                out.extend(text("signature").map(Piece::Signature));
            }
            "redacted_thinking" => out.push(Piece::Redacted(text("data")?)),
            "tool_use" => {
                let at = self.calls.len();
                (at < BLOCKS_MAX).then_some(())?;
                self.calls.insert(index, at);
                let call = Call {
                    id: text("id")?,
                    name: text("name")?,
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
            _ => return None,
        }
        Some(())
    }

    fn go_on<'a>(
        &mut self,
        index: u64,
        delta: &[Member<'a>],
        out: &mut Vec<Piece<'a>>,
    ) -> Option<()> {
        let text = |name: &str| member(delta, name).and_then(json::text);
        match text("type")?.as_ref() {
            "text_delta" => out.push(Piece::Text(text("text")?)),
            "thinking_delta" => out.push(Piece::Thinking(text("thinking")?)),
            "signature_delta" => out.push(Piece::Signature(text("signature")?)),
            "citations_delta" => out.push(Piece::LeftOut("citations")),
            "input_json_delta" => {
                let json = text("partial_json")?;
                let at = *self.calls.get(&index)?;
                if !json.is_empty() {
                    out.push(Piece::Arguments { at, json });
                }
            }
            _ => return None,
        }
        Some(())
    }
}

fn usage(of: &[Member<'_>], out: &mut Vec<Piece<'_>>) {
    if let Some(raw) = member(of, "usage") {
        out.push(Piece::Usage(Tokens::read(Dialect::Anthropic, raw)));
    }
}
