//! Profiles of processes: by `perf` if the system has it, else by sampling their threads.
//!
//! Invariants, as absences: no counted call of `lab overhead` or `lab standard` is made under a profile;
//! `lab load` is profiled while it runs, and says so. No profile grows with the run: it ends by itself.

mod perf;
mod sampling;

use crate::driver::{LinkOptions, ProtocolRevision, TimedOperation, VariantLink};
use crate::error::LabError;
use crate::person::PersonRole;
use crate::variant::Variant;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a profile is at most.
const SPAN_MAX: Duration = Duration::from_secs(10);
/// How long a variant is called under one.
const CALLS_SPAN: Duration = Duration::from_secs(2);
/// Calls of a variant before it.
const WARMUP: u32 = 500;
/// How long a variant may take over a call, in milliseconds.
const TIMEOUT_MS: u64 = 10_000;

/// How a profile is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProfileMethod {
    /// With perf where it works, else by sampling
    Auto,
    /// With perf
    Perf,
    /// By sampling the state of each thread
    Sampling,
}

/// A profile that is being made.
#[derive(Debug)]
pub(crate) struct Profiler {
    /// Dropped to end it.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<Result<String, String>>>,
}

impl Profiler {
    /// Begins with these processes and their descendants. `data` is a place for a file meanwhile.
    pub(crate) fn start(way: ProfileMethod, roots: Vec<u32>, data: PathBuf) -> Self {
        let (stop, stopped) = sync_channel(1);
        let thread = std::thread::spawn(move || match way {
            ProfileMethod::Perf => perf::record(&roots, &data, &stopped),
            ProfileMethod::Sampling => sampling::look(&roots, &stopped),
            ProfileMethod::Auto if perf::works(&data) => perf::record(&roots, &data, &stopped),
            ProfileMethod::Auto => sampling::look(&roots, &stopped),
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Ends it; gives the page, or why there is none.
    pub(crate) fn finish(mut self) -> Result<String, String> {
        self.stop = None;
        let thread = self.thread.take().map(JoinHandle::join);
        thread.map_or_else(
            || Err("it was ended before".into()),
            |ended| ended.unwrap_or_else(|_| Err("the profiler stopped".into())),
        )
    }
}

/// Waits so long, or until it is to end; whether it goes on.
fn goes_on(stopped: &Receiver<()>, wait: Duration) -> bool {
    stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
}

/// Calls under a profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfiledCalls<'a> {
    pub(crate) operation: &'a TimedOperation,
    pub(crate) protocol: ProtocolRevision,
    /// Who sits at the variant's control socket.
    pub(crate) person: Option<&'a PersonRole>,
}

/// Starts a variant afresh and calls it under a profile; gives the page, or why there is none.
pub(crate) fn of_arm(
    arm: &Variant,
    calls: ProfiledCalls<'_>,
    way: ProfileMethod,
    data: &Path,
) -> Result<Result<String, String>, LabError> {
    let operation = match arm.tool() {
        Some(tool) => calls.operation.with_tool(tool),
        None => calls.operation.clone(),
    };
    let mut link = open(arm, calls)?;
    let Some(pid) = link.pid() else {
        return Ok(Err("it was not started here".into()));
    };
    let sit = |person: &PersonRole| person.sit(arm, &mut link, calls.protocol);
    let seat = calls.person.map(sit).transpose()?;
    let question = operation.question(calls.protocol);
    for _ in 0..WARMUP {
        link.ask(&question)?;
    }
    let profiler = Profiler::start(way, vec![pid], data.to_path_buf());
    let (start, mut made) = (Instant::now(), 0_u64);
    while start.elapsed() < CALLS_SPAN {
        link.ask(&question)?;
        made += 1;
    }
    let page = profiler.finish();
    if let Some(seat) = seat {
        seat.leave(&arm.name)?;
    }
    link.close();
    Ok(page.map(|page| {
        format!(
            "{}: {}, {made} calls in {} s\n{page}",
            arm.name,
            operation.describe(),
            CALLS_SPAN.as_secs()
        )
    }))
}

/// Starts a variant and shakes hands, as for one call after the other.
pub(crate) fn open(arm: &Variant, calls: ProfiledCalls<'_>) -> Result<VariantLink, LabError> {
    let manner = LinkOptions {
        operation: calls.operation,
        protocol: calls.protocol,
        width: 1,
        timeout_ms: TIMEOUT_MS,
    };
    VariantLink::open(arm, manner).map(|(link, _)| link)
}
