//! Where jobs stand in the database: the records, and the orders in which they are looked for.

use serde_json::Value;
use state::KvError;
use state::kv::{Table, Transaction, View};

use super::error::JobError;
use super::job::{Job, JobId, JobState};
use crate::store::{key, time_key};

/// By id: the record.
const JOBS: Table = Table("jobs");
/// By submission and id: waiting for a worker; the value is the caller's name, a zero byte, and the kind.
const QUEUE: Table = Table("jobs_queue");
/// By caller and id: not ended; the value is an [`Open`].
const OPEN: Table = Table("jobs_open");
/// By caller, submission and id: all.
const OWNED: Table = Table("jobs_owned");
/// By end and id: ended.
const ENDED: Table = Table("jobs_ended");
/// By caller, end and id: ended.
const ENDED_OWNED: Table = Table("jobs_ended_owned");
/// By caller and idempotency key: the request's digest and the id.
const KEYS: Table = Table("jobs_keys");

const DIGEST_BYTES: usize = 32;
const TIME_BYTES: usize = 8;

fn unreadable(detail: String) -> JobError {
    JobError::Store(KvError::Corrupt {
        path: std::path::PathBuf::new(),
        detail,
    })
}

fn id_of(bytes: &[u8]) -> JobId {
    JobId(String::from_utf8_lossy(bytes).into_owned())
}

pub(super) fn load(view: &impl View, id: &JobId) -> Result<Option<Job>, JobError> {
    let Some(bytes) = view.get(JOBS, id.0.as_bytes())? else {
        return Ok(None);
    };
    let job = serde_json::from_slice(&bytes);
    job.map(Some)
        .map_err(|error| unreadable(format!("job {id} cannot be read: {error}")))
}

/// Writes the record and what depends on its state being open.
pub(super) fn store(t: &Transaction, job: &mut Job) -> Result<(), JobError> {
    job.version += 1;
    let bytes = serde_json::to_vec(job);
    let bytes = bytes.map_err(|error| unreadable(format!("job cannot be written: {error}")))?;
    t.put(JOBS, job.id.0.as_bytes(), &bytes)?;
    let open = key(&job.caller, &[job.id.0.as_bytes()]);
    if job.state.is_end() {
        t.remove(OPEN, &open)?;
    } else {
        t.put(OPEN, &open, &Open::of(job).bytes())?;
    }
    Ok(())
}

/// What is known of a job that has not ended without reading its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) runs: bool,
    /// Since when it waits or runs.
    pub(super) since_ms: i64,
    /// How long it may run.
    pub(super) timeout_ms: Option<u64>,
}

impl Open {
    pub(super) fn of(job: &Job) -> Self {
        let runs = job.state == JobState::Running;
        Self {
            runs,
            since_ms: job.attempt_ms.filter(|_| runs).unwrap_or(job.submitted_ms),
            timeout_ms: job.timeout_ms.filter(|_| runs),
        }
    }

    fn bytes(self) -> Vec<u8> {
        let timeout = self.timeout_ms.unwrap_or(u64::MAX);
        let mut bytes = vec![u8::from(self.runs)];
        bytes.extend_from_slice(&time_key(self.since_ms));
        bytes.extend_from_slice(&timeout.to_be_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (runs, rest) = bytes.split_first()?;
        let (since, rest) = rest.split_first_chunk::<8>()?;
        let timeout = u64::from_be_bytes(*rest.first_chunk::<8>()?);
        Some(Self {
            runs: *runs == 1,
            since_ms: i64::try_from(u64::from_be_bytes(*since)).ok()?,
            timeout_ms: (timeout != u64::MAX).then_some(timeout),
        })
    }

    /// Whether it has taken too long at this time.
    pub(super) fn is_late(self, queued_ms_max: u64, now_ms: i64) -> bool {
        let ms_max = if self.runs {
            self.timeout_ms
        } else {
            Some(queued_ms_max)
        };
        let waited = u64::try_from(now_ms.saturating_sub(self.since_ms)).unwrap_or(0);
        ms_max.is_some_and(|ms_max| waited > ms_max)
    }
}

fn queue_key(job: &Job) -> Vec<u8> {
    [&time_key(job.submitted_ms), job.id.0.as_bytes()].concat()
}

/// Writes a new job.
pub(super) fn insert(t: &Transaction, job: &Job, digest: &[u8; 32]) -> Result<(), JobError> {
    let mut job = job.clone();
    store(t, &mut job)?;
    let submitted = time_key(job.submitted_ms);
    let id = job.id.0.as_bytes();
    t.put(OWNED, &key(&job.caller, &[&submitted, id]), b"")?;
    if let Some(own) = &job.idempotency_key {
        let value = [digest, id].concat();
        t.put(KEYS, &key(&job.caller, &[own.as_bytes()]), &value)?;
    }
    enter_queue(t, &job)
}

pub(super) fn enter_queue(t: &Transaction, job: &Job) -> Result<(), JobError> {
    let value = [job.caller.as_bytes(), b"\0", job.kind.as_bytes()].concat();
    Ok(t.put(QUEUE, &queue_key(job), &value)?)
}

pub(super) fn leave_queue(t: &Transaction, job: &Job) -> Result<(), JobError> {
    t.remove(QUEUE, &queue_key(job))?;
    Ok(())
}

/// A job that waits for a worker.
pub(super) struct Waiting {
    pub(super) id: JobId,
    pub(super) caller: String,
    pub(super) kind: String,
}

/// Those that wait, longest first.
pub(super) fn waiting(view: &impl View, jobs_max: usize) -> Result<Vec<Waiting>, JobError> {
    let entries = view.scan(QUEUE, b"", None, jobs_max)?;
    Ok(entries
        .into_iter()
        .map(|(key, value)| {
            let value = String::from_utf8_lossy(&value).into_owned();
            // A kind has no zero byte; a caller's name may have.
            let (caller, kind) = value.rsplit_once('\0').unwrap_or((&value, ""));
            Waiting {
                id: id_of(key.get(TIME_BYTES..).unwrap_or_default()),
                caller: caller.to_owned(),
                kind: kind.to_owned(),
            }
        })
        .collect())
}

/// A caller's jobs that have not ended.
pub(super) fn open_of(
    view: &impl View,
    caller: &str,
    jobs_max: usize,
) -> Result<Vec<(JobId, Open)>, JobError> {
    let prefix = key(caller, &[]);
    let entries = view.scan_prefix(OPEN, &prefix, jobs_max)?;
    Ok(entries
        .into_iter()
        .filter_map(|(key, value)| {
            let id = id_of(key.get(prefix.len()..)?);
            Some((id, Open::read(&value)?))
        })
        .collect())
}

pub(super) fn open_count(view: &impl View) -> Result<u64, JobError> {
    Ok(view.count(OPEN)?)
}

/// All jobs that have not ended.
pub(super) fn open(view: &impl View, jobs_max: usize) -> Result<Vec<(JobId, Open)>, JobError> {
    let entries = view.scan(OPEN, b"", None, jobs_max)?;
    Ok(entries
        .into_iter()
        .filter_map(|(key, value)| {
            let caller = usize::from(u16::from_be_bytes(*key.first_chunk::<2>()?));
            let id = id_of(key.get(2 + caller..)?);
            Some((id, Open::read(&value)?))
        })
        .collect())
}

/// A caller's jobs from a position on, each with its position.
pub(super) fn owned(
    view: &impl View,
    caller: &str,
    from: Option<&[u8]>,
    jobs_max: usize,
) -> Result<Vec<(Vec<u8>, JobId)>, JobError> {
    let prefix = key(caller, &[]);
    let entries = match from {
        None => view.scan_prefix(OWNED, &prefix, jobs_max)?,
        Some(from) => {
            let start = [prefix.as_slice(), from].concat();
            let mut entries = view.scan(OWNED, &start, None, jobs_max)?;
            entries.retain(|(key, _)| key.starts_with(&prefix));
            entries
        }
    };
    Ok(entries
        .into_iter()
        .filter_map(|(key, _)| {
            let position = key.get(prefix.len()..)?.to_vec();
            let id = id_of(position.get(TIME_BYTES..)?);
            Some((position, id))
        })
        .collect())
}

/// The job and the request's digest under a caller's key.
pub(super) fn keyed(
    view: &impl View,
    caller: &str,
    own: &str,
) -> Result<Option<(JobId, [u8; DIGEST_BYTES])>, JobError> {
    let found = view.get(KEYS, &key(caller, &[own.as_bytes()]))?;
    Ok(found.and_then(|value| {
        let (digest, id) = value.split_first_chunk::<DIGEST_BYTES>()?;
        Some((id_of(id), *digest))
    }))
}

/// Notes that a job has ended.
pub(super) fn ended(t: &Transaction, job: &Job) -> Result<(), JobError> {
    let (at, id) = (time_key(job.finished_ms.unwrap_or(0)), job.id.0.as_bytes());
    t.put(ENDED, &[&at, id].concat(), b"")?;
    Ok(t.put(ENDED_OWNED, &key(&job.caller, &[&at, id]), b"")?)
}

/// A caller's ended jobs, oldest first.
pub(super) fn ended_of(
    view: &impl View,
    caller: &str,
    jobs_max: usize,
) -> Result<Vec<JobId>, JobError> {
    let prefix = key(caller, &[]);
    let entries = view.scan_prefix(ENDED_OWNED, &prefix, jobs_max)?;
    let after = prefix.len() + TIME_BYTES;
    Ok(entries
        .iter()
        .map(|(key, _)| id_of(key.get(after..).unwrap_or_default()))
        .collect())
}

/// Ended jobs, oldest first: those that ended before `before_ms`, or all.
pub(super) fn ended_before(
    view: &impl View,
    before_ms: Option<i64>,
    jobs_max: usize,
) -> Result<Vec<JobId>, JobError> {
    let to = before_ms.map(time_key);
    let to = to.as_ref().map(<[u8; TIME_BYTES]>::as_slice);
    let entries = view.scan(ENDED, b"", to, jobs_max)?;
    Ok(entries
        .iter()
        .map(|(key, _)| id_of(key.get(TIME_BYTES..).unwrap_or_default()))
        .collect())
}

pub(super) fn ended_count(view: &impl View) -> Result<u64, JobError> {
    Ok(view.count(ENDED)?)
}

/// Removes an ended job and every trace of it, its idempotency key included.
pub(super) fn remove(t: &Transaction, id: &JobId) -> Result<(), JobError> {
    let Some(job) = load(t, id)? else {
        return Ok(());
    };
    let id = job.id.0.as_bytes();
    let at = time_key(job.finished_ms.unwrap_or(0));
    t.remove(JOBS, id)?;
    let owned = key(&job.caller, &[&time_key(job.submitted_ms), id]);
    t.remove(OWNED, &owned)?;
    t.remove(ENDED, &[&at, id].concat())?;
    t.remove(ENDED_OWNED, &key(&job.caller, &[&at, id]))?;
    if let Some(own) = &job.idempotency_key {
        t.remove(KEYS, &key(&job.caller, &[own.as_bytes()]))?;
    }
    Ok(())
}

/// The longest part of a job that a worker wrote.
pub(super) fn fits(value: Option<&Value>, what: &'static str) -> Result<(), JobError> {
    value.map_or(Ok(()), |value| super::fits(what, value))
}
