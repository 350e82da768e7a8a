//! What came back, and whether it is what was asked for.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// How much of the answers of two variants must be equal for their times to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AnswerEquality {
    /// The whole result.
    Same,
    /// Only `content` of the result (some proxies add members of their own).
    Content,
    /// Nothing: each answer is only checked for errors.
    Any,
}

impl AnswerEquality {
    /// Returns the part of a result that has to be equal.
    pub(crate) fn part(self, result: Value) -> Value {
        match self {
            Self::Same => result,
            Self::Content => result.get("content").cloned().unwrap_or_default(),
            Self::Any => Value::Null,
        }
    }
}

/// The answer to a call.
#[derive(Debug)]
pub(crate) enum CallAnswer<'a> {
    /// The raw text of `result`.
    Result(&'a str),
    /// A JSON-RPC error.
    Refused {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
}

/// The outer members of a JSON-RPC message.
#[derive(Debug, Deserialize)]
pub(super) struct RpcEnvelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> RpcEnvelope<'a> {
    pub(super) fn read(line: &'a [u8]) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| {
            let start: String = String::from_utf8_lossy(line).chars().take(120).collect();
            format!(
                "wrote what is not a JSON-RPC message ({why}): {}",
                start.trim_end()
            )
        };
        // An array would be read as the members in order.
        if line.trim_ascii_start().first() != Some(&b'{') {
            return Err(wrong(&"not an object"));
        }
        serde_json::from_slice(line).map_err(|error| wrong(&error))
    }

    /// Returns the range of its id in `text`, from which this was read.
    pub(super) fn place_of_id(&self, text: &[u8]) -> Option<std::ops::Range<usize>> {
        let id = self.id?.get().as_bytes();
        let start = id.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
        let place = start..start + id.len();
        (text.get(place.clone()) == Some(id)).then_some(place)
    }

    /// Returns whether this is the answer to the request with this id.
    pub(super) fn answers(&self, id: u64) -> bool {
        self.method.is_none()
            && self.id.is_some_and(|raw| raw.get().parse() == Ok(id))
            && (self.result.is_some() || self.error.is_some())
    }

    /// Returns the reply to a message that is not an answer: a refusal of a server's request, `None` for a
    /// notification. An answer to another id is an error.
    pub(super) fn stray(&self, id: u64) -> Result<Option<Vec<u8>>, String> {
        let own = self.id.map(RawValue::get);
        match (self.method, own) {
            (None, own) => Err(format!(
                "answered id {} instead of {id}",
                own.unwrap_or("null")
            )),
            (Some(_), None) => Ok(None),
            (Some(method), Some(own)) if method.get() == r#""ping""# => Ok(Some(
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{own},\"result\":{{}}}}\n").into_bytes(),
            )),
            (Some(_), Some(own)) => Ok(Some(
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{own},\"error\":{{\"code\":-32601,\"message\":\"the lab answers nothing\"}}}}\n"
                )
                .into_bytes(),
            )),
        }
    }

    pub(super) fn answer(self) -> Result<CallAnswer<'a>, String> {
        #[derive(Deserialize)]
        struct RpcError {
            code: i64,
            message: String,
        }
        if let Some(result) = self.result {
            return Ok(CallAnswer::Result(result.get()));
        }
        let raw = self.error.ok_or("an answer without result and error")?;
        let RpcError { code, message } = serde_json::from_str(raw.get())
            .map_err(|error| format!("an error that cannot be read: {error}"))?;
        Ok(CallAnswer::Refused { code, message })
    }
}

/// What every answer of a variant must be, learnt from its first.
#[derive(Debug, Clone)]
pub(crate) struct AnswerExpectation {
    answers: AnswerEquality,
    refused: bool,
    raw: Option<String>,
    value: Option<Value>,
}

impl AnswerExpectation {
    /// Nothing learnt yet. With `refused`, answers must be refusals instead of results.
    pub(crate) fn new(answers: AnswerEquality, refused: bool) -> Self {
        Self {
            answers,
            refused,
            raw: None,
            value: None,
        }
    }

    /// Returns the part of the answer that other variants must give too; nothing for refusals and before the first.
    pub(crate) fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Checks an answer against the first one.
    pub(crate) fn check(&mut self, answer: &CallAnswer<'_>) -> Result<(), String> {
        match answer {
            CallAnswer::Refused { .. } if self.refused => Ok(()),
            CallAnswer::Refused { code, message } => {
                Err(format!("the call was refused: {code} {message}"))
            }
            // A gate may refuse a tool call with a result that says so.
            CallAnswer::Result(raw) if self.refused => match read(raw)? {
                result if is_error(&result) => Ok(()),
                _ => Err("the call was answered where a refusal was expected".into()),
            },
            CallAnswer::Result(raw) if self.raw.as_deref() == Some(*raw) => Ok(()),
            CallAnswer::Result(raw) => self.learn(raw),
        }
    }

    fn learn(&mut self, raw: &str) -> Result<(), String> {
        let result = read(raw)?;
        if is_error(&result) {
            let text: String = raw.chars().take(200).collect();
            return Err(format!("the answer is an error (isError): {text}"));
        }
        let value = self.answers.part(result);
        match &self.value {
            Some(known) if *known != value => Err(format!(
                "its answers differ from call to call: {}",
                difference(known, &value)
            )),
            _ => {
                self.raw = Some(raw.into());
                self.value = Some(value);
                Ok(())
            }
        }
    }
}

fn read(raw: &str) -> Result<Value, String> {
    serde_json::from_str(raw).map_err(|error| format!("a result {error}"))
}

/// Returns whether a result says that the tool failed.
fn is_error(result: &Value) -> bool {
    result.get("isError") == Some(&Value::Bool(true))
}

/// Where two values part, in words.
pub(crate) fn difference(left: &Value, right: &Value) -> String {
    let short = |value: &Value| value.to_string().chars().take(160).collect::<String>();
    if let (Value::Object(left), Value::Object(right)) = (left, right) {
        for (key, value) in left {
            match right.get(key) {
                None => return format!("member {key} is missing"),
                Some(other) if other != value => {
                    return format!("{key}: {}", difference(value, other));
                }
                Some(_) => {}
            }
        }
        if let Some(key) = right.keys().find(|key| !left.contains_key(*key)) {
            return format!("member {key} is added");
        }
    }
    format!("{} against {}", short(left), short(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(line: &str) -> RpcEnvelope<'_> {
        RpcEnvelope::read(line.as_bytes()).unwrap()
    }

    #[test]
    fn ids_and_strays() {
        assert!(envelope(r#"{"id":7,"result":{}}"#).answers(7));
        for other in [
            r#"{"id":8,"result":{}}"#,
            r#"{"id":"7","result":{}}"#,
            r#"{"id":7,"method":"ping"}"#,
            r#"{"id":7}"#,
            r#"{"result":{}}"#,
        ] {
            assert!(!envelope(other).answers(7), "{other}");
        }
        assert!(envelope(r#"{"id":8,"result":{}}"#).stray(7).is_err());
        assert_eq!(
            envelope(r#"{"method":"notifications/x"}"#).stray(7),
            Ok(None)
        );
        let ping = envelope(r#"{"id":"s","method":"ping"}"#).stray(7).unwrap();
        assert_eq!(
            ping.unwrap(),
            b"{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{}}\n"
        );
        for line in [&b"hello"[..], b"", b"[7,null,{}]", b"{\"id\":7,\"id\":7}"] {
            assert!(RpcEnvelope::read(line).is_err());
        }
    }

    #[test]
    fn what_makes_an_answer_invalid() {
        let good = r#"{"content":[{"type":"text","text":"a"}]}"#;
        let spaced = r#"{"content": [{"text":"a","type":"text"}]}"#;
        let other = r#"{"content":[{"type":"text","text":"b"}]}"#;
        let wrong = r#"{"content":[],"isError":true}"#;
        let mut expect = AnswerExpectation::new(AnswerEquality::Same, false);
        for answer in [good, good, spaced, good] {
            expect.check(&CallAnswer::Result(answer)).unwrap();
        }
        assert!(
            expect
                .check(&CallAnswer::Result(other))
                .unwrap_err()
                .contains("differ")
        );
        assert!(
            expect
                .check(&CallAnswer::Result(wrong))
                .unwrap_err()
                .contains("isError")
        );
        let refusal = CallAnswer::Refused {
            code: -31_001,
            message: "no".into(),
        };
        assert!(expect.check(&refusal).unwrap_err().contains("-31001"));
        let mut deny = AnswerExpectation::new(AnswerEquality::Same, true);
        deny.check(&refusal).unwrap();
        deny.check(&CallAnswer::Result(wrong)).unwrap();
        assert!(deny.check(&CallAnswer::Result(good)).is_err());
    }

    #[test]
    fn content_alone_may_be_compared() {
        let plain = r#"{"content":[1]}"#;
        let more = r#"{"content":[1],"structuredContent":{}}"#;
        let mut expect = AnswerExpectation::new(AnswerEquality::Content, false);
        expect.check(&CallAnswer::Result(plain)).unwrap();
        expect.check(&CallAnswer::Result(more)).unwrap();
    }

    #[test]
    fn differences_name_the_member() {
        let check = |left: &str, right: &str, expect: &str| {
            let parse = |text| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(difference(&parse(left), &parse(right)), expect);
        };
        check(r#"{"a":{"b":1}}"#, r#"{"a":{"b":2}}"#, "a: b: 1 against 2");
        check(r#"{"a":1}"#, "{}", "member a is missing");
        check("{}", r#"{"a":1}"#, "member a is added");
    }
}
