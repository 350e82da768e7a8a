//! Records of the journal as the table writes them: one line each, without what differs from run to run.

use serde_json::Value;

use super::cell::Cell;
use crate::support::guarded::Journal;

/// Records that frame every run and say nothing of a call.
const FRAME: [&str; 11] = [
    "segment_opened",
    "segment_closed",
    "checkpoint",
    "loaded",
    "serve_started",
    "serve_ended",
    "session_started",
    "session_ended",
    "server_started",
    "server_ended",
    "updated",
];
/// Members that differ from run to run, that [`marks`] looks at, or that repeat the policy.
const LEFT_OUT: [&str; 21] = [
    // Some of the table's servers say so of their tools.
    "sends_outward",
    "time",
    "kind",
    "event",
    "op",
    "level",
    "component",
    "session_id",
    "subject_id",
    "client_id",
    "backend_id",
    "transport",
    "era",
    "matched_rules",
    "policy_version",
    "policy_digest",
    "arguments_digest",
    "definition_digest",
    "response_summary",
    "content_paths",
    "hitl_approver_id",
];

/// The order of what is told first; the rest follows by name.
const FIRST: [&str; 9] = [
    "decision",
    "status",
    "final_rule",
    "reason",
    "mcp_method",
    "method",
    "tool_name",
    "direction",
    "request_id",
];

fn is_of_a_call(record: &Value) -> bool {
    !FRAME.iter().any(|event| record["event"] == *event)
}

/// The records about calls: `kind` (with the call's number, if they are to be numbered), then members.
pub(crate) fn lines(journal: &Journal, numbered: bool) -> Vec<String> {
    let mut ops: Vec<&Value> = Vec::new();
    let mut out = Vec::new();
    // What belongs to no call is gathered for a while: its place among the others is free.
    let mut aside = Vec::new();
    for record in journal.0.iter().filter(|record| is_of_a_call(record)) {
        let mut line = match record["kind"].as_str().unwrap() {
            "system" => format!("system {}", record["event"].as_str().unwrap()),
            kind => kind.to_owned(),
        };
        if let Some(op) = record.get("op").filter(|_| numbered) {
            let number = ops.iter().position(|known| *known == op);
            let number = number.unwrap_or_else(|| {
                ops.push(op);
                ops.len() - 1
            });
            line.push_str(&format!(" {}", number + 1));
        }
        let mut members: Vec<(&String, &Value)> = record.as_object().unwrap().iter().collect();
        let place = |name: &str| FIRST.iter().position(|n| *n == name).unwrap_or(FIRST.len());
        members.sort_by_key(|(name, _)| (place(name), name.as_str()));
        for (name, value) in members {
            if LEFT_OUT.contains(&name.as_str()) || name.ends_with("_us") || name.ends_with("_ms") {
                continue;
            }
            match value {
                Value::String(text) => line.push_str(&format!(" {name}={text}")),
                other => line.push_str(&format!(" {name}={other}")),
            }
        }
        match record["kind"].as_str() {
            Some("system") => aside.push(line),
            _ => out.push(line),
        }
    }
    out.extend(aside);
    out
}

/// What records say of era, transport, client and server that is not so in this cell, each once.
pub(crate) fn wrong_marks(journal: &Journal, cell: Cell) -> Vec<String> {
    let mut wrong = Vec::new();
    for record in journal.0.iter().filter(|record| is_of_a_call(record)) {
        let marks: &[(&str, &str)] = match record["kind"].as_str().unwrap() {
            "decision" => &[("era", cell.era_label()), ("backend_id", "peer")],
            "operation" => &[
                ("transport", cell.transport()),
                ("client_id", "raw-client"),
                ("backend_id", "peer"),
            ],
            _ => &[],
        };
        for (name, expected) in marks {
            if record[name] != *expected {
                let said = format!(
                    "{} {name}={}",
                    record["kind"].as_str().unwrap(),
                    record[name]
                );
                if !wrong.contains(&said) {
                    wrong.push(said);
                }
            }
        }
    }
    wrong
}
