//! The command line of `lab audit-latency`.

use std::path::PathBuf;

/// Latencies as a journal has them: policy, approval, end to end, upstream
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  durward-lab audit-latency ~/.local/state/durward/journal --exclude approval
  durward-lab audit-latency decisions.jsonl --operations operations.jsonl --by-decision
  durward-lab audit-latency proxies/filesystem-server/audit --date 2026-02

Percentiles are nearest-rank; a dash stands for one of too few values. Exit codes: 0 printed; 1 the log cannot be read, or holds no such decision; 2 wrong usage.")]
pub struct AuditArgs {
    /// A journal directory or one of its segments, or the access proxy's decisions.jsonl or audit directory
    pub(super) file: PathBuf,
    /// The access proxy's operations.jsonl, joined by session and request id [default: the one in its audit directory]
    #[arg(long, value_name = "FILE")]
    pub(super) operations: Option<PathBuf>,
    /// Leave these decisions out
    #[arg(long, value_enum)]
    exclude: Option<ExcludedCalls>,
    /// One table per decision instead of one for all
    #[arg(long)]
    pub(super) by_decision: bool,
    /// Only decisions of this day in UTC, or of the month or year it begins with
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = date)]
    pub(super) date: Option<String>,
    /// A file of job records with submittedAt, startedAt and finishedAt: waiting against running
    #[arg(long, value_name = "FILE")]
    pub(super) jobs: Option<PathBuf>,
    /// Write the JSON document to this file as well
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExcludedCalls {
    /// Those that a person was asked about
    Approval,
}

impl AuditArgs {
    pub(super) fn excludes_approval(&self) -> bool {
        self.exclude == Some(ExcludedCalls::Approval)
    }
}

fn date(text: &str) -> Result<String, String> {
    let shape = "0000-00-00";
    let fits = (4..=shape.len()).contains(&text.len())
        && text.chars().zip(shape.chars()).all(|(c, like)| {
            if like == '0' {
                c.is_ascii_digit()
            } else {
                c == like
            }
        });
    if fits && matches!(text.len(), 4 | 7 | 10) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{text} is not a day, month or year like 2026-11-21, 2026-11 or 2026"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_months_and_years() {
        for text in ["2026", "2026-11", "2026-11-21"] {
            assert_eq!(date(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "20",
            "2026-",
            "2026-1",
            "2026/11",
            "2026-11-211",
            "today",
        ] {
            assert!(date(text).is_err(), "{text}");
        }
    }
}
