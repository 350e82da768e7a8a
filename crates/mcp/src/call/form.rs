//! Asking the client's own person by elicitation: our question, and reading the answer.

use gate::Gate;
use gate::approval::{Answer, Channel, Choice, Declined, Question};
use serde_json::{Map, Value, json};
use wire::id::IdKey;
use wire::jsonrpc::member;
use wire::{Bounds, scan_reply};

/// Begins the ids of our own requests to the client. A server's request under such an id is refused.
pub const ID_PREFIX: &str = "durward-approval-";
/// The member of the form that holds the answer.
const FIELD: &str = "answer";
/// The member that confirms a yes to what is not all shown.
const UNSEEN: &str = "although_not_all_is_shown";
const ONCE: &str = "allow once";
const DENY: &str = "deny";
/// Begins the answer that is remembered; how long follows.
const FOR_A_WHILE: &str = "allow for ";

/// What a client's answer to our question says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A person decided.
    Answer(Answer),
    /// Nobody decided: an error, a form that was closed, or something that is no answer.
    Nothing,
}

impl Said {
    /// Gives the answer to the question of this name, where it is one. Where another channel was faster, its
    /// answer stands.
    #[must_use]
    pub fn is_taken(self, gate: &Gate, name: &str) -> bool {
        let Self::Answer(answer) = self else {
            return false;
        };
        let taken = gate.approvals().answer(name, answer);
        !matches!(taken, Err(Declined::NotAllShown))
    }
}

/// `elicitation/create` about a question, and the id that its answer will carry.
#[must_use]
pub fn question(question: &Question) -> (IdKey, Vec<u8>) {
    let id = format!("{ID_PREFIX}{}", question.id);
    let frame = json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "elicitation/create",
        "params": form(question),
    });
    (IdKey::Text(id), frame.to_string().into_bytes())
}

/// The parameters of `elicitation/create` about a question.
#[must_use]
pub fn form(question: &Question) -> Value {
    let mut choices = vec![ONCE.to_owned()];
    if question.can_cache {
        choices.push(format!(
            "{FOR_A_WHILE}{}",
            duration(question.cache_ttl_seconds)
        ));
    }
    choices.push(DENY.to_owned());
    let mut members = Map::new();
    members.insert(
        FIELD.to_owned(),
        json!({ "type": "string", "title": "Your answer", "enum": choices }),
    );
    if question.is_cut {
        let title = "Allow it although not all of it is shown";
        members.insert(
            UNSEEN.to_owned(),
            json!({ "type": "boolean", "title": title, "default": false }),
        );
    }
    json!({
        "message": message(question),
        "requestedSchema": { "type": "object", "properties": members, "required": [FIELD] },
    })
}

/// What the person reads. Every part of the question is safe to show, so each line is one of ours.
fn message(question: &Question) -> String {
    let what = question
        .tool_name
        .as_ref()
        .or(question.uri.as_ref())
        .unwrap_or(&question.mcp_method);
    let mut out = format!(
        "May this call pass? {what} on server {}\nrule: {}",
        question.backend_id, question.rule
    );
    let lines = [
        ("why", &question.description),
        ("path", &question.path),
        ("source", &question.source_path),
        ("destination", &question.dest_path),
        ("arguments", &question.arguments),
    ];
    for (name, text) in lines {
        if let Some(text) = text {
            out.push_str(&format!("\n{name}: {text}"));
        }
    }
    for by in &question.labelled_by {
        out.push_str(&format!("\nthe session is {by}"));
    }
    if question.more_places > 0 {
        out.push_str(&format!(
            "\nfurther places that its paths may mean: {}",
            question.more_places
        ));
    }
    out
}

fn duration(seconds: u64) -> String {
    match seconds {
        60 => "1 minute".into(),
        s if s % 60 == 0 => format!("{} minutes", s / 60),
        s => format!("{s} seconds"),
    }
}

/// Whether an id is one of ours; no server's request has such.
#[must_use]
pub fn is_own(id: &IdKey) -> bool {
    matches!(id, IdKey::Text(text) if text.starts_with(ID_PREFIX))
}

/// Tells the client that the answer is no longer wanted.
#[must_use]
pub fn cancelled(id: &IdKey) -> Vec<u8> {
    let id = match id {
        IdKey::Text(text) | IdKey::Other(text) => json!(text),
        IdKey::Number(number) => json!(number),
    };
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id, "reason": "answered elsewhere, or no longer waiting" },
    })
    .to_string()
    .into_bytes()
}

/// Reads the answer. A form that was closed without an answer is a no where nobody else may answer.
#[must_use]
pub fn answer(frame: &[u8], approver: &str, only_client: bool) -> Said {
    let result = scan_reply(frame, &Bounds::default())
        .ok()
        .and_then(|scan| member(&scan.members, "result").map(str::to_owned));
    match result.and_then(|r| serde_json::from_str::<Value>(&r).ok()) {
        Some(result) => said(&result, approver, only_client),
        None => Said::Nothing,
    }
}

/// Reads the result of `elicitation/create`, as [`answer`] does.
#[must_use]
pub fn said(result: &Value, approver: &str, only_client: bool) -> Said {
    let chosen = result
        .get("content")
        .and_then(|content| content.get(FIELD))
        .and_then(Value::as_str);
    let confirmed = result
        .get("content")
        .and_then(|content| content.get(UNSEEN))
        .and_then(Value::as_bool);
    let choice = match result.get("action").and_then(Value::as_str) {
        Some("accept") => match chosen {
            Some(ONCE) => Choice::Once,
            Some(DENY) => Choice::Deny,
            Some(text) if text.starts_with(FOR_A_WHILE) => Choice::Allow,
            _ => return Said::Nothing,
        },
        Some("decline") => Choice::Deny,
        Some("cancel") if only_client => Choice::Deny,
        _ => return Said::Nothing,
    };
    Said::Answer(Answer {
        choice,
        channel: Channel::Client,
        approver: approver.to_owned(),
        reason: None,
        unseen: confirmed == Some(true),
    })
}

/// Whether a client's capabilities, as raw JSON, say that it can show a form.
#[must_use]
pub fn can_elicit(capabilities: &str) -> bool {
    let Ok(capabilities) = serde_json::from_str::<Value>(capabilities) else {
        return false;
    };
    capabilities
        .get("elicitation")
        .and_then(Value::as_object)
        .is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let frame = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":"x","result":{result}}}"#);
        let said = |result: &str, only| match answer(frame(result).as_bytes(), "p", only) {
            Said::Answer(answer) => Some(answer.choice),
            Said::Nothing => None,
        };
        let cases = [
            (
                r#"{"action":"accept","content":{"answer":"allow once"}}"#,
                true,
                Some(Choice::Once),
            ),
            (
                r#"{"action":"accept","content":{"answer":"allow for 10 minutes"}}"#,
                true,
                Some(Choice::Allow),
            ),
            (
                r#"{"action":"accept","content":{"answer":"deny"}}"#,
                true,
                Some(Choice::Deny),
            ),
            (
                r#"{"action":"accept","content":{"answer":"yes"}}"#,
                true,
                None,
            ),
            (r#"{"action":"accept"}"#, true, None),
            (r#"{"action":"decline"}"#, false, Some(Choice::Deny)),
            (r#"{"action":"cancel"}"#, true, Some(Choice::Deny)),
            (r#"{"action":"cancel"}"#, false, None),
            ("[]", true, None),
        ];
        for (result, only, expected) in cases {
            assert_eq!(said(result, only), expected, "{result}");
        }
        let error = br#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}"#;
        assert_eq!(answer(error, "p", true), Said::Nothing);
    }

    #[test]
    fn capabilities_are_read() {
        let cases = [
            (r#"{"elicitation":{}}"#, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true),
            (r#"{"elicitation":{"url":{}}}"#, false),
            (r#"{"elicitation":true}"#, false),
            ("{}", false),
            ("x", false),
        ];
        for (capabilities, expected) in cases {
            assert_eq!(can_elicit(capabilities), expected, "{capabilities}");
        }
    }
}
