//! The tools of terminals: what they take, and what they answer.

use gate::facts::{FactId, Operation};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};
use toolkit::schema::SchemaFault;
use toolkit::server::{Answer, Args, Content, Role, ToolDef, Unfit};

use super::context::with_context;
use super::definitions::{command, object, runs, session};
use crate::end::{End, Missing};
use crate::processes::Aftermath;
use crate::size::{COLUMNS_MAX, ROWS_MAX, Size};
use crate::terminals::Part;

/// Longest text that is typed at once, in characters.
const TYPED_CHARS_MAX: usize = 4_096;
/// Longest wait of one call, in milliseconds.
const WAIT_MS_MAX: u64 = 240_000;
/// Most memory of a regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 256 * 1024;

/// The facts of a call that types.
const TYPED_FACTS: &[FactId] = &[
    FactId::Host,
    FactId::Program,
    FactId::Argv,
    FactId::Operands,
    FactId::Cwd,
    FactId::Env,
    FactId::EnvNames,
    FactId::Typed,
];

/// How large a terminal is to be.
pub(crate) fn size(args: Args<'_>) -> Result<Size, Unfit> {
    let count = |name: &str| Ok::<_, Unfit>(u32::try_from(args.count(name)?).unwrap_or(u32::MAX));
    Ok(Size {
        columns: count("columns")?.min(COLUMNS_MAX),
        rows: count("rows")?.min(ROWS_MAX),
    })
}

/// What a call types: its text, and the key behind it.
pub(crate) fn typed(args: Args<'_>) -> Result<String, Unfit> {
    let text = args.text("text")?;
    let end = if args.is_set("enter") { "\r" } else { "" };
    Ok(format!("{text}{end}"))
}

/// What a call waits for.
pub(crate) fn wanted(args: Args<'_>) -> Result<Option<Regex>, Unfit> {
    let Some(text) = args.get("wait_for").and_then(Value::as_str) else {
        return Ok(None);
    };
    let mut regex = RegexBuilder::new(text);
    let regex = regex.size_limit(REGEX_BYTES_MAX).multi_line(true).build();
    let wrong = |error: regex::Error| {
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default().to_owned();
        Unfit::member("wait_for", format!("is not a regular expression: {last}"))
    };
    regex.map(Some).map_err(wrong)
}

fn waiting(members: &mut Value) {
    if let Some(members) = members.as_object_mut() {
        members.insert("wait_for".into(), json!({"type": "string", "minLength": 1, "maxLength": 1024, "description": "Wait until what is shown matches this regular expression; without it, until anything is shown."}));
        members.insert("wait_ms".into(), json!({"type": "integer", "minimum": 0, "maximum": WAIT_MS_MAX, "default": 2000, "description": "Longest wait."}));
    }
}

fn told() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "properties": {
            "terminal": {"type": "string"},
            "text": {"type": "string", "description": "What was shown, without control sequences."},
            "at": count, "next": count,
            "matched": {"type": ["string", "null"], "description": "What matched wait_for; null where nothing did in time."},
            "running": {"type": "boolean"},
            "exit_code": {"type": ["integer", "null"]}, "signal": {"type": ["string", "null"]},
            "ended": {"type": ["string", "null"], "description": "How it ended, where it has."},
            "recording": {"type": ["object", "null"], "description": "The file with the recording, and its last hash once it is whole."},
            "output_incomplete": {"type": "boolean", "description": "True where output before or behind this part is missing."},
            "output_incomplete_reason": {"type": ["string", "null"], "description": "over_bound, timed_out, cancelled, connection_lost or streams_open."},
            "seen_dead": {"type": ["boolean", "null"], "description": "True of a program that was stopped and of which the host has shown that nothing runs any more; null where that is not known."},
            "pids": {"type": ["array", "null"], "items": {"type": "integer"}, "description": "Processes that may be left of it."}
        },
        "required": ["terminal", "text", "at", "next", "matched", "running"]
    })
}

pub(super) fn definitions() -> Result<[ToolDef; 4], SchemaFault> {
    let named = json!({"type": "string", "minLength": 1, "maxLength": 640, "description": "What ssh_terminal_open gave."});
    let from = json!({"type": "integer", "minimum": 0, "description": "Show what came from here on, in bytes: `next` of an earlier answer."});
    let mut members = with_context(json!({
        "session_id": session(), "command": command(),
        "columns": {"type": "integer", "minimum": 1, "maximum": COLUMNS_MAX, "default": 80},
        "rows": {"type": "integer", "minimum": 1, "maximum": ROWS_MAX, "default": 24},
        "timeout_ms": {"type": "integer", "minimum": 1, "maximum": 86_400_000, "description": "The program is stopped after so many milliseconds."}
    }));
    waiting(&mut members);
    let open = ToolDef::new(
        "ssh_terminal_open",
        "Open a terminal",
        "Starts one program on a terminal of the host, for programs that ask and wait for answers. Output and errors come together. It ends with the session; ssh_terminal_send types, ssh_terminal_read looks.",
        object(members, &["session_id", "command"]),
    )?
    .with_output(told())?;
    let mut members = json!({
        "session_id": session(), "terminal": named, "from": from,
        "text": {"type": "string", "maxLength": TYPED_CHARS_MAX, "description": "What is typed; \\u0003 is Ctrl-C, \\u0004 Ctrl-D, \\u001b Escape."},
        "enter": {"type": "boolean", "default": true, "description": "Type the Enter key behind it."}
    });
    waiting(&mut members);
    let send = ToolDef::new(
        "ssh_terminal_send",
        "Type into a terminal",
        "Types into a terminal and shows what comes. Each text is judged as a call of its own.",
        object(members, &["session_id", "terminal", "text"]),
    )?
    .with_output(told())?;
    let mut members = json!({"session_id": session(), "terminal": named, "from": from});
    waiting(&mut members);
    let read = ToolDef::new(
        "ssh_terminal_read",
        "Look at a terminal",
        "Shows what a terminal has shown since a place, and waits for more.",
        object(members, &["session_id", "terminal"]),
    )?
    .with_output(told())?;
    let close = ToolDef::new(
        "ssh_terminal_close",
        "Close a terminal",
        "Stops the program in a terminal, TERM first, then KILL, and says whether its end was seen.",
        object(json!({"session_id": session(), "terminal": named}), &["session_id", "terminal"]),
    )?
    .with_output(told())?;
    let content: &'static [(&'static str, Role)] = &[("wait_for", Role::Content)];
    Ok([
        ToolDef {
            roles: content,
            ..runs(open)
        },
        ToolDef {
            varies: TYPED_FACTS,
            roles: content,
            ..runs(send)
        },
        ToolDef {
            open_world: true,
            roles: content,
            ..read
        },
        ToolDef {
            operation: Operation::Delete,
            side_effects: &["code_exec"],
            open_world: true,
            ..close
        },
    ])
}

/// The answer for a terminal.
pub(crate) fn of_terminal(name: &str, part: Part) -> Answer {
    let (exit_code, signal) = match &part.end {
        Some(End::Exited(code)) => (json!(code), Value::Null),
        Some(End::Signalled(signal)) => (Value::Null, json!(signal)),
        _ => (Value::Null, Value::Null),
    };
    let ended = part.end.as_ref().map(ToString::to_string);
    let left = part.end.as_ref().and_then(End::left);
    let seen = (left == Some(&Aftermath::Dead)).then_some(true);
    let pids = match left {
        Some(Aftermath::Unknown { pids, .. }) => json!(pids),
        _ => Value::Null,
    };
    let recording = part.recording.as_ref();
    let recording = recording.map(|(file, hash)| json!({"file": file, "hash": hash}));
    let data = json!({
        "terminal": name, "text": part.text, "at": part.at, "next": part.next, "matched": part.matched,
        "running": part.end.is_none(), "exit_code": exit_code, "signal": signal, "ended": ended, "seen_dead": seen, "pids": pids, "recording": recording,
        "output_incomplete": part.missing.is_some(), "output_incomplete_reason": part.missing.map(Missing::label),
    });
    Answer {
        content: vec![Content::Text(part.text)],
        ..Answer::data(data)
    }
}
