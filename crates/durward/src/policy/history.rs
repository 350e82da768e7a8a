//! `durward policy history`, `diff` and `rollback`, and the versions that instances record.

use std::io::Write;
use std::path::{Path, PathBuf};

use admin::AdminError;
use admin::policy::{PolicyHistory, PolicyVersion, VersionChange, VersionRequest};
use clap::Args;
use gate::approval::change::diff::{self, Line};
use gate::policy::{Policy, checksum};

use super::source::{self, PolicySource, Protected};
use super::text::Plain;
use super::{Context, EXIT_DIFFERENT, EXIT_FINE, Failure};
use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::local;
use crate::places::Places;
use admin::atomic::{self, Existing};

pub const HISTORY_HELP: &str = "\
Examples:
  durward policy history                  versions of the configuration's policy, the latest last
  durward policy history policy.json --json
  durward policy show v3                  the rules of a version
  durward policy diff v2 v3               what changed between two versions

A version is recorded when an instance starts with a new text or reloads it. A file that was changed while no instance
ran is recorded at the next start. Versions are snapshots in the state directory, and go on over restarts.";

pub const DIFF_HELP: &str = "\
Examples:
  durward policy diff v2 v3
  durward policy diff v3                  a version and the file as it is now

Exit codes: 0 the texts are equal; 1 they differ; 2 there is no such version.";

pub const ROLLBACK_HELP: &str = "\
Examples:
  durward policy rollback v2

The text of the version is validated and written to the file, byte by byte; it becomes a new version. Running instances
reload it within a second, unless --no-watch was given.";

/// Arguments of `durward policy history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The policy's file [default: the configuration's]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print at most this many versions, the latest
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Print one JSON object for each version
    #[arg(long)]
    json: bool,
}

/// Arguments of `durward policy diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The earlier version
    #[arg(value_name = "A", value_parser = version)]
    from: u64,
    /// The later version [default: the file as it is now]
    #[arg(value_name = "B", value_parser = version)]
    to: Option<u64>,
    /// The policy's file [default: the configuration's]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Arguments of `durward policy rollback`.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// The version that becomes current again
    #[arg(value_name = "VERSION", value_parser = version)]
    number: u64,
    /// The policy's file [default: the configuration's]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Reads the number of a version, as in `v3`.
///
/// # Errors
/// A sentence.
pub fn version(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix('v').unwrap_or(text);
    number
        .parse()
        .map_err(|_| "write a version as v3; durward policy history lists them".to_owned())
}

const COLUMNS: [Column; 4] = [
    Column::new("version", 0, Long::Whole),
    Column::new("recorded", 0, Long::Whole),
    Column::new("change", 10, Long::Whole),
    Column::new("digest", 12, Long::Cut).of_rank(1),
];

pub(super) fn history(
    args: &HistoryArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let source = source_of(args.file.as_deref(), context, err);
    let name = name_of(&source, context.places);
    let versions = PolicyHistory::new(&context.places.paths()).list(&name)?;
    let first = versions.len().saturating_sub(args.limit);
    let versions = versions.get(first..).unwrap_or_default();
    if args.json {
        for version in versions {
            layout::json_line(version, out)?;
        }
        return Ok(EXIT_FINE);
    }
    if versions.is_empty() {
        writeln!(
            out,
            "{name}: no version is recorded yet; a start of durward run or durward serve records the first"
        )?;
        return Ok(EXIT_FINE);
    }
    let row = |version: &PolicyVersion| {
        vec![
            format!("v{}", version.version),
            Plain(&version.time).to_string(),
            version.change.label().to_owned(),
            Plain(&version.digest).to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = versions.iter().map(row).collect();
    let table = Table::of(&COLUMNS, &rows, layout::screen_width(), 0);
    table.heading(out)?;
    for row in &rows {
        table.row(row, out)?;
    }
    Ok(EXIT_FINE)
}

pub(super) fn diff(
    args: &DiffArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let source = source_of(args.file.as_deref(), context, err);
    let name = name_of(&source, context.places);
    let old = text_of(&name, args.from, context.places)?;
    let (new, new_name) = match args.to {
        Some(number) => (
            text_of(&name, number, context.places)?,
            format!("v{number}"),
        ),
        None => {
            let text = source.text(context.places);
            (text.map_err(Failure::Configuration)?, "now".to_owned())
        }
    };
    let lines = diff::lines(&old, &new);
    if lines.is_empty() {
        return Ok(EXIT_FINE);
    }
    writeln!(out, "--- {name}  v{}", args.from)?;
    writeln!(out, "+++ {name}  {new_name}")?;
    for line in lines {
        let (mark, text) = match line {
            Line::At(number) => {
                writeln!(out, "@@ {number} @@")?;
                continue;
            }
            Line::Both(text) => (' ', text),
            Line::Old(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        writeln!(out, "{mark}{}", Plain(text.trim_end_matches(['\r', '\n'])))?;
    }
    Ok(EXIT_DIFFERENT)
}

pub(super) fn rollback(
    args: &RollbackArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let places = context.places;
    let source = source_of(args.file.as_deref(), context, err);
    let Some(file) = source.file() else {
        return Err(Failure::Configuration(format!(
            "the {source} is built in and cannot be rolled back\n  hint: durward policy init writes a policy to a file"
        )));
    };
    let file = places.absolute(file);
    let name = name_of(&source, places);
    let text = text_of(&name, args.number, places)?;
    let shown = format!("v{} of {name}", args.number);
    source::compile(&text, &shown, Some(&file), Protected::AsRun, places)
        .map_err(Failure::Configuration)?;
    atomic::write(&file, text.as_bytes(), Existing::Replace)
        .map_err(|error| Failure::Cannot(format!("cannot write {}: {error}", file.display())))?;
    let request = VersionRequest {
        source: &name,
        digest: &checksum(&text),
        change: VersionChange::RolledBack,
        always: true,
        at_least: 1,
        now_ms: local::now_ms(),
    };
    let history = PolicyHistory::new(&places.paths());
    let recorded = history.record(request, &|| Ok(text.clone()))?.version;
    writeln!(
        out,
        "{name}: v{} has the text of v{}; running instances reload it",
        recorded.version, args.number
    )?;
    Ok(EXIT_FINE)
}

/// Loads a version of the configured policy.
pub(super) fn load(
    number: u64,
    context: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Policy, Failure> {
    let source = source_of(None, context, err);
    let name = name_of(&source, context.places);
    let text = text_of(&name, number, context.places)?;
    let shown = format!("v{number} of {name}");
    let file = source.file();
    source::compile(&text, &shown, file, Protected::AsRun, context.places)
        .map_err(Failure::Configuration)
}

fn source_of(file: Option<&Path>, context: &Context<'_>, err: &mut dyn Write) -> PolicySource {
    match file {
        Some(file) => PolicySource::File(file.to_path_buf()),
        None => source::configured(None, context, err),
    }
}

fn text_of(name: &str, number: u64, places: &Places) -> Result<String, AdminError> {
    let history = PolicyHistory::new(&places.paths());
    history.text(&history.find(name, number)?)
}

/// Returns the name of a source in the history.
fn name_of(source: &PolicySource, places: &Places) -> String {
    match source.file() {
        Some(file) => places.absolute(file).display().to_string(),
        None => source.label(),
    }
}

/// Message of the record of a start that found another text than the one that was last in force.
pub const CHANGED_WHILE_STOPPED: &str = "the policy was changed while no instance ran";

/// Number of a version that an instance puts in force, and of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartVersion {
    /// Number, from 1.
    pub number: u64,
    /// Number of the version before, if the text was changed while no instance ran.
    pub changed_from: Option<u64>,
}

impl StartVersion {
    /// Returns the version as the journal names it.
    pub fn label(self) -> String {
        format!("v{}", self.number)
    }
}

/// Records the policy of an instance that starts. Without a history its version is 1.
pub fn record_start(source: &PolicySource, policy: &Policy, places: &Places) -> StartVersion {
    let request = VersionRequest {
        source: &name_of(source, places),
        digest: policy.text_digest(),
        change: VersionChange::ManualChange,
        always: false,
        at_least: 1,
        now_ms: local::now_ms(),
    };
    record(source, places, request).unwrap_or(StartVersion {
        number: 1,
        changed_from: None,
    })
}

/// Records a reloaded policy; `latest` is the version in force. Without a history the next number is its version.
pub fn record_reload(
    source: &PolicySource,
    policy: &Policy,
    places: &Places,
    latest: u64,
    always: bool,
) -> u64 {
    let request = VersionRequest {
        source: &name_of(source, places),
        digest: policy.text_digest(),
        change: VersionChange::Reloaded,
        always,
        at_least: latest + 1,
        now_ms: local::now_ms(),
    };
    record(source, places, request).map_or(latest + 1, |recorded| recorded.number)
}

fn record(
    source: &PolicySource,
    places: &Places,
    request: VersionRequest<'_>,
) -> Option<StartVersion> {
    let text = || source.text(places).map_err(AdminError::InUse);
    match PolicyHistory::new(&places.paths()).record(request, &text) {
        Ok(recorded) => Some(StartVersion {
            number: recorded.version.version,
            changed_from: recorded.before.map(|before| before.version),
        }),
        Err(error) => {
            tracing::warn!("the version of the policy is not recorded: {error}");
            None
        }
    }
}
