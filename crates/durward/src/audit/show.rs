//! `durward audit show` and `tail`

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use admin::calls::{self, CallQuery, Record, RecordFeed};
use mcp::descriptions::hidden::is_hidden;
use serde_json::Value;

use super::{Context, Failure, SOUND, SelectArgs};
use crate::layout::{self, fold};

/// Pause between two looks of `--follow`, in milliseconds.
const FOLLOW_MS: u64 = 200;

/// Where a record that is longer than a line of the terminal goes on.
const HANG: usize = 4;

/// Members that the readable form prints first, without their names.
const LEADING: [&str; 3] = ["time", "kind", "event"];

pub(super) fn run(
    args: &SelectArgs,
    context: &Context,
    follow: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    if args.dir.is_none() {
        calls::check_journal(&context.journal)?;
    }
    let request = RecordRequest {
        directory: args.dir.as_ref().unwrap_or(&context.journal),
        query: CallQuery {
            filter: args.filter(context.now_ms),
            limit: page_limit(args.limit),
            ..CallQuery::default()
        },
        follow,
    };
    let mut each = |records: &[Record], out: &mut dyn Write| {
        let mut records = records.iter();
        records.try_for_each(|record| print(args.json, record, out))
    };
    stream(&request, &mut each, out, err)
}

/// Returns the limit of a page.
pub fn page_limit(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Which records of which journal.
pub struct RecordRequest<'a> {
    pub directory: &'a Path,
    pub query: CallQuery,
    /// Go on with what is written from now on.
    pub follow: bool,
}

/// Prints records: those that exist at first, then each new one.
pub type Print<'a> = dyn FnMut(&[Record], &mut dyn Write) -> Result<(), Failure> + 'a;

/// Hands the records that are asked for to `print`, oldest first.
///
/// # Errors
/// A journal that cannot be read, or an error of `print`.
pub fn stream(
    request: &RecordRequest<'_>,
    print: &mut Print<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let RecordRequest {
        directory, query, ..
    } = request;
    // The feed notes its start first, so nothing that is written meanwhile is missed; it may be printed twice.
    let feed = match request.follow {
        true => Some(RecordFeed::open(directory, &query.filter)?),
        false => None,
    };
    let page = calls::list(directory, query)?;
    print(&page.records, out)?;
    warn(page.skipped, err)?;
    out.flush()?;
    match feed {
        Some(feed) => follow(print, feed, out, err),
        None => Ok(SOUND),
    }
}

/// Prints new records, until the reader goes away or the process is stopped.
fn follow(
    print: &mut Print<'_>,
    mut feed: RecordFeed,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    loop {
        let mut printed = Ok(());
        let skipped = feed.poll(&mut |record| {
            if printed.is_ok() {
                printed = print(&[record], out);
            }
        })?;
        printed?;
        warn(skipped, err)?;
        out.flush()?;
        std::thread::park_timeout(Duration::from_millis(FOLLOW_MS));
    }
}

pub fn warn(skipped: u64, err: &mut dyn Write) -> Result<(), Failure> {
    if skipped > 0 {
        writeln!(
            err,
            "warning: {skipped} lines cannot be read as records; run durward audit verify"
        )?;
    }
    Ok(())
}

fn print(json: bool, record: &Record, out: &mut dyn Write) -> Result<(), Failure> {
    if json {
        out.write_all(record.body())?;
        return Ok(writeln!(out)?);
    }
    let Some(members) = record.members() else {
        return Ok(writeln!(out, "(unreadable)")?);
    };
    let leading = LEADING.map(|name| {
        let text = members.get(name).and_then(Value::as_str).unwrap_or("-");
        Plain(text).to_string()
    });
    let mut line = leading.join("  ");
    for (name, value) in members
        .iter()
        .filter(|(name, _)| !LEADING.contains(&name.as_str()))
    {
        let value = match value {
            Value::String(text) => Plain(text).to_string(),
            other => Plain(&other.to_string()).to_string(),
        };
        line.push_str(&format!("  {}={value}", Plain(name)));
    }
    let width = layout::screen_width().unwrap_or(usize::MAX);
    for line in fold::lines(&line, width, HANG) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Text whose control and invisible characters are spelled out: a record must not drive the terminal that shows it, nor look like another.
pub struct Plain<'a>(pub &'a str);

impl std::fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write as _;
        let unsafe_to_show =
            |c: char| c.is_control() || is_hidden(c) || matches!(c, '\u{2028}' | '\u{2029}');
        self.0.chars().try_for_each(|c| {
            if unsafe_to_show(c) {
                write!(f, "{}", c.escape_unicode())
            } else {
                f.write_char(c)
            }
        })
    }
}
