//! Output times: intervals and single times, in minutes.

/// Start of every run, in minutes, independent of the first output time.
pub const START: f64 = 0.0;

/// An equidistant interval, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputInterval {
    /// First time.
    pub start: f64,
    /// Last time.
    pub end: f64,
    /// Number of times, at least 1.
    pub points: usize,
}

impl OutputInterval {
    /// Returns the interval of `resolution` points per minute, rounded half to even, and at least both ends.
    #[must_use]
    pub fn with_resolution(start: f64, end: f64, resolution: f64) -> Self {
        let count = (resolution * (end - start)).round_ties_even() + 1.0;
        // A cast from float to integer saturates; the grid's own bound catches what is too many.
        let points = if count.is_finite() && count > 2.0 {
            count as usize
        } else {
            2
        };
        Self { start, end, points }
    }
}

/// How nearly equal output times are recognised as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimePrecision {
    /// Equal in single precision: the genuine solver's default.
    #[default]
    Single,
    /// Equal in double precision.
    Double,
}

/// All output times of a simulation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutputGrid {
    /// Intervals, in file order.
    pub intervals: Vec<OutputInterval>,
    /// Single times, in file order.
    pub times: Vec<f64>,
}

impl OutputGrid {
    /// Most output times accepted.
    pub const TIMES_MAX: usize = 4_000_000;

    /// Returns the times that occur, in file order, with repetitions.
    fn all(&self) -> Vec<f64> {
        let mut all = Vec::new();
        for interval in &self.intervals {
            let n = interval.points.min(Self::TIMES_MAX + 1);
            let step = if n > 1 {
                (interval.end - interval.start) / (n - 1) as f64
            } else {
                0.0
            };
            all.extend((0..n).map(|i| {
                if n > 1 && i + 1 == n {
                    interval.end
                } else {
                    interval.start + i as f64 * step
                }
            }));
            if all.len() > Self::TIMES_MAX {
                break;
            }
        }
        all.extend_from_slice(&self.times);
        all
    }

    /// Returns whether there are more than [`OutputGrid::TIMES_MAX`] times.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.all().len() > Self::TIMES_MAX
    }

    /// Returns how many times are negative or not finite: [`OutputGrid::sorted`] drops them.
    #[must_use]
    pub fn unusable(&self) -> usize {
        self.all()
            .iter()
            .filter(|t| !(t.is_finite() && **t >= 0.0))
            .count()
    }

    /// Returns the output times in ascending order, without duplicates and without unusable ones.
    #[must_use]
    pub fn sorted(&self, precision: TimePrecision) -> Vec<f64> {
        let mut times = self.all();
        times.retain(|t| t.is_finite() && *t >= 0.0);
        // Stable: of times equal in single precision the first of the file stays.
        match precision {
            TimePrecision::Single => {
                times.sort_by(|a, b| (*a as f32).total_cmp(&(*b as f32)));
                times.dedup_by(|later, first| *later as f32 == *first as f32);
                times.sort_by(f64::total_cmp);
            }
            TimePrecision::Double => {
                times.sort_by(f64::total_cmp);
                times.dedup();
            }
        }
        times
    }
}
