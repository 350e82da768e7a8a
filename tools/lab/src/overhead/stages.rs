//! The watch compared with the journal: outside = Σ stages + unexplained, call by call.
//!
//! The unexplained part is the way there and back (two pipes, two wake-ups), what the variant does outside its own
//! stages, and everything that it does not know of itself. A call that was refused has no operation: its decision tells
//! the time of the policy, and the rest is unexplained. Lists are no calls, and leave no record.

use super::measure::LaunchTimes;
use crate::error::LabError;
use crate::journal::{self, RecordBody, StageTimes};
use crate::stats::{Interval, SortedSamples, mean};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The kinds of the records that are read.
const OPERATION: &str = "operation";
const DECISION: &str = "decision";

/// One launch of a variant: means over its counted calls.
#[derive(Debug, Clone)]
pub(crate) struct ExplainedLaunch {
    calls: usize,
    outside_us: f64,
    stages_us: [f64; 7],
    unexplained_us: f64,
    unexplained_p50_us: f64,
    unexplained_p95_us: Option<f64>,
}

/// All launches of a variant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StageFigures {
    /// Counted calls with a record.
    pub(crate) calls: usize,
    /// The mean call by the watch.
    pub(crate) outside_us: Interval,
    /// Mean time per stage, by the variant's own journal, in the order of a call.
    pub(crate) stages: Vec<CallStage>,
    /// What no stage explains, the mean of calls.
    pub(crate) unexplained_us: Interval,
    pub(crate) unexplained_p50_us: Interval,
    pub(crate) unexplained_p95_us: Option<Interval>,
    /// Each launch's percentiles of the unexplained, for rules.
    pub(crate) per_launch_unexplained_p50_us: Vec<f64>,
    pub(crate) per_launch_unexplained_p95_us: Vec<Option<f64>>,
}

/// One stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallStage {
    /// The member of the operation record, such as `policy_us`.
    pub(crate) name: String,
    pub(crate) us: Interval,
}

/// Returns the segments that a journal has now; a journal that does not exist yet has none.
pub(crate) fn list_segments(directory: &Path) -> BTreeSet<PathBuf> {
    journal::segments(directory)
        .map(|found| found.into_iter().collect())
        .unwrap_or_default()
}

/// Reads the segments that came since `before` and explains the calls of a lap, all of them refused if `refused` is
/// true; returns the reason if it cannot.
pub(crate) fn explain(
    directory: &Path,
    before: &BTreeSet<PathBuf>,
    lap: &LaunchTimes,
    refused: bool,
) -> Result<Result<ExplainedLaunch, String>, LabError> {
    let kind = if refused { DECISION } else { OPERATION };
    let mut records: BTreeMap<u64, RecordBody> = BTreeMap::new();
    for segment in journal::segments(directory)? {
        if before.contains(&segment) {
            continue;
        }
        journal::bodies(&segment, |body| {
            let id = body.request_id.as_deref().and_then(|id| id.parse().ok());
            if let Some(id) = id.filter(|_| body.kind == kind) {
                records.insert(id, body);
            }
        })?;
    }
    Ok(of(lap, &records, kind))
}

/// Returns the stages of a record.
fn times(body: &RecordBody) -> [f64; 7] {
    let told = match body.policy_eval_us {
        Some(policy_us) if body.kind == DECISION => StageTimes {
            policy_us,
            ..StageTimes::default()
        },
        _ => body.stages,
    };
    told.times()
}

fn of(
    lap: &LaunchTimes,
    records: &BTreeMap<u64, RecordBody>,
    kind: &str,
) -> Result<ExplainedLaunch, String> {
    let mut stages: Vec<[f64; 7]> = Vec::with_capacity(lap.calls_us.len());
    let mut unexplained = Vec::with_capacity(lap.calls_us.len());
    for (id, outside) in lap.ids.iter().zip(&lap.calls_us) {
        let body = records.get(id).ok_or_else(|| {
            format!(
                "the journal has no {kind} for call {id} ({} of {} were found)",
                lap.ids.iter().filter(|id| records.contains_key(id)).count(),
                lap.ids.len()
            )
        })?;
        let times = times(body);
        unexplained.push(outside - times.iter().sum::<f64>());
        stages.push(times);
    }
    let column = |at: usize| {
        let values: Vec<f64> = stages.iter().filter_map(|t| t.get(at).copied()).collect();
        mean(&values)
    };
    let sorted = SortedSamples::new(unexplained.clone());
    Ok(ExplainedLaunch {
        calls: stages.len(),
        outside_us: mean(&lap.calls_us),
        stages_us: std::array::from_fn(column),
        unexplained_us: mean(&unexplained),
        unexplained_p50_us: sorted.at(0.5).unwrap_or_default(),
        unexplained_p95_us: sorted.at_supported(0.95),
    })
}

impl StageFigures {
    /// Returns the figures of a variant; nothing without a launch.
    pub(crate) fn of(launches: &[&ExplainedLaunch], confidence: f64) -> Option<Self> {
        if launches.is_empty() {
            return None;
        }
        let over = |of: &dyn Fn(&ExplainedLaunch) -> f64| {
            let values: Vec<f64> = launches.iter().map(|launch| of(launch)).collect();
            Interval::over_launches(&values, confidence)
        };
        let tails: Option<Vec<f64>> = launches.iter().map(|l| l.unexplained_p95_us).collect();
        Some(Self {
            calls: launches.iter().map(|launch| launch.calls).sum(),
            outside_us: over(&|l| l.outside_us),
            stages: StageTimes::NAMES
                .iter()
                .enumerate()
                .map(|(at, name)| CallStage {
                    name: (*name).into(),
                    us: over(&|l| l.stages_us.get(at).copied().unwrap_or_default()),
                })
                .collect(),
            unexplained_us: over(&|l| l.unexplained_us),
            unexplained_p50_us: over(&|l| l.unexplained_p50_us),
            unexplained_p95_us: tails.map(|values| Interval::over_launches(&values, confidence)),
            per_launch_unexplained_p50_us: launches.iter().map(|l| l.unexplained_p50_us).collect(),
            per_launch_unexplained_p95_us: launches.iter().map(|l| l.unexplained_p95_us).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(policy_us: f64, upstream_us: f64) -> RecordBody {
        RecordBody {
            stages: StageTimes {
                policy_us,
                upstream_us,
                ..StageTimes::default()
            },
            ..RecordBody::default()
        }
    }

    #[test]
    fn outside_is_the_stages_and_what_they_do_not_explain() {
        let lap = LaunchTimes {
            ids: vec![5, 7],
            calls_us: vec![30.0, 50.0],
            ..LaunchTimes::default()
        };
        let records = BTreeMap::from([
            (5, body(2.0, 10.0)),
            (6, body(99.0, 99.0)),
            (7, body(4.0, 20.0)),
        ]);
        let found = of(&lap, &records, OPERATION).unwrap();
        let figures = StageFigures::of(&[&found], 0.95).unwrap();
        let sum: f64 = figures.stages.iter().map(|stage| stage.us.point).sum();
        let whole = sum + figures.unexplained_us.point;
        assert!((whole - figures.outside_us.point).abs() < 1e-9);
        assert_eq!(
            (figures.outside_us.point, figures.unexplained_us.point),
            (40.0, 22.0)
        );
        assert_eq!(figures.stages[3].us.point, 3.0);
        assert_eq!(figures.calls, 2);
    }

    #[test]
    fn a_call_without_a_record_is_named() {
        let lap = LaunchTimes {
            ids: vec![5, 7],
            calls_us: vec![30.0, 50.0],
            ..LaunchTimes::default()
        };
        let error = of(&lap, &BTreeMap::from([(5, body(1.0, 1.0))]), OPERATION).unwrap_err();
        assert!(error.contains("operation for call 7 (1 of 2"), "{error}");
    }

    #[test]
    fn of_a_refused_call_the_decision_tells_the_policy() {
        let lap = LaunchTimes {
            ids: vec![5],
            calls_us: vec![30.0],
            ..LaunchTimes::default()
        };
        let decision = RecordBody {
            kind: DECISION.into(),
            policy_eval_us: Some(2.5),
            ..RecordBody::default()
        };
        let found = of(&lap, &BTreeMap::from([(5, decision)]), DECISION).unwrap();
        assert_eq!(found.stages_us, [0.0, 0.0, 0.0, 2.5, 0.0, 0.0, 0.0]);
        assert_eq!(found.unexplained_us, 27.5);
    }
}
