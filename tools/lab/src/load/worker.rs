//! One worker: takes calls from the schedule, makes them, remembers what became of them.

use super::args::LoadPlan;
use super::pace::{PhaseSchedule, pause};
use super::target::{CallReport, CallTarget};
use crate::error::LabError;
use crate::interrupt::InterruptFlag;
use crate::run::CallStatus;
use crate::stats::SeededRandom;
use hdrhistogram::Histogram;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a worker connects again after it lost its target, in one run.
const RECONNECTS_MAX: u32 = 1_000;
/// How long it waits before it tries again.
const RECONNECT_WAIT: Duration = Duration::from_millis(100);
/// How many calls one run remembers; it stops there.
const CALLS_MAX: u64 = 20_000_000;
/// The longest nap between two looks at Ctrl-C.
const NAP_MAX: Duration = Duration::from_millis(100);

/// One call, in microseconds from the beginning of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompletedCall {
    pub(crate) phase: u32,
    pub(crate) intended_us: f64,
    pub(crate) start_us: f64,
    pub(crate) latency_us: f64,
    /// How long after it could have left it left, for no reason of the target's.
    pub(crate) late_us: f64,
    pub(crate) bytes: u64,
    pub(crate) ttft_us: Option<f64>,
    pub(crate) status: CallStatus,
}

/// What all workers share while they work.
#[derive(Debug, Default)]
pub(crate) struct WorkerContext {
    pub(crate) calls: AtomicU64,
    pub(crate) failures: AtomicU64,
    /// Calls of the phase under way that a worker took and did not make.
    pub(crate) left_behind: AtomicU64,
    /// The first complaint of all.
    pub(crate) complaint: Mutex<Option<String>>,
    /// Response times of the phase under way, in microseconds.
    pub(crate) recent: Mutex<Option<Histogram<u64>>>,
    /// The processes of the targets.
    pub(crate) pids: Mutex<Vec<u32>>,
}

/// A worker and its target.
pub(crate) struct Worker<'a> {
    pub(crate) number: u32,
    pub(crate) plan: &'a LoadPlan,
    pub(crate) shared: &'a WorkerContext,
    pub(crate) interrupt: &'a InterruptFlag,
    pub(crate) target: Option<Box<dyn CallTarget>>,
    pub(crate) reconnects: u32,
    pub(crate) done: Vec<CompletedCall>,
    /// Random numbers for its pauses.
    pub(crate) random: SeededRandom,
}

impl Worker<'_> {
    /// Makes the calls that are not counted.
    pub(crate) fn warm(&mut self) -> Result<(), LabError> {
        let target = self.plan.aim.open(self.plan.timeout_ms)?;
        self.adopt(target);
        for _ in 0..self.plan.warm {
            if self.interrupt.is_set() {
                break;
            }
            let told = self.call();
            if told.is_lost() {
                return Err(LabError::Broken {
                    arm: "target".into(),
                    what: told.complaint.unwrap_or_default(),
                });
            }
        }
        Ok(())
    }

    /// Works through a phase that began at `begin`; `run` is when the run began.
    pub(crate) fn work(
        &mut self,
        phase: u32,
        schedule: &PhaseSchedule,
        run: Instant,
        begin: Instant,
    ) {
        // Without this the kernel wakes sleepers up to 50 µs late to save power. If it is refused, the lateness is
        // measured anyway.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Self::wait_for(begin);
        let mut free = Duration::ZERO;
        while let Some(due) = schedule.due(self.number, begin.elapsed()) {
            let in_time = begin.elapsed() < schedule.length() + self.plan.overtime;
            if !in_time || !self.wait_until(begin, due) || self.is_full() {
                // It was taken, and does not leave.
                self.shared.left_behind.fetch_add(1, Ordering::Relaxed);
                break;
            }
            let start = begin.elapsed();
            let told = self.call();
            let offset = |since: Duration| (begin + since).duration_since(run).as_secs_f64() * 1e6;
            let could = due.max(free);
            self.remember(CompletedCall {
                phase,
                intended_us: offset(due),
                start_us: offset(start),
                latency_us: told.elapsed_ns as f64 / 1e3,
                late_us: start.saturating_sub(could).as_secs_f64() * 1e6,
                bytes: told.bytes as u64,
                ttft_us: told.ttft_ns.map(|ns| ns as f64 / 1e3),
                status: told.status,
            });
            let lost = told.is_lost();
            self.complain(told.complaint);
            if lost && !self.recover((phase, schedule), run, begin) {
                break;
            }
            if !self.plan.think.is_zero() {
                let pause = pause(self.plan.think, self.plan.think_spread, &mut self.random);
                let until = begin.elapsed() + pause;
                self.wait_until(begin, until);
            }
            free = begin.elapsed();
        }
    }

    fn adopt(&mut self, target: Box<dyn CallTarget>) {
        if let Some(pid) = target.pid() {
            let mut pids = self
                .shared
                .pids
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            pids.push(pid);
        }
        self.target = Some(target);
    }

    fn call(&mut self) -> CallReport {
        match &mut self.target {
            Some(target) => target.call(),
            None => CallReport::failure(CallStatus::Broken, 0, "not connected".into()),
        }
    }

    fn remember(&mut self, done: CompletedCall) {
        self.done.push(done);
        self.shared.calls.fetch_add(1, Ordering::Relaxed);
        if done.status != CallStatus::Ok {
            self.shared.failures.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let response_us = done.start_us + done.latency_us - done.intended_us;
        let mut recent = self
            .shared
            .recent
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(recent) = recent.as_mut() {
            recent.saturating_record(response_us.max(1.0) as u64);
        }
    }

    fn complain(&self, complaint: Option<String>) {
        if let Some(complaint) = complaint {
            let first = self.shared.complaint.lock();
            let mut first = first.unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(complaint);
        }
    }

    /// Reconnects while the phase goes on; returns false if that failed. In a closed loop each attempt that fails is a
    /// call that failed: its caller would have made one. At a rate the calls that fall due meanwhile count.
    fn recover(
        &mut self,
        (phase, schedule): (u32, &PhaseSchedule),
        run: Instant,
        begin: Instant,
    ) -> bool {
        self.target = None;
        while self.reconnects < RECONNECTS_MAX
            && !self.interrupt.is_set()
            && begin.elapsed() < schedule.length()
        {
            self.reconnects += 1;
            let start_us = run.elapsed().as_secs_f64() * 1e6;
            match self.plan.aim.open(self.plan.timeout_ms) {
                Ok(target) => {
                    self.adopt(target);
                    return true;
                }
                Err(_) if schedule.is_open() => {}
                Err(_) => self.remember(CompletedCall {
                    phase,
                    intended_us: start_us,
                    start_us,
                    latency_us: run.elapsed().as_secs_f64() * 1e6 - start_us,
                    late_us: 0.0,
                    bytes: 0,
                    ttft_us: None,
                    status: CallStatus::Broken,
                }),
            }
            std::thread::park_timeout(RECONNECT_WAIT);
        }
        false
    }

    fn is_full(&self) -> bool {
        self.shared.calls.load(Ordering::Relaxed) >= CALLS_MAX
    }

    /// Waits until `begin` itself, which lies a little ahead.
    fn wait_for(begin: Instant) {
        while let Some(left) = begin.checked_duration_since(Instant::now()) {
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    /// Waits until then; `false` when an end was asked for meanwhile.
    fn wait_until(&self, begin: Instant, due: Duration) -> bool {
        loop {
            if self.interrupt.is_set() {
                return false;
            }
            let left = due.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return true;
            }
            std::thread::park_timeout(left.min(NAP_MAX));
        }
    }
}
