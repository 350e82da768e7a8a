//! Errors in the words of each dialect.

use std::borrow::Cow;

use super::dialect::Dialect;
use super::endpoint::Endpoint;
use super::json;
use wire::text::push_string;

/// What an error says.
#[derive(Debug, Clone, Copy)]
pub struct ErrorText<'a> {
    /// One sentence.
    pub message: &'a str,
    /// The dialect's own class, such as `invalid_request_error`.
    pub kind: &'a str,
    /// A closed label.
    pub code: &'a str,
    /// The member of the request that it is about.
    pub param: Option<&'a str>,
    /// The request's id.
    pub request_id: &'a str,
}

/// Returns the body of an answer that is an error.
#[must_use]
pub fn error_body(dialect: Dialect, error: &ErrorText<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    match dialect {
        Dialect::OpenAi => {
            out.extend_from_slice(b"{\"error\":");
            push_openai(&mut out, error);
            out.push(b'}');
        }
        Dialect::Anthropic => {
            out.extend_from_slice(b"{\"type\":\"error\",\"error\":{");
            push_member(&mut out, "type", error.kind);
            out.push(b',');
            push_member(&mut out, "message", error.message);
            out.extend_from_slice(b",\"details\":{");
            push_member(&mut out, "error_code", error.code);
            out.extend_from_slice(b"}},");
            push_member(&mut out, "request_id", error.request_id);
            out.push(b'}');
        }
    }
    out
}

/// Returns the event that ends a stream with an error.
#[must_use]
pub fn error_event(endpoint: Endpoint, error: &ErrorText<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(320);
    match endpoint {
        Endpoint::Messages | Endpoint::CountTokens => {
            out.extend_from_slice(b"event: error\ndata: ");
            out.extend_from_slice(&error_body(Dialect::Anthropic, error));
        }
        Endpoint::Responses => {
            // Some clients read the flat members, others those under `error`.
            out.extend_from_slice(
                b"event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,",
            );
            push_member(&mut out, "code", error.code);
            out.push(b',');
            push_member(&mut out, "message", error.message);
            out.extend_from_slice(b",\"param\":null,\"error\":");
            push_openai(&mut out, error);
            out.push(b'}');
        }
        _ => {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(&error_body(Dialect::OpenAi, error));
        }
    }
    out.extend_from_slice(b"\n\n");
    out
}

/// Returns the sentence of a provider's error, if it is one of either dialect.
#[must_use]
pub fn message_of(body: &str) -> Option<String> {
    let members = json::members(body);
    let Some(error) = json::member(&members, "error") else {
        // As AWS words it, and servers that check requests against a schema.
        let said = ["message", "Message", "detail"];
        return sentence(said.iter().find_map(|name| json::member(&members, name))?);
    };
    if let Some(text) = json::text(error) {
        return Some(text.into_owned());
    }
    let inner = json::members(error);
    let message = json::member(&inner, "message").and_then(json::text)?;
    Some(message.into_owned())
}

/// Returns the sentence of an error that is bare, or in the first entry of a list of a request's faults.
fn sentence(raw: &str) -> Option<String> {
    if let Some(text) = json::text(raw) {
        return Some(text.into_owned());
    }
    let own = json::members(raw);
    let listed = json::member(&own, "detail").unwrap_or(raw);
    if let Some(text) = json::text(listed) {
        return Some(text.into_owned());
    }
    let first = json::members(json::elements(listed).first()?);
    let why = json::member(&first, "msg").and_then(json::text)?;
    let place = json::elements(json::member(&first, "loc").unwrap_or_default());
    let place: Vec<Cow<'_, str>> = place
        .into_iter()
        .map(|part| json::text(part).unwrap_or(Cow::Borrowed(part)))
        .collect();
    Some(match place.is_empty() {
        true => why.into_owned(),
        false => format!("{}: {why}", place.join(".")),
    })
}

/// Returns whether a whole reply, which came under a status of success, is an error in truth: it has an error, and
/// nothing of a reply.
#[must_use]
pub fn is_error_reply(reply: &str) -> bool {
    let own = json::members(reply);
    let has = |name: &str| json::member(&own, name).is_some();
    let is_said = |raw: &&str| !matches!(*raw, "{}" | "\"\"" | "false" | "[]");
    let has_reply = ["choices", "content", "candidates", "data", "results"];
    match json::member(&own, "error").filter(is_said) {
        // A response that has failed has an output all the same.
        Some(_) if has("output") => json::member(&own, "status") == Some("\"failed\""),
        Some(_) => !has_reply.into_iter().any(|name| {
            json::member(&own, name).is_some_and(|raw| !json::elements(raw).is_empty())
        }),
        None => json::member(&own, "type") == Some("\"error\""),
    }
}

/// Returns whether a whole reply has what a reply of its endpoint cannot lack.
#[must_use]
pub fn is_reply(endpoint: Endpoint, reply: &str) -> bool {
    let own = json::members(reply);
    match endpoint {
        Endpoint::Chat => {
            let choices = json::member(&own, "choices").unwrap_or_default();
            !json::elements(choices).is_empty()
        }
        Endpoint::Messages => json::member(&own, "content").is_some(),
        _ => !own.is_empty(),
    }
}

/// Returns whether this is an error in the words of a dialect. Some that speak like OpenAI say less than it does;
/// Anthropic's say their type.
#[must_use]
pub fn is_error(dialect: Dialect, body: &str) -> bool {
    let members = json::members(body);
    let is_typed = || {
        let kind = json::member(&members, "type").and_then(json::text);
        kind.is_some_and(|kind| kind == "error")
    };
    json::member(&members, "error").is_some() && (dialect == Dialect::OpenAi || is_typed())
}

fn push_openai(out: &mut Vec<u8>, error: &ErrorText<'_>) {
    out.push(b'{');
    push_member(out, "message", error.message);
    out.push(b',');
    push_member(out, "type", error.kind);
    match error.param {
        Some(param) => {
            out.push(b',');
            push_member(out, "param", param);
        }
        None => out.extend_from_slice(b",\"param\":null"),
    }
    out.push(b',');
    push_member(out, "code", error.code);
    out.push(b'}');
}

fn push_member(out: &mut Vec<u8>, name: &str, value: &str) {
    push_string(out, name);
    out.push(b':');
    push_string(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const ERROR: ErrorText<'_> = ErrorText {
        message: "no \"such\" model",
        kind: "invalid_request_error",
        code: "model_not_found",
        param: Some("model"),
        request_id: "req_1",
    };

    #[test]
    fn an_error_has_what_each_dialect_requires() {
        let read = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).unwrap();
        let openai = read(error_body(Dialect::OpenAi, &ERROR));
        assert_eq!(openai["error"]["message"], "no \"such\" model");
        assert_eq!(openai["error"]["param"], "model");
        assert_eq!(openai["error"]["code"], "model_not_found");
        let anthropic = read(error_body(Dialect::Anthropic, &ERROR));
        assert_eq!(anthropic["type"], "error");
        assert_eq!(anthropic["error"]["type"], "invalid_request_error");
        assert_eq!(anthropic["request_id"], "req_1");
        for endpoint in Endpoint::ALL {
            let event = String::from_utf8(error_event(endpoint, &ERROR)).unwrap();
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            let data = read(data.unwrap().as_bytes().to_vec());
            assert_eq!(data["error"]["message"], "no \"such\" model", "{event}");
            assert!(event.ends_with("\n\n"));
        }
    }

    #[test]
    fn an_error_under_a_good_status_is_known_from_a_reply() {
        for error in [
            r#"{"error":{"message":"boom","code":500}}"#,
            r#"{"error":"boom","choices":[]}"#,
            r#"{"type":"error","error":{"type":"api_error","message":"x"}}"#,
            r#"{"object":"response","status":"failed","error":{"code":"server_error"},"output":[]}"#,
        ] {
            assert!(is_error_reply(error), "{error}");
        }
        for reply in [
            r#"{"error":null,"choices":[{}]}"#,
            r#"{"error":{},"choices":[]}"#,
            r#"{"choices":[{"error":{"code":1}}]}"#,
            r#"{"object":"response","status":"completed","error":null,"output":[]}"#,
            r#"{"type":"message","content":[]}"#,
        ] {
            assert!(!is_error_reply(reply), "{reply}");
        }
        let is_whole = |endpoint, reply| is_reply(endpoint, reply);
        assert!(!is_whole(Endpoint::Chat, r#"{"choices":[]}"#));
        assert!(is_whole(Endpoint::Chat, r#"{"choices":[{}]}"#));
        assert!(!is_whole(Endpoint::Messages, "{}"));
        assert!(is_whole(Endpoint::Messages, r#"{"content":[]}"#));
    }

    #[test]
    fn a_providers_sentence_is_found() {
        let cases = [
            (r#"{"error":{"message":"slow down"}}"#, Some("slow down")),
            (
                r#"{"type":"error","error":{"type":"x","message":"no"}}"#,
                Some("no"),
            ),
            (r#"{"error":"plain"}"#, Some("plain")),
            (r#"{"error":{}}"#, None),
            (r#"{"message":"too many"}"#, Some("too many")),
            (r#"{"message":{}}"#, None),
            (r#"{"detail":"no such model"}"#, Some("no such model")),
            (
                r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"user"],"msg":"Extra inputs are not permitted"}]}}"#,
                Some("body.messages.1.user: Extra inputs are not permitted"),
            ),
            (r#"{"detail":[{"msg":"too long"}]}"#, Some("too long")),
            (r#"{"detail":[]}"#, None),
            ("<html>", None),
        ];
        for (body, expect) in cases {
            assert_eq!(message_of(body).as_deref(), expect, "{body}");
        }
    }
}
