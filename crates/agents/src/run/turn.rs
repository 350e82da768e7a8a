//! One reply of the model while it is written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::CALLS_MAX;
use crate::delta::{FinishReason, ModelDelta};
use crate::plan::CallEncoding;
use crate::repair;
use crate::tags::{ACTION_BYTES_MAX, TagEvent, TagReader, TagReply};

/// Most bytes of one reply that are kept.
const REPLY_BYTES_MAX: usize = 1024 * 1024;

/// A tool call while it is written.
#[derive(Debug, Default)]
pub(super) struct CallDraft {
    pub id: Option<String>,
    pub name: String,
    pub arguments: String,
    pub is_too_long: bool,
}

/// A reply.
#[derive(Debug)]
pub(super) struct ModelTurn {
    encoding: CallEncoding,
    /// Text of a native reply.
    pub text: String,
    reasoning: String,
    reader: TagReader,
    reply: TagReply,
    drafts: BTreeMap<u64, CallDraft>,
    finish: Option<FinishReason>,
    bytes: usize,
    is_cut: bool,
}

impl ModelTurn {
    pub(super) fn new(encoding: CallEncoding) -> Self {
        Self {
            encoding,
            text: String::new(),
            reasoning: String::new(),
            reader: TagReader::new(),
            reply: TagReply::default(),
            drafts: BTreeMap::new(),
            finish: None,
            bytes: 0,
            is_cut: false,
        }
    }

    /// Returns whether nothing more of the reply is read.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Returns whether the rest of the reply cannot matter, or would be too long.
    pub(super) fn is_complete(&self) -> bool {
        self.bytes > REPLY_BYTES_MAX
            || (self.encoding == CallEncoding::React && self.reader.is_done())
    }

    /// Reads what the model wrote; returns thoughts and answer for the caller.
    pub(super) fn read(&mut self, delta: ModelDelta) -> Vec<TagEvent> {
        let ModelDelta {
            text,
            reasoning,
            calls,
            finish,
        } = delta;
        self.bytes = self.bytes.saturating_add(text.len() + reasoning.len());
        self.reasoning.push_str(&reasoning);
        if finish.is_some() {
            self.finish = finish;
        }
        if self.bytes > REPLY_BYTES_MAX {
            self.finish = Some(FinishReason::Length);
        }
        let mut events = Vec::new();
        match self.encoding {
            CallEncoding::Native => {
                self.text.push_str(&text);
                if !text.is_empty() {
                    events.push(TagEvent::Answer(text));
                }
                for piece in calls {
                    if !self.drafts.contains_key(&piece.index) && self.drafts.len() >= CALLS_MAX {
                        continue;
                    }
                    let draft = self.drafts.entry(piece.index).or_default();
                    if piece.id.is_some() {
                        draft.id = piece.id;
                    }
                    draft.name.push_str(&piece.name.unwrap_or_default());
                    if draft.arguments.len() + piece.arguments.len() > ACTION_BYTES_MAX {
                        draft.is_too_long = true;
                    } else {
                        draft.arguments.push_str(&piece.arguments);
                    }
                }
            }
            CallEncoding::React => {
                self.reader.push(text.as_bytes(), &mut events);
                events
                    .iter()
                    .for_each(|event| self.reply.add(event.clone()));
            }
        }
        events
    }

    /// Reads the end of the reply.
    pub(super) fn finish(&mut self) -> Vec<TagEvent> {
        let mut events = Vec::new();
        if self.encoding == CallEncoding::React {
            self.reader.finish(&mut events);
            events
                .iter()
                .for_each(|event| self.reply.add(event.clone()));
        }
        events
    }

    /// Reads a text that the provider could not read as a call, in place of the reply.
    pub(super) fn recover(&mut self, text: &str) {
        self.finish = Some(FinishReason::Stop);
        match self.encoding {
            CallEncoding::React => {
                self.read(ModelDelta {
                    text: text.to_owned(),
                    ..ModelDelta::default()
                });
            }
            CallEncoding::Native => {
                let draft = match repair::parse_call(text) {
                    Ok(call) => CallDraft {
                        name: call.tool,
                        arguments: call.arguments,
                        ..CallDraft::default()
                    },
                    Err(_) => CallDraft {
                        arguments: text.to_owned(),
                        ..CallDraft::default()
                    },
                };
                self.drafts.insert(0, draft);
            }
        }
    }

    pub(super) fn finish_reason(&self) -> FinishReason {
        self.finish.unwrap_or(FinishReason::Stop)
    }

    pub(super) fn take_drafts(&mut self) -> Vec<CallDraft> {
        std::mem::take(&mut self.drafts).into_values().collect()
    }

    pub(super) fn take_reply(&mut self) -> TagReply {
        std::mem::take(&mut self.reply)
    }

    /// Returns the reply with these calls as a message of the history. The model's thoughts go back unchanged.
    pub(super) fn assistant_message(&self, calls: &[String]) -> String {
        let content = match self.text.is_empty() {
            true => Value::Null,
            false => Value::from(self.text.as_str()),
        };
        let mut message = format!("{{\"role\":\"assistant\",\"content\":{content}");
        if !self.reasoning.is_empty() {
            let reasoning = Value::from(self.reasoning.as_str());
            message.push_str(&format!(",\"reasoning_content\":{reasoning}"));
        }
        message.push_str(&format!(",\"tool_calls\":[{}]}}", calls.join(",")));
        message
    }
}
