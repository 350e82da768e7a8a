//! How long an append takes, beside a bare write of the same bytes to the same disk.
//!
//! `cargo run --release -p gate --example journal_speed [DIRECTORY]` (default: the temporary directory). Prints medians and
//! percentiles of single appends, and rates of many writers; every figure is measured in this run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use gate::Transport;
use gate::effect::Effect;
use gate::journal::{
    Decision, Journal, JournalOptions, Keys, MatchedRule, Micros, OpId, Operation, Record,
    ResponseSummary, Stages, Status, SyncPolicy,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const APPENDS: usize = 200_000;
const ROUNDS: usize = 3;
const WRITERS: usize = 16;
const APPENDS_EACH: usize = 25_000;
const SYNCED: usize = 300;
const NOW_MS: i64 = 1_795_232_289_123;

fn main() -> Outcome<()> {
    let mut out = io::stdout().lock();
    let base = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = base.join(format!("journal-speed-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let result = measure(&directory, &mut out);
    fs::remove_dir_all(&directory)?;
    result
}

fn measure(directory: &Path, out: &mut dyn Write) -> Outcome<()> {
    let line = a_line(directory)?;
    writeln!(
        out,
        "a decision with its line is {} bytes; {APPENDS} appends, {ROUNDS} interleaved rounds",
        line.len()
    )?;
    writeln!(
        out,
        "{:<44}{:>10}{:>10}{:>10}",
        "one writer, µs an append", "p50", "p99", "mean"
    )?;
    for round in 0..ROUNDS {
        let at = directory.join(format!("round-{round}"));
        fs::create_dir_all(&at)?;
        row(out, "bare write(2)", bare(&at.join("bare"), &line)?)?;
        row(
            out,
            "decision, sync: never",
            single(&at.join("never"), SyncPolicy::Never, false)?,
        )?;
        row(
            out,
            "decision, sync: interval",
            single(&at.join("interval"), SyncPolicy::default(), false)?,
        )?;
        row(
            out,
            "operation, sync: interval",
            single(&at.join("operation"), SyncPolicy::default(), true)?,
        )?;
    }
    writeln!(
        out,
        "{:<44}{:>10}",
        format!("{WRITERS} writers, appends a second"),
        "rate"
    )?;
    for round in 0..ROUNDS {
        let rate = many(
            &directory.join(format!("many-{round}")),
            SyncPolicy::default(),
            WRITERS,
            APPENDS_EACH,
        )?;
        writeln!(out, "{:<44}{rate:>10.0}", "sync: interval")?;
    }
    // What was written before must not be synced on these measurements' time.
    fs::remove_dir_all(directory)?;
    fs::create_dir_all(directory)?;
    on_the_disk(directory, &line, out)
}

/// What waiting for the disk costs, beside the disk's own price.
fn on_the_disk(directory: &Path, line: &[u8], out: &mut dyn Write) -> Outcome<()> {
    writeln!(
        out,
        "{:<44}{:>10}{:>10}{:>10}",
        "on the disk, µs", "p50", "p99", "mean"
    )?;
    row(
        out,
        "write(2) + fdatasync",
        synced_bare(&directory.join("synced"), line)?,
    )?;
    row(
        out,
        "decision, sync: every",
        single_of(&directory.join("every"), SyncPolicy::Every, false, SYNCED)?,
    )?;
    let rate = many(
        &directory.join("every-many"),
        SyncPolicy::Every,
        WRITERS,
        SYNCED,
    )?;
    writeln!(
        out,
        "{:<44}{rate:>10.0} a second",
        format!("{WRITERS} writers, sync: every")
    )?;
    Ok(())
}

fn row(out: &mut dyn Write, name: &str, mut times: Vec<Duration>) -> Outcome<()> {
    times.sort_unstable();
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    let at = |share: usize| {
        times
            .get(times.len() * share / 100)
            .copied()
            .map_or(f64::NAN, micros)
    };
    let mean = micros(times.iter().sum()) / times.len() as f64;
    writeln!(
        out,
        "{name:<44}{:>10.2}{:>10.2}{mean:>10.2}",
        at(50),
        at(99)
    )?;
    Ok(())
}

fn open(directory: &Path, sync: SyncPolicy) -> Outcome<Journal> {
    let mut seed = 1_u8;
    let mut random = |bytes: &mut [u8]| {
        for byte in bytes {
            seed = seed.wrapping_mul(73).wrapping_add(41);
            *byte = seed;
        }
    };
    let keys = Keys::ephemeral(&mut random);
    let options = JournalOptions {
        sync,
        ..JournalOptions::default()
    };
    Ok(Journal::open(
        directory,
        &keys,
        options,
        [1; 16],
        NOW_MS,
        &mut random,
    )?)
}

fn a_line(directory: &Path) -> Outcome<Vec<u8>> {
    let at = directory.join("sample");
    let journal = open(&at, SyncPolicy::Never)?;
    journal.append(NOW_MS, &Record::Decision(&decision(1)))?;
    let mut file = fs::read_dir(&at)?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    let segment = file.find(|path| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    let bytes = fs::read(segment.ok_or("no segment")?)?;
    Ok(bytes
        .split_inclusive(|byte| *byte == b'\n')
        .next_back()
        .ok_or("no line")?
        .to_vec())
}

fn decision(op: u128) -> Decision<'static> {
    const RULES: &[MatchedRule<'static>] = &[MatchedRule {
        id: "allow-tmp-reads",
        effect: Effect::Allow,
    }];
    Decision {
        op: OpId(op),
        decision: Effect::Allow,
        final_rule: Some("allow-tmp-reads"),
        matched_rules: RULES,
        mcp_method: Some("tools/call"),
        tool_name: Some("read_file"),
        path: Some("/tmp/project/notes/2026-11-21.md"),
        paths: &["/tmp/project/notes/2026-11-21.md"],
        subject_id: Some("local:robin"),
        backend_id: Some("files"),
        side_effects: &["fs_read"],
        operations: &["read"],
        direction: Some("to_server"),
        policy_version: Some("4"),
        policy_digest: Some("0f343b0931126a20f133d67c2b018a3b"),
        policy_eval_us: Some(Micros::from_nanos(1_234)),
        request_id: Some("4711"),
        session_id: Some("8d6f9c1e4a5b4c7f"),
        ..Decision::default()
    }
}

fn operation(journal: &Journal, op: u128) -> Operation<'static> {
    let micros = Micros::from_nanos;
    let stages = Stages {
        edge_us: micros(1_100),
        identity_us: micros(90),
        limits_us: micros(120),
        policy_us: micros(1_234),
        approval_us: micros(0),
        journal_us: micros(1_800),
        upstream_us: micros(412_345),
    };
    let duration_us = micros(418_000);
    Operation {
        op: OpId(op),
        status: Status::Success,
        request_id: Some("4711"),
        session_id: Some("8d6f9c1e4a5b4c7f"),
        method: Some("tools/call"),
        tool_name: Some("read_file"),
        client_id: Some("an-editor"),
        backend_id: Some("files"),
        transport: Some(Transport::Stdio),
        response_summary: Some(ResponseSummary {
            size_bytes: 512,
            body_hash: Some(journal.digest(&[b'x'; 512])),
        }),
        duration_us,
        stages,
        unexplained_us: stages.unexplained(duration_us),
        config_version: Some("7"),
        ..Operation::default()
    }
}

fn timed(count: usize, mut step: impl FnMut(u128) -> Outcome<()>) -> Outcome<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for at in 0..count {
        let since = Instant::now();
        step(at as u128)?;
        times.push(since.elapsed());
    }
    Ok(times)
}

fn create(path: &Path) -> Outcome<File> {
    Ok(OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path)?)
}

fn bare(path: &Path, line: &[u8]) -> Outcome<Vec<Duration>> {
    let mut file = create(path)?;
    timed(APPENDS, |_| Ok(file.write_all(line)?))
}

fn synced_bare(path: &Path, line: &[u8]) -> Outcome<Vec<Duration>> {
    let mut file = create(path)?;
    timed(SYNCED, |_| {
        file.write_all(line)?;
        Ok(file.sync_data()?)
    })
}

fn single(directory: &Path, sync: SyncPolicy, operations: bool) -> Outcome<Vec<Duration>> {
    single_of(directory, sync, operations, APPENDS)
}

fn single_of(
    directory: &Path,
    sync: SyncPolicy,
    operations: bool,
    count: usize,
) -> Outcome<Vec<Duration>> {
    let journal = open(directory, sync)?;
    let times = timed(count, |op| {
        if operations {
            journal.append(NOW_MS, &Record::Operation(&operation(&journal, op)))?;
        } else {
            journal.append(NOW_MS, &Record::Decision(&decision(op)))?;
        }
        Ok(())
    })?;
    journal.close(NOW_MS, "measured")?;
    Ok(times)
}

fn many(directory: &Path, sync: SyncPolicy, writers: usize, each: usize) -> Outcome<f64> {
    let journal = Arc::new(open(directory, sync)?);
    let start = Arc::new(Barrier::new(writers + 1));
    let threads: Vec<_> = (0..writers)
        .map(|_| {
            let (journal, start) = (Arc::clone(&journal), Arc::clone(&start));
            std::thread::spawn(move || {
                start.wait();
                (0..each).try_for_each(|op| {
                    journal
                        .append(NOW_MS, &Record::Decision(&decision(op as u128)))
                        .map(|_| ())
                })
            })
        })
        .collect();
    start.wait();
    let since = Instant::now();
    for thread in threads {
        thread.join().map_err(|_| "a writer panicked")??;
    }
    let rate = (writers * each) as f64 / since.elapsed().as_secs_f64();
    journal.close(NOW_MS, "measured")?;
    Ok(rate)
}
