//! `durward logs`: the journal as a person reads it, one sort of records at a time. The reading is that
//! of `durward audit`.

mod rows;

use std::io::Write;

use admin::calls::{self, CallQuery, Record, RecordKind, Since};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use gate::journal::audit::Filter;

use crate::audit::show::{self, Plain, RecordRequest};
use crate::audit::{self, Conditions, Context, Failure, SOUND};
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
    #[arg(long = "type", value_parser = kind_parser(), value_name = "KIND")]
    kind: Option<RecordKind>,
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
    /// Returns the filter, tightened by the conditions and the time.
    fn filter(&self, filter: Filter, context: &Context) -> Filter {
        self.conditions.tighten(Filter {
            since_ms: self.since.map(|since| since.at_ms(context.now_ms)),
            ..filter
        })
    }

    /// Whether all of one run is asked for, calls and what became of them.
    fn is_one_run(&self) -> bool {
        self.conditions.has_run() && self.kind.is_none() && !self.conditions.refused
    }
}

/// Reads a kind of records; help lists the kinds.
fn kind_parser() -> impl TypedValueParser<Value = RecordKind> {
    let values = RecordKind::ALL.map(|kind| {
        let summary = kind.summary();
        let mut letters = summary.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        let help: String = first.into_iter().chain(letters).collect();
        PossibleValue::new(kind.name()).help(help)
    });
    PossibleValuesParser::new(values).try_map(|name| RecordKind::parse(&name).ok_or("no kind"))
}

/// Returns the columns behind the time, each with the members of which the first there is shown.
fn columns(kind: RecordKind) -> &'static [Shown] {
    match kind {
        RecordKind::Decisions => DECISIONS,
        RecordKind::Operations => OPERATIONS,
        RecordKind::Auth => AUTH,
        RecordKind::System => SYSTEM,
        RecordKind::ConfigHistory | RecordKind::PolicyHistory => HISTORY,
    }
}

/// Runs the command; gives the exit code.
pub fn run(args: &LogsArgs, context: &Context, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    if let Err(error) = calls::check_journal(&context.journal) {
        return audit::ended(Err(error.into()), err);
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
    let counts = calls::count_kinds(&context.journal)?;
    if json {
        layout::json(&counts.kinds, out)?;
    } else {
        let rows: Vec<Vec<String>> = counts
            .kinds
            .iter()
            .map(|count| {
                let latest = match count.latest.as_str() {
                    "" => "-",
                    latest => latest,
                };
                vec![
                    count.kind.name().into(),
                    format!("{:>7}", count.records),
                    Plain(latest).to_string(),
                    count.kind.summary().into(),
                ]
            })
            .collect();
        let table = Table::of(&KINDS, &rows, layout::screen_width(), 0);
        table.heading(out)?;
        for row in &rows {
            table.row(row, out)?;
        }
    }
    show::warn(counts.skipped, err)?;
    Ok(SOUND)
}

fn select(
    args: &SelectArgs,
    context: &Context,
    follow: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let (filter, columns) = match args.kind {
        None if args.conditions.refused => (Filter::default(), REFUSED),
        kind => {
            let kind = kind.unwrap_or(RecordKind::Decisions);
            (kind.filter(), columns(kind))
        }
    };
    // Outcomes are in the table alone: JSON is each record as it was written.
    let with_outcomes = !args.json && !follow && std::ptr::eq(columns, DECISIONS);
    let request = RecordRequest {
        directory: &context.journal,
        query: CallQuery {
            filter: args.filter(filter, context),
            limit: show::page_limit(args.limit),
            with_outcomes,
            ..CallQuery::default()
        },
        follow,
    };
    print(&request, columns, args.json, out, err)
}

fn run_of(
    args: &SelectArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let request = RecordRequest {
        directory: &context.journal,
        query: CallQuery {
            filter: args.filter(Filter::default(), context),
            limit: calls::PAGE_RECORDS_MAX,
            ..CallQuery::default()
        },
        follow: false,
    };
    print(&request, RUN, args.json, out, err)
}

/// Prints the records asked for, as they were written or as a table.
fn print(
    request: &RecordRequest<'_>,
    columns: &'static [Shown],
    json: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let mut rows = None;
    let mut printed = 0;
    let mut each = |records: &[Record], out: &mut dyn Write| -> Result<(), Failure> {
        printed += records.len();
        if json {
            for record in records {
                out.write_all(record.body())?;
                writeln!(out)?;
            }
            return Ok(());
        }
        if records.is_empty() {
            return Ok(());
        }
        let paint = layout::is_painted();
        let rows = match &mut rows {
            Some(rows) => rows,
            None => {
                let width = layout::screen_width();
                let begun = Rows::of(columns, records, (width, request.follow), paint);
                begun.heading(out)?;
                rows.insert(begun)
            }
        };
        for record in records {
            rows.print(record, out)?;
        }
        Ok(())
    };
    let code = show::stream(request, &mut each, out, err)?;
    if printed == 0 && !json {
        writeln!(
            err,
            "no matching records; `durward logs list` shows what there is"
        )?;
    }
    Ok(code)
}
