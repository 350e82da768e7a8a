//! What became of the requests, by row of the table.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kind::UserKind;

/// Most distinct failures.
const FAILURES_MAX: usize = 32;

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TallyRow {
    Registration,
    Of(UserKind),
    /// SwitchoverUser's request, sent to a fixed model.
    Beside,
}

impl TallyRow {
    pub fn name(self) -> &'static str {
        match self {
            Self::Registration => "Registration",
            Self::Of(kind) => kind.name(),
            Self::Beside => "SwitchoverUser, fixed",
        }
    }

    fn note(self) -> Option<&'static str> {
        match self {
            Self::Of(kind) => kind.note(),
            Self::Registration | Self::Beside => None,
        }
    }
}

/// One turn that was right.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnTimes {
    pub total_ms: f64,
    /// To the first byte of the body.
    pub first_ms: Option<f64>,
    /// Time that the scripted model took for its tokens.
    pub simulated_ms: f64,
    /// The model that has answered.
    pub model: String,
}

/// All turns, and what failed.
#[derive(Debug, Default)]
pub(super) struct TurnTally {
    rows: BTreeMap<TallyRow, RowTally>,
}

#[derive(Debug, Default)]
struct RowTally {
    total_ms: Vec<f64>,
    net_ms: Vec<f64>,
    first_ms: Vec<f64>,
    models: BTreeMap<String, u64>,
    failures: BTreeMap<String, u64>,
}

impl TurnTally {
    pub fn add(&mut self, row: TallyRow, told: Result<TurnTimes, String>) {
        let of = self.rows.entry(row).or_default();
        match told {
            Ok(turn) => {
                of.total_ms.push(turn.total_ms);
                of.net_ms.push(turn.total_ms - turn.simulated_ms);
                of.first_ms.extend(turn.first_ms);
                if !turn.model.is_empty() {
                    *of.models.entry(turn.model).or_default() += 1;
                }
            }
            Err(why) => of.add_failure(why, 1),
        }
    }

    pub fn merge(&mut self, other: Self) {
        for (row, theirs) in other.rows {
            let of = self.rows.entry(row).or_default();
            of.total_ms.extend(theirs.total_ms);
            of.net_ms.extend(theirs.net_ms);
            of.first_ms.extend(theirs.first_ms);
            for (model, count) in theirs.models {
                *of.models.entry(model).or_default() += count;
            }
            for (why, count) in theirs.failures {
                of.add_failure(why, count);
            }
        }
    }

    /// Returns whether something was answered, and nothing wrong.
    pub fn is_good(&self) -> bool {
        !self.rows.is_empty()
            && self
                .rows
                .values()
                .all(|of| of.failures.is_empty() && !of.total_ms.is_empty())
    }

    /// Returns the figures, one object a row.
    pub fn figures(mut self, seconds: f64) -> Vec<Value> {
        let one = |(row, of): (&TallyRow, &mut RowTally)| {
            let (total, net) = (figures(&mut of.total_ms), figures(&mut of.net_ms));
            let count = of.total_ms.len();
            json!({
                "user": row.name(),
                "note": row.note(),
                "requests": count,
                "failures": of.failures,
                "rps": per_second(count, seconds),
                "total_ms": total,
                "net_ms": net,
                "first_ms": figures(&mut of.first_ms),
                "models": of.models,
            })
        };
        self.rows.iter_mut().map(one).collect()
    }
}

impl RowTally {
    fn add_failure(&mut self, why: String, count: u64) {
        let is_known = self.failures.contains_key(&why);
        let why = if is_known || self.failures.len() < FAILURES_MAX {
            why
        } else {
            "other failures".to_owned()
        };
        *self.failures.entry(why).or_default() += count;
    }
}

fn per_second(count: usize, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

/// Average, median, 99th percentile (nearest rank) and longest; `None` without times.
fn figures(times: &mut [f64]) -> Option<Value> {
    times.sort_by(f64::total_cmp);
    let count = times.len();
    let rank = |percent: usize| times.get((count * percent).div_ceil(100).max(1) - 1);
    let average = times.iter().sum::<f64>() / count as f64;
    Some(json!({
        "average": average,
        "median": rank(50)?,
        "p99": rank(99)?,
        "max": times.last()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_right_turns_only_and_percentiles_are_times_that_were_met() {
        let mut tally = TurnTally::default();
        assert!(!tally.is_good(), "nothing is not good");
        for n in 1..=100_u32 {
            let turn = TurnTimes {
                total_ms: f64::from(n) + 80.0,
                first_ms: Some(f64::from(n)),
                simulated_ms: 80.0,
                model: format!("m{}", n % 2),
            };
            tally.add(TallyRow::Of(UserKind::Rotation), Ok(turn));
        }
        assert!(tally.is_good());
        let mut other = TurnTally::default();
        other.add(TallyRow::Of(UserKind::Rotation), Err("HTTP 429".to_owned()));
        tally.merge(other);
        assert!(!tally.is_good());
        let rows = tally.figures(10.0);
        let row = &rows[0];
        assert_eq!((&row["requests"], &row["rps"]), (&json!(100), &json!(10.0)));
        assert_eq!(row["failures"], json!({ "HTTP 429": 1 }));
        assert_eq!(row["models"], json!({ "m0": 50, "m1": 50 }));
        let net = json!({ "average": 50.5, "median": 50.0, "p99": 99.0, "max": 100.0 });
        assert_eq!(row["net_ms"], net);
    }
}
