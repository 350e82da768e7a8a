//! `durward approvals list` and `durward approvals show`.

use std::io::{self, Write};

use clap::Args;
use serde_json::{Value, json};

use crate::control::Request;
use crate::control::client::{self, Found};
use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::places::Places;

use super::{EXIT_CANNOT, EXIT_NOT_TAKEN, decide, text, warn};

/// Arguments of `durward approvals list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print one JSON object for each call
    #[arg(long)]
    json: bool,
}

/// Arguments of `durward approvals show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The waiting call, or the beginning of its id
    #[arg(value_name = "ID", value_parser = decide::id)]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The columns of `approvals list`.
const COLUMNS: [Column; 7] = [
    Column::new("id", 0, Long::Whole),
    Column::new("left", 0, Long::Whole),
    Column::new("tool or method", 10, Long::Cut),
    Column::new("server", 6, Long::Cut).of_rank(2),
    Column::new("caller", 8, Long::Cut).of_rank(3),
    Column::new("rule", 8, Long::Cut).of_rank(4),
    Column::new("path", 14, Long::CutFront).of_rank(1),
];

/// Calls that wait.
struct Waiting {
    /// Each with its socket, oldest first within an instance.
    questions: Vec<(String, Value)>,
    /// An instance could not be asked, which was said.
    has_failed: bool,
}

impl Waiting {
    /// Asks every instance that was found.
    fn of(found: &mut Found, err: &mut dyn Write) -> Self {
        let mut waiting = Self {
            questions: Vec::new(),
            has_failed: warn(found, err),
        };
        for instance in &mut found.instances {
            let socket = instance.socket.display().to_string();
            let mut add = |question: Value| waiting.questions.push((socket.clone(), question));
            if let Err(error) = instance.ask(&Request::Approvals, &mut add) {
                let _ = writeln!(err, "warning: {socket}: {error}");
                waiting.has_failed = true;
            }
        }
        waiting
    }
}

/// The question with the socket of its instance.
fn object(socket: &str, question: &Value) -> Value {
    let mut question = question.clone();
    if let Some(members) = question.as_object_mut() {
        members.insert("socket".into(), json!(socket));
    }
    question
}

/// Prints what waits, a line each, oldest first within an instance.
pub fn run(
    args: &ListArgs,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut found = client::instances(places);
    let waiting = Waiting::of(&mut found, err);
    if args.json {
        for (socket, question) in &waiting.questions {
            writeln!(out, "{}", object(socket, question))?;
        }
    } else {
        let rows: Vec<Vec<String>> = waiting.questions.iter().map(|(_, q)| row(q)).collect();
        match (rows.len(), found.instances.len()) {
            (0, 0) => writeln!(out, "no instance of durward is running")?,
            (0, 1) => writeln!(out, "nothing waits for approval (1 instance is running)")?,
            (0, running) => {
                writeln!(
                    out,
                    "nothing waits for approval ({running} instances are running)"
                )?;
            }
            _ => {
                let table = Table::of(&COLUMNS, &rows, layout::screen_width(), 0);
                table.heading(out)?;
                for row in &rows {
                    table.row(row, out)?;
                }
                writeln!(
                    out,
                    "\nsee the whole call with: durward approvals show ID; answer with: durward approvals allow|once|deny ID"
                )?;
            }
        }
    }
    Ok(if waiting.has_failed { EXIT_CANNOT } else { 0 })
}

/// The cells of one call.
fn row(question: &Value) -> Vec<String> {
    let text = |name: &str| text::word(question, name);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let left = text::number(question, "remaining_ms").div_ceil(1_000);
    let path = text("path").or_else(|| text("source_path"));
    vec![
        or_dash(text("id")),
        format!("{left} s"),
        text::what(question),
        or_dash(text("backend_id")),
        or_dash(text("subject_id")),
        or_dash(text("rule")),
        or_dash(path.or_else(|| text("uri"))),
    ]
}

/// Prints one waiting call whole.
pub fn show(
    args: &ShowArgs,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let waiting = Waiting::of(&mut client::instances(places), err);
    let is_meant = |question: &Value| {
        let id = question.get("id").and_then(Value::as_str);
        id.is_some_and(|id| id.starts_with(&args.id))
    };
    let meant: Vec<_> = waiting
        .questions
        .iter()
        .filter(|(_, q)| is_meant(q))
        .collect();
    match meant.as_slice() {
        [(socket, question)] if args.json => writeln!(out, "{}", object(socket, question))?,
        [(_, question)] => {
            text::question(question, layout::screen_width(), out)?;
            writeln!(
                out,
                "\nanswer with: durward approvals allow|once|deny {}",
                args.id
            )?;
        }
        [] => {
            writeln!(
                err,
                "error: no call with the id {} waits\n  hint: durward approvals list shows what waits",
                args.id
            )?;
            return Ok(if waiting.has_failed {
                EXIT_CANNOT
            } else {
                EXIT_NOT_TAKEN
            });
        }
        several => {
            let count = several.len();
            writeln!(
                err,
                "error: {count} waiting calls have an id that begins with {}; give more letters",
                args.id
            )?;
            return Ok(EXIT_NOT_TAKEN);
        }
    }
    Ok(0)
}
