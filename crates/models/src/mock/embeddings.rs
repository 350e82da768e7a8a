//! OpenAI's embeddings: a few numbers that depend on the text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Numbers of one embedding where the request does not say.
const DIMENSIONS: usize = 8;
/// Most numbers of one embedding.
const DIMENSIONS_MAX: usize = 4_096;

/// A whole reply.
pub(super) fn whole(request: &Value) -> Value {
    let dimensions = request.get("dimensions").and_then(Value::as_u64);
    let dimensions = dimensions.and_then(|count| usize::try_from(count).ok());
    let dimensions = dimensions.unwrap_or(DIMENSIONS).min(DIMENSIONS_MAX);
    let is_base64 = request.get("encoding_format") == Some(&json!("base64"));
    let input = request.get("input").cloned().unwrap_or_default();
    // A list of numbers is one text that was cut into tokens before.
    let texts = match input {
        Value::Array(list) if !list.iter().all(Value::is_number) => list,
        one => vec![one],
    };
    let tokens: usize = texts
        .iter()
        .map(|text| text.to_string().len().div_ceil(4))
        .sum();
    let data = texts.iter().enumerate().map(|(index, text)| {
        let numbers = numbers(&text.to_string(), dimensions);
        let embedding = if is_base64 {
            let bytes: Vec<u8> = numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            json!(STANDARD.encode(bytes))
        } else {
            json!(numbers)
        };
        json!({ "object": "embedding", "index": index, "embedding": embedding })
    });
    json!({
        "object": "list",
        "data": data.collect::<Vec<_>>(),
        "model": request.get("model"),
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    })
}

/// Numbers between -1 and 1: the same for the same text.
fn numbers(text: &str, count: usize) -> Vec<f32> {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let eighth = u8::try_from(state >> 56).unwrap_or(0);
            f32::from(eighth) / 128.0 - 1.0
        })
        .collect()
}
