//! `durward status`: what is here. It only reads, and takes no lock that a starting instance needs.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use gate::journal::{CHECKPOINT_PUBLIC_FILE, LINE_BYTES_MAX, Line, SegmentId};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::config::values::Size;
use crate::disk::{self, rough};
use crate::instance_state;
use crate::places::Places;
use crate::plural::count;
use admin::control::Request;
use admin::control::client;

pub const HELP: &str = "\
Examples:
  durward status
  durward status --json | jq '.instances[].server'

The command reads only. It lists the instances of the state directory, and with --all every instance of this user that
answers on its control socket.

Exit codes: 0 done; 2 the journal cannot be read.";

/// Arguments of `durward status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Include instances that use another state directory
    #[arg(long)]
    all: bool,
}

/// Most segments that are looked into for running instances, the newest.
const SEGMENTS_MAX: usize = 1_000;
/// How many first lines of a segment are read for what it says of its instance.
const FIRST_LINES: usize = 8;
/// A segment that was written to within this time counts as in use without a try at its lock, in
/// seconds, where the kernel does not list locks: its instance may be about to take that lock.
const FRESH_S: u64 = 5;

/// One segment that has not been closed.
struct Open {
    file: String,
    running: bool,
    since: Option<String>,
    instance: Option<String>,
    server: Option<String>,
    last: Option<String>,
}

struct Journal {
    segments: usize,
    bytes: u64,
    open: Vec<Open>,
    last: Option<Value>,
}

/// Prints the state of things; gives the exit code.
pub fn run(args: &StatusArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let directory = places.journal();
    let journal = match look(&directory) {
        Ok(journal) => journal,
        Err(error) => {
            let _ = writeln!(err, "error: cannot read {}: {error}", directory.display());
            return 2;
        }
    };
    let free = disk::free_bytes(&directory);
    if let Some(free) = free.filter(|free| disk::is_low(*free, places)) {
        let _ = writeln!(err, "warning: {}", disk::sentence(free, places));
    }
    let sockets = sockets(places, args.all, err);
    let printed = if args.json {
        writeln!(
            out,
            "{:#}",
            object(places, (&journal, free), &sockets.shown, sockets.others)
        )
    } else {
        print(places, (&journal, free), out).and_then(|()| print_sockets(places, &sockets, out))
    };
    match printed.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(err, "error: cannot write: {error}");
            2
        }
        _ => 0,
    }
}

/// Running instances that have answered.
struct Answered {
    shown: Vec<Value>,
    /// How many use another state directory, and are left out.
    others: usize,
}

/// Asks each running instance of this user; leaves out those of another state directory unless `all` are asked for.
fn sockets(places: &Places, all: bool, err: &mut dyn Write) -> Answered {
    let mut found = client::instances(&places.runtime);
    let mut out = Answered {
        shown: Vec::new(),
        others: 0,
    };
    let own = places.real_state().display().to_string();
    for instance in &mut found.instances {
        let socket = instance.socket.display().to_string();
        match instance.ask(&Request::Status, |_| {}) {
            // An instance of an earlier version does not say where its state is.
            Ok(status) if !all && text(&status, "state_dir").is_some_and(|dir| dir != own) => {
                out.others += 1;
            }
            Ok(mut status) => {
                if let Some(members) = status.as_object_mut() {
                    members.insert("socket".into(), json!(socket));
                }
                out.shown.push(status);
            }
            Err(error) => found.warnings.push(format!("{socket}: {error}")),
        }
    }
    for warning in &found.warnings {
        let _ = writeln!(err, "warning: {warning}");
    }
    out
}

fn print_sockets(places: &Places, sockets: &Answered, out: &mut dyn Write) -> io::Result<()> {
    let Some(directory) = places.runtime.first() else {
        return Ok(());
    };
    writeln!(out, "control  {}", directory.display())?;
    for status in &sockets.shown {
        let waiting = status
            .get("approvals_waiting")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let serving = status.get("serving").map(serving).unwrap_or_default();
        writeln!(
            out,
            "  {}  {serving}{waiting} waiting for approval  policy {}  {}",
            text(status, "server").unwrap_or("?"),
            text(status, "policy_version").unwrap_or("?"),
            text(status, "socket").unwrap_or("?")
        )?;
        for line in instance_state::lines(status) {
            writeln!(out, "    {line}")?;
        }
        let keys = status.pointer("/serving/resting_keys");
        for key in keys.and_then(Value::as_array).into_iter().flatten() {
            let number = |name: &str| key.get(name).and_then(Value::as_u64).unwrap_or(0);
            let model =
                text(key, "model").map_or_else(String::new, |model| format!(" for {model}"));
            writeln!(
                out,
                "    key {} of the model provider {} rests{model}: {}, {} s left",
                number("key"),
                text(key, "provider").unwrap_or("?"),
                text(key, "reason").unwrap_or("?"),
                number("left_s")
            )?;
        }
    }
    if sockets.others > 0 {
        writeln!(
            out,
            "  {} of other state directories; see durward status --all",
            count(sockets.others, "instance")
        )?;
    }
    Ok(())
}

/// Where an instance of `durward serve` is, and what it has; nothing of another one.
fn serving(told: &Value) -> String {
    let Some(address) = text(told, "address") else {
        return String::new();
    };
    let number = |name: &str| {
        let number = told.get(name).and_then(Value::as_u64).unwrap_or(0);
        usize::try_from(number).unwrap_or(usize::MAX)
    };
    let sessions = count(number("sessions"), "session");
    let processes = number("processes");
    let noun = if processes == 1 {
        "process"
    } else {
        "processes"
    };
    format!("{address}  {sessions}  {processes} server {noun}  ")
}

/// Looks through the journal's directory; one that is not there is empty.
fn look(directory: &Path) -> io::Result<Journal> {
    let mut journal = Journal {
        segments: 0,
        bytes: 0,
        open: Vec::new(),
        last: None,
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(journal),
        other => other?,
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if is_segment(&path) {
            // Retention may take a segment away while we look.
            journal.bytes += fs::metadata(&path).map_or(0, |found| found.len());
            paths.push(path);
        }
    }
    journal.segments = paths.len();
    paths.sort();
    for path in paths.iter().rev().take(SEGMENTS_MAX) {
        let Ok(last) = last_record(path) else {
            continue;
        };
        if journal.last.is_none() {
            journal.last.clone_from(&last);
        }
        let closed = last.as_ref().is_some_and(|record| {
            text(record, "kind") == Some("system")
                && text(record, "event") == Some("segment_closed")
        });
        if !closed {
            journal.open.extend(open(path, last.as_ref()).ok());
        }
    }
    Ok(journal)
}

/// Whether a file is named as the journal names its segments.
fn is_segment(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_suffix(".jsonl")?.rsplit_once('-'))
        .is_some_and(|(_, id)| SegmentId::parse(id).is_some())
}

/// What the last whole line says.
fn last_record(path: &Path) -> io::Result<Option<Value>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    // One byte more than a line, so that the end of the one before it is in sight.
    let block = LINE_BYTES_MAX as u64 + 1;
    file.seek(SeekFrom::Start(size.saturating_sub(block)))?;
    let mut tail = Vec::new();
    file.take(block).read_to_end(&mut tail)?;
    let mut lines = tail.rsplit(|byte| *byte == b'\n');
    // What stands behind the last line feed is empty, or a line that is being written.
    lines.next();
    Ok(lines.next().and_then(record))
}

fn text<'v>(record: &'v Value, name: &str) -> Option<&'v str> {
    record.get(name)?.as_str()
}

fn record(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(Line::parse(line)?.body).ok()
}

/// What a segment's beginning says of its instance, and whether that is running.
fn open(path: &Path, last: Option<&Value>) -> io::Result<Open> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    let age = found.modified()?.elapsed().unwrap_or_default();
    // Only its writer locks a segment exclusively, and for as long as it runs.
    let running = match age < Duration::from_secs(FRESH_S) {
        true => is_locked(&found).unwrap_or(true),
        false => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
    };
    let owned = |record: &Value, name: &str| text(record, name).map(str::to_owned);
    let mut open = Open {
        file: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        running,
        since: None,
        instance: None,
        server: None,
        last: last.and_then(|record| owned(record, "time")),
    };
    let first = BufReader::new(file.take((FIRST_LINES * LINE_BYTES_MAX) as u64));
    for line in first.split(b'\n').take(FIRST_LINES) {
        let Some(record) = record(&line?) else {
            break;
        };
        match text(&record, "event") {
            Some("segment_opened") => {
                open.since = owned(&record, "time");
                open.instance = owned(&record, "instance");
            }
            Some("session_started") if text(&record, "kind") == Some("system") => {
                open.server = owned(&record, "backend_id");
            }
            Some("serve_started") => {
                let servers = text(&record, "backend_id").unwrap_or("?");
                let servers = if servers.is_empty() {
                    "models"
                } else {
                    servers
                };
                open.server = Some(format!("serve ({servers})"));
            }
            _ => {}
        }
    }
    Ok(open)
}

/// Whether the kernel lists a writer's lock on this file; nothing where it lists no locks. To look is in no writer's way.
fn is_locked(found: &fs::Metadata) -> Option<bool> {
    let listed = fs::read_to_string("/proc/locks").ok()?;
    let file = format!(":{}", found.ino());
    // `1: FLOCK  ADVISORY  WRITE 3339 fd:00:1234 0 EOF`
    Some(listed.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("FLOCK")
            && words.nth(1) == Some("WRITE")
            && words.nth(1).is_some_and(|place| place.ends_with(&file))
    }))
}

fn print(
    places: &Places,
    (journal, free): (&Journal, Option<u64>),
    out: &mut dyn Write,
) -> io::Result<()> {
    let (directory, keys) = (places.journal(), places.keys());
    writeln!(out, "state    {}", places.state.display())?;
    writeln!(
        out,
        "journal  {}  {}, {}{}, {} free on its disk",
        directory.display(),
        count(journal.segments, "segment"),
        rough(journal.bytes),
        (places.retain).map_or_else(String::new, |most| format!(" of {}", Size(most))),
        free.map_or_else(|| "?".to_owned(), rough)
    )?;
    let key = if has_keys(&keys) {
        "present"
    } else {
        "none yet"
    };
    writeln!(out, "keys     {}  {key}", keys.display())?;
    let running: Vec<&Open> = journal.open.iter().filter(|open| open.running).collect();
    writeln!(out, "running  {}", count(running.len(), "instance"))?;
    for open in running {
        writeln!(
            out,
            "  {}  since {}  last record {}  {}",
            open.server.as_deref().unwrap_or("?"),
            open.since.as_deref().unwrap_or("?"),
            open.last.as_deref().unwrap_or("none"),
            open.file
        )?;
    }
    let ended = journal.open.len() - journal.open.iter().filter(|open| open.running).count();
    if ended > 0 {
        writeln!(
            out,
            "ended    {} without closing the segment; `durward audit verify` checks that all is there",
            count(ended, "instance")
        )?;
    }
    match &journal.last {
        Some(record) => writeln!(
            out,
            "last     {}  {}  {}",
            text(record, "time").unwrap_or("?"),
            text(record, "kind").unwrap_or("?"),
            text(record, "event").unwrap_or("?")
        ),
        None => writeln!(
            out,
            "last     no records yet; start with: durward run -- CMD"
        ),
    }
}

fn object(
    places: &Places,
    (journal, free): (&Journal, Option<u64>),
    sockets: &[Value],
    others: usize,
) -> Value {
    let open: Vec<Value> = journal
        .open
        .iter()
        .map(|open| {
            json!({
                "segment": open.file,
                "running": open.running,
                "since": open.since,
                "instance": open.instance,
                "server": open.server,
                "last_record": open.last,
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "state_dir": places.state.display().to_string(),
        "config_dir": places.config.display().to_string(),
        "journal": {
            "dir": places.journal().display().to_string(),
            "segments": journal.segments,
            "size_bytes": journal.bytes,
            "retain_bytes": places.retain,
            "free_bytes": free,
            "is_low": free.is_some_and(|free| disk::is_low(free, places)),
            "last_record": journal.last,
        },
        "keys": has_keys(&places.keys()),
        "running": journal.open.iter().filter(|open| open.running).count(),
        "open_segments": open,
        "instances": sockets,
        "instances_elsewhere": others,
    })
}

fn has_keys(directory: &Path) -> bool {
    directory.join(CHECKPOINT_PUBLIC_FILE).is_file()
}
