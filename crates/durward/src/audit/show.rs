//! `durward audit show` and `tail`

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use gate::journal::audit::{Filter, Follower, latest};
use mcp::descriptions::hidden::is_hidden;
use serde_json::{Map, Value};

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
    if args.dir.is_none() && !context.journal.exists() {
        return Err(Failure::NoJournal(context.journal.clone()));
    }
    let asked = Asked {
        directory: args.dir.as_ref().unwrap_or(&context.journal),
        filter: args.filter(context.now_ms),
        limit: args.limit,
        follow,
    };
    let mut each = |bodies: &[Vec<u8>], out: &mut dyn Write| {
        let mut bodies = bodies.iter();
        bodies.try_for_each(|body| print(args.json, body, out))
    };
    stream(&asked, &mut each, out, err)
}

/// Which records of which journal.
pub struct Asked<'a> {
    pub directory: &'a Path,
    pub filter: Filter,
    /// At most so many of those that are there, the latest.
    pub limit: u64,
    /// Go on with what is written from now on.
    pub follow: bool,
}

/// Prints records: those that are there at first, then each that comes.
pub type Print<'a> = dyn FnMut(&[Vec<u8>], &mut dyn Write) -> Result<(), Failure> + 'a;

/// Hands the records that are asked for to `print`, oldest first.
///
/// # Errors
/// Where the journal cannot be read, or what `print` says.
pub fn stream(
    asked: &Asked<'_>,
    print: &mut Print<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let Asked {
        directory, filter, ..
    } = asked;
    // The follower notes its start first, so nothing that is written meanwhile is missed; it may be printed twice.
    let follower = if asked.follow {
        Some(Follower::new(directory, filter.clone())?)
    } else {
        None
    };
    let (bodies, skipped) = latest(
        directory,
        filter,
        usize::try_from(asked.limit).unwrap_or(usize::MAX),
    )?;
    print(&bodies, out)?;
    warn(skipped, err)?;
    out.flush()?;
    match follower {
        Some(follower) => run_on(print, follower, out, err),
        None => Ok(SOUND),
    }
}

/// Prints what comes, until the reader goes away or the process is stopped.
fn run_on(
    print: &mut Print<'_>,
    mut follower: Follower,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    loop {
        let mut printed = Ok(());
        let skipped = follower.poll(&mut |body| {
            if printed.is_ok() {
                printed = print(&[body.to_vec()], out);
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

fn print(json: bool, body: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    if json {
        out.write_all(body)?;
        return Ok(writeln!(out)?);
    }
    let Ok(members) = serde_json::from_slice::<Map<String, Value>>(body) else {
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
