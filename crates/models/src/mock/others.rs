//! APIs that are passed through: one fixed answer each.

use serde_json::{Value, json};

/// A sound: the head of a WAV file without a sample.
pub(super) const SPEECH: &[u8] =
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\0\0\0\0";

/// A picture: one pixel as PNG, in base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The documents, the last one first.
pub(super) fn rerank(request: &Value) -> Value {
    let documents = request.get("documents").and_then(Value::as_array);
    let count = documents.map_or(0, Vec::len);
    let results = (0..count).rev().map(|index| {
        let place = u32::try_from(count - index).unwrap_or(u32::MAX);
        json!({ "index": index, "relevance_score": f64::from(place).recip() })
    });
    json!({ "id": "rerank-mock", "results": results.collect::<Vec<_>>(),
        "usage": { "prompt_tokens": count, "total_tokens": count } })
}

pub(super) fn images() -> Value {
    json!({ "created": 1, "data": [{ "b64_json": PIXEL }],
        "usage": { "input_tokens": 3, "input_tokens_details": { "text_tokens": 3, "image_tokens": 0 },
            "output_tokens": 5, "total_tokens": 8 } })
}

/// What was heard, and the kind of that reply: JSON, or text alone.
pub(super) fn transcription(request: &Value) -> (&'static str, Vec<u8>) {
    let text = super::TOKENS.concat();
    let kind = request.get("response_format").and_then(Value::as_str);
    match kind {
        Some("text") => ("text/plain", format!("{text}\n").into_bytes()),
        Some("srt") => (
            "application/x-subrip",
            format!("1\n00:00:00,000 --> 00:00:01,000\n{text}\n").into_bytes(),
        ),
        Some("vtt") => (
            "text/vtt",
            format!("WEBVTT\n\n00:00.000 --> 00:01.000\n{text}\n").into_bytes(),
        ),
        _ => (
            "application/json",
            json!({ "text": text, "usage": { "type": "tokens", "input_tokens": 7, "output_tokens": 8, "total_tokens": 15 } })
                .to_string()
                .into_bytes(),
        ),
    }
}
