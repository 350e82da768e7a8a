//! Usage, in messages.

use crate::usage::Tokens;
use crate::write::ObjectWriter;

/// Writes a `usage` object. Its `input_tokens` are those that no cache was used for.
pub(super) fn write(tokens: Tokens) -> Vec<u8> {
    let (cached, written) = (tokens.cached.unwrap_or(0), tokens.written.unwrap_or(0));
    let input = tokens.input.unwrap_or(0);
    let plain = input.saturating_sub(cached).saturating_sub(written);
    let details = tokens.reasoning.map(|count| {
        ObjectWriter::new()
            .raw("thinking_tokens", count.to_string())
            .end()
    });
    ObjectWriter::new()
        .raw("input_tokens", plain.to_string())
        .raw("cache_creation_input_tokens", written.to_string())
        .raw("cache_read_input_tokens", cached.to_string())
        .raw("output_tokens", tokens.output.unwrap_or(0).to_string())
        .raw_if("output_tokens_details", details)
        .end()
}
