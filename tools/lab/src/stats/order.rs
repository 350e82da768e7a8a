//! Intervals of percentiles and of shares within one run, for which single calls count. Between runs they promise too
//! much: for that there are launches.

use super::percentile::{SortedSamples, samples_min};
use super::{Interval, student};

impl SortedSamples {
    /// Returns the percentile with a distribution-free interval from the ranks around it, or how many samples are
    /// missing for one.
    pub(crate) fn interval(&self, q: f64, confidence: f64) -> Result<Interval, String> {
        let n = self.len();
        let needed = samples_min(q);
        if n < needed {
            return Err(format!("{n} of the {needed} calls it needs"));
        }
        // The number of samples below the percentile is binomial; its normal limits are whole ranks.
        let (centre, z) = (q * n as f64, student::normal_quantile(confidence));
        let half = z * (centre * (1.0 - q)).sqrt();
        let rank = |rank: f64| rank.clamp(1.0, n as f64) / n as f64;
        Ok(Interval {
            point: self.at(q).unwrap_or_default(),
            ci_low: self.at(rank((centre - half).floor())),
            ci_high: self.at(rank((centre + half).ceil() + 1.0)),
            n,
        })
    }
}

/// Returns a share of `n` with Wilson's interval; none for no samples.
pub(crate) fn share(hits: usize, n: usize, confidence: f64) -> Interval {
    if n == 0 {
        return Interval {
            point: 0.0,
            ci_low: None,
            ci_high: None,
            n,
        };
    }
    let (count, z) = (n as f64, student::normal_quantile(confidence));
    let point = hits as f64 / count;
    let scale = 1.0 + z * z / count;
    let centre = (point + z * z / (2.0 * count)) / scale;
    let spread = point * (1.0 - point) / count + z * z / (4.0 * count * count);
    let half = z * spread.sqrt() / scale;
    Interval {
        point,
        ci_low: Some((centre - half).max(0.0)),
        ci_high: Some((centre + half).min(1.0)),
        n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SeededRandom;

    #[test]
    fn the_true_percentile_is_covered_as_often_as_said() {
        let mut random = SeededRandom::new(21);
        // The p95 of a lognormal number with median 10 and shape 0.5.
        let truth = 10.0 * (0.5_f64 * 1.644_853_6).exp();
        let hits = (0..400)
            .filter(|_| {
                let values = (0..500).map(|_| random.lognormal(10.0, 0.5)).collect();
                let found = SortedSamples::new(values).interval(0.95, 0.95).unwrap();
                (found.ci_low.unwrap()..=found.ci_high.unwrap()).contains(&truth)
            })
            .count();
        assert!(hits >= 372, "{hits} of 400");
    }

    #[test]
    fn too_few_samples_are_counted() {
        let few = SortedSamples::new(vec![1.0; 71]);
        assert_eq!(
            few.interval(0.95, 0.95).unwrap_err(),
            "71 of the 72 calls it needs"
        );
        let found = SortedSamples::new(vec![1.0; 72])
            .interval(0.95, 0.95)
            .unwrap();
        assert_eq!((found.ci_low, found.ci_high), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn wilson_on_worked_examples() {
        // 0 of 100: the upper end is z²/(n + z²).
        let none = share(0, 100, 0.95);
        assert!((none.ci_high.unwrap() - 0.0370).abs() < 1e-4);
        assert_eq!(none.ci_low, Some(0.0));
        let half = share(50, 100, 0.95);
        assert!((half.ci_low.unwrap() - 0.4038).abs() < 1e-4);
        assert_eq!(share(0, 0, 0.95).ci_high, None);
    }
}
