//! OpenAI's embeddings in the words of Google: texts in, numbers out.
//!
//! Vertex has two methods. The older models have `predict`, with all texts in one request; Gemini's have `embedContent`
//! for one text and `batchEmbedContents` for several. A text that is too long is an error, as it is with OpenAI: both
//! would cut it off in silence.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::body::Body;
use super::super::json::{self, member};
use super::super::usage::Tokens;
use super::super::write::{ObjectWriter, list, quote};
use super::ask::Text;
use super::fields::{Inexpressible, LeftOut, ObjectFields, Read, wrong};
use super::{TranslatedReply, TranslatedRequest};

/// The method that a model is asked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingMethod {
    /// `predict`.
    Predict,
    /// `embedContent`.
    Embed,
    /// `batchEmbedContents`.
    EmbedAll,
}

impl EmbeddingMethod {
    /// Returns the one for a request to a model, which has `embedContent` or only `predict`.
    #[must_use]
    pub fn of(body: &Body, embeds: bool) -> Self {
        let input = body.get("input").unwrap_or_default();
        match (embeds, json::elements(input).len()) {
            (false, _) => Self::Predict,
            (true, 0 | 1) => Self::Embed,
            (true, _) => Self::EmbedAll,
        }
    }

    /// Returns its name in a URL.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Predict => "predict",
            Self::Embed => "embedContent",
            Self::EmbedAll => "batchEmbedContents",
        }
    }
}

/// Says a request.
///
/// # Errors
/// Where some of it cannot be said there.
pub fn request(method: EmbeddingMethod, body: &str) -> Result<TranslatedRequest, Inexpressible> {
    let mut left_out = LeftOut::new();
    let mut own = ObjectFields::of("", body)?;
    own.take("model");
    own.neutral(&[("encoding_format", &["\"float\"", "\"base64\""])])?;
    own.hints(&["user"], &mut left_out);
    let size = own.number("dimensions")?;
    let texts = input(&mut own)?;
    own.end()?;
    let body = match method {
        EmbeddingMethod::Predict => {
            let texts = texts
                .iter()
                .map(|text| ObjectWriter::new().text("content", text));
            let parameters = ObjectWriter::new()
                .raw_if("outputDimensionality", size)
                .raw("autoTruncate", "false");
            ObjectWriter::new()
                .raw("instances", list(texts.map(ObjectWriter::end)))
                .raw("parameters", parameters.end())
                .end()
        }
        EmbeddingMethod::Embed => texts.first().map_or_else(Vec::new, |text| one(text, size)),
        EmbeddingMethod::EmbedAll => {
            let requests = list(texts.iter().map(|text| one(text, size)));
            ObjectWriter::new().raw("requests", requests).end()
        }
    };
    Ok(TranslatedRequest {
        body,
        left_out: left_out.into_iter().collect(),
    })
}

/// Returns the texts: one, or a list.
fn input<'a>(own: &mut ObjectFields<'a>) -> Read<Vec<Text<'a>>> {
    let Some(raw) = own.take("input") else {
        return wrong("input", "is missing");
    };
    if let Some(text) = json::text(raw) {
        return Ok(vec![text]);
    }
    let elements = json::elements(raw);
    if elements.is_empty() {
        return wrong("input", "has to be a text or a list of texts");
    }
    let texts: Option<Vec<Text<'a>>> = elements.into_iter().map(json::text).collect();
    match texts {
        Some(texts) => Ok(texts),
        None => wrong(
            "input",
            "has tokens, which this model's provider cannot be told: send the text itself",
        ),
    }
}

fn one(text: &str, size: Option<&str>) -> Vec<u8> {
    let part = ObjectWriter::new().text("text", text).end();
    let content = ObjectWriter::new()
        .text("role", "user")
        .raw("parts", list([part]));
    let config = ObjectWriter::new()
        .raw_if("outputDimensionality", size)
        .raw("autoTruncate", "false");
    ObjectWriter::new()
        .raw("content", content.end())
        .raw("embedContentConfig", config.end())
        .end()
}

/// Translates a reply; `asked` is the caller's request. `None` if it is not a reply, or has another number of
/// embeddings than the request had texts.
#[must_use]
pub fn reply(text: &str, asked: &Body) -> Option<TranslatedReply> {
    let own = json::members(text);
    let all = |name: &str| json::elements(member(&own, name).unwrap_or_default());
    let inner = |raw| member(&json::members(raw), "embeddings");
    let mut found: Vec<&str> = all("predictions")
        .into_iter()
        .map(inner)
        .collect::<Option<_>>()?;
    found.extend(all("embeddings"));
    found.extend(member(&own, "embedding"));
    let texts = json::elements(asked.get("input").unwrap_or_default());
    if found.len() != texts.len().max(1) {
        return None;
    }
    let is_base64 = asked.text("encoding_format").as_deref() == Some("base64");
    let data: Option<Vec<Vec<u8>>> = found
        .iter()
        .enumerate()
        .map(|(index, raw)| {
            let own = json::members(raw);
            let values = numbers(member(&own, "values")?, is_base64)?;
            let one = ObjectWriter::new().text("object", "embedding");
            let one = one.raw("index", index.to_string());
            Some(one.raw("embedding", values).end())
        })
        .collect();
    let read = read_of(&own, &found);
    let count = read.unwrap_or(0).to_string();
    let usage = ObjectWriter::new()
        .raw("prompt_tokens", &count)
        .raw("total_tokens", &count);
    let body = ObjectWriter::new()
        .text("object", "list")
        .raw("data", list(data?))
        .text("model", &asked.text("model").unwrap_or_default())
        .raw("usage", usage.end());
    Some(TranslatedReply {
        body: body.end(),
        tokens: Tokens {
            input: read,
            ..Tokens::default()
        },
        left_out: Vec::new(),
        signed: Vec::new(),
    })
}

/// Returns the tokens that were read: of all together, or of each.
fn read_of(own: &[wire::scan::Member<'_>], found: &[&str]) -> Option<u64> {
    let usage = json::members(member(own, "usageMetadata").unwrap_or_default());
    let each = found.iter().map(|raw| {
        let own = json::members(raw);
        let told = json::members(member(&own, "statistics").unwrap_or_default());
        let count = member(&told, "token_count").or_else(|| member(&told, "tokenCount"));
        count.and_then(json::number)
    });
    let all = member(&usage, "promptTokenCount").and_then(json::number);
    all.or_else(|| each.sum())
}

/// Returns the numbers of an embedding, as JSON: a list as it came, or 32 bits of each in base64.
fn numbers(raw: &str, is_base64: bool) -> Option<Vec<u8>> {
    let all = json::elements(raw);
    let mut bytes = Vec::with_capacity(all.len() * 4);
    for number in &all {
        let number: f32 = number.trim().parse().ok()?;
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    (!all.is_empty()).then_some(())?;
    Some(match is_base64 {
        true => quote(&STANDARD.encode(bytes)),
        false => raw.as_bytes().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn body(value: &Value) -> Body {
        Body::read(value.to_string().as_bytes(), &["model", "input"]).unwrap()
    }

    fn translate_value(method: EmbeddingMethod, value: &Value) -> Value {
        let said = request(method, &value.to_string()).unwrap();
        serde_json::from_slice(&said.body).unwrap()
    }

    #[test]
    fn what_cannot_be_said_is_refused_by_name() {
        for (members, at) in [
            (json!({}), "input"),
            (json!({ "input": [] }), "input"),
            (json!({ "input": [1, 2] }), "input"),
            (json!({ "input": [[1, 2]] }), "input"),
            (json!({ "input": ["a", 7] }), "input"),
            (
                json!({ "input": "a", "encoding_format": "int8" }),
                "encoding_format",
            ),
            (json!({ "input": "a", "dimensions": "few" }), "dimensions"),
            (json!({ "input": "a", "invented": 1 }), "invented"),
        ] {
            for method in [
                EmbeddingMethod::Predict,
                EmbeddingMethod::Embed,
                EmbeddingMethod::EmbedAll,
            ] {
                let fault = request(method, &members.to_string()).unwrap_err();
                assert_eq!(fault.at, at, "{members}");
            }
        }
        let named = json!({ "input": "a", "user": "ann" });
        let named = request(EmbeddingMethod::Predict, &named.to_string()).unwrap();
        assert_eq!(named.left_out, ["user"]);
    }

    #[test]
    fn each_method_has_every_text() {
        let several = json!({ "model": "m", "input": ["a", "b"], "dimensions": 3 });
        assert_eq!(
            translate_value(EmbeddingMethod::Predict, &several),
            json!({ "instances": [{ "content": "a" }, { "content": "b" }], "parameters": { "outputDimensionality": 3, "autoTruncate": false } })
        );
        let requests = translate_value(EmbeddingMethod::EmbedAll, &several)["requests"].take();
        assert_eq!(requests[1]["content"]["parts"][0]["text"], "b");
        assert_eq!(requests.as_array().unwrap().len(), 2);
        assert_eq!(
            EmbeddingMethod::of(&body(&several), true),
            EmbeddingMethod::EmbedAll
        );
        let single = body(&json!({ "input": ["a"] }));
        assert_eq!(EmbeddingMethod::of(&single, true), EmbeddingMethod::Embed);
        assert_eq!(
            EmbeddingMethod::of(&single, false),
            EmbeddingMethod::Predict
        );
    }

    #[test]
    fn replies_are_read_in_all_three_forms_and_nothing_else_is() {
        let one = json!({ "model": "m", "input": "a" });
        let two = json!({ "model": "m", "input": ["a", "b"], "encoding_format": "base64" });
        let embedding = json!({ "values": [0.5, -1], "statistics": { "token_count": 2 } });
        let told = |text: &Value, asked: &Value| reply(&text.to_string(), &body(asked));
        let predicted =
            json!({ "predictions": [{ "embeddings": embedding }, { "embeddings": embedding }] });
        let read = told(&predicted, &two).unwrap();
        assert_eq!(read.tokens.input, Some(4));
        let read: Value = serde_json::from_slice(&read.body).unwrap();
        assert_eq!(read["data"][1]["embedding"], "AAAAPwAAgL8=");
        let single = json!({ "embedding": { "values": [0.5, -1] }, "usageMetadata": { "promptTokenCount": 3 } });
        let read = told(&single, &one).unwrap();
        assert_eq!(read.tokens.input, Some(3));
        let read: Value = serde_json::from_slice(&read.body).unwrap();
        assert_eq!(
            read,
            json!({ "object": "list", "data": [{ "object": "embedding", "index": 0, "embedding": [0.5, -1] }], "model": "m", "usage": { "prompt_tokens": 3, "total_tokens": 3 } })
        );
        assert!(told(&json!({ "embeddings": [embedding, embedding] }), &two).is_some());
        for (odd, asked) in [
            (json!({}), &one),
            (json!({ "embeddings": [embedding] }), &two),
            (json!({ "predictions": [{ "x": 1 }] }), &one),
            (json!({ "embedding": { "values": [] } }), &one),
            (json!({ "embedding": { "values": ["a"] } }), &one),
        ] {
            assert!(told(&odd, asked).is_none(), "{odd}");
        }
    }
}
