//! Questions in words. What an instance sends is safe to show already; what is printed here passes the
//! same filter once more, so that a false instance could not paint either.

use std::io::{self, Write};

use admin::approvals::{ApprovalQuestion, ReloadFailure};
use gate::approval::display;

use crate::layout::fold;

const CHARS_MAX: usize = 10_000;

/// Where the values of a printed call begin.
const VALUE: usize = 14;

/// Prints one waiting call, on lines of this width.
pub fn print_question(
    question: &ApprovalQuestion,
    width: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let left = question.remaining_ms.div_ceil(1_000);
    writeln!(
        out,
        "{}  {}  on {}  {left} s left",
        safe(&question.id),
        what(question),
        word(&question.backend_id)
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
pub fn failed_reload(failure: &ReloadFailure) -> String {
    format!(
        "reload failed {}: {}; the earlier rules and settings stay in force",
        safe(&failure.at),
        safe(&failure.message)
    )
}

/// Returns what is to be called: a tool, a resource, or a method.
pub fn what(question: &ApprovalQuestion) -> String {
    let named = question.tool_name.as_ref().or(question.uri.as_ref());
    named
        .or(question.mcp_method.as_ref())
        .map_or_else(String::new, |text| safe(text))
}

/// Label of the lines of a change.
pub const CHANGE: &str = "change";

/// Returns the entries of a waiting call, a line each; further lines of an entry have no label.
pub fn entries(question: &ApprovalQuestion) -> Vec<(&'static str, String)> {
    let text = |text: &Option<String>| text.as_deref().map(safe);
    let mut entries = Vec::new();
    let mut add = |label: &'static str, value: Option<String>| {
        entries.extend(value.map(|value| (label, value)));
    };
    if question.tool_name.is_none() {
        add("method", text(&question.mcp_method));
    }
    add("path", text(&question.path));
    add("from", text(&question.source_path));
    add("to", text(&question.dest_path));
    let more = question.more_places;
    if more > 0 {
        let sentence = format!("and {more} further places that its paths may lead to");
        add("", Some(sentence));
    }
    // What a write changes is read sooner than the whole content.
    for (number, part) in question.change.iter().enumerate() {
        add(if number == 0 { CHANGE } else { "" }, Some(safe(part)));
    }
    add("arguments", text(&question.arguments));
    if question.is_cut {
        let sentence = "part of this call is too long to be shown; allowing it has to be confirmed";
        add("", Some(sentence.to_owned()));
    }
    add("effects", Some(effects(question)));
    add("caller", Some(caller(question)));
    for by in &question.labelled_by {
        add("session", Some(safe(by)));
    }
    let rule = word(&question.rule);
    let rule = match text(&question.description) {
        Some(why) => format!("{rule}: {why}"),
        None => rule,
    };
    add("rule", Some(rule));
    add("remember", Some(memory(question)));
    entries
}

fn caller(question: &ApprovalQuestion) -> String {
    let subject = word(&question.subject_id);
    let caller = match &question.client_id {
        Some(client) => format!("{subject} with {}", safe(client)),
        None => subject,
    };
    let direction = match question.direction.as_deref() {
        Some("to_client") => ", the server asks its client",
        _ => "",
    };
    format!("{caller}{direction}")
}

fn effects(question: &ApprovalQuestion) -> String {
    let list: Vec<String> = question.side_effects.iter().map(|e| safe(e)).collect();
    if list.is_empty() {
        "none known".to_owned()
    } else {
        list.join(", ")
    }
}

fn memory(question: &ApprovalQuestion) -> String {
    if question.can_cache {
        format!(
            "\"allow\" is remembered for {} for exactly the same call",
            duration(question.cache_ttl_seconds)
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

/// Returns a text of a question, safe to show; empty if the question has none.
pub fn word(text: &Option<String>) -> String {
    text.as_deref().map_or_else(String::new, safe)
}

/// Returns text of another process, safe to show. Escapes in it are kept: only characters that are no printable ASCII or
/// are unseen are written out.
pub fn safe(text: &str) -> String {
    if text.chars().all(|c| !c.is_control()) {
        // A backslash is doubled or begins an escape already, and an ellipsis marks what was cut.
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
