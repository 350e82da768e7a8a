//! `durward approvals allow | once | deny`.

use std::io::{self, Write};

use admin::AdminError;
use admin::approvals::{self, AnsweredCall, ApprovalAnswer, ApprovalQuestion, NOT_ALL_SHOWN};
use clap::Args;
use gate::approval::{Choice, ID_LETTERS_MIN, NEVER_REMEMBERED};
use serde_json::json;

use crate::layout;
use crate::places::Places;

use super::{exit_code, text, warn};

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

/// Answers and prints the result.
pub fn run(
    args: &DecideArgs,
    answer: &ApprovalAnswer,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let report = approvals::answer(&places.runtime, &args.id, answer);
    warn(&report.warnings, err);
    match report.outcome {
        Ok(answered) => {
            match args.json {
                true => layout::json_line(&answered, out)?,
                false => writeln!(out, "{}", sentence(answer.choice, &answered))?,
            }
            Ok(0)
        }
        Err(error) => {
            let label = error.label();
            if args.json {
                let refused = json!({ "label": label, "message": error.to_string() });
                writeln!(out, "{}", json!({ "error": refused }))?;
            }
            let _ = writeln!(err, "error: {error}");
            if label == NOT_ALL_SHOWN {
                let _ = writeln!(err, "hint: --unseen confirms it");
            }
            // The call may wait in an instance that could not be asked.
            let is_elsewhere =
                !report.warnings.is_empty() && label == AdminError::NotWaiting.label();
            Ok(exit_code(&error, is_elsewhere))
        }
    }
}

/// Returns the sentence about an answered call.
pub fn sentence(choice: Choice, answered: &AnsweredCall) -> String {
    let AnsweredCall {
        question,
        remembered,
    } = answered;
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    let what = question.tool_name.clone().or_else(|| question.uri.clone());
    let what = what.unwrap_or_else(|| text(&question.mcp_method));
    let about = format!("{}: {what} on {}", question.id, text(&question.backend_id));
    match choice {
        Choice::Deny => format!("{about} denied"),
        Choice::Once => format!("{about} allowed once"),
        Choice::Session if *remembered => {
            format!("{about} allowed; the same call passes until its session ends")
        }
        Choice::Allow if *remembered => {
            let time = text::duration(question.cache_ttl_seconds);
            format!("{about} allowed; the same call passes for {time}")
        }
        Choice::Allow | Choice::Session => {
            format!("{about} allowed once: {}", why_once(question))
        }
    }
}

/// Returns why a yes is not remembered.
fn why_once(question: &ApprovalQuestion) -> String {
    let effects = &question.side_effects;
    let never = effects
        .iter()
        .find(|e| NEVER_REMEMBERED.contains(&e.as_str()));
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
            let answered =
                json!({"question": {"id": "x", "side_effects": effects}, "remembered": false});
            let answered = serde_json::from_value(answered).unwrap();
            let sentence = sentence(Choice::Allow, &answered);
            assert!(sentence.contains(why), "{sentence}");
        }
    }
}
