//! An estimate over launches with its confidence interval. The launch is the unit: calls within a
//! launch share its fate, so pooling them would promise far too narrow an interval.

use super::{bootstrap, mean, student, variance};
use serde::{Deserialize, Serialize};

/// From how many launches on they are drawn again and again instead of trusted to be normal.
const BOOTSTRAP_LAUNCHES_MIN: usize = 20;

/// A compared quantity. The unit is in the name of the field that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Interval {
    /// The estimate.
    pub(crate) point: f64,
    /// The lower end, if there are launches enough for one.
    pub(crate) ci_low: Option<f64>,
    /// The upper end.
    pub(crate) ci_high: Option<f64>,
    /// Number of launches.
    pub(crate) n: usize,
}

impl Interval {
    /// Mean and interval of one value per launch: Student's t, from 20 launches on a bootstrap over
    /// launches; no interval below two.
    pub(crate) fn over_launches(values: &[f64], confidence: f64) -> Self {
        let (n, point) = (values.len(), mean(values));
        if n < 2 {
            return Self {
                point,
                ci_low: None,
                ci_high: None,
                n,
            };
        }
        if n >= BOOTSTRAP_LAUNCHES_MIN {
            let (low, high) = bootstrap::ends(values, confidence);
            return Self {
                point,
                ci_low: Some(low),
                ci_high: Some(high),
                n,
            };
        }
        let half =
            student::two_sided(confidence, (n - 1) as f64) * (variance(values) / n as f64).sqrt();
        Self {
            point,
            ci_low: Some(point - half),
            ci_high: Some(point + half),
            n,
        }
    }

    /// Half the width of the interval; `None` without one.
    pub(crate) fn half_width(&self) -> Option<f64> {
        Some((self.ci_high? - self.ci_low?) / 2.0)
    }

    /// Returns the same in another unit.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self {
            point: self.point * factor,
            ci_low: self.ci_low.map(|end| end * factor),
            ci_high: self.ci_high.map(|end| end * factor),
            n: self.n,
        }
    }

    /// Returns the end that an absolute upper limit is compared with; the point without an interval.
    pub(crate) fn upper(&self) -> f64 {
        self.ci_high.unwrap_or(self.point)
    }

    /// Returns the end that an absolute lower limit is compared with; the point without an interval.
    pub(crate) fn lower(&self) -> f64 {
        self.ci_low.unwrap_or(self.point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        // Mean 5, standard deviation √2.5, n = 5, t = 2.7764: half-width 1.9632.
        let interval = Interval::over_launches(&[3.0, 4.0, 5.0, 6.0, 7.0], 0.95);
        assert_eq!((interval.point, interval.n), (5.0, 5));
        assert!((interval.ci_low.unwrap() - 3.0368).abs() < 1e-3);
        assert!((interval.ci_high.unwrap() - 6.9632).abs() < 1e-3);
    }

    #[test]
    fn one_launch_has_no_interval() {
        let interval = Interval::over_launches(&[3.0], 0.95);
        assert_eq!(
            (interval.point, interval.ci_low, interval.ci_high),
            (3.0, None, None)
        );
    }
}
