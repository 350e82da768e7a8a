//! The tools of jobs: what they take, and what they answer.

use gate::facts::Operation;
use serde_json::{Value, json};
use toolkit::jobs::{Job, JobId, JobState};
use toolkit::schema::SchemaFault;
use toolkit::server::{Answer, Args, Role, ToolDef, Unfit};

use super::context::with_context;
use super::definitions::{command, object, part, part_of, runs, session};
use crate::end::Missing;
use crate::jobs::Note;

/// Longest input of a job, in characters.
const STDIN_CHARS_MAX: usize = 256 * 1024;
/// Longest wait for a job's end in one call, in milliseconds.
const WAIT_MS_MAX: u64 = 240_000;

/// A job by the name that callers have for it: its host's, a colon, and its own.
pub(crate) struct Named<'a> {
    pub host: &'a str,
    pub id: JobId,
}

impl<'a> Named<'a> {
    pub fn read(args: Args<'a>) -> Result<Self, Unfit> {
        let name = args.text("job")?;
        let Some((host, id)) = name.rsplit_once(':') else {
            let wrong = "must be the name that ssh_job_start gave, as web1:job_…";
            return Err(Unfit::member("job", wrong));
        };
        Ok(Self {
            host,
            id: JobId::of(id),
        })
    }
}

fn named() -> Value {
    json!({"type": "string", "minLength": 3, "maxLength": 512, "description": "What ssh_job_start gave."})
}

/// What is told of a job.
fn told() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "properties": {
            "job": {"type": "string"}, "host": {"type": "string"},
            "state": {"enum": JobState::ALL.map(JobState::label)},
            "command": {"type": "array", "items": {"type": "string"}},
            "exit_code": {"type": ["integer", "null"], "description": "128 and the signal's number where a signal ended it; null where it has not ended or nobody knows."},
            "stdout_bytes": count, "stderr_bytes": count,
            "truncated": {"type": "boolean", "description": "The rest of the output was thrown away."},
            "output_incomplete": {"type": "boolean", "description": "The job is over, and not all that it wrote is kept."},
            "output_incomplete_reason": {"type": ["string", "null"], "description": "over_bound, streams_open, cancelled, timed_out or job_lost."},
            "submitted_at": {"type": "integer", "description": "Milliseconds since 1970, as all times here."},
            "started_at": {"type": ["integer", "null"]}, "finished_at": {"type": ["integer", "null"]},
            "timeout_ms": {"type": ["integer", "null"]},
            "cancel_requested": {"type": "boolean"},
            "seen_dead": {"type": ["boolean", "null"], "description": "True of a job that was to end where its host has shown that nothing of it runs any more; null where that is not known."},
            "pids": {"type": "array", "items": {"type": "integer"}, "description": "Processes that may be left of it."},
            "message": {"type": ["string", "null"], "description": "What is in the way at present."},
            "error": {"type": ["object", "null"]}
        },
        "required": ["job", "host", "state", "exit_code", "stdout_bytes", "stderr_bytes", "truncated", "output_incomplete", "cancel_requested"]
    })
}

pub(super) fn definitions() -> Result<[ToolDef; 4], SchemaFault> {
    let start = ToolDef::new(
        "ssh_job_start",
        "Start a job",
        "Starts one program at the host of a session and comes back at once. The job goes on when the session, the connection or Durward ends; ssh_job_status says how it is, ssh_job_output reads what it wrote.",
        object(
            with_context(json!({
                "session_id": session(),
                "command": command(),
                "stdin": {"type": "string", "maxLength": STDIN_CHARS_MAX, "description": "What the program reads."},
                "timeout_ms": {"type": "integer", "minimum": 1000, "maximum": 604_800_000_u64, "description": "The job is killed after so many milliseconds; without it, after a day."},
                "idempotency_key": {"type": "string", "minLength": 1, "maxLength": 256, "description": "A second call with the same key and arguments gives the job that the first one started."}
            })),
            &["session_id", "command"],
        ),
    )?
    .with_output(told())?;
    let wait = json!({"type": "integer", "minimum": 0, "maximum": WAIT_MS_MAX, "default": 0, "description": "Wait so many milliseconds for its end."});
    let status = ToolDef::new(
        "ssh_job_status",
        "State of a job",
        "Says how a job is: running or how it ended, and how much it has written.",
        object(json!({"job": named(), "wait_ms": wait}), &["job"]),
    )?
    .with_output(told())?;
    let output = ToolDef::new(
        "ssh_job_output",
        "Output of a job",
        "Reads a part of what a job has written so far, or the lines of it that match a regular expression.",
        part_of("job", named()),
    )?
    .with_output(part())?;
    let cancel = ToolDef::new(
        "ssh_job_cancel",
        "Cancel a job",
        "Kills a job and all that it has started, TERM first, then KILL; seen_dead says whether its end was seen.",
        object(json!({"job": named()}), &["job"]),
    )?
    .with_output(told())?;
    let reaching = |tool: ToolDef| ToolDef {
        open_world: true,
        ..tool
    };
    Ok([
        runs(start),
        reaching(status),
        ToolDef {
            roles: &[("grep", Role::Content)],
            ..reaching(output)
        },
        ToolDef {
            operation: Operation::Delete,
            side_effects: &["code_exec"],
            ..reaching(cancel)
        },
    ])
}

/// The answer for a job; `lengths` are those of its output here.
pub(crate) fn of_job(job: &Job, lengths: [u64; 2], most: u64) -> Answer {
    let note = Note::of(job);
    let host = job.request.get("host").and_then(Value::as_str);
    let host = host.unwrap_or_default();
    let fault = job.fault.as_ref();
    let ended = job
        .result
        .as_ref()
        .and_then(|result| result.get("exit_code"));
    let failed = fault.and_then(|fault| fault.details.get("exit_code"));
    let truncated = note.is_cut || lengths.iter().any(|length| *length >= most);
    let has_exited = ended.or(failed).is_some();
    let missing = match job.state {
        _ if note.is_open => Some(Missing::StreamsOpen.label()),
        _ if truncated => Some(Missing::OverBound.label()),
        state if !state.is_end() || has_exited || !note.begun => None,
        JobState::Cancelled => Some(Missing::Cancelled.label()),
        _ => fault.map(|fault| fault.code.as_ref()),
    };
    Answer::data(json!({
        "job": format!("{host}:{}", job.id), "host": host, "state": job.state.label(),
        "command": job.request.get("argv"),
        "exit_code": ended.or(failed), "stdout_bytes": lengths[0], "stderr_bytes": lengths[1],
        "truncated": truncated,
        "output_incomplete": missing.is_some(), "output_incomplete_reason": missing,
        "submitted_at": job.submitted_ms, "started_at": job.started_ms, "finished_at": job.finished_ms,
        "timeout_ms": job.timeout_ms,
        "cancel_requested": job.cancel_requested, "seen_dead": note.seen_dead, "pids": note.pids,
        "message": job.progress.message.as_ref().filter(|_| !job.state.is_end()),
        "error": fault.map(|fault| json!({"code": fault.code, "message": fault.message})),
    }))
}
