//! Runs a plan: launches, turns, calls. Gives the raw times.

use crate::affinity::Pinned;
use crate::arm::Arm;
use crate::driver::{
    self, Answers, Connection, Expectation, Operation, Protocol, Question, difference,
};
use crate::error::LabError;
use crate::stats::Random;
use serde_json::Value;
use std::io::Write;
use std::time::{Duration, Instant};

/// Calls of a turn that come before its first counted one, so that each turn finds its caches warm.
const SETTLE_CALLS: u32 = 10;

/// What is to be measured, and how.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The first is the baseline.
    pub(crate) arms: Vec<Arm>,
    pub(crate) operation: Operation,
    pub(crate) protocol: Protocol,
    pub(crate) launches: u32,
    /// Counted calls per arm and launch.
    pub(crate) runs: u32,
    pub(crate) warmup: u32,
    /// Calls in a row before the next arm's turn.
    pub(crate) turn: u32,
    pub(crate) delay_us: u64,
    pub(crate) pin: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) timeout_ms: u64,
    pub(crate) confidence: f64,
    pub(crate) answers: Answers,
    /// Whether all arms but the baseline must refuse.
    pub(crate) deny: bool,
    pub(crate) quiet: bool,
}

/// The times of one arm in one launch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lap {
    /// From spawn to the answer to the handshake, in microseconds.
    pub(crate) start_us: f64,
    /// Each counted call in order, in microseconds.
    pub(crate) calls_us: Vec<f64>,
}

/// A launch holds a lap for every arm, in the order of the plan.
pub(crate) type Launch = Vec<Lap>;

struct Lane<'a> {
    arm: &'a Arm,
    connection: Connection,
    expectation: Expectation,
    lap: Lap,
}

/// Measures; gives one entry per launch.
pub(crate) fn measure(plan: &Plan, progress: &mut dyn Write) -> Result<Vec<Launch>, LabError> {
    let _pinned = plan.pin.map(Pinned::to).transpose()?;
    let question = plan.operation.question(plan.protocol);
    let mut random = Random::new(plan.seed);
    let mut launches = Vec::new();
    // What the arms answered in the first launch binds all later ones.
    let mut agreed: Option<Value> = None;
    for number in 1..=plan.launches {
        if !plan.quiet {
            // Progress that nobody reads is not missed.
            let _ = writeln!(progress, "launch {number}/{}", plan.launches);
        }
        launches.push(launch(plan, &question, &mut random, &mut agreed)?);
    }
    Ok(launches)
}

fn launch(
    plan: &Plan,
    question: &Question,
    random: &mut Random,
    agreed: &mut Option<Value>,
) -> Result<Launch, LabError> {
    let mut order: Vec<usize> = (0..plan.arms.len()).collect();
    random.shuffle(&mut order);
    let mut lanes = open(plan, &order)?;
    // The warm-up also finds out whether the arms answer alike, before anything is counted.
    for lane in &mut lanes {
        for _ in 0..plan.warmup.max(1) {
            lane.call(question)?;
        }
    }
    compare_answers(&lanes, agreed)?;
    let mut left = plan.runs;
    random.shuffle(&mut order);
    while left > 0 {
        let calls = left.min(plan.turn);
        for at in &order {
            if let Some(lane) = lanes.get_mut(*at) {
                lane.turn(plan, question, calls)?;
            }
        }
        order.reverse();
        left -= calls;
    }
    Ok(lanes
        .into_iter()
        .map(|lane| {
            lane.connection.close();
            lane.lap
        })
        .collect())
}

/// Starts every arm in the given order; gives them in the plan's.
fn open<'a>(plan: &'a Plan, order: &[usize]) -> Result<Vec<Lane<'a>>, LabError> {
    let mut opened = Vec::new();
    for (at, arm) in order
        .iter()
        .filter_map(|at| Some((at, plan.arms.get(*at)?)))
    {
        let mut connection = Connection::new(driver::spawn(arm, plan.timeout_ms)?);
        let start_ns = connection.open(plan.protocol)?;
        let lap = Lap {
            start_us: microseconds(start_ns),
            calls_us: Vec::with_capacity(plan.runs as usize),
        };
        let expectation = Expectation::new(plan.answers, plan.deny && *at > 0);
        opened.push((
            *at,
            Lane {
                arm,
                connection,
                expectation,
                lap,
            },
        ));
    }
    opened.sort_by_key(|(at, _)| *at);
    Ok(opened.into_iter().map(|(_, lane)| lane).collect())
}

fn compare_answers(lanes: &[Lane<'_>], agreed: &mut Option<Value>) -> Result<(), LabError> {
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

impl Lane<'_> {
    fn turn(&mut self, plan: &Plan, question: &Question, calls: u32) -> Result<(), LabError> {
        if calls > SETTLE_CALLS {
            for _ in 0..SETTLE_CALLS {
                self.call(question)?;
            }
        }
        for _ in 0..calls {
            pause(plan.delay_us);
            let elapsed = self.call(question)?;
            self.lap.calls_us.push(microseconds(elapsed));
        }
        Ok(())
    }

    fn call(&mut self, question: &Question) -> Result<u64, LabError> {
        let elapsed = self.connection.ask(question)?;
        let checked = self.expectation.check(&self.connection.answer()?);
        checked.map_err(|what| self.connection.invalid(what))?;
        Ok(elapsed)
    }
}

fn pause(delay_us: u64) {
    let (start, delay) = (Instant::now(), Duration::from_micros(delay_us));
    while let Some(rest) = delay.checked_sub(start.elapsed()).filter(|r| !r.is_zero()) {
        std::thread::park_timeout(rest);
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1_000.0
}
