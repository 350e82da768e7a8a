//! `durward approvals granted` and `durward approvals forget`.

use std::io::{self, Write};

use admin::approvals::{GrantSelection, GrantedCall, forget_grants, list_grants};
use clap::Args;

use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::places::Places;
use crate::plural::count;

use super::{EXIT_CANNOT, decide, exit_code, text, warn};

/// Arguments of `durward approvals granted`.
#[derive(Debug, Args)]
pub struct GrantedArgs {
    /// Print one JSON object for each grant
    #[arg(long)]
    json: bool,
}

/// Arguments of `durward approvals forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// The grant, or the beginning of its id
    #[arg(value_name = "ID", value_parser = decide::id, required_unless_present = "all")]
    id: Option<String>,
    /// Every grant of every running instance
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The columns of `approvals granted`.
const COLUMNS: [Column; 6] = [
    Column::new("id", 0, Long::Whole),
    Column::new("left", 0, Long::Whole),
    Column::new("tool or method", 10, Long::Cut),
    Column::new("server", 6, Long::Cut).of_rank(3),
    Column::new("caller", 8, Long::Cut).of_rank(2),
    Column::new("arguments", 16, Long::Cut).of_rank(1),
];

/// Prints the calls that are allowed for a while, a line each.
pub fn granted(
    args: &GrantedArgs,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let list = list_grants(&places.runtime);
    warn(&list.warnings, err);
    if args.json {
        for grant in &list.grants {
            layout::json_line(grant, out)?;
        }
    } else if list.grants.is_empty() {
        match list.instances {
            0 => writeln!(out, "no instance of durward is running")?,
            running => writeln!(
                out,
                "no calls are allowed for a while ({} running)",
                count(running, "instance")
            )?,
        }
    } else {
        let rows: Vec<Vec<String>> = list.grants.iter().map(row).collect();
        let table = Table::of(&COLUMNS, &rows, layout::screen_width(), 0);
        table.heading(out)?;
        for row in &rows {
            table.row(row, out)?;
        }
        writeln!(
            out,
            "\nask again at the next call with: durward approvals forget ID"
        )?;
    }
    Ok(match list.warnings.is_empty() {
        true => 0,
        false => EXIT_CANNOT,
    })
}

/// Returns the cells of one grant.
fn row(grant: &GrantedCall) -> Vec<String> {
    let what = grant.tool_name.as_deref().unwrap_or(&grant.mcp_method);
    let left = format!("{} s", grant.remaining_ms.div_ceil(1_000));
    let left = match grant.session_id {
        Some(_) => format!("{left}, this session"),
        None => left,
    };
    let arguments = grant.arguments.as_deref().or(grant.uri.as_deref());
    vec![
        text::safe(&grant.id),
        left,
        text::safe(what),
        text::safe(&grant.backend_id),
        text::safe(&grant.subject_id),
        arguments.map_or_else(|| "-".to_owned(), text::safe),
    ]
}

/// Ends grants, so that the next call asks a person again.
pub fn forget(
    args: &ForgetArgs,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let selection = match &args.id {
        Some(id) => GrantSelection::Id(id.clone()),
        None => GrantSelection::All,
    };
    let report = forget_grants(&places.runtime, &selection);
    warn(&report.warnings, err);
    let is_incomplete = !report.warnings.is_empty();
    match report.outcome {
        Ok(done) => {
            match args.json {
                true => layout::json_line(&done, out)?,
                false => writeln!(out, "{} forgotten", count(done.forgotten, "grant"))?,
            }
            Ok(match is_incomplete {
                true => EXIT_CANNOT,
                false => 0,
            })
        }
        Err(error) => {
            writeln!(
                err,
                "error: {error}\n  hint: durward approvals granted lists what is allowed for a while"
            )?;
            Ok(exit_code(&error, is_incomplete))
        }
    }
}
