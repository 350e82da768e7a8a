//! Starts the workers, leads them through the phases, reports progress.

use super::args::{LoadPhase, LoadPlan};
use super::pace::PhaseSchedule;
use super::worker::{CompletedCall, Worker, WorkerContext};
use crate::error::LabError;
use crate::interrupt::InterruptFlag;
use crate::processes;
use crate::profile::{ProfileMethod, Profiler};
use crate::progress::ProgressOutput;
use crate::run::ResourceSampler;
use crate::stats::SeededRandom;
use hdrhistogram::Histogram;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// The longest time of the progress line, in microseconds.
const RECENT_US_MAX: u64 = 3_600_000_000;
/// How often the leader looks.
const GLANCE: Duration = Duration::from_millis(100);
/// How far ahead of its first call a phase begins, so that all workers are there.
const HEAD_START: Duration = Duration::from_millis(5);

/// Result of a run.
#[derive(Debug, Default)]
pub(crate) struct DriveResult {
    /// The calls of each worker in order.
    pub(crate) workers: Vec<Vec<CompletedCall>>,
    pub(crate) phases: Vec<FinishedPhase>,
    pub(crate) complaint: Option<String>,
    pub(crate) aborted: bool,
    /// Processor time of the generator per second of the phases, as a share of one core.
    pub(crate) generator_cpu_percent: f64,
    /// A profile of the target, or why there is none; nothing if none was wanted.
    pub(crate) profile: Option<Result<String, String>>,
}

/// A phase that is over.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FinishedPhase {
    /// When it began and ended, from the beginning of the run.
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
    /// Calls that were due and never left.
    pub(crate) unsent: u64,
}

/// A phase that runs now: its schedule and its beginning.
type Current<'a> = (u32, &'a PhaseSchedule, Instant);

/// Puts the target under load.
pub(crate) fn drive(
    plan: &LoadPlan,
    interrupt: &InterruptFlag,
    sampler: Option<&ResourceSampler>,
    progress: &mut ProgressOutput<'_>,
    profiled: Option<(ProfileMethod, PathBuf)>,
) -> Result<DriveResult, LabError> {
    let shared = WorkerContext::default();
    let mut workers =
        ready(plan, &shared, interrupt).map_err(|error| match interrupt.is_set() {
            // A failure at that time may be due to the interrupt.
            true => LabError::Aborted,
            false => error,
        })?;
    let pids: Vec<u32> = lock(&shared.pids).iter().copied().collect();
    if let Some(sampler) = sampler {
        let targets = pids.iter().map(|pid| ("target".to_owned(), *pid));
        sampler.watch(targets.chain(plan.watched.iter().cloned()).collect());
    }
    let profiler = profiled.map(|(way, data)| Profiler::start(way, pids, data));
    let run = Instant::now();
    let (cpu_before, mut phases) = (own_cpu_us(), Vec::new());
    for (number, phase) in (0..).zip(&plan.phases) {
        if interrupt.is_set() {
            break;
        }
        let schedule = PhaseSchedule::new(phase.pace, phase.duration);
        let begin = Instant::now() + HEAD_START;
        *lock(&shared.recent) = Histogram::new_with_bounds(1, RECENT_US_MAX, 3).ok();
        shared.left_behind.store(0, Ordering::Relaxed);
        lead(&mut workers, (number, &schedule, begin), run, || {
            tell(phase, &shared, begin, progress);
        });
        let left_behind = match schedule.is_open() && !interrupt.is_set() {
            true => shared.left_behind.load(Ordering::Relaxed),
            // A stop takes back calls that were not due yet.
            false => 0,
        };
        phases.push(FinishedPhase {
            begin: begin - run,
            end: end(phase, &workers, number, begin - run, interrupt, run),
            unsent: schedule.untaken(begin.elapsed()) + left_behind,
        });
    }
    let took = run.elapsed().as_secs_f64().max(1e-9);
    let complaint = lock(&shared.complaint).take();
    // The processes have to live until their profile is read.
    let profile = profiler.map(Profiler::finish);
    Ok(DriveResult {
        profile,
        workers: workers.into_iter().map(|worker| worker.done).collect(),
        phases,
        complaint,
        aborted: interrupt.is_set(),
        generator_cpu_percent: (own_cpu_us() - cpu_before) / (took * 1e4),
    })
}

/// When a phase ended: at its time, later if calls were still under way, earlier if it was stopped.
fn end(
    phase: &LoadPhase,
    workers: &[Worker<'_>],
    number: u32,
    begin: Duration,
    interrupt: &InterruptFlag,
    run: Instant,
) -> Duration {
    if interrupt.is_set() {
        return run.elapsed();
    }
    let done = workers.iter().flat_map(|worker| &worker.done);
    let last_us = done
        .filter(|done| done.phase == number)
        .map(|done| done.start_us + done.latency_us)
        .fold(0.0, f64::max);
    (begin + phase.duration).max(Duration::from_secs_f64(last_us / 1e6))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_cpu_us() -> f64 {
    processes::member(std::process::id()).map_or(0.0, |own| own.cpu_us)
}

/// Workers that are connected and warm. The first that is not makes the run impossible.
fn ready<'a>(
    plan: &'a LoadPlan,
    shared: &'a WorkerContext,
    interrupt: &'a InterruptFlag,
) -> Result<Vec<Worker<'a>>, LabError> {
    let worker = |number| Worker {
        number,
        plan,
        shared,
        interrupt,
        target: None,
        reconnects: 0,
        done: Vec::new(),
        random: SeededRandom::new(plan.seed.wrapping_add(u64::from(number) << 32)),
    };
    std::thread::scope(|scope| {
        let handles: Vec<ScopedJoinHandle<'_, Result<Worker<'a>, LabError>>> = (0..plan.workers)
            .map(|number| {
                scope.spawn(move || {
                    let mut worker = worker(number);
                    worker.warm()?;
                    Ok(worker)
                })
            })
            .collect();
        handles.into_iter().map(join_worker).collect()
    })
}

fn join_worker<T>(handle: ScopedJoinHandle<'_, Result<T, LabError>>) -> Result<T, LabError> {
    handle.join().unwrap_or_else(|_| {
        Err(LabError::System {
            what: "run a worker",
            source: std::io::Error::other("it stopped"),
        })
    })
}

/// Lets all workers work through a phase, and looks on.
fn lead(
    workers: &mut [Worker<'_>],
    (number, schedule, begin): Current<'_>,
    run: Instant,
    mut look: impl FnMut(),
) {
    std::thread::scope(|scope| {
        let handles: Vec<ScopedJoinHandle<'_, ()>> = workers
            .iter_mut()
            .map(|worker| scope.spawn(move || worker.work(number, schedule, run, begin)))
            .collect();
        while handles.iter().any(|handle| !handle.is_finished()) {
            std::thread::park_timeout(GLANCE);
            look();
        }
    });
}

fn tell(
    phase: &LoadPhase,
    shared: &WorkerContext,
    begin: Instant,
    progress: &mut ProgressOutput<'_>,
) {
    if !progress.is_due() {
        return;
    }
    let elapsed = begin.elapsed().as_secs_f64().max(1e-3);
    let (calls, failures) = (
        shared.calls.load(Ordering::Relaxed),
        shared.failures.load(Ordering::Relaxed),
    );
    let recent = lock(&shared.recent);
    let (answered, p50, p99) = recent.as_ref().map_or((0, 0, 0), |recent| {
        let at = |q| recent.value_at_quantile(q);
        (recent.len(), at(0.5), at(0.99))
    });
    progress.always(&format!(
        "{} {elapsed:.0}/{:.0} s  {:.0}/s  {calls} calls  {failures} failed  p50 {p50} us  p99 {p99} us",
        phase.name,
        phase.duration.as_secs_f64(),
        answered as f64 / elapsed
    ));
}
