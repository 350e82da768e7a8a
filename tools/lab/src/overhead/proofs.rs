//! The estimator against servers with a known added delay, on a simulated clock with fixed seeds: the interval must
//! cover the truth as often as it says.
//!
//! The issue asks for 93 of 100 in 200 runs; 400 runs a row leave less to luck.

use super::analysis::VariantComparison;
use super::measure::LaunchTimes;
use crate::stats::{SeededRandom, median};

const RUNS: usize = 400;
const LAUNCHES: usize = 10;
const CALLS: usize = 40;
const TURN: usize = 10;
const COVERED_MIN: f64 = 0.93;

/// How the added delay behaves.
#[derive(Debug, Clone, Copy)]
enum DelayShape {
    /// Always the same.
    Constant,
    /// Three calls of ten take half as long again.
    Bimodal,
    /// Grows by a fifth from the first to the last launch, while the machine itself wanders.
    Drifting,
}

struct SimulatedMachine {
    random: SeededRandom,
    /// Delay that the machine adds to every call of either variant, in microseconds.
    wander: f64,
}

impl SimulatedMachine {
    /// One call: a skewed base around 10 µs that the launch moves, and what is added.
    fn call(&mut self, base: f64, added: f64, shape: DelayShape) -> f64 {
        let slow = matches!(shape, DelayShape::Bimodal) && self.random.unit() < 0.3;
        let added = if slow { 1.5 * added } else { added };
        if matches!(shape, DelayShape::Drifting) {
            self.wander = (self.wander + 0.05 * self.random.normal()).clamp(-3.0, 3.0);
        }
        // The delay itself jitters by 2 %, as a real one does.
        let jitter = 1.0 + 0.02 * self.random.normal();
        self.random.lognormal(base, 0.25) + self.wander + added * jitter
    }

    /// Both variants of one launch, in turns, the order reversed in every second round.
    fn launch(
        &mut self,
        added: f64,
        shape: DelayShape,
        calls: usize,
    ) -> (LaunchTimes, LaunchTimes) {
        let base = 10.0 * (0.05 * self.random.normal()).exp();
        let mode = 1.0 + 0.03 * self.random.normal();
        let (mut direct, mut proxied) = (LaunchTimes::default(), LaunchTimes::default());
        for round in 0..calls / TURN {
            for half in 0..2 {
                let first = (round + half) % 2 == 0;
                for _ in 0..TURN {
                    let time = self.call(base, if first { 0.0 } else { added * mode }, shape);
                    let lap = if first { &mut direct } else { &mut proxied };
                    lap.calls_us.push(time);
                }
            }
        }
        (direct, proxied)
    }
}

/// Returns the aim of the estimator: the median of paired differences over endless calls.
fn truth(added: f64, shape: DelayShape) -> f64 {
    match shape {
        DelayShape::Constant => added,
        // Linear growth from 1 to 1.2 over the launches has the mean 1.1.
        DelayShape::Drifting => 1.1 * added,
        DelayShape::Bimodal => {
            let mut machine = SimulatedMachine {
                random: SeededRandom::new(99),
                wander: 0.0,
            };
            let medians: Vec<f64> = (0..400)
                .map(|_| {
                    let (direct, proxied) = machine.launch(added, shape, 2_000);
                    super::analysis::paired_median(&direct.calls_us, &proxied.calls_us)
                })
                .collect();
            crate::stats::mean(&medians)
        }
    }
}

fn covered(seed: u64, added: f64, shape: DelayShape, pooled: bool) -> f64 {
    let truth = truth(added, shape);
    let mut machine = SimulatedMachine {
        random: SeededRandom::new(seed),
        wander: 0.0,
    };
    let hits = (0..RUNS)
        .filter(|_| {
            let laps: Vec<(LaunchTimes, LaunchTimes)> = (0..LAUNCHES)
                .map(|number| {
                    let growth = match shape {
                        DelayShape::Drifting => 1.0 + 0.2 * number as f64 / (LAUNCHES - 1) as f64,
                        DelayShape::Constant | DelayShape::Bimodal => 1.0,
                    };
                    machine.launch(added * growth, shape, CALLS)
                })
                .collect();
            let interval = if pooled {
                pool(&laps)
            } else {
                let pairs: Vec<(&LaunchTimes, &LaunchTimes)> =
                    laps.iter().map(|(a, b)| (a, b)).collect();
                VariantComparison::of("proxied", "direct", &pairs, 0.95).overhead_us
            };
            (interval.ci_low.unwrap()..=interval.ci_high.unwrap()).contains(&truth)
        })
        .count();
    hits as f64 / RUNS as f64
}

/// Pools the calls of all launches as if each were independent, which the lab never does.
fn pool(laps: &[(LaunchTimes, LaunchTimes)]) -> crate::stats::Interval {
    let differences: Vec<f64> = laps
        .iter()
        .flat_map(|(a, b)| a.calls_us.iter().zip(&b.calls_us).map(|(a, b)| b - a))
        .collect();
    crate::stats::Interval::over_launches(&differences, 0.95)
}

fn check(shape: DelayShape) {
    for (row, added) in [0.0, 20.0, 200.0, 5_000.0].into_iter().enumerate() {
        let share = covered(1_000 + row as u64, added, shape, false);
        assert!(share >= COVERED_MIN, "{shape:?} {added} us: {share}");
    }
}

#[test]
fn constant_delays_are_covered() {
    check(DelayShape::Constant);
}

#[test]
fn bimodal_delays_are_covered() {
    check(DelayShape::Bimodal);
}

#[test]
fn drifting_delays_are_covered() {
    check(DelayShape::Drifting);
}

#[test]
fn pooled_calls_would_not_cover() {
    // The proof can fail: the same simulation finds the method out that the house forbids.
    let share = covered(1, 200.0, DelayShape::Constant, true);
    assert!(share < 0.7, "{share}");
}

#[test]
fn the_simulated_delay_is_what_it_says() {
    let mut machine = SimulatedMachine {
        random: SeededRandom::new(5),
        wander: 0.0,
    };
    let medians: Vec<f64> = (0..400)
        .map(|_| machine.launch(200.0, DelayShape::Constant, 200))
        .map(|(a, b)| super::analysis::paired_median(&a.calls_us, &b.calls_us))
        .collect();
    assert!((median(&medians) - 200.0).abs() < 1.5);
}
