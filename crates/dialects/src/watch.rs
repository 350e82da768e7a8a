//! Watch of a passing stream: its usage, and whether it is complete.

use super::endpoint::Endpoint;
use super::stream_state::{StreamEvent, StreamState};
use super::usage::Tokens;
use super::{anthropic, openai, responses};

/// Watches one stream.
#[derive(Debug)]
pub struct StreamWatch {
    endpoint: Endpoint,
    state: StreamState,
}

impl StreamWatch {
    /// Watches a stream of this endpoint.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            state: StreamState::default(),
        }
    }

    /// Looks at the data of an event.
    pub fn see(&mut self, data: &[u8]) -> StreamEvent {
        let Ok(data) = std::str::from_utf8(data) else {
            return StreamEvent::Malformed;
        };
        match self.endpoint {
            Endpoint::Messages | Endpoint::CountTokens => anthropic::event(&mut self.state, data),
            Endpoint::Responses => responses::event(&mut self.state, data),
            _ => openai::chunk(&mut self.state, data),
        }
    }

    /// Returns whether the model has given its stop reason: then only the end mark is missing.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.state.finished
    }

    /// Returns the end mark of a stream if the provider left it out; empty if there is none, or if its absence means
    /// that something is missing.
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

    /// Returns the usage so far: as reported, or one token for each part seen if the output was not reported or
    /// reported as none.
    #[must_use]
    pub fn used_tokens(&self) -> Tokens {
        estimate_tokens(self.state.tokens, self.state.finished, self.state.pieces)
    }
}

/// Returns the usage: as reported, or one token for each part seen if the output was not reported or reported as none.
pub(super) fn estimate_tokens(told: Tokens, finished: bool, pieces: u64) -> Tokens {
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

    fn watch_events(endpoint: Endpoint, events: &[&str]) -> (Vec<StreamEvent>, StreamWatch) {
        let mut watch = StreamWatch::new(endpoint);
        let said = events
            .iter()
            .map(|data| watch.see(data.as_bytes()))
            .collect();
        (said, watch)
    }

    #[test]
    fn chat_ends_with_its_mark_and_usage_stands_alone() {
        let (said, watch) = watch_events(
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
                StreamEvent::Part,
                StreamEvent::Part,
                StreamEvent::Part,
                StreamEvent::UsageOnly,
                StreamEvent::End
            ]
        );
        assert!(watch.has_finished());
        assert_eq!(
            (watch.used_tokens().input, watch.used_tokens().output),
            (Some(3), Some(1))
        );
        // An empty choice may be beside the usage, but only once the reply has ended.
        let beside = r#"{"choices":[{"index":0,"delta":{}}],"usage":{"completion_tokens":1}}"#;
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}"#;
        let (said, _) = watch_events(Endpoint::Chat, &[beside, end, beside]);
        assert_eq!(
            said,
            [StreamEvent::Part, StreamEvent::Part, StreamEvent::UsageOnly]
        );
        for (data, expect) in [
            ("{oops", StreamEvent::Malformed),
            ("[1]", StreamEvent::Malformed),
            (r#"{"error":{"message":"x"}}"#, StreamEvent::Failed),
            (r#"{"error":null,"choices":[]}"#, StreamEvent::Part),
            ("\u{0}", StreamEvent::Malformed),
        ] {
            assert_eq!(
                StreamWatch::new(Endpoint::Chat).see(data.as_bytes()),
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
        let mut watch = StreamWatch::new(Endpoint::Chat);
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
        let (_, watch) = watch_events(Endpoint::Chat, &[chunk; 5]);
        assert!(!watch.has_finished() && watch.end_mark().is_empty());
        assert_eq!(watch.used_tokens().output, Some(5));
        assert_eq!(watch.used_tokens().counted, Some(5));
        let used = watch.used_tokens().or_counted(7, || 9);
        assert_eq!(
            (used.input, used.output, used.counted),
            (Some(7), Some(5), Some(12))
        );
    }

    #[test]
    fn messages_say_their_usage_at_both_ends() {
        let (said, watch) = watch_events(
            Endpoint::Messages,
            &[
                r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#,
                r#"{"type":"ping"}"#,
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        );
        assert_eq!(said.last(), Some(&StreamEvent::End));
        assert_eq!(
            (watch.used_tokens().input, watch.used_tokens().output),
            (Some(9), Some(7))
        );
        let (said, _) = watch_events(Endpoint::Messages, &[r#"{"type":"error"}"#, "{}"]);
        assert_eq!(said, [StreamEvent::Failed, StreamEvent::Malformed]);
    }

    #[test]
    fn responses_end_with_their_last_event() {
        let (said, watch) = watch_events(
            Endpoint::Responses,
            &[
                r#"{"type":"response.created"}"#,
                r#"{"type":"response.output_text.delta","delta":"a"}"#,
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":2,"output_tokens":3}}}"#,
            ],
        );
        assert_eq!(
            said,
            [StreamEvent::Part, StreamEvent::Part, StreamEvent::End]
        );
        assert_eq!(
            (watch.used_tokens().input, watch.used_tokens().output),
            (Some(2), Some(3))
        );
    }
}
