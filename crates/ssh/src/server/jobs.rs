//! Calls about jobs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use toolkit::cancel::Cancel;
use toolkit::jobs::{Job, JobId};
use toolkit::server::{Answer, Args, Failure, ReplySink, ToolCall};

use super::Ssh;
use super::run::To;
use crate::command::Command;
use crate::jobs::{Keeper, Note, Work};
use crate::sudo;
use crate::tools::{self, Named, Tool};

/// How long a call waits until the host has said that the job has begun.
const BEGIN_TOLD: Duration = Duration::from_secs(10);
/// How long a call waits for the host to say how a job is.
const LOOK_TOLD: Duration = Duration::from_secs(5);
/// How long a call that cancels a job waits for its end.
const END_TOLD: Duration = Duration::from_secs(10);

impl Ssh {
    pub(super) async fn job(
        &self,
        tool: Tool,
        call: &ToolCall,
        reply: &ReplySink,
    ) -> Result<Answer, Failure> {
        let keeper = self
            .jobs
            .keeper(&self.outputs, &self.pool, &self.hosts)
            .await?;
        if tool == Tool::JobStart {
            return self.job_start(&keeper, call, reply).await;
        }
        let (args, caller) = (call.args(), &call.session().caller);
        let named = Named::read(args)?;
        let mut job = keeper.get(caller, named.host, &named.id).await?;
        match tool {
            Tool::JobOutput => {
                if !job.state.is_end() {
                    job = looked(&keeper, job, reply.cancel()).await?;
                }
                let Some(output) = Note::of(&job).output else {
                    let wrong = "the job has not begun, and has written nothing";
                    return Err(Failure::new("no_such_output", wrong).retryable());
                };
                return self.outputs.read(caller, &output, args).await;
            }
            Tool::JobCancel => {
                let (caller, id) = (caller.to_string(), named.id.clone());
                let now_ms = crate::outputs::now_ms();
                keeper
                    .ask(move |jobs| jobs.cancel(&caller, &id, now_ms))
                    .await?;
                let is_over = |job: &Job| job.state.is_end();
                job = until(&keeper, job, END_TOLD, is_over, reply.cancel()).await?;
            }
            _ => {
                let wait = args.get("wait_ms").and_then(Value::as_u64).unwrap_or(0);
                if !job.state.is_end() {
                    job = looked(&keeper, job, reply.cancel()).await?;
                }
                let (wait, is_over) = (Duration::from_millis(wait), |job: &Job| job.state.is_end());
                job = until(&keeper, job, wait, is_over, reply.cancel()).await?;
            }
        }
        self.of_job(&keeper, &job).await
    }

    async fn job_start(
        &self,
        keeper: &Arc<Keeper>,
        call: &ToolCall,
        reply: &ReplySink,
    ) -> Result<Answer, Failure> {
        let args = call.args();
        let caller = &call.session().caller;
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        if session.host.credential.takes_password() {
            let wrong = format!(
                "{} is logged in to with a caller's password, which is not kept; jobs need a credential of the file of hosts",
                session.host.name
            );
            return Err(Failure::new("no_jobs", wrong));
        }
        let commands = tools::commands(Tool::JobStart, args)?;
        if commands.iter().any(|command| sudo::is(command.argv())) {
            let wrong = "jobs run nothing by sudo: its password is not left at the host";
            return Err(Failure::new("no_sudo", wrong));
        }
        let opened = self
            .asking(&To::from(&*session), args)
            .opened(commands, &self.context(args, &session.host)?, reply)
            .await?;
        let argv = opened.commands.first().map_or(&[][..], Command::argv);
        let work = Work {
            host: session.host.name.clone(),
            argv: argv.to_vec(),
            before: tools::before(&opened.context, &session.host)?,
            stdin: args.text("stdin").unwrap_or_default().to_owned(),
        };
        let asked_ms = args.get("timeout_ms").and_then(Value::as_u64);
        let limits = self.limits();
        let time_ms = asked_ms
            .unwrap_or(limits.job_ms_default)
            .min(limits.job_ms_max);
        let key = args.text("idempotency_key").ok().map(str::to_owned);
        let written = written(args, &session.host.name);
        let job = keeper.submit(caller, &work, written, time_ms, key).await?;
        let is_told = |job: &Job| job.state.is_end() || Note::of(job).begun;
        let job = until(keeper, job, BEGIN_TOLD, is_told, reply.cancel()).await?;
        self.of_job(keeper, &job).await
    }

    async fn of_job(&self, keeper: &Arc<Keeper>, job: &Job) -> Result<Answer, Failure> {
        let lengths = match Note::of(job).output {
            // Output that is kept no longer than the job is.
            Some(output) => keeper
                .lengths(&job.caller, &output)
                .await
                .unwrap_or_default(),
            None => [0; 2],
        };
        Ok(tools::of_job(
            job,
            lengths,
            self.limits().job_stream_bytes_max,
        ))
    }
}

/// What tells one request from another under the same key: all but the key, and the host instead of the session.
fn written(args: Args<'_>, host: &str) -> Value {
    let mut members = args.members().clone();
    members.remove("idempotency_key");
    members.insert("session_id".into(), host.into());
    Value::Object(members)
}

/// A running job once its host has said how it is, if it says so in time.
async fn looked(keeper: &Arc<Keeper>, job: Job, cancel: &Cancel) -> Result<Job, Failure> {
    let version = job.version;
    until(keeper, job, LOOK_TOLD, |job| job.version > version, cancel).await
}

/// A job once this holds, or as it is after this time.
async fn until(
    keeper: &Arc<Keeper>,
    job: Job,
    wait: Duration,
    holds: impl Fn(&Job) -> bool,
    cancel: &Cancel,
) -> Result<Job, Failure> {
    let end = Instant::now() + wait;
    let (caller, id) = (job.caller.clone(), job.id.clone());
    let watching = {
        let (caller, id) = (caller.clone(), id.clone());
        keeper.ask(move |jobs| jobs.watch(&caller, &id))
    };
    let mut watch = watching.await?;
    let again = |caller: String, id: JobId| keeper.ask(move |jobs| jobs.get(&caller, &id));
    keeper.hurry();
    loop {
        let job = again(caller.clone(), id.clone()).await?;
        if holds(&job) || job.state.is_end() {
            return Ok(job);
        }
        tokio::select! {
            is_told = watch.changed() => if !is_told { return again(caller, id).await },
            () = tokio::time::sleep_until(end) => return Ok(job),
            () = cancel.cancelled() => return Ok(job),
        }
    }
}
