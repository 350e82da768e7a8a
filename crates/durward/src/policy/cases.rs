//! `durward policy test`

use std::io::{self, Write};
use std::path::PathBuf;

use admin::policy::{CallEnvironment, CaseReport, parse_cases};
use clap::Args;

use super::source::{self, PolicyFile, Protected};
use super::text::Plain;
use super::{Context, EXIT_DIFFERENT, EXIT_FINE, Failure};
use crate::layout;
use crate::local::LocalView;

pub const HELP: &str = "\
Examples:
  durward policy test cases.json --policy policy.json

FILE is a JSON list of calls with the expected decision:
  [
    {\"tool\": \"read_file\",  \"args\": {\"path\": \"/tmp/a.txt\"}, \"expect\": \"allow\"},
    {\"tool\": \"write_file\", \"path\": \"/tmp/a.pem\", \"expect\": \"deny\", \"rule\": \"block-pem\"},
    {\"method\": \"resources/read\", \"uri\": \"file:///etc/hosts\", \"expect\": \"deny\", \"note\": \"outside\"}
  ]
Further keys of a case: backend, subject. Every failure is printed.

Exit codes: 0 all as expected; 1 at least one is not; 16 the policy or the file cannot be used.";

/// Arguments of `durward policy test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The cases, as JSON
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    policy: PolicyFile,
    /// Print one JSON object per case
    #[arg(long)]
    json: bool,
}

pub fn run(
    args: &TestArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let file = args.policy.policy.as_deref();
    let policy = source::load(file, None, Protected::AsRun, context, err)?;
    let bad = |why: String| Failure::Configuration(format!("{}: {why}", args.file.display()));
    let text = source::text(&args.file).map_err(Failure::Configuration)?;
    let cases = parse_cases(&text).map_err(bad)?;
    let view = LocalView::new(context.places);
    let environment = CallEnvironment {
        view: &view,
        user: &context.places.user,
        builtin: &|server| context.builtin(server),
    };
    let mut failed = 0_usize;
    for (at, case) in cases.iter().enumerate() {
        let report = case.judge(at, &policy, &environment);
        failed += usize::from(!report.passed);
        if args.json {
            layout::json_line(&report, out)?;
        } else if !report.passed {
            print(&report, out)?;
        }
    }
    let all = cases.len();
    if !args.json {
        writeln!(
            out,
            "{all} cases: {} as expected, {failed} not",
            all - failed
        )?;
    }
    Ok(match failed {
        0 => EXIT_FINE,
        _ => EXIT_DIFFERENT,
    })
}

fn print(report: &CaseReport, out: &mut dyn Write) -> io::Result<()> {
    let note = report.note.as_deref().map(|note| format!(" ({note})"));
    writeln!(
        out,
        "case {}{}: {}",
        report.case,
        Plain(&note.unwrap_or_default()),
        Plain(&report.call)
    )?;
    let rule = report.expect_rule.as_deref();
    let rule = rule.map(|rule| format!(" by rule \"{rule}\""));
    let rule = rule.unwrap_or_default();
    writeln!(out, "  expected {}{}", report.expect, Plain(&rule))?;
    writeln!(out, "  is       {}", Plain(&report.because))
}
