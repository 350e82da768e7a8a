//! The terminal phase: a straight line through the logarithms of the last points.

use super::curve::Curve;
use std::f64::consts::LN_2;

/// Least number of points of the fit.
const POINTS_MIN: usize = 3;
/// One point in so many takes part in the fit.
const SHARE: usize = 10;

/// `C(t) = C_fit(tEnd)·exp(−λ·(t − tEnd))`, with `λ > 0`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TerminalPhase {
    /// Rate constant, per minute.
    pub lambda: f64,
    /// Value of the line at the last time.
    pub last: f64,
    /// Last time.
    pub end: f64,
}

impl TerminalPhase {
    /// Least squares over the last tenth of the points, at least three. `None` when there are fewer,
    /// one of them is negative, zero or no number, or the curve does not fall.
    #[must_use]
    pub fn fit(curve: &Curve<'_>) -> Option<Self> {
        let count = curve.points().len();
        let used = (count / SHARE).max(POINTS_MIN);
        if count < used {
            return None;
        }
        let mut logs = Vec::with_capacity(used);
        for (t, c) in curve.points().skip(count - used) {
            let log = c.ln();
            if !log.is_finite() {
                return None;
            }
            logs.push((t, log));
        }
        // A plateau has no slope but that of rounding.
        let first = logs.first().map(|p| p.1);
        if logs.iter().all(|p| Some(p.1) == first) {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of points")]
        let n = used as f64;
        let (mean_t, mean_log) = (
            logs.iter().map(|p| p.0).sum::<f64>() / n,
            logs.iter().map(|p| p.1).sum::<f64>() / n,
        );
        let product: f64 = logs
            .iter()
            .map(|(t, l)| (t - mean_t) * (l - mean_log))
            .sum();
        let square: f64 = logs.iter().map(|(t, _)| (t - mean_t) * (t - mean_t)).sum();
        let slope = product / square;
        let end = curve.end();
        let last = (mean_log + slope * (end - mean_t)).exp();
        (slope < 0.0 && slope.is_finite() && last.is_finite()).then_some(Self {
            lambda: -slope,
            last,
            end,
        })
    }

    /// Half-life.
    #[must_use]
    pub fn half_life(&self) -> f64 {
        LN_2 / self.lambda
    }

    /// Area from the last time to infinity.
    #[must_use]
    pub fn area(&self) -> f64 {
        self.last / self.lambda
    }

    /// Area under time × value from the last time to infinity.
    #[must_use]
    pub fn moment(&self) -> f64 {
        self.area() * (self.end + 1.0 / self.lambda)
    }
}
