//! `durward models spend`: tokens and cost of model calls, as a table, CSV or JSON.

use std::io::{self, Write};

use admin::calls::Since;
use admin::spend::{self, SpendDimension, SpendQuery, SpendReport, SpendSums};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::audit::show::Plain;
use crate::audit::{self, Context, Failure, SOUND};
use crate::layout;
use crate::layout::money::dollars;
use crate::layout::table::{Column, Long, Table};
use crate::plural::count;

pub const HELP: &str = "\
Examples:
  durward models spend                                by model, over the last 30 days
  durward models spend --by team,model --since 7d
  durward models spend --by day --caller user:ada
  durward models spend --by month,provider --since 2026-01-01 --csv > spend.csv
  durward models spend --by run --since 1d --json

The figures come from the journal, each line of which is checked. A call belongs to the time at which it ended. Cost needs
prices: `durward models explain MODEL` prints the price of a model, `durward help config` describes models.prices.

Exit codes: 0 printed; 2 there is no journal, it cannot be read, or it was altered; 16 the configuration cannot be used.";

/// Days that a report covers if no time is given.
const DEFAULT_SINCE: &str = "30d";

#[derive(Debug, Args)]
pub struct SpendArgs {
    /// Columns to group by, separated by commas: caller, team, alias, model, provider, run, agent, client, day, month
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', default_value = "model", hide_possible_values = true,
          value_parser = dimension_parser())]
    by: Vec<SpendDimension>,
    /// Only calls that ended within the last 1h, 7d and so on, or since a UTC time such as 2026-11-01
    #[arg(long, value_name = "TIME", value_parser = audit::since, default_value = DEFAULT_SINCE)]
    since: Since,
    /// Only calls that ended before this UTC time, or before the last 1h, 7d and so on
    #[arg(long, value_name = "TIME", value_parser = audit::since)]
    until: Option<Since>,
    /// Only calls of this caller, such as user:ada or key:ci
    #[arg(long, value_name = "CALLER")]
    caller: Option<String>,
    /// Only calls of callers of this team
    #[arg(long, value_name = "TEAM")]
    team: Option<String>,
    /// Only calls of this model, by its provider's name
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only calls that this provider answered
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Only calls of this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Print comma-separated values with a heading
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn dimension_parser() -> impl TypedValueParser<Value = SpendDimension> {
    PossibleValuesParser::new(SpendDimension::ALL.map(SpendDimension::name))
        .try_map(|name| SpendDimension::parse(&name).ok_or("no column"))
}

/// Runs the command; returns the exit code.
pub fn run(args: &SpendArgs, context: &Context, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    audit::ended(print(args, context, out, err), err)
}

fn print(
    args: &SpendArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let report = spend::report(&context.journal, &args.query(context.now_ms))?;
    if args.json {
        layout::json(&report, out)?;
    } else if args.csv {
        print_csv(&report, out)?;
    } else if report.rows.is_empty() {
        writeln!(out, "No model call of this choice has ended in this time.")?;
    } else {
        print_table(&report, out)?;
    }
    if report.total.unpriced > 0 && !args.json && !args.csv {
        writeln!(
            err,
            "note: the cost of {} is unknown: the model has no price\n  hint: add it under models.prices in durward.yaml",
            count(report.total.unpriced, "call")
        )?;
    }
    Ok(SOUND)
}

impl SpendArgs {
    fn query(&self, now_ms: i64) -> SpendQuery {
        let mut by: Vec<SpendDimension> = Vec::new();
        for dimension in &self.by {
            if !by.contains(dimension) {
                by.push(*dimension);
            }
        }
        let only = [
            (SpendDimension::Caller, &self.caller),
            (SpendDimension::Team, &self.team),
            (SpendDimension::Model, &self.model),
            (SpendDimension::Provider, &self.provider),
            (SpendDimension::Run, &self.run),
        ];
        let only = only.into_iter().filter_map(|(dimension, value)| {
            let value = value.clone()?;
            Some((dimension, value))
        });
        SpendQuery {
            by,
            since_ms: Some(self.since.at_ms(now_ms)),
            until_ms: self.until.map(|until| until.at_ms(now_ms)),
            only: only.collect(),
        }
    }
}

/// Columns of sums. A narrow terminal leaves out those of the highest rank first.
const SUMS: [Column; 7] = [
    Column::new("calls", 0, Long::Whole),
    Column::new("failed", 0, Long::Whole).of_rank(3),
    Column::new("input", 0, Long::Whole),
    Column::new("output", 0, Long::Whole),
    Column::new("cached", 0, Long::Whole).of_rank(2),
    Column::new("reasoning", 0, Long::Whole).of_rank(1),
    Column::new("cost $", 0, Long::Whole),
];

fn print_table(report: &SpendReport, out: &mut dyn Write) -> io::Result<()> {
    let dimensions = report.by.iter();
    let dimensions = dimensions.map(|by| Column::new(by.name(), 8, Long::Cut));
    let columns: Vec<Column> = dimensions.chain(SUMS).collect();
    let row = |group: Vec<String>, sums: &SpendSums| {
        let mut row = group;
        row.extend(sums_of(sums));
        row
    };
    let mut rows: Vec<Vec<String>> = report
        .rows
        .iter()
        .map(|of| {
            let group = report.by.iter().map(|by| of.group.get(by));
            let group = group.map(|value| match value {
                Some(Some(value)) => Plain(value).to_string(),
                _ => "-".to_owned(),
            });
            row(group.collect(), &of.sums)
        })
        .collect();
    if report.rows.len() > 1 && !report.by.is_empty() {
        let mut group = vec![String::new(); report.by.len()];
        if let Some(first) = group.first_mut() {
            "total".clone_into(first);
        }
        rows.push(row(group, &report.total));
    }
    align_right(&mut rows, report.by.len());
    let table = Table::of(&columns, &rows, layout::screen_width(), 0);
    table.heading(out)?;
    rows.iter().try_for_each(|row| table.row(row, out))
}

/// Pads the numbers of each column, from column `first` on, to one width.
fn align_right(rows: &mut [Vec<String>], first: usize) {
    for (at, column) in SUMS.iter().enumerate() {
        let at = first + at;
        let cells = rows.iter().filter_map(|row| row.get(at));
        let width = cells.map(String::len).max().unwrap_or(0);
        let width = width.max(column.heading.len());
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            *cell = format!("{cell:>width$}");
        }
    }
}

fn sums_of(sums: &SpendSums) -> [String; SUMS.len()] {
    let is_priced = sums.cost_micros > 0 || sums.unpriced == 0;
    [
        sums.calls.to_string(),
        sums.failed.to_string(),
        sums.input_tokens.to_string(),
        sums.output_tokens.to_string(),
        sums.cached_tokens.to_string(),
        sums.reasoning_tokens.to_string(),
        if is_priced {
            dollars(sums.cost_micros)
        } else {
            "-".to_owned()
        },
    ]
}

fn print_csv(report: &SpendReport, out: &mut dyn Write) -> io::Result<()> {
    const SUMS: [&str; 9] = [
        "calls",
        "failed",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "counted_tokens",
        "cost_micros",
        "unpriced",
    ];
    let names = report.by.iter().map(|by| by.name()).chain(SUMS);
    writeln!(out, "{}", names.collect::<Vec<_>>().join(","))?;
    for row in &report.rows {
        let group = report.by.iter().map(|by| {
            let value = row.group.get(by).and_then(Option::as_deref);
            csv_field(value.unwrap_or_default())
        });
        let sums = [
            row.sums.calls,
            row.sums.failed,
            row.sums.input_tokens,
            row.sums.output_tokens,
            row.sums.cached_tokens,
            row.sums.reasoning_tokens,
            row.sums.counted_tokens,
            row.sums.cost_micros,
            row.sums.unpriced,
        ];
        let fields = group.chain(sums.iter().map(u64::to_string));
        writeln!(out, "{}", fields.collect::<Vec<_>>().join(","))?;
    }
    Ok(())
}

/// Returns a field of RFC 4180. A text that a spreadsheet would take for a formula begins with an apostrophe.
fn csv_field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_no_formulas() {
        for (text, expect) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("-2,3", "\"'-2,3\""),
            ("two\nlines", "\"two\nlines\""),
            ("", ""),
        ] {
            assert_eq!(csv_field(text), expect);
        }
    }
}
