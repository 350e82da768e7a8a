//! Questions in words. What an instance sends is safe to show already; what is printed here passes the
//! same filter once more, so that a false instance could not paint either.

use std::io::{self, Write};

use gate::approval::display;
use serde_json::Value;

const CHARS_MAX: usize = 10_000;

/// Prints one waiting call.
pub fn question(question: &Value, out: &mut dyn Write) -> io::Result<()> {
    let text = |name: &str| question.get(name).and_then(Value::as_str).map(shown);
    let what = text("tool_name")
        .or_else(|| text("uri"))
        .or_else(|| text("mcp_method"))
        .unwrap_or_default();
    let left = number(question, "remaining_ms").div_ceil(1_000);
    writeln!(
        out,
        "{}  {what}  on {}  {left} s left",
        text("id").unwrap_or_default(),
        text("backend_id").unwrap_or_default()
    )?;
    let mut line = |name: &str, value: Option<String>| match value {
        Some(value) => writeln!(out, "    {name:<10}{value}"),
        None => Ok(()),
    };
    if text("tool_name").is_none() {
        line("method", text("mcp_method"))?;
    }
    line("path", text("path"))?;
    line("from", text("source_path"))?;
    line("to", text("dest_path"))?;
    let more = number(question, "more_places");
    if more > 0 {
        line(
            "",
            Some(format!(
                "and {more} further places that its paths may lead to"
            )),
        )?;
    }
    line("arguments", text("arguments"))?;
    let change = question.get("change").and_then(Value::as_array);
    let change = change.into_iter().flatten().filter_map(Value::as_str);
    for (number, part) in change.enumerate() {
        line(if number == 0 { "change" } else { "" }, Some(shown(part)))?;
    }
    if question.get("is_cut").and_then(Value::as_bool) == Some(true) {
        let told = "part of this call is too long to be shown; allowing it has to be confirmed";
        line("", Some(told.to_owned()))?;
    }
    line("effects", Some(effects(question)))?;
    let who = match text("client_id") {
        Some(client) => format!("{} with {client}", text("subject_id").unwrap_or_default()),
        None => text("subject_id").unwrap_or_default(),
    };
    let direction = match text("direction").as_deref() {
        Some("to_client") => ", the server asks its client",
        _ => "",
    };
    line("caller", Some(format!("{who}{direction}")))?;
    let labelled = question.get("labelled_by").and_then(Value::as_array);
    for by in labelled.into_iter().flatten().filter_map(Value::as_str) {
        line("session", Some(shown(by)))?;
    }
    let rule = text("rule").unwrap_or_default();
    line(
        "rule",
        Some(match text("description") {
            Some(why) => format!("{rule}: {why}"),
            None => rule,
        }),
    )?;
    line("remember", Some(memory(question)))
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
