//! Calls a second with many connections, each with a session of its own: client, variant and server share all
//! cores. One thread drives all connections, so that little of the machine is the generator's.

use super::HttpSides;
use crate::LabContext;
use crate::driver::{
    AnswerEquality, AnswerExpectation, AnsweredClient, ClientPool, HttpSession, ListeningServer,
    TimedOperation,
};
use crate::error::LabError;
use crate::interrupt::InterruptFlag;
use crate::journal;
use crate::overhead::OverheadPlan;
use crate::stats::{Interval, SeededRandom, SortedSamples};
use crate::variant::Variant;
use crate::{processes, wall_clock};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many connections there are.
pub(super) const CONNECTIONS: usize = 32;
/// How long calls are made before they count.
const WARM: Duration = Duration::from_millis(400);
/// How long they count.
const SPAN: Duration = Duration::from_millis(1_500);
/// Fresh starts of every variant.
const LAUNCHES: u32 = 5;
/// How long a variant rests, greeted, before its memory is read.
const REST: Duration = Duration::from_millis(500);

/// One variant with many connections.
#[derive(Debug, Serialize)]
pub(super) struct ConnectionRate {
    pub(super) hop: HttpSides,
    pub(super) arm: String,
    pub(super) connections: usize,
    /// Calls a second.
    pub(super) per_second: Interval,
    /// Median and 99th percentile of a call, the mean of launches, in microseconds.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Resident memory of its own process, at rest after its start and after the load, the largest of all launches,
    /// in KiB.
    pub(super) resting_kib: u64,
    pub(super) loaded_kib: u64,
    /// Memory of its further processes but the servers behind it, after the load, in KiB: their own pages and
    /// their share of those that they have in common.
    pub(super) helpers_kib: u64,
    /// Calls that were answered, and decisions about calls that its journal holds; nothing without one.
    pub(super) answered: u64,
    pub(super) decided: Option<u64>,
    /// What `durward audit verify` said of that journal.
    pub(super) verified: Option<String>,
}

/// One launch.
struct RateRound {
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    resting_kib: u64,
    loaded_kib: u64,
    helpers_kib: u64,
    answered: u64,
}

/// Measures all variants of a plan, in random order within each launch.
pub(super) fn measure(
    hop: HttpSides,
    plan: &OverheadPlan,
    quick: bool,
    context: &LabContext,
    interrupt: &InterruptFlag,
) -> Result<Vec<ConnectionRate>, LabError> {
    let mut random = SeededRandom::new(plan.seed);
    let mut rounds: Vec<Vec<RateRound>> = plan.arms.iter().map(|_| Vec::new()).collect();
    let before: Vec<u64> = plan.arms.iter().map(decisions).collect::<Result<_, _>>()?;
    for _ in 0..if quick { 3 } else { LAUNCHES } {
        let mut order: Vec<usize> = (0..plan.arms.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            if interrupt.is_set() {
                return Err(LabError::Aborted);
            }
            if let (Some(arm), Some(rounds)) = (plan.arms.get(at), rounds.get_mut(at)) {
                rounds.push(launch(plan, arm, quick)?);
            }
        }
    }
    let arms = plan.arms.iter().zip(rounds).zip(before);
    arms.map(|((arm, rounds), before)| summarise_rounds(hop, plan, arm, &rounds, before, context))
        .collect()
}

fn summarise_rounds(
    hop: HttpSides,
    plan: &OverheadPlan,
    arm: &Variant,
    rounds: &[RateRound],
    before: u64,
    context: &LabContext,
) -> Result<ConnectionRate, LabError> {
    let all = |of: fn(&RateRound) -> f64| rounds.iter().map(of).collect::<Vec<f64>>();
    let most = |of: fn(&RateRound) -> u64| rounds.iter().map(of).max().unwrap_or_default();
    let answered = rounds.iter().map(|round| round.answered).sum();
    let (mut decided, mut verified) = (None, None);
    if let Some(directory) = arm.journal() {
        let found = decisions(arm)? - before;
        if found != answered {
            return Err(LabError::Invalid {
                arm: arm.name.clone(),
                what: format!(
                    "{answered} calls were answered, but its journal holds {found} decisions"
                ),
            });
        }
        decided = Some(found);
        verified = Some(super::super::verify(directory, &arm.name, context)?);
    }
    Ok(ConnectionRate {
        hop,
        arm: arm.name.clone(),
        connections: CONNECTIONS,
        per_second: Interval::over_launches(&all(|r| r.per_second), plan.confidence),
        p50_us: crate::stats::mean(&all(|r| r.p50_us)),
        p99_us: crate::stats::mean(&all(|r| r.p99_us)),
        resting_kib: most(|r| r.resting_kib),
        loaded_kib: most(|r| r.loaded_kib),
        helpers_kib: most(|r| r.helpers_kib),
        answered,
        decided,
        verified,
    })
}

/// Returns how many calls the variant's journal has decided so far.
pub(in super::super) fn decisions(arm: &Variant) -> Result<u64, LabError> {
    let Some(directory) = arm.journal().filter(|directory| Path::exists(directory)) else {
        return Ok(0);
    };
    let mut found = 0;
    for segment in journal::segments(directory)? {
        journal::bodies(&segment, |body| {
            found += u64::from(body.kind == "decision" && body.tool_name.is_some());
        })?;
    }
    Ok(found)
}

/// One fresh start of a variant, and of the server that it leads to.
fn launch(plan: &OverheadPlan, arm: &Variant, quick: bool) -> Result<RateRound, LabError> {
    let direct = plan.arms.first().filter(|_| arm.wants_direct());
    let direct = direct
        .map(|direct| ListeningServer::start(direct, plan.timeout_ms))
        .transpose()?;
    let placed = direct
        .as_ref()
        .map(|direct| arm.behind(&direct.url().to_string()));
    let served = ListeningServer::start(placed.as_ref().unwrap_or(arm), plan.timeout_ms)?;
    let operation = match arm.tool() {
        Some(tool) => plan.operation.with_tool(tool),
        None => plan.operation.clone(),
    };
    let round = load(plan, &operation, &served, quick).map_err(|what| LabError::Invalid {
        arm: arm.name.clone(),
        what,
    })?;
    served.close();
    if let Some(direct) = direct {
        direct.close();
    }
    Ok(round)
}

/// Connects, rests, and calls for a while.
fn load(
    plan: &OverheadPlan,
    operation: &TimedOperation,
    served: &ListeningServer,
    quick: bool,
) -> Result<RateRound, String> {
    let connect =
        || HttpSession::open(served.url(), &[], operation, plan.protocol, plan.timeout_ms);
    let first = connect()?;
    wall_clock::pause(REST);
    let resting_kib = resident_kib(served);
    let others = (1..CONNECTIONS).map(|_| connect());
    let sessions: Result<Vec<HttpSession>, String> =
        std::iter::once(Ok(first)).chain(others).collect();
    let mut flock =
        ClientPool::new(sessions?, plan.timeout_ms).map_err(|error| error.to_string())?;
    let question = operation.question(plan.protocol);
    let mut expectation = AnswerExpectation::new(AnswerEquality::Content, false);
    let (start, span) = (Instant::now(), if quick { SPAN / 3 } else { SPAN });
    let end = start + WARM + span;
    let (mut answered, mut times_us) = (0, Vec::with_capacity(1 << 18));
    let mut each = |landed: AnsweredClient<'_>| {
        answered += 1;
        if landed.begun >= start + WARM {
            times_us.push(landed.reply.elapsed_ns as f64 / 1e3);
        }
        if !landed.session.is_known() {
            expectation.check(&landed.session.answer()?)?;
            landed.session.confirm();
        }
        Ok(())
    };
    flock.drive(&question, &mut || Instant::now() < end, &mut each)?;
    let counted = start.elapsed().saturating_sub(WARM);
    let (loaded_kib, helpers_kib) = (resident_kib(served), helpers_kib(served));
    flock.close();
    let counted_calls = times_us.len() as f64;
    let sorted = SortedSamples::new(times_us);
    Ok(RateRound {
        per_second: counted_calls / counted.as_secs_f64().max(1e-9),
        p50_us: sorted.at(0.5).unwrap_or_default(),
        p99_us: sorted.at(0.99).unwrap_or_default(),
        resting_kib,
        loaded_kib,
        helpers_kib,
        answered,
    })
}

/// Resident memory of a variant's own process.
fn resident_kib(served: &ListeningServer) -> u64 {
    let own = served.pid().and_then(processes::member);
    own.map_or(0, |member| member.resident_kib)
}

/// Memory of what else a variant started, without the servers behind it.
fn helpers_kib(served: &ListeningServer) -> u64 {
    let Some(root) = served.pid() else { return 0 };
    processes::tree(root)
        .iter()
        .filter(|member| member.pid != root && !processes::is_mock(&member.command))
        .map(|member| processes::proportional_kib(member.pid))
        .sum()
}
