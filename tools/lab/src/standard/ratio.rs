//! How many times as long a call takes in one variant as in another, launch by launch: the machine's influence on both
//! cancels.

use crate::overhead::ArmFigures;
use crate::stats::Interval;

/// Returns the medians of a variant over those of another in the same launches.
pub(super) fn of(plain: &ArmFigures, other: &ArmFigures, confidence: f64) -> Interval {
    let medians = |arm: &ArmFigures| -> Vec<Option<f64>> {
        arm.per_launch.iter().map(|launch| launch.p50_us).collect()
    };
    over(&medians(plain), &medians(other), confidence)
}

fn over(plain: &[Option<f64>], other: &[Option<f64>], confidence: f64) -> Interval {
    let pairs = plain.iter().zip(other);
    let ratios: Vec<f64> = pairs
        .filter_map(|(plain, other)| Some((*other)? / (*plain)?))
        .collect();
    Interval::over_launches(&ratios, confidence)
}

/// Returns the ratio with its interval.
pub(super) fn format_ratio(ratio: &Interval) -> String {
    match (ratio.ci_low, ratio.ci_high) {
        (Some(low), Some(high)) => format!("{:.3} [{low:.3}, {high:.3}]", ratio.point),
        _ => format!("{:.3} [one launch, no interval]", ratio.point),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_end_decides_and_drift_falls_out() {
        for (plain, other, kept) in [
            // The machine slows down by half; the ratio stays.
            ([20.0, 30.0, 40.0], [20.4, 30.6, 40.8], true),
            ([20.0, 20.0, 20.0], [22.4, 22.5, 22.6], false),
            // One in the middle, but the next is unknown.
            ([20.0, 20.0, 20.0], [16.0, 21.0, 26.0], false),
        ] {
            let found = over(&plain.map(Some), &other.map(Some), 0.95);
            assert_eq!(found.upper() <= 1.1, kept, "{}", format_ratio(&found));
        }
        let lost = over(&[None, Some(20.0)], &[Some(20.0), Some(21.0)], 0.95);
        assert_eq!((lost.n, lost.point), (1, 1.05));
        assert!(format_ratio(&lost).contains("no interval"));
    }
}
