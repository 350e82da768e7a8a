//! `durward-journal-rate`: how many records a second the journal takes from many writers at once.
//!
//! For `durward-lab standard`, which measures from outside: over any front the calls themselves would be
//! the bound, not the journal. It writes a journal of its own and never touches another.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use gate::effect::Effect;
use gate::journal::{
    Decision, Journal, JournalOptions, Keys, MatchedRule, Micros, OpId, Operation, Record,
    ResponseSummary, Stages, Status, SyncPolicy,
};
use serde_json::json;
use state::directory::create_private;

/// Most threads that write at once.
const WRITERS_MAX: u64 = 256;
/// Most records of one run, 1 GiB or so.
const RECORDS_MAX: u64 = 2_000_000;

/// Arguments of `durward-journal-rate`.
#[derive(Debug, Args)]
pub struct RateArgs {
    /// Where the journal is made; nothing may be there yet
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Threads that write at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=WRITERS_MAX))]
    pub writers: u64,
    /// Records of all threads together
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=RECORDS_MAX))]
    pub records: u64,
    /// When records are forced to the disk
    #[arg(long, value_enum, default_value_t = SyncMode::Interval)]
    pub sync: SyncMode,
}

/// When records are forced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SyncMode {
    /// Once a second
    Interval,
    /// Before each append returns
    Every,
    /// Left to the operating system
    Never,
}

/// Writes a journal into `directory/journal` with keys in `directory/keys`, as a state directory has them; returns `records`,
/// `writers`, `seconds` and `per_second`.
///
/// # Errors
/// When the directory exists, or the journal cannot be written.
pub fn measure(args: &RateArgs) -> Result<serde_json::Value, String> {
    let made = std::fs::create_dir(&args.directory);
    made.map_err(|error| format!("cannot make {}: {error}", args.directory.display()))?;
    create_private(&args.directory).map_err(|error| error.to_string())?;
    let journal = open_journal(args)?;
    let (start, each) = (
        Barrier::new(threads(args)),
        args.records.div_ceil(args.writers),
    );
    let done: Result<Vec<(Instant, Instant)>, String> = std::thread::scope(|scope| {
        let writer = |number| {
            let (journal, start) = (&journal, &start);
            scope.spawn(move || write(journal, number, each, start))
        };
        let started: Vec<_> = (0..args.writers).map(writer).collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended
            .map(|done| done.map_err(|_| "a writer panicked".to_owned())?)
            .collect()
    });
    let done = done?;
    let first = done.iter().map(|(begun, _)| *begun).min();
    let last = done.iter().map(|(_, ended)| *ended).max();
    let elapsed = first
        .zip(last)
        .map(|(first, last)| last.duration_since(first));
    let seconds = elapsed.unwrap_or_default().as_secs_f64().max(1e-9);
    let closed = journal.close(now_ms(), "measured");
    closed.map_err(|error| error.to_string())?;
    let records = each.saturating_mul(args.writers);
    Ok(json!({
        "writers": args.writers,
        "records": records,
        "seconds": seconds,
        "per_second": records as f64 / seconds,
    }))
}

fn open_journal(args: &RateArgs) -> Result<Journal, String> {
    let mut failed = None;
    let mut random = |bytes: &mut [u8]| {
        failed = fill(bytes).err().or(failed.take());
    };
    let sync = match args.sync {
        SyncMode::Interval => SyncPolicy::Interval { interval_ms: 1_000 },
        SyncMode::Every => SyncPolicy::Every,
        SyncMode::Never => SyncPolicy::Never,
    };
    let options = JournalOptions {
        sync,
        ..JournalOptions::retaining(None)
    };
    let keys =
        Keys::open(&args.directory.join("keys"), &mut random).map_err(|error| error.to_string())?;
    let journal = args.directory.join("journal");
    let opened = Journal::open(&journal, &keys, options, [7; 16], now_ms(), &mut random);
    let opened = opened.map_err(|error| error.to_string())?;
    match failed {
        Some(error) => Err(format!("no randomness: {error}")),
        None => Ok(opened),
    }
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(bytes)
}

/// Returns milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

fn threads(args: &RateArgs) -> usize {
    usize::try_from(args.writers).unwrap_or(usize::MAX)
}

/// One writer: a decision and an operation in turns, as calls leave them.
fn write(
    journal: &Journal,
    number: u64,
    records: u64,
    start: &Barrier,
) -> Result<(Instant, Instant), String> {
    start.wait();
    let begun = Instant::now();
    for record in 0..records {
        let call = record / 2;
        let op = OpId((u128::from(number) << 64) | u128::from(call));
        let id = call.to_string();
        let appended = if record % 2 == 0 {
            journal.append(now_ms(), &Record::Decision(&decision(op, &id)))
        } else {
            journal.append(now_ms(), &Record::Operation(&operation(op, &id)))
        };
        appended.map_err(|error| error.to_string())?;
    }
    Ok((begun, Instant::now()))
}

fn decision<'a>(op: OpId, id: &'a str) -> Decision<'a> {
    const PATH: &str = "/tmp/work/mcp-acp-test.txt";
    const RULES: &[MatchedRule<'static>] = &[MatchedRule {
        id: "allow-read-tmp",
        effect: Effect::Allow,
    }];
    Decision {
        op,
        decision: Effect::Allow,
        final_rule: Some("allow-read-tmp"),
        matched_rules: RULES,
        mcp_method: Some("tools/call"),
        resource_type: Some("tool"),
        tool_name: Some("read_file"),
        path: Some(PATH),
        paths: &[PATH],
        subject_id: Some("user"),
        backend_id: Some("files"),
        side_effects: &["fs_read"],
        operations: &["read"],
        direction: Some("to_server"),
        policy_version: Some("v1"),
        policy_eval_us: Some(Micros::from_nanos(1_800)),
        request_id: Some(id),
        session_id: Some("measured"),
        ..Decision::default()
    }
}

fn operation<'a>(op: OpId, id: &'a str) -> Operation<'a> {
    Operation {
        op,
        status: Status::Success,
        request_id: Some(id),
        session_id: Some("measured"),
        method: Some("tools/call"),
        tool_name: Some("read_file"),
        backend_id: Some("files"),
        transport: Some(gate::Transport::Stdio),
        response_summary: Some(ResponseSummary {
            size_bytes: 312,
            body_hash: None,
        }),
        duration_us: Micros::from_nanos(30_000),
        stages: Stages {
            edge_us: Micros::from_nanos(5_500),
            policy_us: Micros::from_nanos(1_800),
            journal_us: Micros::from_nanos(5_300),
            upstream_us: Micros::from_nanos(17_000),
            ..Stages::default()
        },
        ..Operation::default()
    }
}
