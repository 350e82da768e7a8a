//! Reads a log: our journal, or the access proxy's pair of files.

use super::args::AuditArgs;
use super::record::AuditedCall;
use crate::error::LabError;
use crate::journal::{self, RecordBody};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// How many decisions are read.
const DECISIONS_MAX: usize = 5_000_000;

/// Stops, and returns the scrapes.
#[derive(Debug, Default)]
pub(super) struct ReadRecords {
    pub(super) calls: Vec<AuditedCall>,
    pub(super) sources: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Reads what was named.
pub(super) fn read(args: &AuditArgs) -> Result<ReadRecords, LabError> {
    let (segments, operations) = find_files(args)?;
    let ours = is_ours(&segments)?;
    let mut read = ReadRecords {
        sources: vec![args.file.display().to_string()],
        ..ReadRecords::default()
    };
    if ours {
        if args.operations.is_some() {
            return Err(LabError::Usage(
                "--operations belongs to the access proxy's logs; a journal holds its own operations".into(),
            ));
        }
        // A segment may end between a decision and its operation.
        let mut open = BTreeMap::new();
        for segment in &segments {
            of_journal(segment, &mut open, &mut read.calls)?;
        }
    } else {
        let mut open = BTreeMap::new();
        for file in &segments {
            of_seed(file, &mut open, &mut read.calls)?;
        }
        match &operations {
            Some(file) => {
                let strangers = join(file, &mut open, &mut read.calls)?;
                read.sources.push(file.display().to_string());
                if strangers > 0 {
                    let note = format!("{strangers} operations belong to no decision");
                    read.notes.push(note);
                }
            }
            None => read
                .notes
                .push("without --operations there is no end to end and no upstream".into()),
        }
    }
    if read.calls.len() >= DECISIONS_MAX {
        read.notes.push(format!(
            "only the first {DECISIONS_MAX} decisions were read"
        ));
    }
    Ok(read)
}

/// Returns the files of decisions, and the one of operations: of a directory, the access proxy's pair by its names, or
/// the segments of a journal.
fn find_files(args: &AuditArgs) -> Result<(Vec<PathBuf>, Option<PathBuf>), LabError> {
    let operations = args.operations.clone();
    if !args.file.is_dir() {
        return Ok((vec![args.file.clone()], operations));
    }
    let [decisions, beside] = ["decisions.jsonl", "operations.jsonl"].map(|n| args.file.join(n));
    if decisions.is_file() {
        let beside = beside.is_file().then_some(beside);
        return Ok((vec![decisions], operations.or(beside)));
    }
    let segments = journal::segments(&args.file)?;
    if segments.is_empty() {
        return Err(LabError::path(
            &args.file,
            io::Error::other(
                "no segment of a journal lies there; name the directory that holds the .jsonl files",
            ),
        ));
    }
    Ok((segments, operations))
}

/// Returns whether the first line is a record of our journal.
fn is_ours(segments: &[std::path::PathBuf]) -> Result<bool, LabError> {
    #[derive(Deserialize)]
    struct OwnRecord {
        #[expect(dead_code, reason = "only its presence counts")]
        entry_hash: String,
        #[expect(dead_code, reason = "only its presence counts")]
        body: serde::de::IgnoredAny,
    }
    let mut ours = None;
    for segment in segments {
        journal::lines(segment, |_, line| {
            ours.get_or_insert_with(|| serde_json::from_slice::<OwnRecord>(line).is_ok());
            Ok(())
        })?;
        if ours.is_some() {
            break;
        }
    }
    Ok(ours.unwrap_or(false))
}

fn of_journal(
    segment: &Path,
    open: &mut BTreeMap<String, usize>,
    calls: &mut Vec<AuditedCall>,
) -> Result<(), LabError> {
    let ms = |us: f64| us / 1_000.0;
    journal::bodies(segment, |body: RecordBody| {
        match (body.kind.as_str(), &body.op) {
            ("decision", Some(op)) if calls.len() < DECISIONS_MAX => {
                open.insert(op.clone(), calls.len());
                calls.push(AuditedCall {
                    decision: body.decision.unwrap_or_default(),
                    asked: body.hitl_outcome.is_some(),
                    eval_ms: body.policy_eval_us.map(ms),
                    policy_ms: body.policy_eval_us.map(ms),
                    time: body.time,
                    ..AuditedCall::default()
                });
            }
            ("operation", Some(op)) => {
                let call = open.remove(op).and_then(|at| calls.get_mut(at));
                if let Some(call) = call {
                    let stages = body.stages;
                    call.duration_ms = body.duration_us.map(ms);
                    call.measured_upstream_ms = Some(ms(stages.upstream_us));
                    call.policy_ms = Some(ms(stages.policy_us + stages.approval_us));
                    if stages.approval_us > 0.0 {
                        call.approval_ms = Some(ms(stages.approval_us));
                    }
                }
            }
            _ => {}
        }
    })
}

/// A line of the access proxy's decisions.
#[derive(Debug, Deserialize)]
struct SeedDecision {
    #[serde(default)]
    time: String,
    #[serde(default)]
    decision: String,
    hitl_outcome: Option<String>,
    policy_eval_ms: Option<f64>,
    policy_hitl_ms: Option<f64>,
    policy_total_ms: Option<f64>,
    request_id: Option<String>,
    session_id: Option<String>,
}

/// A line of its operations.
#[derive(Debug, Deserialize)]
struct SeedOperation {
    request_id: Option<String>,
    session_id: Option<String>,
    duration: Option<SeedDuration>,
}

#[derive(Debug, Deserialize)]
struct SeedDuration {
    duration_ms: f64,
}

/// Decisions without an operation yet, by the id of their request: the session of each and its place.
type Open = BTreeMap<String, Vec<(Option<String>, usize)>>;

fn of_seed(file: &Path, open: &mut Open, calls: &mut Vec<AuditedCall>) -> Result<(), LabError> {
    journal::lines(file, |number, line| {
        let found: SeedDecision = serde_json::from_slice(line)
            .map_err(|error| format!("line {number} is not a decision: {error}"))?;
        if found.decision.is_empty() || calls.len() >= DECISIONS_MAX {
            return Ok(());
        }
        if let Some(id) = found.request_id {
            let waiting = open.entry(id).or_default();
            waiting.push((found.session_id, calls.len()));
        }
        calls.push(AuditedCall {
            time: found.time.replace(' ', "T"),
            decision: found.decision.to_lowercase(),
            asked: found.hitl_outcome.is_some() || found.policy_hitl_ms.is_some(),
            eval_ms: found.policy_eval_ms,
            approval_ms: found.policy_hitl_ms,
            policy_ms: found.policy_total_ms.or(found.policy_eval_ms),
            ..AuditedCall::default()
        });
        Ok(())
    })
}

/// Gives decisions their operations; gives the number of those that belong to none. Ids of requests repeat
/// from session to session: where both sides name theirs it has to be the same, and the first decision that
/// is still open is meant.
fn join(file: &Path, open: &mut Open, calls: &mut [AuditedCall]) -> Result<usize, LabError> {
    let mut strangers = 0;
    journal::lines(file, |number, line| {
        let found: SeedOperation = serde_json::from_slice(line)
            .map_err(|error| format!("line {number} is not an operation: {error}"))?;
        let at = found.request_id.and_then(|id| {
            let waiting = open.get_mut(&id)?;
            let same = waiting.iter().position(|(session, _)| {
                let both = session.as_ref().zip(found.session_id.as_ref());
                both.is_none_or(|(one, other)| one == other)
            });
            Some(waiting.remove(same?).1)
        });
        match at.and_then(|at| calls.get_mut(at)) {
            Some(call) => call.duration_ms = found.duration.map(|took| took.duration_ms),
            None => strangers += 1,
        }
        Ok(())
    })?;
    Ok(strangers)
}
