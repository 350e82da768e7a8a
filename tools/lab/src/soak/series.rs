//! Quantities of a run over its time.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::LabError;
use crate::run::{CallStatus, GENERATOR, operations, samples};
use crate::stats::median;

/// Length of the stretches for one point each, the median time of a call, in microseconds.
const STRETCH_US: f64 = 1e6;
/// Most points of a series: more are put together, as the slope looks at all pairs.
const POINTS_MAX: usize = 600;
const HOUR_MS: f64 = 3_600_000.0;

/// One quantity of one process, or of the calls.
pub(super) struct TimeSeries {
    pub who: String,
    pub quantity: &'static str,
    /// Hours since the beginning, and the value.
    pub points: Vec<(f64, f64)>,
}

/// Returns all series of a run behind its first `warm` part.
///
/// # Errors
/// If the run cannot be read.
pub(super) fn series(run: &Path, warm: f64) -> Result<Vec<TimeSeries>, LabError> {
    if !run.join("ops").is_dir() {
        let what = "this is not a run of lab load: name a directory that lab load --out has made";
        return Err(LabError::path(run, std::io::Error::other(what)));
    }
    let mut found: BTreeMap<(String, &'static str), BTreeMap<u64, f64>> = BTreeMap::new();
    // The generator keeps all calls until the run is over, and grows by that.
    let watched = samples(run)?
        .into_iter()
        .filter(|sample| sample.who != GENERATOR);
    for sample in watched {
        // Children of a program are part of it.
        for (quantity, value) in [("memory, KiB", sample.rss_kib), ("descriptors", sample.fds)] {
            let of = found.entry((sample.who.clone(), quantity)).or_default();
            *of.entry(sample.elapsed_ms).or_default() += value as f64;
        }
    }
    let mut all: Vec<TimeSeries> = found
        .into_iter()
        .map(|((who, quantity), at)| {
            let points = at
                .into_iter()
                .map(|(ms, value)| (ms as f64 / HOUR_MS, value));
            TimeSeries {
                who,
                quantity,
                points: points.collect(),
            }
        })
        .collect();
    let mut stretches: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    operations(run, |record| {
        if record.status == CallStatus::Ok {
            let stretch = (record.start_us / STRETCH_US) as u64;
            stretches
                .entry(stretch)
                .or_default()
                .push(record.latency_ms * 1e3);
        }
    })?;
    let times = stretches.iter().map(|(stretch, times)| {
        let ms = (*stretch as f64 + 0.5) * STRETCH_US / 1e3;
        (ms / HOUR_MS, median(times))
    });
    all.push(TimeSeries {
        who: "calls".into(),
        quantity: "p50, µs",
        points: times.collect(),
    });
    for one in &mut all {
        one.points = thinned(&behind(&one.points, warm));
    }
    Ok(all)
}

/// Returns the points behind the first part of their time.
fn behind(points: &[(f64, f64)], warm: f64) -> Vec<(f64, f64)> {
    let end = points.last().map_or(0.0, |(at, _)| *at);
    let late = points.iter().filter(|(at, _)| *at >= end * warm);
    late.copied().collect()
}

/// At most [`POINTS_MAX`], each the median of its neighbours.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let together = points.len().div_ceil(POINTS_MAX).max(1);
    let centre = |of: Vec<f64>| median(&of);
    points
        .chunks(together)
        .map(|near| {
            let at = centre(near.iter().map(|(at, _)| *at).collect());
            (at, centre(near.iter().map(|(_, value)| *value).collect()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_left_out_and_many_points_are_put_together() {
        let points: Vec<(f64, f64)> = (0..2_000)
            .map(|n| (f64::from(n), f64::from(n) * 2.0))
            .collect();
        let late = behind(&points, 0.25);
        assert_eq!((late.first(), late.len()), (Some(&(500.0, 1_000.0)), 1_500));
        let thin = thinned(&late);
        assert_eq!((thin.len(), thin.first()), (500, Some(&(501.0, 1_002.0))));
        assert_eq!(thinned(&[]), []);
    }
}
