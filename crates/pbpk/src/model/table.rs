//! Tables: linear between points and clamped outside, or their slopes.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions come from partition_point"
)]

/// Points with strictly increasing x.
#[derive(Debug, Clone, PartialEq)]
pub struct PointTable {
    x: Vec<f64>,
    y: Vec<f64>,
    restart: Vec<bool>,
    slope_mode: bool,
}

impl PointTable {
    /// Most points accepted.
    pub const POINTS_MAX: usize = 1 << 20;

    /// Returns a table of `(x, y, restart the solver there)`; `slope_mode` gives slopes instead of values.
    ///
    /// # Errors
    /// No point (or fewer than two in slope mode), too many, an x that is no number, or x not increasing; the text says
    /// which.
    pub fn new(points: &[(f64, f64, bool)], slope_mode: bool) -> Result<Self, String> {
        let least = if slope_mode { 2 } else { 1 };
        if points.len() < least {
            return Err(format!(
                "a table needs at least {least} points, found {}",
                points.len()
            ));
        }
        if points.len() > Self::POINTS_MAX {
            return Err(format!(
                "a table may have at most {} points",
                Self::POINTS_MAX
            ));
        }
        let x: Vec<f64> = points.iter().map(|p| p.0).collect();
        if x.iter().any(|x| !x.is_finite()) {
            return Err("an x value of a table is not a finite number".to_owned());
        }
        if x.windows(2).any(|w| w[0] >= w[1]) {
            return Err("x values of a table must increase".to_owned());
        }
        Ok(Self {
            x,
            y: points.iter().map(|p| p.1).collect(),
            restart: points.iter().map(|p| p.2).collect(),
            slope_mode,
        })
    }

    /// Points as `(x, y, restart)`.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64, bool)> + '_ {
        self.x
            .iter()
            .zip(&self.y)
            .zip(&self.restart)
            .map(|((x, y), r)| (*x, *y, *r))
    }

    /// Returns whether the table gives slopes.
    #[must_use]
    pub fn slope_mode(&self) -> bool {
        self.slope_mode
    }

    /// Segment that holds `x`, left end included: 1 ..= n − 1, or nothing outside `[x₀, xₙ)`.
    fn segment(&self, x: f64) -> Option<usize> {
        let i = self.x.partition_point(|p| *p <= x);
        (i > 0 && i < self.x.len()).then_some(i)
    }

    fn segment_slope(&self, i: usize) -> f64 {
        (self.y[i] - self.y[i - 1]) / (self.x[i] - self.x[i - 1])
    }

    /// Returns the value at `x`, or the slope in slope mode (0 outside); NaN for NaN.
    #[must_use]
    pub fn value(&self, x: f64) -> f64 {
        if x.is_nan() {
            return f64::NAN;
        }
        match (self.segment(x), self.slope_mode) {
            (Some(i), true) => self.segment_slope(i),
            (None, true) => 0.0,
            (Some(i), false) => self.y[i - 1] + (x - self.x[i - 1]) * self.segment_slope(i),
            (None, false) => {
                if x < self.x[0] {
                    self.y[0]
                } else {
                    self.y[self.y.len() - 1]
                }
            }
        }
    }

    /// Derivative of [`PointTable::value`] by x.
    #[must_use]
    pub fn derivative(&self, x: f64) -> f64 {
        match self.segment(x) {
            Some(i) if !self.slope_mode => self.segment_slope(i),
            _ => 0.0,
        }
    }

    /// Slopes before and after a point; 0 outside.
    fn slopes_at(&self, i: usize) -> (f64, f64) {
        let before = if i == 0 { 0.0 } else { self.segment_slope(i) };
        let after = if i + 1 < self.x.len() {
            self.segment_slope(i + 1)
        } else {
            0.0
        };
        (before, after)
    }

    fn at(&self, wanted: impl Fn(usize) -> bool) -> Vec<f64> {
        let points = (0..self.x.len()).filter(|i| wanted(*i));
        points.map(|i| self.x[i]).collect()
    }

    /// Returns the places at which the solver restarts and events are tested: the first x, flagged points, and in slope
    /// mode the end of a slope of exactly 0.
    #[must_use]
    pub fn restarts(&self) -> Vec<f64> {
        let ends_zero = |i: usize| {
            let (before, after) = self.slopes_at(i);
            i > 0 && i + 1 < self.x.len() && before == 0.0 && after != 0.0
        };
        self.at(|i| i == 0 || self.restart[i] || (self.slope_mode && ends_zero(i)))
    }

    /// Returns the places at which the slope changes: the solver restarts there, so that no step goes over a kink, but
    /// no event is tested.
    #[must_use]
    pub fn kinks(&self) -> Vec<f64> {
        self.at(|i| {
            let (before, after) = self.slopes_at(i);
            before != after
        })
    }
}
