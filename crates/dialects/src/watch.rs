//! Watching a stream go by: what was used, and whether it has come to its end.

use super::endpoint::Endpoint;
use super::stream_state::{Said, State};
use super::usage::Tokens;
use super::{anthropic, openai, responses};

/// Watches one stream.
#[derive(Debug)]
pub struct Watch {
    endpoint: Endpoint,
    state: State,
}

impl Watch {
    /// Watches a stream of this endpoint.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            state: State::default(),
        }
    }

    /// Looks at the data of an event.
    pub fn see(&mut self, data: &[u8]) -> Said {
        let Ok(data) = std::str::from_utf8(data) else {
            return Said::Malformed;
        };
        match self.endpoint {
            Endpoint::Messages | Endpoint::CountTokens => anthropic::event(&mut self.state, data),
            Endpoint::Responses => responses::event(&mut self.state, data),
            _ => openai::chunk(&mut self.state, data),
        }
    }

    /// Whether the model has said why it stopped: what is missing then is only the end mark.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.state.finished
    }

    /// The mark that ends a stream where the provider left it out; empty where there is none, or its
    /// absence means that something is missing.
    #[must_use]
    pub fn end_mark(&self) -> &'static [u8] {
        match self.endpoint {
            Endpoint::Chat if self.state.finished => b"data: [DONE]\n\n",
            Endpoint::Messages if self.state.finished => {
                b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
            }
            _ => b"",
        }
    }

    /// What was used so far: as told, and where the output was not told or told as none, one token for each
    /// part seen.
    #[must_use]
    pub fn used(&self) -> Tokens {
        used(self.state.tokens, self.state.finished, self.state.pieces)
    }
}

/// What was used: as told, and where the output was not told or told as none, one token for each part seen.
pub(super) fn used(told: Tokens, finished: bool, pieces: u64) -> Tokens {
    let is_whole = finished && told.output > Some(0);
    let seen = (!is_whole && pieces > 0).then_some(pieces);
    Tokens {
        output: told.output.max(seen),
        counted: seen.filter(|_| seen > told.output),
        ..told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(endpoint: Endpoint, events: &[&str]) -> (Vec<Said>, Watch) {
        let mut watch = Watch::new(endpoint);
        let said = events
            .iter()
            .map(|data| watch.see(data.as_bytes()))
            .collect();
        (said, watch)
    }

    #[test]
    fn chat_ends_with_its_mark_and_usage_stands_alone() {
        let (said, watch) = watched(
            Endpoint::Chat,
            &[
                r#"{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}],"usage":null}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
                "[DONE]",
            ],
        );
        assert_eq!(
            said,
            [
                Said::Part,
                Said::Part,
                Said::Part,
                Said::UsageOnly,
                Said::End
            ]
        );
        assert!(watch.has_finished());
        assert_eq!(
            (watch.used().input, watch.used().output),
            (Some(3), Some(1))
        );
        // A choice with nothing in it may stand beside the usage, but only once the reply has ended.
        let beside = r#"{"choices":[{"index":0,"delta":{}}],"usage":{"completion_tokens":1}}"#;
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}"#;
        let (said, _) = watched(Endpoint::Chat, &[beside, end, beside]);
        assert_eq!(said, [Said::Part, Said::Part, Said::UsageOnly]);
        for (data, expect) in [
            ("{oops", Said::Malformed),
            ("[1]", Said::Malformed),
            (r#"{"error":{"message":"x"}}"#, Said::Failed),
            (r#"{"error":null,"choices":[]}"#, Said::Part),
            ("\u{0}", Said::Malformed),
        ] {
            assert_eq!(
                Watch::new(Endpoint::Chat).see(data.as_bytes()),
                expect,
                "{data}"
            );
        }
    }

    #[test]
    fn a_reply_of_several_choices_is_whole_when_all_have_ended() {
        let part = |index: u64| {
            format!(r#"{{"choices":[{{"index":{index},"delta":{{"content":"a"}}}}]}}"#)
        };
        let end = |index: u64| {
            format!(r#"{{"choices":[{{"index":{index},"delta":{{}},"finish_reason":"stop"}}]}}"#)
        };
        let mut watch = Watch::new(Endpoint::Chat);
        for (data, whole) in [
            (part(0), false),
            (part(300), false),
            (end(0), false),
            (part(300), false),
            (end(300), true),
        ] {
            watch.see(data.as_bytes());
            assert_eq!(watch.has_finished(), whole, "{data}");
            assert_eq!(!watch.end_mark().is_empty(), whole, "{data}");
        }
    }

    #[test]
    fn what_is_cut_counts_by_what_was_seen() {
        let chunk = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
        let (_, watch) = watched(Endpoint::Chat, &[chunk; 5]);
        assert!(!watch.has_finished() && watch.end_mark().is_empty());
        assert_eq!(watch.used().output, Some(5));
        assert_eq!(watch.used().counted, Some(5));
        let used = watch.used().or_counted(7, || 9);
        assert_eq!(
            (used.input, used.output, used.counted),
            (Some(7), Some(5), Some(12))
        );
    }

    #[test]
    fn messages_say_their_usage_at_both_ends() {
        let (said, watch) = watched(
            Endpoint::Messages,
            &[
                r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#,
                r#"{"type":"ping"}"#,
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        );
        assert_eq!(said.last(), Some(&Said::End));
        assert_eq!(
            (watch.used().input, watch.used().output),
            (Some(9), Some(7))
        );
        let (said, _) = watched(Endpoint::Messages, &[r#"{"type":"error"}"#, "{}"]);
        assert_eq!(said, [Said::Failed, Said::Malformed]);
    }

    #[test]
    fn responses_end_with_their_last_event() {
        let (said, watch) = watched(
            Endpoint::Responses,
            &[
                r#"{"type":"response.created"}"#,
                r#"{"type":"response.output_text.delta","delta":"a"}"#,
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":2,"output_tokens":3}}}"#,
            ],
        );
        assert_eq!(said, [Said::Part, Said::Part, Said::End]);
        assert_eq!(
            (watch.used().input, watch.used().output),
            (Some(2), Some(3))
        );
    }
}
