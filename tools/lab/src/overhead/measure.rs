//! Runs a plan: launches, turns, calls. Gives the raw times.

use super::analysis::VariantComparison;
use super::approval::ApprovalWait;
use super::monitor::RunMonitor;
use super::stages::{self, ExplainedLaunch};
use super::usage::{self, LaunchUsage};
use crate::affinity::CorePin;
use crate::driver::{
    AnswerEquality, AnswerExpectation, ConcurrentReply, LinkOptions, ProtocolRevision,
    RenderedRequest, TimedOperation, VariantLink, difference,
};
use crate::error::LabError;
use crate::person::{PersonRole, PersonSession};
use crate::processes::TreeMember;
use crate::stats::SeededRandom;
use crate::variant::Variant;
use crate::wall_clock;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Calls of a turn that come before its first counted one, so that each turn finds its caches warm.
const SETTLE_CALLS: u32 = 10;
/// An adaptive measurement is precise enough when half of each interval is below this share of the
/// overhead, or below the plan's least width.
const PRECISE_SHARE: f64 = 0.05;

/// Plan of a measurement.
#[derive(Debug, Clone)]
pub(crate) struct OverheadPlan {
    /// The first is the baseline.
    pub(crate) arms: Vec<Variant>,
    pub(crate) operation: TimedOperation,
    pub(crate) protocol: ProtocolRevision,
    pub(crate) launches: u32,
    /// Launches are added up to this many until the intervals are narrow; the same as `launches` otherwise.
    pub(crate) launches_max: u32,
    /// Half an interval that is always narrow enough, in microseconds.
    pub(crate) half_width_us: f64,
    /// Counted calls per variant and launch.
    pub(crate) runs: u32,
    pub(crate) warmup: u32,
    /// Calls in a row before the next variant's turn.
    pub(crate) turn: u32,
    /// Calls under way at once.
    pub(crate) concurrency: u32,
    pub(crate) delay_us: u64,
    pub(crate) pin: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) timeout_ms: u64,
    pub(crate) confidence: f64,
    pub(crate) answers: AnswerEquality,
    /// Whether all variants but the references must refuse.
    pub(crate) deny: bool,
    /// How many of the first variants the later ones are compared with, one after the other.
    pub(crate) references: usize,
    /// Who sits at the control sockets of all variants but the baseline.
    pub(crate) person: Option<PersonRole>,
}

/// The times of one variant in one launch. The vectors hold one entry per counted call.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaunchTimes {
    /// From spawn to the answer to the handshake, in microseconds.
    pub(crate) start_us: f64,
    /// The first call of all, right after the handshake.
    pub(crate) first_us: f64,
    /// Each counted call in the order of its answer, in microseconds.
    pub(crate) calls_us: Vec<f64>,
    /// When each began, since the beginning of the run.
    pub(crate) begun_us: Vec<f64>,
    /// The size of each answer.
    pub(crate) bytes: Vec<usize>,
    /// The id that each went out under.
    pub(crate) ids: Vec<u64>,
    pub(crate) usage: Vec<LaunchUsage>,
    /// The journal's record of the counted calls, or why there is none; `None` without a journal.
    pub(crate) explained: Option<Result<ExplainedLaunch, String>>,
    /// How long the approver held each question before the answer, in microseconds; nothing without one.
    pub(crate) held_us: Vec<f64>,
}

/// A launch holds a lap for every variant, in the order of the plan.
pub(crate) type Launch = Vec<LaunchTimes>;

/// Result of a measurement.
#[derive(Debug, Default)]
pub(crate) struct OverheadMeasurement {
    pub(crate) launches: Vec<Launch>,
    /// Whether it was stopped before it was done.
    pub(crate) aborted: bool,
    /// Why a later launch failed; the ones before it were whole.
    pub(crate) failure: Option<LabError>,
}

struct VariantLane<'a> {
    arm: &'a Variant,
    /// Ends before the process does.
    seat: Option<PersonSession>,
    link: VariantLink,
    /// What this variant is asked: the plan's operation by the variant's own name for the tool.
    question: RenderedRequest,
    expectation: AnswerExpectation,
    lap: LaunchTimes,
    calls: usize,
    before: Vec<TreeMember>,
    segments: BTreeSet<PathBuf>,
}

/// Measures. After Ctrl-C, and if a variant fails in a later launch, it returns the complete launches.
pub(crate) fn measure(
    plan: &OverheadPlan,
    monitor: &mut RunMonitor<'_>,
) -> Result<OverheadMeasurement, LabError> {
    let _pinned = plan.pin.map(CorePin::to).transpose()?;
    let mut random = SeededRandom::new(plan.seed);
    let mut measured = OverheadMeasurement::default();
    // The answers of the first launch bind all later ones.
    let mut agreed: Option<Value> = None;
    for number in 1..=plan.launches_max {
        if number > plan.launches && is_precise(plan, &measured.launches) {
            break;
        }
        tell(plan, number, &measured.launches, monitor);
        match launch(plan, &mut random, &mut agreed, monitor) {
            Ok(launch) => {
                monitor.keep(plan, &launch);
                measured.launches.push(launch);
            }
            // A failure at that time may be due to the interrupt.
            Err(_) if monitor.interrupt.is_set() && measured.launches.is_empty() => {
                return Err(LabError::Aborted);
            }
            Err(_) if monitor.interrupt.is_set() => {
                measured.aborted = true;
                break;
            }
            Err(error) if measured.launches.is_empty() => return Err(error),
            Err(error) => {
                measured.failure = Some(error);
                break;
            }
        }
    }
    monitor.progress.finish();
    Ok(measured)
}

/// Returns every variant beside each reference before it.
pub(super) fn comparisons(plan: &OverheadPlan, launches: &[Launch]) -> Vec<VariantComparison> {
    let mut found = Vec::new();
    for (reference, baseline) in plan.arms.iter().enumerate().take(plan.references) {
        for (at, arm) in plan.arms.iter().enumerate().skip(reference + 1) {
            let pairs = launches
                .iter()
                .filter_map(|launch| Some((launch.get(reference)?, launch.get(at)?)));
            let pairs: Vec<(&LaunchTimes, &LaunchTimes)> = pairs.collect();
            found.push(VariantComparison {
                approval: ApprovalWait::of(plan, &pairs),
                ..VariantComparison::of(&arm.name, &baseline.name, &pairs, plan.confidence)
            });
        }
    }
    found
}

fn is_precise(plan: &OverheadPlan, launches: &[Launch]) -> bool {
    comparisons(plan, launches).iter().all(|found| {
        let wanted = (PRECISE_SHARE * found.overhead_us.point.abs()).max(plan.half_width_us);
        found
            .overhead_us
            .half_width()
            .is_some_and(|half| half < wanted)
    })
}

fn tell(plan: &OverheadPlan, number: u32, launches: &[Launch], monitor: &mut RunMonitor<'_>) {
    if !monitor.progress.is_due() {
        return;
    }
    let of = if plan.launches_max > plan.launches {
        format!("{} to {}", plan.launches, plan.launches_max)
    } else {
        plan.launches.to_string()
    };
    let mut text = format!("launch {number}/{of}");
    if launches.len() > 1 {
        for found in comparisons(plan, launches) {
            let half = found.overhead_us.half_width().unwrap_or_default();
            text.push_str(&format!(
                "  {} {:+.1} ±{half:.1} us",
                found.arm, found.overhead_us.point
            ));
        }
    }
    monitor.progress.always(&text);
}

fn launch(
    plan: &OverheadPlan,
    random: &mut SeededRandom,
    agreed: &mut Option<Value>,
    monitor: &RunMonitor<'_>,
) -> Result<Launch, LabError> {
    let mut order: Vec<usize> = (0..plan.arms.len()).collect();
    random.shuffle(&mut order);
    let mut lanes = open(plan, &order)?;
    if let Some(sampler) = &monitor.sampler {
        let targets = lanes
            .iter()
            .filter_map(|lane| Some((lane.arm.name.clone(), lane.link.pid()?)));
        sampler.watch(targets.collect());
    }
    // The warm-up also finds out whether the variants answer alike, before anything is counted.
    for lane in &mut lanes {
        lane.lap.first_us = microseconds(lane.call()?);
        for _ in 1..plan.warmup {
            monitor.go_on()?;
            lane.call()?;
        }
        lane.begin();
    }
    compare_answers(&lanes, agreed)?;
    let mut left = plan.runs;
    random.shuffle(&mut order);
    while left > 0 {
        let calls = left.min(plan.turn);
        for at in &order {
            if let Some(lane) = lanes.get_mut(*at) {
                lane.turn(plan, calls, monitor)?;
            }
        }
        order.reverse();
        left -= calls;
    }
    share_calls(&mut lanes);
    // Who serves the others ends last.
    let mut laps: Vec<LaunchTimes> = Vec::with_capacity(lanes.len());
    for lane in lanes.into_iter().rev() {
        laps.push(lane.finish(plan)?);
    }
    laps.reverse();
    Ok(laps)
}

/// The first variant also answers the calls of those that lead to it.
fn share_calls(lanes: &mut [VariantLane<'_>]) {
    let others = lanes.iter().skip(1).filter(|lane| lane.arm.wants_direct());
    let calls: usize = others.map(|lane| lane.calls).sum();
    if let Some(first) = lanes.first_mut() {
        first.calls += calls;
    }
}

/// Starts every variant in the given order, the first one first where others need its address; gives them in the
/// plan's.
fn open<'a>(plan: &'a OverheadPlan, order: &[usize]) -> Result<Vec<VariantLane<'a>>, LabError> {
    let mut order = order.to_vec();
    if plan.arms.iter().any(Variant::wants_direct) {
        order.sort_by_key(|at| *at > 0);
    }
    let mut direct = None;
    let mut opened = Vec::new();
    for (at, arm) in order
        .iter()
        .filter_map(|at| Some((*at, plan.arms.get(*at)?)))
    {
        let lane = VariantLane::open(plan, arm, at, direct.as_deref())?;
        if at == 0 {
            direct = lane.link.url();
        }
        opened.push((at, lane));
    }
    opened.sort_by_key(|(at, _)| *at);
    Ok(opened.into_iter().map(|(_, lane)| lane).collect())
}

fn compare_answers(lanes: &[VariantLane<'_>], agreed: &mut Option<Value>) -> Result<(), LabError> {
    for lane in lanes {
        match (lane.expectation.value(), agreed.as_ref()) {
            (Some(value), None) => *agreed = Some(value.clone()),
            (Some(value), Some(known)) if value != known => {
                return Err(LabError::Invalid {
                    arm: lane.arm.name.clone(),
                    what: format!(
                        "its answer is not the baseline's ({}); --answers content or any compares less",
                        difference(known, value)
                    ),
                });
            }
            _ => {}
        }
    }
    Ok(())
}

impl LaunchTimes {
    fn with_capacity(calls: usize) -> Self {
        Self {
            calls_us: Vec::with_capacity(calls),
            begun_us: Vec::with_capacity(calls),
            bytes: Vec::with_capacity(calls),
            ids: Vec::with_capacity(calls),
            ..Self::default()
        }
    }

    fn push(&mut self, run: Instant, begun: Instant, elapsed_ns: u64, id: u64, bytes: usize) {
        self.calls_us.push(microseconds(elapsed_ns));
        let since = begun.saturating_duration_since(run);
        self.begun_us.push(since.as_secs_f64() * 1e6);
        self.bytes.push(bytes);
        self.ids.push(id);
    }
}

impl<'a> VariantLane<'a> {
    /// Starts a variant; `direct` is the address of the first one.
    fn open(
        plan: &OverheadPlan,
        arm: &'a Variant,
        at: usize,
        direct: Option<&str>,
    ) -> Result<Self, LabError> {
        let segments = arm.journal().map(stages::list_segments).unwrap_or_default();
        let placed = direct.map(|direct| arm.behind(direct));
        let operation = match arm.tool() {
            Some(tool) => plan.operation.with_tool(tool),
            None => plan.operation.clone(),
        };
        let manner = LinkOptions {
            operation: &operation,
            protocol: plan.protocol,
            width: plan.concurrency as usize,
            timeout_ms: plan.timeout_ms,
        };
        let (mut link, start_ns) = VariantLink::open(placed.as_ref().unwrap_or(arm), manner)?;
        let person = plan.person.as_ref().filter(|_| at >= plan.references);
        let seat = person.map(|person| person.sit(arm, &mut link, plan.protocol));
        Ok(Self {
            arm,
            seat: seat.transpose()?,
            link,
            question: operation.question(plan.protocol),
            expectation: AnswerExpectation::new(plan.answers, plan.deny && at >= plan.references),
            lap: LaunchTimes {
                start_us: microseconds(start_ns),
                ..LaunchTimes::with_capacity(plan.runs as usize)
            },
            calls: 0,
            before: Vec::new(),
            segments,
        })
    }

    fn turn(
        &mut self,
        plan: &OverheadPlan,
        calls: u32,
        monitor: &RunMonitor<'_>,
    ) -> Result<(), LabError> {
        if plan.concurrency > 1 {
            monitor.go_on()?;
            return self.volley(plan, calls, monitor.start);
        }
        if calls > SETTLE_CALLS {
            for _ in 0..SETTLE_CALLS {
                self.call()?;
            }
        }
        for _ in 0..calls {
            monitor.go_on()?;
            wall_clock::pause(Duration::from_micros(plan.delay_us));
            let begun = Instant::now();
            let elapsed = self.call()?;
            let (id, bytes) = self.link.last();
            self.lap.push(monitor.start, begun, elapsed, id, bytes);
        }
        Ok(())
    }

    fn volley(&mut self, plan: &OverheadPlan, calls: u32, run: Instant) -> Result<(), LabError> {
        let settle = if calls > SETTLE_CALLS {
            SETTLE_CALLS.max(plan.concurrency)
        } else {
            0
        };
        self.calls += (settle + calls) as usize;
        let (mut seen, lap, expectation) = (0, &mut self.lap, &mut self.expectation);
        let mut each = |reply: &ConcurrentReply<'_>| {
            if let Some(answer) = &reply.answer {
                expectation.check(answer)?;
            }
            seen += 1;
            if seen > settle {
                lap.push(run, reply.begun, reply.elapsed_ns, reply.id, reply.bytes);
            }
            Ok(())
        };
        let width = plan.concurrency as usize;
        let answered = self
            .link
            .volley(&self.question, settle + calls, width, &mut each);
        answered.map_err(|error| self.explain(error))
    }

    fn explain(&self, error: LabError) -> LabError {
        match &self.seat {
            Some(seat) => seat.explain(&self.arm.name, error),
            None => error,
        }
    }

    fn call(&mut self) -> Result<u64, LabError> {
        self.calls += 1;
        let asked = self.link.ask(&self.question);
        let elapsed = asked.map_err(|error| self.explain(error))?;
        let expectation = &mut self.expectation;
        self.link.check(&mut |answer| expectation.check(answer))?;
        Ok(elapsed)
    }

    /// Counts the resources of the processes from here.
    fn begin(&mut self) {
        self.calls = 0;
        self.before = self.link.pid().map(usage::begin).unwrap_or_default();
        if let Some(seat) = &self.seat {
            seat.begin();
        }
    }

    fn finish(mut self, plan: &OverheadPlan) -> Result<LaunchTimes, LabError> {
        if let Some(pid) = self.link.pid() {
            self.lap.usage = usage::end(pid, &self.before, self.calls);
        }
        if let Some(seat) = self.seat.take() {
            self.lap.held_us = seat.leave(&self.arm.name)?;
        }
        self.link.close();
        let recorded = plan.operation != TimedOperation::List;
        if let Some(directory) = self.arm.journal().filter(|_| recorded) {
            let explained = stages::explain(directory, &self.segments, &self.lap, plan.deny)?;
            self.lap.explained = Some(explained);
        }
        Ok(self.lap)
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1_000.0
}
