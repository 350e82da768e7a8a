//! `durward logs`: the journal as a person reads it, one sort of records at a time. The reading is that
//! of `durward audit`.

use std::io::{self, IsTerminal as _, Write};

use clap::{Args, Subcommand, ValueEnum};
use gate::journal::audit::{Filter, Kind, each};
use serde_json::{Map, Value, json};

use crate::audit::show::{self, Asked, Plain};
use crate::audit::{self, Conditions, Context, Failure, SOUND, Since};
use crate::places;

pub const HELP: &str = "\
Examples:
  durward logs                                     the latest 50 decisions
  durward logs --refused                           what was refused lately, and why
  durward logs --refused --caller ci --server files
  durward logs --type operations --since 1h        what became of the calls of the last hour
  durward logs --type policy-history --json
  durward logs --run nightly-7                     what one run of an agent did, in order
  durward logs tail                                decisions as they come; end with Ctrl-C
  durward logs list                                how many records of each kind there are

Records are in the order of their times, the latest last. `durward audit show` prints whole records;
`durward audit verify` checks that the journal has not been altered.";

/// Arguments of `durward logs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct LogsArgs {
    #[command(flatten)]
    select: SelectArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the kinds of records, how many there are of each, and when the latest was written
    List {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the latest records of one kind
    Show(SelectArgs),
    /// Print the latest records of one kind, and new ones as they are written
    Tail(SelectArgs),
}

#[derive(Debug, Args)]
struct SelectArgs {
    /// The kind of records [default: decisions; with --refused, decisions and key refusals]
    #[arg(long = "type", value_enum, value_name = "KIND")]
    sort: Option<Sort>,
    #[command(flatten)]
    conditions: Conditions,
    /// Print at most this many records, the latest
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: u64,
    /// Only records of the last 30s, 5m, 1h, 7d and so on, or since a UTC time such as 2026-11-21T03:38:09Z
    #[arg(long, value_name = "TIME", value_parser = audit::since)]
    since: Option<Since>,
    /// Print each record as the JSON that was written
    #[arg(long)]
    json: bool,
}

impl SelectArgs {
    /// Whether all of one run is asked for, calls and what became of them.
    fn is_one_run(&self) -> bool {
        self.conditions.has_run() && self.sort.is_none() && !self.conditions.refused
    }
}

/// The kinds of records, as users of the field name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// What was decided about each call
    Decisions,
    /// What became of each call
    Operations,
    /// Callers and their credentials
    Auth,
    /// The program itself
    System,
    /// Changes of the configuration
    ConfigHistory,
    /// Changes of the policy
    PolicyHistory,
}

impl Sort {
    const ALL: [Self; 6] = [
        Self::Decisions,
        Self::Operations,
        Self::Auth,
        Self::System,
        Self::ConfigHistory,
        Self::PolicyHistory,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Decisions => "decisions",
            Self::Operations => "operations",
            Self::Auth => "auth",
            Self::System => "system",
            Self::ConfigHistory => "config-history",
            Self::PolicyHistory => "policy-history",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Decisions => "what was decided about each call",
            Self::Operations => "what became of each call",
            Self::Auth => "callers and their credentials",
            Self::System => "the program itself",
            Self::ConfigHistory => "changes of the configuration",
            Self::PolicyHistory => "changes of the policy",
        }
    }

    fn filter(self, since_ms: Option<i64>) -> Filter {
        let (kind, component) = match self {
            Self::Decisions => (Kind::Decision, None),
            Self::Operations => (Kind::Operation, None),
            Self::Auth => (Kind::Auth, None),
            Self::System => (Kind::System, None),
            Self::ConfigHistory => (Kind::Config, Some("configuration")),
            Self::PolicyHistory => (Kind::Config, Some("policy")),
        };
        Filter {
            kind: Some(kind),
            component: component.map(str::to_owned),
            since_ms,
            ..Filter::default()
        }
    }

    /// The columns of refusals of every kind.
    const REFUSED: &'static [Column] = &[
        ("caller", 16, &["subject_id"]),
        (
            "tool or method",
            20,
            &["tool_name", "mcp_method", "method", "event"],
        ),
        ("server", 16, &["backend_id"]),
        ("reason", 20, &["hitl_outcome", "reason"]),
        ("rule", 24, &["final_rule"]),
        ("path or message", 0, &["path", "uri", "message"]),
    ];

    /// The columns of a run: what was decided, and what became of it.
    const RUN: &'static [Column] = &[
        ("record", 9, &["kind"]),
        ("server", 16, &["backend_id"]),
        ("tool or method", 20, &["tool_name", "mcp_method", "method"]),
        ("decision or status", 18, &["decision", "status"]),
        ("outcome", 16, &["hitl_outcome", "reason"]),
        ("microseconds", 12, &["duration_us"]),
        ("path", 0, &["path", "uri"]),
    ];

    /// The columns behind the time: heading, width, and the members of which the first there is shown.
    fn columns(self) -> &'static [Column] {
        match self {
            Self::Decisions => &[
                ("caller", 16, &["subject_id"]),
                ("decision", 8, &["decision"]),
                ("outcome", 16, &["hitl_outcome", "reason"]),
                ("tool or method", 20, &["tool_name", "mcp_method"]),
                ("server", 16, &["backend_id"]),
                ("rule", 24, &["final_rule"]),
                ("path", 0, &["path", "uri"]),
            ],
            Self::Operations => &[
                ("status", 9, &["status"]),
                ("tool or method", 20, &["tool_name", "method"]),
                ("server", 16, &["backend_id"]),
                ("microseconds", 12, &["duration_us"]),
                ("reason", 0, &["reason"]),
            ],
            Self::Auth => &[
                ("event", 24, &["event_type", "event"]),
                ("status", 9, &["status"]),
                ("subject", 16, &["subject_id", "subject"]),
                ("message", 0, &["message", "error_message"]),
            ],
            Self::System => &[
                ("level", 8, &["level"]),
                ("event", 24, &["event"]),
                ("server", 16, &["backend_id"]),
                ("message", 0, &["message", "error_message"]),
            ],
            Self::ConfigHistory | Self::PolicyHistory => &[
                ("event", 18, &["event"]),
                ("version", 8, &["version"]),
                ("change", 8, &["change_type"]),
                ("source", 32, &["source", "path"]),
                ("message", 0, &["message"]),
            ],
        }
    }
}

/// Heading, width in characters (0: the rest), members.
type Column = (&'static str, usize, &'static [&'static str]);

/// Width of the time.
const TIME_WIDTH: usize = 24;

/// Runs the command; gives the exit code.
pub fn run(args: &LogsArgs, context: &Context, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    if !context.journal.exists() {
        let none = audit::Failure::NoJournal(context.journal.clone());
        return audit::ended(Err(none), err);
    }
    let done = match &args.command {
        Some(Command::List { json }) => list(*json, context, out, err),
        Some(Command::Show(args)) => select(args, context, false, out, err),
        Some(Command::Tail(args)) => select(args, context, true, out, err),
        None if args.select.is_one_run() => run_of(&args.select, context, out, err),
        None => select(&args.select, context, false, out, err),
    };
    audit::ended(done, err)
}

fn list(
    json: bool,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let mut found = Sort::ALL.map(|_| (0_u64, String::new()));
    let filters = Sort::ALL.map(|sort| sort.filter(None));
    let skipped = each(&context.journal, &Filter::default(), &mut |body| {
        for (filter, (count, latest)) in filters.iter().zip(&mut found) {
            if filter.takes(body) == Some(true) {
                *count += 1;
                let members = serde_json::from_slice::<Map<String, Value>>(body);
                let time = members
                    .ok()
                    .and_then(|m| m.get("time")?.as_str().map(str::to_owned));
                *latest = time.unwrap_or_default().max(std::mem::take(latest));
            }
        }
    })?;
    let rows = Sort::ALL.iter().zip(&found);
    if json {
        let all: Vec<Value> = rows
            .map(|(sort, (count, latest))| json!({ "type": sort.name(), "records": count, "latest": latest }))
            .collect();
        writeln!(out, "{:#}", Value::Array(all))?;
    } else {
        writeln!(
            out,
            "{:<16}{:>9}  {:<TIME_WIDTH$}  what it holds",
            "type", "records", "latest"
        )?;
        for (sort, (count, latest)) in rows {
            let latest = if latest.is_empty() { "-" } else { latest };
            writeln!(
                out,
                "{:<16}{count:>9}  {:<TIME_WIDTH$}  {}",
                sort.name(),
                Plain(latest).to_string(),
                sort.about()
            )?;
        }
    }
    show::warn(skipped, err)?;
    Ok(SOUND)
}

fn select(
    args: &SelectArgs,
    context: &Context,
    follow: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let since_ms = args.since.map(|since| since.at_ms(context.now_ms));
    let (filter, columns) = match args.sort {
        None if args.conditions.refused => (
            Filter {
                since_ms,
                ..Filter::default()
            },
            Sort::REFUSED,
        ),
        sort => {
            let sort = sort.unwrap_or(Sort::Decisions);
            (sort.filter(since_ms), sort.columns())
        }
    };
    let asked = Asked {
        directory: &context.journal,
        filter: args.conditions.tighten(filter),
        limit: args.limit,
        follow,
    };
    print(&asked, columns, args.json, out, err)
}

/// Most records of a run that are printed, the latest.
const RUN_RECORDS_MAX: u64 = 1_000_000;

fn run_of(
    args: &SelectArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let asked = Asked {
        directory: &context.journal,
        filter: args.conditions.tighten(Filter {
            since_ms: args.since.map(|since| since.at_ms(context.now_ms)),
            ..Filter::default()
        }),
        limit: RUN_RECORDS_MAX,
        follow: false,
    };
    print(&asked, Sort::RUN, args.json, out, err)
}

/// Prints the records asked for, as they were written or as a table.
fn print(
    asked: &Asked<'_>,
    columns: &'static [Column],
    json: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let table = Table {
        columns,
        paint: !json && is_painted(),
        width: screen_width(),
    };
    let mut printed = 0_u64;
    let code = show::stream(
        asked,
        &mut |body, out| {
            if json {
                out.write_all(body)?;
                return Ok(writeln!(out)?);
            }
            if printed == 0 {
                table.heading(out)?;
            }
            printed += 1;
            Ok(table.row(body, out)?)
        },
        out,
        err,
    )?;
    if printed == 0 && !json {
        writeln!(
            err,
            "no matching records; `durward logs list` shows what there is"
        )?;
    }
    Ok(code)
}

/// Colour is for people at a terminal who have not said that they want none.
fn is_painted() -> bool {
    io::stdout().is_terminal()
        && places::variable("NO_COLOR").is_none()
        && places::variable("TERM").is_none_or(|term| term != "dumb")
}

/// Characters on a line of the terminal; nothing where the output goes elsewhere, and then nothing is cut.
pub fn screen_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// How records are laid out.
struct Table {
    columns: &'static [Column],
    paint: bool,
    /// Characters on a line, where lines are cut.
    width: Option<usize>,
}

impl Table {
    fn heading(&self, out: &mut dyn Write) -> io::Result<()> {
        let names = self.columns.iter().map(|(name, ..)| (*name).to_owned());
        self.line("time".to_owned(), names, false, out)
    }

    fn row(&self, body: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let Ok(members) = serde_json::from_slice::<Map<String, Value>>(body) else {
            return writeln!(out, "(unreadable)");
        };
        let text = |names: &[&str]| {
            let value = names.iter().find_map(|name| members.get(*name));
            match value {
                None => "-".to_owned(),
                Some(Value::String(text)) => Plain(text).to_string(),
                Some(other) => Plain(&other.to_string()).to_string(),
            }
        };
        let texts = self.columns.iter().map(|(.., names)| text(names));
        self.line(text(&["time"]), texts, self.paint, out)
    }

    /// One line. Colours have no width, so that the padding stands outside of them.
    fn line(
        &self,
        time: String,
        texts: impl Iterator<Item = String>,
        paint: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut left = self.width.unwrap_or(usize::MAX);
        let mut line = String::new();
        let cells = std::iter::once((TIME_WIDTH, time));
        let widths = self.columns.iter().map(|(_, width, _)| *width);
        for (at, (width, text)) in cells.chain(widths.zip(texts)).enumerate() {
            let gap = if at == 0 { 0 } else { 2 };
            if left <= gap {
                break;
            }
            left -= gap;
            let text = cut(text, left);
            let shown = text.chars().count();
            let padding = width.saturating_sub(shown).min(left - shown);
            line.extend(std::iter::repeat_n(' ', gap));
            match colour(&text).filter(|_| paint) {
                Some(code) => line.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
                None => line.push_str(&text),
            }
            line.extend(std::iter::repeat_n(' ', padding));
            left = left.saturating_sub(shown.max(width));
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// The text, cut to so many characters, with a sign where something is missing.
fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text,
        Some(_) if most == 0 => String::new(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// The colour of a word that says how something went.
fn colour(word: &str) -> Option<&'static str> {
    match word {
        "allow" | "user_allowed" | "Success" | "updated" => Some("32"),
        "deny" | "user_denied" | "timeout" | "Failure" | "error" | "validation_failed" => {
            Some("31")
        }
        "hitl" | "withdrawn" | "warning" | "Cancelled" | "Aborted" => Some("33"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(sort: Sort, body: &str, paint: bool, width: Option<usize>) -> String {
        let mut out = Vec::new();
        let table = Table {
            columns: sort.columns(),
            paint,
            width,
        };
        table.row(body.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_plain_or_painted_and_never_drive_a_terminal() {
        let body = r#"{"time":"T","kind":"decision","decision":"deny","reason":"denied_by_rule","mcp_method":"tools/call","tool_name":"a\u001b[2Jb","path":"/x"}"#;
        let plain = printed(Sort::Decisions, body, false, None);
        assert!(!plain.contains('\x1b'), "{plain:?}");
        assert!(
            plain.contains("  deny      denied_by_rule    a\\u{1b}[2Jb"),
            "{plain}"
        );
        assert!(plain.trim_end().ends_with("/x"), "{plain}");
        let painted = printed(Sort::Decisions, body, true, None);
        assert_eq!(painted.matches('\x1b').count(), 2, "{painted:?}");
        let stripped = painted.replace("\x1b[31m", "").replace("\x1b[0m", "");
        assert_eq!(stripped, plain);
        for width in 0..200 {
            let narrow = printed(Sort::Decisions, body, false, Some(width));
            assert!(narrow.trim_end().chars().count() <= width, "{narrow}");
            let cells = plain.trim_end().chars().take(width.saturating_sub(1));
            assert!(
                narrow.starts_with(cells.collect::<String>().trim_end()),
                "{narrow}"
            );
        }
        assert_eq!(
            printed(Sort::System, "nonsense", true, None),
            "(unreadable)\n"
        );
    }
}
