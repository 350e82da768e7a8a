//! Percentiles of times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Interval, SortedSamples, mean, variance};

/// Confidence of all intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Percentiles of times in microseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TimePercentiles {
    pub(crate) n: usize,
    pub(crate) min_us: Option<f64>,
    pub(crate) p50_us: Option<Interval>,
    pub(crate) p90_us: Option<Interval>,
    pub(crate) p95_us: Option<Interval>,
    pub(crate) p99_us: Option<Interval>,
    pub(crate) p999_us: Option<Interval>,
    pub(crate) max_us: Option<f64>,
    pub(crate) mean_us: Option<f64>,
    pub(crate) stdev_us: Option<f64>,
    /// Why percentiles are missing, by name.
    pub(crate) missing: BTreeMap<String, String>,
}

impl TimePercentiles {
    pub(crate) fn of(values: Vec<f64>) -> Self {
        let (average, spread) = (mean(&values), variance(&values).sqrt());
        let sorted = SortedSamples::new(values);
        let mut missing = BTreeMap::new();
        let mut told = |name: &str, q| match sorted.interval(q, CONFIDENCE) {
            Ok(interval) => Some(interval),
            Err(why) => {
                missing.insert(name.to_owned(), why);
                None
            }
        };
        let (p50_us, p90_us, p95_us) = (told("p50", 0.5), told("p90", 0.9), told("p95", 0.95));
        let (p99_us, p999_us) = (told("p99", 0.99), told("p999", 0.999));
        let ends = sorted.ends();
        Self {
            n: sorted.len(),
            min_us: ends.map(|(min, _)| min),
            p50_us,
            p90_us,
            p95_us,
            p99_us,
            p999_us,
            max_us: ends.map(|(_, max)| max),
            mean_us: ends.map(|_| average),
            stdev_us: (sorted.len() > 1).then_some(spread),
            missing,
        }
    }
}
