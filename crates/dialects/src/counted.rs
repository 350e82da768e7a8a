//! Count of tokens for a provider that does not report its usage: an estimate of a quarter of a token for each byte.

use super::body::Body;
use super::endpoint::Endpoint;
use super::json;

/// Bytes of text that are taken for one token.
const TOKEN_BYTES: usize = 4;
/// How deep the text of a reply is looked for.
const DEPTH_MAX: usize = 8;
/// The members of a request that a model reads.
const READ: [&str; 5] = ["messages", "input", "system", "instructions", "tools"];
/// The members of a reply that a model writes.
const WRITTEN: [&str; 3] = ["choices", "content", "output"];
/// The members with strings that a model has written.
const TEXTS: [&str; 6] = [
    "content",
    "text",
    "thinking",
    "arguments",
    "refusal",
    "reasoning_content",
];

/// About how many tokens a model reads of a request.
#[must_use]
pub fn read_of(endpoint: Endpoint, body: &Body) -> u64 {
    match endpoint {
        Endpoint::Chat | Endpoint::Responses | Endpoint::Embeddings | Endpoint::Messages => {
            tokens(READ.iter().filter_map(|name| body.get(name)).map(str::len))
        }
        // Counting uses no model, and who hears or draws is not paid by the letter.
        _ => 0,
    }
}

/// About how many tokens a model has written in a whole reply.
#[must_use]
pub fn written_of(endpoint: Endpoint, reply: &str) -> u64 {
    if !endpoint.streams() {
        return 0;
    }
    let members = json::members(reply);
    let parts = WRITTEN.iter().filter_map(|name| {
        let raw = json::member(&members, name)?;
        Some(bytes(raw, false, DEPTH_MAX))
    });
    tokens(parts)
}

fn tokens(bytes: impl Iterator<Item = usize>) -> u64 {
    u64::try_from(bytes.sum::<usize>().div_ceil(TOKEN_BYTES)).unwrap_or(u64::MAX)
}

/// Returns the bytes of text in a value; a string counts if its member is one of text.
fn bytes(raw: &str, is_text: bool, depth: usize) -> usize {
    let raw = raw.trim();
    if raw.starts_with('"') {
        return if is_text {
            raw.len().saturating_sub(2)
        } else {
            0
        };
    }
    let Some(depth) = depth.checked_sub(1) else {
        return 0;
    };
    let of_member = |(name, value): &(_, &str)| {
        let name: &std::borrow::Cow<'_, str> = name;
        // The arguments of a tool, as Anthropic has them.
        if name == "input" && value.starts_with('{') {
            return value.len();
        }
        bytes(value, TEXTS.contains(&name.as_ref()), depth)
    };
    let members: usize = json::members(raw).iter().map(of_member).sum();
    let elements = json::elements(raw).into_iter();
    members
        + elements
            .map(|one| bytes(one, is_text, depth))
            .sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_reads_is_a_quarter_of_its_bytes() {
        let count = |endpoint: Endpoint, text: &str| {
            read_of(
                endpoint,
                &Body::read(text.as_bytes(), endpoint.known_members()).unwrap(),
            )
        };
        assert_eq!(
            count(Endpoint::Chat, r#"{"model":"m","messages":[12345]}"#),
            2
        );
        assert_eq!(
            count(Endpoint::Messages, r#"{"system":"abcd","messages":[]}"#),
            2
        );
        assert_eq!(count(Endpoint::Responses, r#"{"input":"abcdefgh"}"#), 3);
        assert_eq!(count(Endpoint::CountTokens, r#"{"messages":[12345]}"#), 0);
        assert_eq!(count(Endpoint::Chat, r#"{"model":"m"}"#), 0);
    }

    #[test]
    fn what_a_model_has_written_is_its_text_in_every_dialect() {
        let cases = [
            (
                Endpoint::Chat,
                r#"{"id":"xxxxxxxxx","choices":[{"message":{"role":"assistant","content":"abcd","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}"#,
                4,
            ),
            (
                Endpoint::Messages,
                r#"{"content":[{"type":"text","text":"abcdefgh"},{"type":"tool_use","input":{"a":1}}]}"#,
                4,
            ),
            (
                Endpoint::Responses,
                r#"{"output":[{"type":"message","content":[{"type":"output_text","text":"abcde"}]}]}"#,
                2,
            ),
            (Endpoint::Embeddings, r#"{"data":[{"embedding":[1]}]}"#, 0),
            (Endpoint::Chat, "oops", 0),
        ];
        for (endpoint, reply, expect) in cases {
            assert_eq!(written_of(endpoint, reply), expect, "{reply}");
        }
    }
}
