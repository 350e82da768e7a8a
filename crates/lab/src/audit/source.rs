//! Reads a log: our journal, or the access proxy's pair of files.

use super::args::AuditArgs;
use super::record::Call;
use crate::error::LabError;
use crate::journal::{self, Body};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// How many decisions are read.
const DECISIONS_MAX: usize = 5_000_000;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) calls: Vec<Call>,
    pub(super) sources: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Reads what was named.
pub(super) fn read(args: &AuditArgs) -> Result<Read, LabError> {
    let segments = if args.file.is_dir() {
        journal::segments(&args.file)?
    } else {
        vec![args.file.clone()]
    };
    if segments.is_empty() {
        return Err(LabError::path(
            &args.file,
            io::Error::other(
                "no segment of a journal lies there; name the directory that holds the .jsonl files",
            ),
        ));
    }
    let ours = is_ours(&segments)?;
    let mut read = Read {
        sources: vec![args.file.display().to_string()],
        ..Read::default()
    };
    if ours {
        if args.operations.is_some() {
            return Err(LabError::Usage(
                "--operations belongs to the access proxy's logs; a journal holds its own operations".into(),
            ));
        }
        for segment in &segments {
            of_journal(segment, &mut read.calls)?;
        }
    } else {
        for file in &segments {
            of_seed(file, &mut read.calls, args.operations.as_deref())?;
        }
        match &args.operations {
            Some(file) => read.sources.push(file.display().to_string()),
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

/// Whether the first line is a record of our journal.
fn is_ours(segments: &[std::path::PathBuf]) -> Result<bool, LabError> {
    #[derive(Deserialize)]
    struct Ours {
        #[expect(dead_code, reason = "only its presence counts")]
        entry_hash: String,
        #[expect(dead_code, reason = "only its presence counts")]
        body: serde::de::IgnoredAny,
    }
    let mut ours = None;
    for segment in segments {
        journal::lines(segment, |_, line| {
            ours.get_or_insert_with(|| serde_json::from_slice::<Ours>(line).is_ok());
            Ok(())
        })?;
        if ours.is_some() {
            break;
        }
    }
    Ok(ours.unwrap_or(false))
}

fn of_journal(segment: &Path, calls: &mut Vec<Call>) -> Result<(), LabError> {
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let ms = |us: f64| us / 1_000.0;
    journal::bodies(segment, |body: Body| match (body.kind.as_str(), &body.op) {
        ("decision", Some(op)) if calls.len() < DECISIONS_MAX => {
            open.insert(op.clone(), calls.len());
            calls.push(Call {
                decision: body.decision.unwrap_or_default(),
                asked: body.hitl_outcome.is_some(),
                eval_ms: body.policy_eval_us.map(ms),
                policy_ms: body.policy_eval_us.map(ms),
                time: body.time,
                ..Call::default()
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
}

/// A line of its operations.
#[derive(Debug, Deserialize)]
struct SeedOperation {
    request_id: Option<String>,
    duration: Option<SeedDuration>,
}

#[derive(Debug, Deserialize)]
struct SeedDuration {
    duration_ms: f64,
}

fn of_seed(file: &Path, calls: &mut Vec<Call>, operations: Option<&Path>) -> Result<(), LabError> {
    let mut open: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    journal::lines(file, |number, line| {
        let found: SeedDecision = serde_json::from_slice(line)
            .map_err(|error| format!("line {number} is no decision: {error}"))?;
        if found.decision.is_empty() || calls.len() >= DECISIONS_MAX {
            return Ok(());
        }
        if let Some(id) = found.request_id {
            open.entry(id).or_default().push(calls.len());
        }
        calls.push(Call {
            time: found.time.replace(' ', "T"),
            decision: found.decision.to_lowercase(),
            asked: found.hitl_outcome.is_some() || found.policy_hitl_ms.is_some(),
            eval_ms: found.policy_eval_ms,
            approval_ms: found.policy_hitl_ms,
            policy_ms: found.policy_total_ms.or(found.policy_eval_ms),
            ..Call::default()
        });
        Ok(())
    })?;
    let Some(operations) = operations else {
        return Ok(());
    };
    journal::lines(operations, |number, line| {
        let found: SeedOperation = serde_json::from_slice(line)
            .map_err(|error| format!("line {number} is no operation: {error}"))?;
        // Ids of clients repeat from session to session; the first that is still open is meant.
        let at = found.request_id.and_then(|id| {
            let waiting = open.get_mut(&id)?;
            (!waiting.is_empty()).then(|| waiting.remove(0))
        });
        if let (Some(call), Some(took)) = (at.and_then(|at| calls.get_mut(at)), found.duration) {
            call.duration_ms = Some(took.duration_ms);
        }
        Ok(())
    })
}
