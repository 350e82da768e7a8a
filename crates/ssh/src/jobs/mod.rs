//! Jobs: commands that go on at their host when the call, the connection or this process has ended.
//!
//! What is asked for stands in the store of [`toolkit::jobs`] before the host hears of it. While this process
//! runs, each job is followed: its output comes here, and its end is written down. After a restart what was
//! running is looked for at its host and followed again.

mod follow;
mod script;

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolkit::jobs::{Bounds, Claimed, Job, JobError, JobFault, JobId, Jobs, NewJob, Recovery};
use toolkit::server::Failure;

use crate::hosts::Hosts;
use crate::outputs::{Kept, Shelf, now_ms};
use crate::pool::Pool;

/// The kind of these jobs in the store.
const KIND: &str = "ssh";
/// How often late and old jobs are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What is asked of a host, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub host: String,
    /// As it was judged, links followed.
    pub argv: Vec<String>,
    /// The words by which it gets its directory and its variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    #[serde(default)]
    pub stdin: String,
}

/// What is known of a job after its end too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Note {
    /// The host has said that it has begun.
    pub begun: bool,
    /// Where its output is here.
    pub output: Option<String>,
    /// Lengths of its output and errors, as far as they were seen.
    pub lengths: [u64; 2],
    /// Its host had no room for all of them.
    pub is_cut: bool,
    /// It has ended, and something that it started still had its output open.
    pub is_open: bool,
    /// True of a cancelled job where its host has shown that nothing of it runs any more.
    pub seen_dead: Option<bool>,
    /// Processes that may be left of one where that is not known.
    pub pids: Vec<u32>,
}

impl Note {
    /// The note of a job.
    pub fn of(job: &Job) -> Self {
        let note = job.note.clone();
        note.and_then(|note| serde_json::from_value(note).ok())
            .unwrap_or_default()
    }

    fn json(&self) -> Value {
        json!({"begun": self.begun, "output": self.output, "lengths": self.lengths, "is_cut": self.is_cut, "is_open": self.is_open, "seen_dead": self.seen_dead, "pids": self.pids})
    }
}

/// How often the store is tried at the beginning: the process that had it may not have ended yet.
const TAKEN_UP_TRIES: u32 = 60;
/// How long between two of these.
const TAKEN_UP_EVERY: Duration = Duration::from_millis(500);

/// The jobs of a server; they are opened where an earlier process has left some, else at the first call about jobs.
#[derive(Debug, Default)]
pub(crate) struct Opened(tokio::sync::Mutex<Option<Arc<Keeper>>>);

impl Opened {
    /// The jobs; those that were running when an earlier process ended are followed from now on.
    pub async fn keeper(
        &self,
        kept: &Arc<Kept>,
        pool: &Arc<Pool>,
        hosts: &Arc<Hosts>,
    ) -> Result<Arc<Keeper>, Failure> {
        let failed = |wrong: String| Failure::new("no_jobs", wrong);
        let mut open = self.0.lock().await;
        if let Some(keeper) = &*open {
            return Ok(Arc::clone(keeper));
        }
        let shelf = {
            let kept = Arc::clone(kept);
            blocking(move || Ok(kept.shelf())).await?
        };
        let Some(shelf) = shelf else {
            return Err(failed("no jobs are kept here".into()));
        };
        let shelf = shelf.map_err(failed)?;
        let opened = Keeper::open(shelf, Arc::clone(pool), Arc::clone(hosts));
        let keeper = opened.map_err(|error| failed(error.to_string()))?;
        Ok(Arc::clone(open.insert(keeper)))
    }

    /// Cancels a revoked caller's jobs.
    pub async fn cancel_all(self: Arc<Self>, caller: Arc<str>) {
        let keeper = self.0.lock().await.clone();
        let Some(keeper) = keeper else { return };
        let cancelled = keeper.ask(move |jobs| jobs.cancel_all(&caller, now_ms()));
        if let Err(failure) = cancelled.await {
            tracing::warn!(
                wrong = failure.message,
                "jobs of a revoked caller are not cancelled"
            );
        }
    }

    /// Opens them where an earlier process has kept something, so that its jobs are followed though nobody asks.
    pub async fn take_up(&self, kept: Arc<Kept>, pool: Arc<Pool>, hosts: Arc<Hosts>) {
        let mut wrong = None;
        for _ in 0..TAKEN_UP_TRIES {
            match self.keeper(&kept, &pool, &hosts).await {
                Ok(_) => return,
                Err(failure) => wrong = Some(failure.message),
            }
            tokio::time::sleep(TAKEN_UP_EVERY).await;
        }
        tracing::warn!(wrong, "jobs of an earlier process cannot be taken up");
    }
}

/// All jobs of a server.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub jobs: Arc<Jobs>,
    shelf: Arc<Shelf>,
    pool: Arc<Pool>,
    hosts: Arc<Hosts>,
    /// Somebody wants to know how jobs are.
    asked: Notify,
}

impl Keeper {
    fn open(shelf: Arc<Shelf>, pool: Arc<Pool>, hosts: Arc<Hosts>) -> Result<Arc<Self>, JobError> {
        let bounds = Bounds {
            running_per_caller_max: hosts.limits.jobs_running_max.max(1),
            ..Bounds::default()
        };
        let (jobs, recovered) = Jobs::open(Arc::clone(&shelf.store), bounds, now_ms())?;
        let keeper = Arc::new(Self {
            jobs: Arc::new(jobs),
            shelf,
            pool,
            hosts,
            asked: Notify::new(),
        });
        for claimed in recovered.adopted {
            keeper.follow(claimed, true);
        }
        keeper.wake();
        tokio::spawn(sweep(Arc::downgrade(&keeper)));
        Ok(keeper)
    }

    /// Asks for a job; gives the one that was asked for before under the same key.
    pub async fn submit(
        self: &Arc<Self>,
        caller: &str,
        work: &Work,
        written: Value,
        timeout_ms: u64,
        key: Option<String>,
    ) -> Result<Job, Failure> {
        let new = NewJob {
            caller: caller.to_owned(),
            kind: KIND,
            request: serde_json::to_value(work)
                .map_err(|error| Failure::new("internal", error.to_string()))?,
            timeout_ms: Some(timeout_ms),
            retries_max: 0,
            recovery: Recovery::Adopt,
            idempotency_key: key,
        };
        let submitted = self
            .ask(move |jobs| jobs.submit_as(new, &written, now_ms()))
            .await?;
        if submitted.is_new {
            self.wake();
        }
        Ok(submitted.job)
    }

    /// A job of a caller's at this host.
    pub async fn get(&self, caller: &str, host: &str, id: &JobId) -> Result<Job, Failure> {
        let (caller, id) = (caller.to_owned(), id.clone());
        let job = self.ask(move |jobs| jobs.get(&caller, &id)).await?;
        if job.request.get("host").and_then(Value::as_str) == Some(host) {
            return Ok(job);
        }
        Err(failure(&JobError::NotFound))
    }

    /// Lengths of the streams of a caller's output, as far as it is here.
    pub async fn lengths(&self, caller: &str, output: &str) -> Result<[u64; 2], Failure> {
        let outputs = Arc::clone(&self.shelf.outputs);
        let (caller, output) = (caller.to_owned(), output.to_owned());
        let length = move |stream| {
            let reader = outputs.stream(&caller, &output, stream, now_ms());
            let reader = reader.map_err(|e| Failure::new("no_such_output", e.to_string()));
            reader.map(|reader| reader.length())
        };
        blocking(move || Ok([length(0)?, length(1)?])).await
    }

    /// Does something with the store, where it may block.
    pub async fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Jobs) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, Failure> {
        let jobs = Arc::clone(&self.jobs);
        blocking(move || f(&jobs).map_err(|error| failure(&error))).await
    }

    /// Has the hosts of running jobs asked how they are.
    pub fn hurry(&self) {
        self.asked.notify_waiters();
    }

    /// Takes what waits, as far as it may run.
    fn wake(self: &Arc<Self>) {
        let keeper = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                match keeper.ask(|jobs| jobs.claim(&[KIND], now_ms())).await {
                    Ok(Some(claimed)) => keeper.follow(claimed, false),
                    Ok(None) => return,
                    Err(failure) => {
                        tracing::warn!(wrong = failure.message, "no job can be taken");
                        return;
                    }
                }
            }
        });
    }

    fn follow(self: &Arc<Self>, claimed: Claimed, is_adopted: bool) {
        let keeper = Arc::clone(self);
        tokio::spawn(async move {
            follow::follow(&keeper, claimed, is_adopted).await;
            keeper.wake();
        });
    }
}

/// Ends what takes too long, and removes what is old.
async fn sweep(keeper: Weak<Keeper>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(keeper) = keeper.upgrade() else {
            return;
        };
        let outputs = Arc::clone(&keeper.shelf.outputs);
        let swept = keeper.ask(move |jobs| {
            let swept = jobs.sweep(now_ms());
            if swept.as_ref().is_ok_and(|swept| !swept.removed.is_empty())
                && let Err(error) = outputs.sweep(now_ms())
            {
                tracing::warn!(%error, "outputs cannot be removed");
            }
            swept
        });
        if let Err(failure) = swept.await {
            tracing::warn!(wrong = failure.message, "late jobs cannot be ended");
        }
    }
}

async fn blocking<T: Send + 'static>(
    f: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(f).await;
    done.map_err(|_| Failure::new("internal", "the store of jobs could not be asked"))?
}

fn failure(error: &JobError) -> Failure {
    let failure = Failure::new(error.label(), error.to_string());
    if error.is_retryable() {
        failure.retryable()
    } else {
        failure
    }
}

fn fault(failure: Failure) -> JobFault {
    JobFault {
        details: failure.details,
        ..JobFault::new(failure.code, failure.message)
    }
}
