//! `durward logs`: the journal as a person reads it, one sort of records at a time. The reading is that
//! of `durward audit`.

mod outcomes;
mod rows;

use std::io::Write;

use clap::{Args, Subcommand, ValueEnum};
use gate::journal::audit::{Filter, Kind, each};
use serde_json::{Map, Value, json};

use crate::audit::show::{self, Asked, Plain};
use crate::audit::{self, Conditions, Context, Failure, SOUND, Since};
use crate::layout;
use crate::layout::table::{Column, Long, Table};
use rows::{AUTH, DECISIONS, HISTORY, OPERATIONS, REFUSED, RUN, Rows, SYSTEM, Shown};

pub const HELP: &str = "\
Examples:
  durward logs                                     the latest 50 decisions and their results
  durward logs --refused                           what was refused lately, and why
  durward logs --refused --caller ci --server files
  durward logs --type operations --since 1h        what became of the calls of the last hour
  durward logs --type policy-history --json
  durward logs --run nightly-7                     what one run of an agent did, in order
  durward logs tail                                decisions as they come; end with Ctrl-C
  durward logs list                                how many records of each kind there are

Records are in the order of their times, the latest last. A terminal that is too narrow for all columns shows the most
important ones; --json has everything. `durward audit show` prints whole records; `durward audit verify` checks that
the journal has not been altered.";

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
        /// Print one JSON array
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

    /// The columns behind the time, each with the members of which the first there is shown.
    fn columns(self) -> &'static [Shown] {
        match self {
            Self::Decisions => DECISIONS,
            Self::Operations => OPERATIONS,
            Self::Auth => AUTH,
            Self::System => SYSTEM,
            Self::ConfigHistory | Self::PolicyHistory => HISTORY,
        }
    }
}

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

/// The columns of `logs list`.
const KINDS: [Column; 4] = [
    Column::new("type", 0, Long::Whole),
    Column::new("records", 0, Long::Whole),
    Column::new("latest", 0, Long::Whole),
    Column::new("what it holds", 12, Long::Wrap).of_rank(1),
];

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
        let rows: Vec<Vec<String>> = rows
            .map(|(sort, (count, latest))| {
                let latest = if latest.is_empty() { "-" } else { latest };
                let latest = Plain(latest).to_string();
                vec![
                    sort.name().into(),
                    format!("{count:>7}"),
                    latest,
                    sort.about().into(),
                ]
            })
            .collect();
        let table = Table::of(&KINDS, &rows, layout::screen_width(), 0);
        table.heading(out)?;
        for row in &rows {
            table.row(row, out)?;
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
            REFUSED,
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

/// Whether the columns show what became of calls that the records themselves do not tell.
fn shows_outcomes(columns: &[Shown]) -> bool {
    std::ptr::eq(columns, DECISIONS)
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
    print(&asked, RUN, args.json, out, err)
}

/// Prints the records asked for, as they were written or as a table.
fn print(
    asked: &Asked<'_>,
    columns: &'static [Shown],
    json: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let mut rows = None;
    let mut printed = 0;
    let mut each = |bodies: &[Vec<u8>], out: &mut dyn Write| -> Result<(), Failure> {
        printed += bodies.len();
        if json {
            for body in bodies {
                out.write_all(body)?;
                writeln!(out)?;
            }
            return Ok(());
        }
        if bodies.is_empty() {
            return Ok(());
        }
        let paint = layout::is_painted();
        let rows = match &mut rows {
            Some(rows) => rows,
            None => {
                let width = layout::screen_width();
                let begun = Rows::of(columns, bodies, (width, asked.follow), paint);
                begun.heading(out)?;
                rows.insert(begun)
            }
        };
        for body in bodies {
            rows.print(body, out)?;
        }
        Ok(())
    };
    let mut each = |bodies: &[Vec<u8>], out: &mut dyn Write| -> Result<(), Failure> {
        if json || asked.follow || !shows_outcomes(columns) {
            return each(bodies, out);
        }
        each(&outcomes::with_outcomes(asked.directory, bodies), out)
    };
    let code = show::stream(asked, &mut each, out, err)?;
    if printed == 0 && !json {
        writeln!(
            err,
            "no matching records; `durward logs list` shows what there is"
        )?;
    }
    Ok(code)
}
