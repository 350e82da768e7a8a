//! `durward call`

use std::io::{self, Read as _, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::session::{Begin, Session};
use crate::config::Settings;
use crate::failure::EXIT_CONFIGURATION;
use crate::places::Places;
use crate::sign_in;

pub const HELP: &str = "\
Examples:
  durward call files read_file '{\"path\":\"/tmp/notes.txt\"}'
  durward call files list_directory '{\"path\":\"/tmp\"}' --text
  durward call files write_file - < arguments.json

The call is judged and recorded like a client's call: it may be refused, and it waits if the policy asks a person
(run `durward approvals watch` in another terminal). The result is printed as JSON; --text prints only its text.

Exit codes: 0 done; 1 the tool failed; 3 refused by policy, limits or a person; 4 the server did not answer;
12 the issuer of the sign-in cannot be reached; 13 nobody is signed in, or the sign-in has ended; 16 wrong configuration or
arguments.";

/// The tool says that it failed.
const EXIT_TOOL_FAILED: u8 = 1;
/// The gate refused the call.
const EXIT_REFUSED: u8 = 3;
/// There is no answer.
const EXIT_NO_ANSWER: u8 = 4;
/// Arguments as they are written on a command line.
const EXAMPLE: &str = r#"'{"path": "/tmp"}'"#;
/// Longest arguments that are read from standard input, in bytes.
const ARGUMENTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Time beyond the bounds of approval and call, for the way there and back, in milliseconds.
const SPARE_MS: u64 = 10_000;

/// Arguments of `durward call`.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The server, as durward.yaml names it
    #[arg(value_name = "SERVER")]
    server: String,
    /// The tool
    #[arg(value_name = "TOOL")]
    tool: String,
    /// The arguments, a JSON object; `-` reads them from standard input [default: {}]
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    arguments: Option<String>,
    /// The rules, as JSON [default: the configuration's, else the starter policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Print the text of the result only
    #[arg(long)]
    text: bool,
}

/// Calls a tool; gives the exit code.
pub fn run(
    args: &CallArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let server = settings.named(&args.server, places);
    let (arguments, server) = match (arguments(args.arguments.as_deref()), server) {
        (Ok(arguments), Ok(server)) => (arguments, server),
        (Err(message), _) | (_, Err(message)) => {
            let _ = writeln!(err, "error: {message}");
            return EXIT_CONFIGURATION;
        }
    };
    // The session that is begun acts in the same name; here it can say why it cannot.
    if let Err(failure) = sign_in::caller(settings, places, err) {
        let _ = writeln!(err, "error: {}", failure.message);
        return failure.code;
    }
    let begin = Begin {
        settings,
        places,
        policy: args.policy.clone(),
        state: None,
        flags: &[],
    };
    let tools = settings.tool_timeouts_of(Some(server), &[]);
    let call_ms = tools
        .get(&args.tool)
        .copied()
        .unwrap_or(settings.call_timeout_of(Some(server)).0);
    let approval_ms = settings.approval.timeout.value.0;
    let ms_max = call_ms.saturating_add(approval_ms).saturating_add(SPARE_MS);
    let answered = Session::begin(&args.server, &begin).and_then(|mut session| {
        let reply = session.call(&args.server, &args.tool, &arguments, ms_max);
        session.end();
        reply
    });
    let reply = match answered {
        Ok(reply) => reply,
        Err(message) => {
            let _ = writeln!(err, "error: {message}");
            return EXIT_NO_ANSWER;
        }
    };
    let refusal = reply.refusal().cloned();
    let (value, failed) = match (reply.result(), reply.error()) {
        (Ok(result), _) => (result.clone(), reply.is_tool_error()),
        (Err(_), error) => (error.cloned().unwrap_or_default(), true),
    };
    let printed = match args.text {
        true => text(&value, out),
        false => writeln!(out, "{value:#}"),
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(err, "error: cannot write: {error}");
            return EXIT_NO_ANSWER;
        }
        _ => {}
    }
    match refusal {
        Some(refusal) => {
            let _ = writeln!(err, "error: {}", refused(&refusal));
            EXIT_REFUSED
        }
        None if failed => EXIT_TOOL_FAILED,
        None => 0,
    }
}

/// The arguments of the call.
fn arguments(given: Option<&str>) -> Result<Value, String> {
    let text = match given {
        None => return Ok(Value::Object(Map::new())),
        Some("-") => {
            let mut text = String::new();
            let read = io::stdin()
                .take(ARGUMENTS_BYTES_MAX + 1)
                .read_to_string(&mut text);
            read.map_err(|error| format!("the arguments cannot be read: {error}"))?;
            if text.len() as u64 > ARGUMENTS_BYTES_MAX {
                return Err("the arguments are longer than 64 MiB".into());
            }
            text
        }
        Some(text) => text.to_owned(),
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| format!("the arguments are not JSON: {error}\n  hint: write {EXAMPLE}"))?;
    if value.is_object() {
        return Ok(value);
    }
    Err(format!(
        "the arguments are not a JSON object\n  hint: write {EXAMPLE}"
    ))
}

/// The text parts of a result; an error's message where it is one.
fn text(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    if let Some(message) = value.get("message").and_then(Value::as_str) {
        return writeln!(out, "{message}");
    }
    let parts = value.get("content").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        match part.get("text").and_then(Value::as_str) {
            Some(text) => writeln!(out, "{text}")?,
            None => {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or("part");
                writeln!(out, "[{kind}]")?;
            }
        }
    }
    Ok(())
}

/// Why a call was refused, in a sentence.
fn refused(refusal: &Value) -> String {
    let word = |name: &str| refusal.get(name).and_then(Value::as_str);
    let reason = word("reason").unwrap_or("refused");
    let mut sentence = format!("refused: {reason}");
    if let Some(rule) = word("rule").or_else(|| word("final_rule")) {
        sentence.push_str(&format!(" (rule \"{}\")", rule.escape_debug()));
    }
    if let Some(why) = word("message").or_else(|| word("detail")) {
        sentence.push_str(&format!(": {}", why.escape_debug()));
    }
    sentence
}
