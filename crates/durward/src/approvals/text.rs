//! Questions in words. What an instance sends is safe to show already; what is printed here passes the
//! same filter once more, so that a false instance could not paint either.

use std::io::{self, Write};

use gate::approval::display;
use serde_json::Value;

use crate::layout::fold;

const CHARS_MAX: usize = 10_000;

/// Where the values of a printed call begin.
const VALUE: usize = 14;

/// Prints one waiting call, on lines of this width.
pub fn question(question: &Value, width: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
    let text = |name: &str| word(question, name).unwrap_or_default();
    let left = number(question, "remaining_ms").div_ceil(1_000);
    writeln!(
        out,
        "{}  {}  on {}  {left} s left",
        text("id"),
        what(question),
        text("backend_id")
    )?;
    for (label, value) in entries(question) {
        let line = format!("    {label:<10}{value}");
        for line in fold::lines(&line, width.unwrap_or(usize::MAX), VALUE) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Returns the sentence for rules or settings that could not be reloaded.
pub fn failed_reload(failed: &Value) -> String {
    let text = |name: &str| word(failed, name).unwrap_or_default();
    format!(
        "reload failed {}: {}; the earlier rules and settings stay in force",
        text("at"),
        text("message")
    )
}

/// What is to be called: a tool, a resource, or a method.
pub fn what(question: &Value) -> String {
    let text = |name: &str| word(question, name);
    text("tool_name")
        .or_else(|| text("uri"))
        .or_else(|| text("mcp_method"))
        .unwrap_or_default()
}

/// Label of the lines of a change.
pub const CHANGE: &str = "change";

/// What there is to say of a waiting call, a line each; further lines of an entry have no label.
pub fn entries(question: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| word(question, name);
    let mut entries = Vec::new();
    let mut add = |label: &'static str, value: Option<String>| {
        entries.extend(value.map(|value| (label, value)));
    };
    if text("tool_name").is_none() {
        add("method", text("mcp_method"));
    }
    add("path", text("path"));
    add("from", text("source_path"));
    add("to", text("dest_path"));
    let more = number(question, "more_places");
    if more > 0 {
        let told = format!("and {more} further places that its paths may lead to");
        add("", Some(told));
    }
    // What a write changes is read sooner than the whole content.
    let change = question.get("change").and_then(Value::as_array);
    let change = change.into_iter().flatten().filter_map(Value::as_str);
    for (number, part) in change.enumerate() {
        add(if number == 0 { CHANGE } else { "" }, Some(shown(part)));
    }
    add("arguments", text("arguments"));
    if question.get("is_cut").and_then(Value::as_bool) == Some(true) {
        let told = "part of this call is too long to be shown; allowing it has to be confirmed";
        add("", Some(told.to_owned()));
    }
    add("effects", Some(effects(question)));
    add("caller", Some(caller(question)));
    let labelled = question.get("labelled_by").and_then(Value::as_array);
    for by in labelled.into_iter().flatten().filter_map(Value::as_str) {
        add("session", Some(shown(by)));
    }
    let rule = text("rule").unwrap_or_default();
    let rule = match text("description") {
        Some(why) => format!("{rule}: {why}"),
        None => rule,
    };
    add("rule", Some(rule));
    add("remember", Some(memory(question)));
    entries
}

fn caller(question: &Value) -> String {
    let subject = word(question, "subject_id").unwrap_or_default();
    let who = match word(question, "client_id") {
        Some(client) => format!("{subject} with {client}"),
        None => subject,
    };
    let direction = match word(question, "direction").as_deref() {
        Some("to_client") => ", the server asks its client",
        _ => "",
    };
    format!("{who}{direction}")
}

fn effects(question: &Value) -> String {
    let list: Vec<String> = question
        .get("side_effects")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(shown).collect())
        .unwrap_or_default();
    if list.is_empty() {
        "none known".to_owned()
    } else {
        list.join(", ")
    }
}

fn memory(question: &Value) -> String {
    let seconds = number(question, "cache_ttl_seconds");
    if question.get("can_cache").and_then(Value::as_bool) == Some(true) {
        format!(
            "\"allow\" is remembered for {} for exactly the same call",
            duration(seconds)
        )
    } else {
        "no: this call cannot be remembered; \"allow\" means once".to_owned()
    }
}

/// Seconds in words.
pub fn duration(seconds: u64) -> String {
    if seconds >= 60 && seconds.is_multiple_of(60) {
        format!("{} min", seconds / 60)
    } else {
        format!("{seconds} s")
    }
}

/// A text of a question, safe to show.
pub fn word(question: &Value, name: &str) -> Option<String> {
    question.get(name).and_then(Value::as_str).map(shown)
}

/// A number of a question; 0 where there is none.
pub fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// Text of another process. Its own escapes are kept: only what is no printable ASCII or is unseen is
/// written out.
fn shown(text: &str) -> String {
    if text.chars().all(|c| !c.is_control()) {
        // A backslash stands doubled or begins an escape already, and an ellipsis marks what was cut.
        text.split_inclusive(['\\', '…'])
            .map(|part| {
                let (plain, mark) = match part.char_indices().next_back() {
                    Some((at, '\\' | '…')) => part.split_at(at),
                    _ => (part, ""),
                };
                display::text(plain, CHARS_MAX) + mark
            })
            .collect()
    } else {
        display::text(text, CHARS_MAX)
    }
}
