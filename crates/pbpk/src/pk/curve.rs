//! A piece of a curve and what can be read off it without any dose.

use super::terminal::TerminalPhase;
use std::fmt;

/// Times that differ by this part of the largest are the same.
const ROUNDING: f64 = 1e-12;

/// Why two lists are no curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CurveError {
    /// The lists differ in length.
    Lengths {
        /// Number of times.
        times: usize,
        /// Number of values.
        values: usize,
    },
    /// There is no point at all.
    Empty,
    /// Times do not ascend, or one is not finite.
    Order {
        /// Position of the first time at fault.
        position: usize,
    },
}

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lengths { times, values } => write!(f, "{times} times but {values} values"),
            Self::Empty => f.write_str("the curve has no points"),
            Self::Order { position } => write!(
                f,
                "times must be finite and ascend; look at point {}",
                position + 1
            ),
        }
    }
}

impl std::error::Error for CurveError {}

/// Times (ascending) and the concentrations at them; at least one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve<'a> {
    times: &'a [f64],
    values: &'a [f64],
}

impl<'a> Curve<'a> {
    /// Checks and joins times and values.
    ///
    /// # Errors
    /// [`CurveError`] if they are of different length, empty, or the times do not ascend.
    pub fn new(times: &'a [f64], values: &'a [f64]) -> Result<Self, CurveError> {
        if times.len() != values.len() {
            return Err(CurveError::Lengths {
                times: times.len(),
                values: values.len(),
            });
        }
        let Some(first) = times.first() else {
            return Err(CurveError::Empty);
        };
        if !first.is_finite() {
            return Err(CurveError::Order { position: 0 });
        }
        match times
            .windows(2)
            .position(|w| w.first() >= w.last() || w.iter().any(|t| !t.is_finite()))
        {
            Some(before) => Err(CurveError::Order {
                position: before + 1,
            }),
            None => Ok(Self { times, values }),
        }
    }

    /// Returns the points between the grid points nearest to `from` and `to`, both included; `None` if the
    /// second does not lie after the first.
    #[must_use]
    pub fn between(&self, from: f64, to: f64) -> Option<Self> {
        let (a, b) = (self.nearest(from)?, self.nearest(to)?);
        (a < b).then_some(())?;
        Some(Self {
            times: self.times.get(a..=b)?,
            values: self.values.get(a..=b)?,
        })
    }

    /// Returns the points from `from` to `to`, with values at both ends that are linear between the points beside them;
    /// `None` if an end lies outside the curve. An end that is a point but for rounding is that point.
    pub(super) fn window(&self, from: f64, to: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        let tiny = ROUNDING * self.end().abs().max(self.start().abs());
        if !(from < to && from >= self.start() - tiny && to <= self.end() + tiny) {
            return None;
        }
        let inside = self
            .points()
            .filter(|(t, _)| *t > from + tiny && *t < to - tiny);
        let ends = |time: f64| (time, self.linear(time, tiny));
        let all = std::iter::once(ends(from)).chain(inside).chain([ends(to)]);
        Some(all.unzip())
    }

    /// Value at a time, linear between two points.
    fn linear(&self, time: f64, tiny: f64) -> f64 {
        let near = self.points().find(|(t, _)| (t - time).abs() <= tiny);
        let later = self.points().skip(1);
        let around = || {
            let mut pairs = self.points().zip(later);
            let ((t0, v0), (t1, v1)) = pairs.find(|(a, b)| a.0 <= time && time <= b.0)?;
            Some(v0 + (v1 - v0) * (time - t0) / (t1 - t0))
        };
        near.map(|(_, value)| value)
            .or_else(around)
            .unwrap_or(f64::NAN)
    }

    /// Position of the grid point nearest to a time; the later of two equally near.
    fn nearest(&self, time: f64) -> Option<usize> {
        if time.is_nan() {
            return None;
        }
        let after = self.times.partition_point(|&t| t < time);
        let distance = |i: usize| {
            self.times
                .get(i)
                .map_or(f64::INFINITY, |t| (t - time).abs())
        };
        match after {
            0 => Some(0),
            n if distance(n - 1) < distance(n) => Some(n - 1),
            n => Some(n.min(self.times.len() - 1)),
        }
    }

    /// Points as (time, value).
    pub fn points(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> + ExactSizeIterator + 'a {
        self.times.iter().copied().zip(self.values.iter().copied())
    }

    /// First time.
    #[must_use]
    pub fn start(&self) -> f64 {
        self.times.first().copied().unwrap_or(f64::NAN)
    }

    /// Last time.
    #[must_use]
    pub fn end(&self) -> f64 {
        self.times.last().copied().unwrap_or(f64::NAN)
    }

    /// Last value.
    #[must_use]
    pub fn last(&self) -> f64 {
        self.values.last().copied().unwrap_or(f64::NAN)
    }

    /// Returns the first point with the highest value, as (time, value); values that are no number are passed over.
    #[must_use]
    pub fn maximum(&self) -> (f64, f64) {
        self.extreme(|new, old| new > old)
    }

    /// Returns the first point with the lowest value, as (time, value).
    #[must_use]
    pub fn minimum(&self) -> (f64, f64) {
        self.extreme(|new, old| new < old)
    }

    fn extreme(&self, better: impl Fn(f64, f64) -> bool) -> (f64, f64) {
        let pick = |best: (f64, f64), new: (f64, f64)| {
            if best.1.is_nan() || better(new.1, best.1) {
                new
            } else {
                best
            }
        };
        let (time, value) = self.points().fold((f64::NAN, f64::NAN), pick);
        if value.is_nan() {
            (f64::NAN, f64::NAN)
        } else {
            (time, value)
        }
    }

    /// First time at which the value is at least `threshold`; not a number if never.
    #[must_use]
    pub fn reaches(&self, threshold: f64) -> f64 {
        self.points()
            .find(|(_, v)| *v >= threshold)
            .map_or(f64::NAN, |(t, _)| t)
    }

    /// Area under the curve, linear trapezoids.
    #[must_use]
    pub fn area(&self) -> f64 {
        self.trapezoids(|_, v| v)
    }

    /// Area under time × value, linear trapezoids.
    #[must_use]
    pub fn moment(&self) -> f64 {
        self.trapezoids(|t, v| t * v)
    }

    fn trapezoids(&self, of: impl Fn(f64, f64) -> f64) -> f64 {
        let later = self.points().skip(1);
        self.points()
            .zip(later)
            .map(|((t0, v0), (t1, v1))| (t1 - t0) * 0.5 * (of(t0, v0) + of(t1, v1)))
            .sum()
    }

    /// Returns the terminal fit; `None` if it is not defined.
    #[must_use]
    pub fn terminal(&self) -> Option<TerminalPhase> {
        TerminalPhase::fit(self)
    }
}
