//! `durward approvals allow | once | deny`.

use std::io::{self, Write};

use clap::Args;
use gate::approval::{Choice, ID_LETTERS_MIN, NEVER_REMEMBERED};
use serde_json::{Value, json};

use crate::control::Request;
use crate::control::client::{self, Found, NoAnswer};
use crate::places::Places;

use super::{EXIT_CANNOT, EXIT_NOT_TAKEN, text, warn};

/// The label of an answer that has to be confirmed.
pub const NOT_ALL_SHOWN: &str = "not_all_shown";

/// Which call is answered.
#[derive(Debug, Args)]
pub struct DecideArgs {
    /// The waiting call, or the beginning of its id
    #[arg(value_name = "ID", value_parser = id)]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `durward approvals allow`.
#[derive(Debug, Args)]
pub struct AllowArgs {
    #[command(flatten)]
    pub once: OnceArgs,
    /// Let the same call pass until its session ends, at most 12 hours
    #[arg(long)]
    pub session: bool,
}

/// Arguments of `durward approvals once`.
#[derive(Debug, Args)]
pub struct OnceArgs {
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Allow it although part of the call is too long to be shown
    #[arg(long)]
    pub unseen: bool,
}

/// Arguments of `durward approvals deny`.
#[derive(Debug, Args)]
pub struct DenyArgs {
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Why, in words that the caller is told
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Reads an id, or the beginning of one.
///
/// # Errors
/// A sentence.
pub fn id(text: &str) -> Result<String, String> {
    let fine = (ID_LETTERS_MIN..=8).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric());
    if fine {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(format!(
            "an id has eight letters and digits; the first {ID_LETTERS_MIN} are enough; `durward approvals list` shows them"
        ))
    }
}

/// An answer.
pub struct Said {
    pub choice: Choice,
    /// Why, for the caller.
    pub reason: Option<String>,
    /// The yes knows that not all of the call was shown.
    pub unseen: bool,
}

/// What became of an answer.
pub enum Taken {
    /// It stands: the instance's words.
    Yes(Value),
    /// It does not: label and sentence.
    No(String, String),
}

/// Gives an answer to the one instance that holds the call.
pub fn give(found: &mut Found, id: &str, said: &Said, err: &mut dyn Write) -> (Taken, bool) {
    let mut failed = false;
    // Several instances may have ids that begin so: nothing is answered before that is known.
    let mut fitting: Vec<(usize, String)> = Vec::new();
    for (number, instance) in found.instances.iter_mut().enumerate() {
        let mut look = |question: Value| {
            let name = question.get("id").and_then(Value::as_str);
            fitting.extend(
                name.filter(|name| name.starts_with(id))
                    .map(|name| (number, name.to_owned())),
            );
        };
        if let Err(error) = instance.ask(&Request::Approvals, &mut look) {
            let _ = writeln!(err, "warning: {}: {error}", instance.socket.display());
            failed = true;
        }
    }
    let request = |id: &str| Request::Answer {
        id: id.to_owned(),
        answer: said.choice.label().to_owned(),
        reason: said.reason.clone(),
        unseen: said.unseen,
    };
    if fitting.len() > 1 {
        let names: Vec<String> = fitting.into_iter().map(|(_, name)| name).collect();
        let message = format!(
            "several waiting calls have an id that begins so: {}; give more of the id",
            names.join(", ")
        );
        return (Taken::No("ambiguous".into(), message), failed);
    }
    // Where none waits, the instance that knew it says what became of it.
    let chosen = fitting.pop();
    let mut best = (
        "unknown".to_owned(),
        "no call with this id waits for approval".to_owned(),
    );
    for (number, instance) in found.instances.iter_mut().enumerate() {
        if chosen.as_ref().is_some_and(|(holder, _)| *holder != number) {
            continue;
        }
        // As it was typed: the instance knows whether it could also mean a call that has just ended.
        match instance.ask(&request(id), |_| {}) {
            Ok(value) => return (Taken::Yes(value), failed),
            Err(NoAnswer::Refused { label, message }) => {
                if best.0 == "unknown" {
                    best = (label, message);
                }
            }
            Err(NoAnswer::Io(error)) => {
                let _ = writeln!(err, "warning: {}: {error}", instance.socket.display());
                failed = true;
            }
        }
    }
    (Taken::No(best.0, best.1), failed)
}

/// Answers and says what came of it.
pub fn run(
    args: &DecideArgs,
    said: &Said,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut found = client::instances(places);
    let mut failed = warn(&found, err);
    let (taken, failed_too) = give(&mut found, &args.id, said, err);
    failed |= failed_too;
    match taken {
        Taken::Yes(value) => {
            if args.json {
                writeln!(out, "{value}")?;
            } else {
                writeln!(out, "{}", sentence(said.choice, &value))?;
            }
            Ok(0)
        }
        Taken::No(label, message) => {
            if args.json {
                writeln!(
                    out,
                    "{}",
                    json!({ "error": { "label": label, "message": message } })
                )?;
            }
            let _ = writeln!(err, "error: {message}");
            if label == NOT_ALL_SHOWN {
                let _ = writeln!(err, "hint: --unseen confirms it");
            }
            Ok(if failed && label == "unknown" {
                EXIT_CANNOT
            } else {
                EXIT_NOT_TAKEN
            })
        }
    }
}

/// What an answer that stands has done.
pub fn sentence(choice: Choice, value: &Value) -> String {
    let question = value.get("question").unwrap_or(&Value::Null);
    let word = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or("?");
    let what = question
        .get("tool_name")
        .or_else(|| question.get("uri"))
        .and_then(Value::as_str)
        .unwrap_or_else(|| word("mcp_method"));
    let about = format!("{}: {what} on {}", word("id"), word("backend_id"));
    let remembered = value.get("remembered").and_then(Value::as_bool) == Some(true);
    match choice {
        Choice::Deny => format!("{about} denied"),
        Choice::Once => format!("{about} allowed once"),
        Choice::Session if remembered => {
            format!("{about} allowed; the same call passes until its session ends")
        }
        Choice::Allow if remembered => {
            let seconds = text::number(question, "cache_ttl_seconds");
            format!(
                "{about} allowed; the same call passes for {}",
                text::duration(seconds)
            )
        }
        Choice::Allow | Choice::Session => {
            format!("{about} allowed once: {}", why_once(question))
        }
    }
}

/// Why a yes is not remembered.
fn why_once(question: &Value) -> String {
    let effects: Vec<&str> = question
        .get("side_effects")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let never = effects.iter().find(|e| NEVER_REMEMBERED.contains(e));
    match (never, effects.as_slice()) {
        (Some(effect), _) => {
            format!("calls with the side effect {effect} are asked about each time")
        }
        (None, []) => "the tool's side effects are not known".into(),
        (None, _) => format!(
            "not every rule that asks has {} in its cache_side_effects, the tool was called too often, or nothing is remembered here",
            effects.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_why_a_yes_holds_only_once() {
        for (effects, why) in [
            (json!([]), "not known"),
            (
                json!(["fs_write"]),
                "has fs_write in its cache_side_effects",
            ),
            (
                json!(["fs_read", "code_exec"]),
                "calls with the side effect code_exec are asked about each time",
            ),
        ] {
            let told =
                json!({"question": {"id": "x", "side_effects": effects}, "remembered": false});
            let said = sentence(Choice::Allow, &told);
            assert!(said.contains(why), "{said}");
        }
    }
}
