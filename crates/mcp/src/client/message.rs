//! One line from a server, sorted but not altered.

use super::ClientError;
use net::blocking::excerpt;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A message by its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// It has a result or an error.
    Response(Reply),
    /// It has a method and an id.
    Request {
        /// The id, raw JSON.
        id: String,
        /// The method.
        method: String,
        /// The parameters; null where there are none.
        params: Value,
    },
    /// It has a method and no id.
    Notification {
        /// The method.
        method: String,
        /// The parameters; null where there are none.
        params: Value,
    },
}

/// A response and the line it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    line: String,
    id: String,
    body: Result<Value, Value>,
}

/// A JSON-RPC message with everything but the routing members left raw.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Cow<'a, str>,
    /// Present also when it is `null`, so that a null id is not taken for a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(source: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(source).map(Some)
}

/// Reads one object. Rejects an array, which the derived code would take.
fn read_envelope(text: &[u8]) -> Result<Envelope<'_>, serde_json::Error> {
    match text.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(text),
        _ => Err(serde::de::Error::custom("expected an object")),
    }
}

impl Message {
    /// Sorts a line.
    ///
    /// # Errors
    /// When it is no JSON-RPC message.
    pub fn read(line: Vec<u8>) -> Result<Self, ClientError> {
        let not = |reason: String| ClientError::NotAMessage {
            reason,
            line: excerpt(&line, 200),
        };
        let envelope: Envelope<'_> =
            read_envelope(&line).map_err(|error| not(error.to_string()))?;
        let value = |raw: Option<&RawValue>| {
            raw.map_or(Ok(Value::Null), |raw| serde_json::from_str(raw.get()))
                .map_err(|error| not(error.to_string()))
        };
        if envelope.jsonrpc != "2.0" {
            return Err(not("jsonrpc is not \"2.0\"".into()));
        }
        let id = envelope.id.map(|id| id.get().to_owned());
        let method = envelope.method.to_string();
        let body = match (envelope.result, envelope.error) {
            (None, None) if method.is_empty() => {
                return Err(not("neither a method, nor a result, nor an error".into()));
            }
            (None, None) => {
                let params = value(envelope.params)?;
                return Ok(match id {
                    Some(id) => Self::Request { id, method, params },
                    None => Self::Notification { method, params },
                });
            }
            (Some(result), None) => Ok(value(Some(result))?),
            (None, Some(error)) => Err(value(Some(error))?),
            (Some(_), Some(_)) => return Err(not("both a result and an error".into())),
        };
        let id = id.ok_or_else(|| not("a response without an id".into()))?;
        let line = String::from_utf8(line).map_err(|error| ClientError::NotAMessage {
            reason: error.to_string(),
            line: String::new(),
        })?;
        Ok(Self::Response(Reply { line, id, body }))
    }
}

impl Reply {
    /// The whole line as it came.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The id as spelled.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The result.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with code and message, where the response is an error.
    pub fn result(&self) -> Result<&Value, ClientError> {
        self.body.as_ref().map_err(|error| ClientError::Refused {
            code: error
                .get("code")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            message: error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// The error object, where the response is an error.
    #[must_use]
    pub fn error(&self) -> Option<&Value> {
        self.body.as_ref().err()
    }

    /// The error's code, where the response is an error.
    #[must_use]
    pub fn error_code(&self) -> Option<i64> {
        self.error()
            .and_then(|error| error.get("code"))
            .and_then(Value::as_i64)
    }

    /// What is said of a refusal by a gate: the `data` of an error, or the structured content of a tool
    /// result with `isError`.
    #[must_use]
    pub fn refusal(&self) -> Option<&Value> {
        let data = match &self.body {
            Err(error) => error.get("data"),
            Ok(result) => result
                .get("structuredContent")
                .or_else(|| result.pointer("/_meta/durward~1refusal"))
                .filter(|_| self.is_tool_error()),
        };
        data.filter(|data| data.get("reason").is_some())
    }

    /// The text of a tool result's first part.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.body
            .as_ref()
            .ok()?
            .pointer("/content/0/text")?
            .as_str()
    }

    /// Whether a tool result says that the tool failed.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        self.body
            .as_ref()
            .is_ok_and(|result| result.get("isError") == Some(&Value::Bool(true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_by_kind() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
            (
                r#"{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":""}}"#,
                "response",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request"),
            (r#"{"jsonrpc":"2.0","method":"m"}"#, "notification"),
            (
                r#"{"jsonrpc":"2.0","result":{}}"#,
                "a response without an id",
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, "neither a method"),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
                "both a result",
            ),
            (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "jsonrpc is not"),
            (
                r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
                "expected an object",
            ),
            ("noise", "expected an object"),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
                "duplicate field",
            ),
        ];
        for (line, expected) in cases {
            let seen = match Message::read(line.as_bytes().to_vec()) {
                Ok(Message::Response(_)) => "response".to_owned(),
                Ok(Message::Request { .. }) => "request".to_owned(),
                Ok(Message::Notification { .. }) => "notification".to_owned(),
                Err(error) => error.to_string(),
            };
            assert!(seen.contains(expected), "{line}: {seen}");
        }
    }
}
