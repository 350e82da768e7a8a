//! Usage of tokens in a reply. Each provider omits some members.

use super::dialect::Dialect;
use super::endpoint::Endpoint;
use super::json;

/// Tokens, as far as they were reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Tokens that the model read, its cache included.
    pub input: Option<u64>,
    /// Tokens that it wrote, reasoning included.
    pub output: Option<u64>,
    /// How much of the input came from the provider's cache.
    pub cached: Option<u64>,
    /// How much of the input was put into the provider's cache.
    pub written: Option<u64>,
    /// How much of the output was reasoning.
    pub reasoning: Option<u64>,
    /// How many of the tokens read and written were counted here, because the provider did not report them.
    pub counted: Option<u64>,
}

impl Tokens {
    /// Takes over later reports, which outrank earlier ones.
    pub fn overlay(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.cached = later.cached.or(self.cached);
        self.written = later.written.or(self.written);
        self.reasoning = later.reasoning.or(self.reasoning);
    }

    /// Returns the sum of what two replies used.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            _ => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
        };
        Self {
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            cached: sum(self.cached, other.cached),
            written: sum(self.written, other.written),
            reasoning: sum(self.reasoning, other.reasoning),
            counted: sum(self.counted, other.counted),
        }
    }

    /// Replaces missing reports with counts from here.
    #[must_use]
    pub fn or_counted(mut self, input: u64, output: impl FnOnce() -> u64) -> Self {
        let mut count = |told: &mut Option<u64>, tokens: u64| {
            if tokens > 0 {
                *told = Some(tokens);
                self.counted = Some(self.counted.unwrap_or(0).saturating_add(tokens));
            }
        };
        if self.input.is_none() {
            count(&mut self.input, input);
        }
        if self.output.is_none() {
            count(&mut self.output, output());
        }
        self
    }

    /// Reads a raw `usage` object.
    #[must_use]
    pub fn read(dialect: Dialect, usage: &str) -> Self {
        let members = json::members(usage);
        let number = |name: &str| json::member(&members, name).and_then(json::number);
        match dialect {
            Dialect::OpenAi => {
                let below = |object: [&str; 2], name: &str| {
                    let raw = object.iter().find_map(|o| json::member(&members, o))?;
                    json::member(&json::members(raw), name).and_then(json::number)
                };
                let (input, output) = (
                    ["prompt_tokens_details", "input_tokens_details"],
                    ["completion_tokens_details", "output_tokens_details"],
                );
                Self {
                    input: number("prompt_tokens").or_else(|| number("input_tokens")),
                    output: number("completion_tokens").or_else(|| number("output_tokens")),
                    cached: below(input, "cached_tokens")
                        .or_else(|| number("prompt_cache_hit_tokens")),
                    written: below(input, "cache_write_tokens"),
                    reasoning: below(output, "reasoning_tokens"),
                    counted: None,
                }
            }
            Dialect::Anthropic => {
                let cached = number("cache_read_input_tokens");
                let written = number("cache_creation_input_tokens");
                let parts = [number("input_tokens"), cached, written];
                let details = json::member(&members, "output_tokens_details");
                let details = json::members(details.unwrap_or_default());
                let input = parts.into_iter().flatten();
                Self {
                    input: parts.iter().any(Option::is_some).then(|| input.sum()),
                    output: number("output_tokens"),
                    cached,
                    written,
                    reasoning: json::member(&details, "thinking_tokens").and_then(json::number),
                    counted: None,
                }
            }
        }
    }
}

/// Returns the usage in a whole reply; nothing without a report, or if it is not JSON.
#[must_use]
pub fn of_reply(endpoint: Endpoint, reply: &str) -> Tokens {
    let members = json::members(reply);
    if endpoint == Endpoint::CountTokens {
        // Counting uses no model.
        return Tokens::default();
    }
    let usage = json::member(&members, "usage");
    usage.map_or_else(Tokens::default, |raw| Tokens::read(endpoint.dialect(), raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_with_whatever_is_missing() {
        let told = |input, output, cached, reasoning| Tokens {
            input,
            output,
            cached,
            reasoning,
            ..Tokens::default()
        };
        let cases = [
            (
                Endpoint::Chat,
                r#"{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}"#,
                told(Some(3), Some(4), Some(2), Some(1)),
            ),
            (
                Endpoint::Chat,
                r#"{"usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_cache_hit_tokens":2,"prompt_cache_miss_tokens":1}}"#,
                told(Some(3), Some(4), Some(2), None),
            ),
            (
                Endpoint::Chat,
                r#"{"usage":{"completion_tokens":4.0,"prompt_tokens_details":null}}"#,
                told(None, Some(4), None, None),
            ),
            (
                Endpoint::Responses,
                r#"{"usage":{"input_tokens":3,"output_tokens":4,"output_tokens_details":{"reasoning_tokens":0}}}"#,
                told(Some(3), Some(4), None, Some(0)),
            ),
            (
                Endpoint::Messages,
                r#"{"usage":{"input_tokens":3,"cache_read_input_tokens":10,"cache_creation_input_tokens":100,"output_tokens":4}}"#,
                Tokens {
                    written: Some(100),
                    ..told(Some(113), Some(4), Some(10), None)
                },
            ),
            (
                Endpoint::Messages,
                r#"{"usage":{"output_tokens":4}}"#,
                told(None, Some(4), None, None),
            ),
            (Endpoint::Chat, r#"{"usage":"many"}"#, Tokens::default()),
            (Endpoint::Chat, r#"{"usage":null}"#, Tokens::default()),
            (Endpoint::Chat, "oops", Tokens::default()),
            (
                Endpoint::CountTokens,
                r#"{"input_tokens":3}"#,
                Tokens::default(),
            ),
        ];
        for (endpoint, reply, expect) in cases {
            assert_eq!(of_reply(endpoint, reply), expect, "{reply}");
        }
    }
}
