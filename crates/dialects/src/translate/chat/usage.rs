//! Usage, in chat completions.

use crate::usage::Tokens;
use crate::write::ObjectWriter;

/// Writes a `usage` object.
pub(super) fn write(tokens: Tokens) -> Vec<u8> {
    let (input, output) = (tokens.input.unwrap_or(0), tokens.output.unwrap_or(0));
    let number = |number: u64| number.to_string();
    let read = ObjectWriter::new()
        .raw("cached_tokens", number(tokens.cached.unwrap_or(0)))
        .raw_if("cache_write_tokens", tokens.written.map(number));
    let wrote = ObjectWriter::new().raw("reasoning_tokens", number(tokens.reasoning.unwrap_or(0)));
    ObjectWriter::new()
        .raw("prompt_tokens", number(input))
        .raw("completion_tokens", number(output))
        .raw("total_tokens", number(input.saturating_add(output)))
        .raw("prompt_tokens_details", read.end())
        .raw("completion_tokens_details", wrote.end())
        .end()
}
