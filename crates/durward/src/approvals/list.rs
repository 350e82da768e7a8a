//! `durward approvals list` and `durward approvals show`.

use std::io::{self, Write};

use admin::approvals::{self, WaitingCall};
use admin::{AdminError, ErrorKind};
use clap::Args;

use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::places::Places;

use super::{EXIT_CANNOT, decide, exit_code, text, warn};

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

/// Prints what waits, a line each, oldest first within an instance.
pub fn run(
    args: &ListArgs,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let waiting = approvals::list(&places.runtime);
    warn(&waiting.warnings, err);
    if args.json {
        for call in &waiting.calls {
            layout::json_line(call, out)?;
        }
    } else {
        let rows: Vec<Vec<String>> = waiting.calls.iter().map(row).collect();
        match (rows.len(), waiting.instances) {
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
    Ok(match waiting.warnings.is_empty() {
        true => 0,
        false => EXIT_CANNOT,
    })
}

/// Returns the cells of one call.
fn row(call: &WaitingCall) -> Vec<String> {
    let question = &call.question;
    let or_dash = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), text::safe);
    let left = question.remaining_ms.div_ceil(1_000);
    let path = question.path.as_deref().or(question.source_path.as_deref());
    vec![
        text::safe(&question.id),
        format!("{left} s"),
        text::what(question),
        or_dash(question.backend_id.as_deref()),
        or_dash(question.subject_id.as_deref()),
        or_dash(question.rule.as_deref()),
        or_dash(path.or(question.uri.as_deref())),
    ]
}

/// Prints one waiting call whole.
pub fn show(
    args: &ShowArgs,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let waiting = approvals::list(&places.runtime);
    warn(&waiting.warnings, err);
    let error = match waiting.find(&args.id) {
        Ok(call) if args.json => return layout::json_line(call, out).map(|()| 0),
        Ok(call) => {
            text::print_question(&call.question, layout::screen_width(), out)?;
            writeln!(
                out,
                "\nanswer with: durward approvals allow|once|deny {}",
                args.id
            )?;
            return Ok(0);
        }
        Err(error) => error,
    };
    let id = &args.id;
    match &error {
        AdminError::Ambiguous(ids) => writeln!(
            err,
            "error: {} waiting calls have an id that begins with {id}; give more letters",
            ids.len()
        )?,
        _ => writeln!(
            err,
            "error: no call with the id {id} waits\n  hint: durward approvals list shows what waits"
        )?,
    }
    // The call may wait in an instance that could not be asked.
    let is_elsewhere = !waiting.warnings.is_empty() && error.kind() == ErrorKind::NotFound;
    Ok(exit_code(&error, is_elsewhere))
}
