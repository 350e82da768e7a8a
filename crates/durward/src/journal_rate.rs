//! `durward __journal-rate`: how many records a second the journal takes from many writers at once.
//!
//! For `durward lab standard`, which measures from outside: over any front the calls themselves would be
//! the bound, not the journal. It writes a journal of its own and never touches another.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::Instant;

use clap::Args;
use gate::effect::Effect;
use gate::journal::{
    Decision, Journal, MatchedRule, Micros, OpId, Operation, Record, ResponseSummary, Stages,
    Status,
};
use serde_json::json;

use crate::config::Settings;
use crate::failure::EXIT_JOURNAL;
use crate::flags::{Sync, sync_policy};
use crate::instance::open_journal;
use crate::local;
use crate::places::Places;

/// Most threads that write at once.
const WRITERS_MAX: u64 = 256;
/// Most records of one run, 1 GiB or so.
const RECORDS_MAX: u64 = 2_000_000;

/// Arguments of `durward __journal-rate`.
#[derive(Debug, Args)]
pub struct RateArgs {
    /// Where the journal is made; nothing may be there yet
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Threads that write at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=WRITERS_MAX))]
    writers: u64,
    /// Records of all threads together
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=RECORDS_MAX))]
    records: u64,
    /// When records are forced to the disk
    #[arg(long, value_enum, default_value_t = Sync::Interval)]
    sync: Sync,
}

/// Writes, and prints one JSON object: `records`, `writers`, `seconds`, `per_second`.
pub fn run(args: &RateArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match measure(args, places) {
        Ok(found) => {
            // Whoever closed the pipe does not want to know.
            let _ = writeln!(out, "{found}");
            0
        }
        Err(message) => {
            let _ = writeln!(err, "error: {message}");
            EXIT_JOURNAL
        }
    }
}

fn measure(args: &RateArgs, places: &Places) -> Result<serde_json::Value, String> {
    let made = std::fs::create_dir(&args.directory);
    made.map_err(|error| format!("cannot make {}: {error}", args.directory.display()))?;
    let places = Places {
        state: places.absolute(&args.directory),
        ..places.clone()
    };
    let sync = sync_policy(Some(args.sync), &Settings::default());
    let opened = open_journal(sync, &places, [7; 16]).map_err(|failure| failure.message)?;
    let journal = opened.journal;
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
    let closed = journal.close(local::now_ms(), "measured");
    closed.map_err(|error| error.to_string())?;
    let records = each.saturating_mul(args.writers);
    Ok(json!({
        "writers": args.writers,
        "records": records,
        "seconds": seconds,
        "per_second": records as f64 / seconds,
    }))
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
            journal.append(local::now_ms(), &Record::Decision(&decision(op, &id)))
        } else {
            journal.append(local::now_ms(), &Record::Operation(&operation(op, &id)))
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
