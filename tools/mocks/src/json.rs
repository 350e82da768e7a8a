//! The few JSON shapes the mocks write and read by hand, so that what came returns as it came.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A JSON-RPC message with everything but the routing members left raw.
#[derive(Debug, Deserialize)]
pub(crate) struct RpcEnvelope<'a> {
    #[serde(borrow, default)]
    pub(crate) jsonrpc: Cow<'a, str>,
    /// Present also when it is `null`, so that a null id is not taken for a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(source: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(source).map(Some)
}

/// Reads one object. An array is no envelope, although the derived code would take one.
pub(crate) fn object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, serde_json::Error> {
    match text.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(text),
        _ => Err(serde::de::Error::custom("expected an object")),
    }
}

/// `text` as a JSON string with its quotes.
pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a JSON document of several lines as one: no string of ours holds a raw newline.
pub(crate) fn one_line(document: &str) -> String {
    document.lines().map(str::trim_start).collect()
}

/// Returns whether an id may name a request: a string or a number, in any spelling.
pub(crate) fn is_request_id(id: &str) -> bool {
    matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

/// Returns the members of a tool result with one text part.
pub(crate) fn text_result(text: &str, is_error: bool) -> String {
    text_result_raw(&quote(text), is_error)
}

/// As [`text_result`], for a text that is already a JSON string with its quotes.
pub(crate) fn text_result_raw(json_text: &str, is_error: bool) -> String {
    let mut members = String::with_capacity(json_text.len() + 64);
    members.push_str(r#""content":[{"type":"text","text":"#);
    members.push_str(json_text);
    members.push_str(if is_error {
        r#"}],"isError":true"#
    } else {
        r#"}],"isError":false"#
    });
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_keeps_spelling_and_tells_null_from_absent() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1.0,"method":"a"}"#, Some("1.0")),
            (
                r#"{"jsonrpc":"2.0","id":"\u0031","method":"a"}"#,
                Some(r#""\u0031""#),
            ),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, Some("null")),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, None),
        ];
        for (frame, id) in cases {
            let envelope: RpcEnvelope<'_> = object(frame.as_bytes()).unwrap();
            assert_eq!(envelope.id.map(RawValue::get), id, "{frame}");
        }
    }

    #[test]
    fn arrays_and_duplicates_are_no_envelope() {
        for frame in [r#"["2.0",1,"ping"]"#, r#"{"id":1,"id":2}"#, "1", "", "{"] {
            assert!(
                object::<RpcEnvelope<'_>>(frame.as_bytes()).is_err(),
                "{frame}"
            );
        }
    }
}
