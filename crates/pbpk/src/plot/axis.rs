//! Axes: the range shown, the ticks and how they are written.

/// Unit of the time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Days.
    Days,
}

impl TimeUnit {
    /// Minutes in one.
    #[must_use]
    pub fn minutes(self) -> f64 {
        match self {
            Self::Minutes => 1.0,
            Self::Hours => 60.0,
            Self::Days => 1440.0,
        }
    }

    /// Its sign.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Minutes => "min",
            Self::Hours => "h",
            Self::Days => "d",
        }
    }

    /// Returns the unit in which a span of minutes reads best.
    pub(super) fn for_span(minutes: f64) -> Self {
        if minutes <= 180.0 {
            Self::Minutes
        } else if minutes <= 4.0 * 1440.0 {
            Self::Hours
        } else {
            Self::Days
        }
    }
}

/// Decades shown below the highest value of a logarithmic axis.
const DECADES_MAX: f64 = 12.0;

/// A range of values with its ticks, mapped onto 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlotAxis {
    low: f64,
    high: f64,
    log: bool,
    /// Positions of the labels.
    pub(super) ticks: Vec<f64>,
}

impl PlotAxis {
    /// Returns a linear axis over the values, widened to its outer ticks if `round`.
    pub(super) fn linear(low: f64, high: f64, ticks: usize, steps: &[f64], round: bool) -> Self {
        let (low, high) = if high > low {
            (low, high)
        } else {
            (low - spread(low), high + spread(high))
        };
        #[expect(clippy::cast_precision_loss, reason = "a handful of ticks")]
        let step = nice_step((high - low) / ticks.max(1) as f64, steps);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let (low, high) = if round {
            (first * step, last * step)
        } else {
            (low, high)
        };
        let slack = step * 1e-9;
        let mut all = Vec::new();
        let mut k = first;
        while k <= last {
            let tick = k * step;
            if tick >= low - slack && tick <= high + slack {
                all.push(tick);
            }
            k += 1.0;
        }
        Self {
            low,
            high,
            log: false,
            ticks: all,
        }
    }

    /// Returns a logarithmic axis over positive values, ticks at decades or, on a short one, at 1, 2 and 5.
    pub(super) fn logarithmic(low: f64, high: f64, ticks: usize) -> Self {
        let top = high.log10();
        let bottom = low.log10().max(top - DECADES_MAX);
        let (first, last) = (bottom.floor(), top.ceil().max(bottom.floor() + 1.0));
        let decades = last - first;
        #[expect(clippy::cast_precision_loss, reason = "a handful of ticks")]
        let every = (decades / ticks.max(1) as f64).ceil().max(1.0);
        let within: &[f64] = if decades <= 2.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let mut all = Vec::new();
        let mut k = first;
        while k <= last {
            all.extend(
                within
                    .iter()
                    .map(|m| m * 10_f64.powf(k))
                    .filter(|t| t.log10() <= last + 1e-9),
            );
            k += every;
        }
        Self {
            low: first,
            high: last,
            log: true,
            ticks: all,
        }
    }

    /// Place of a value between 0 (low end) and 1; `None` if it cannot be shown.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let v = if self.log { value.log10() } else { value };
        let at = (v - self.low) / (self.high - self.low);
        (at.is_finite() && (-1e-6..=1.0 + 1e-6).contains(&at)).then_some(at.clamp(0.0, 1.0))
    }
}

fn spread(value: f64) -> f64 {
    if value == 0.0 { 0.5 } else { value.abs() * 0.5 }
}

/// Returns the smallest step of the series (times a power of ten) that is at least `least`.
fn nice_step(least: f64, steps: &[f64]) -> f64 {
    // Hours and days have their own steps; beyond them, and for all else, 1, 2, 5.
    if let Some(step) = steps.iter().find(|s| **s >= least) {
        return *step;
    }
    let power = 10_f64.powf(least.log10().floor());
    let found = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|m| m * power >= least * (1.0 - 1e-9));
    found.unwrap_or(10.0) * power
}

/// Steps that suit a clock.
pub(super) fn time_steps(unit: TimeUnit, span: f64) -> &'static [f64] {
    match unit {
        TimeUnit::Hours if span > 5.0 => &[1.0, 2.0, 3.0, 6.0, 12.0, 24.0, 48.0],
        TimeUnit::Minutes if span > 10.0 => &[2.0, 5.0, 10.0, 15.0, 30.0, 60.0],
        TimeUnit::Days if span > 5.0 => &[1.0, 2.0, 7.0, 14.0, 28.0],
        _ => &[],
    }
}

/// Returns a tick as short as it can be without hiding its size.
pub(super) fn label(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e5).contains(&size) {
        let text = format!("{value:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trim_zeros(digits));
    }
    trim_zeros(&format!("{value:.6}")).to_owned()
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_labels() {
        let check = |axis: PlotAxis, expected: &[&str]| {
            assert_eq!(
                axis.ticks.iter().map(|t| label(*t)).collect::<Vec<_>>(),
                expected
            );
        };
        check(
            PlotAxis::linear(0.0, 6.01, 5, &[], true),
            &["0", "2", "4", "6", "8"],
        );
        check(
            PlotAxis::linear(-0.003, 0.0, 4, &[], true),
            &["-0.003", "-0.002", "-0.001", "0"],
        );
        check(
            PlotAxis::linear(0.0, 24.0, 5, time_steps(TimeUnit::Hours, 24.0), false),
            &["0", "6", "12", "18", "24"],
        );
        check(
            PlotAxis::linear(3.0, 3.0, 4, &[], true),
            &["1", "2", "3", "4", "5"],
        );
        check(
            PlotAxis::linear(1e-9, 2.5e-9, 3, &[], true),
            &["1e-9", "1.5e-9", "2e-9", "2.5e-9"],
        );
        check(
            PlotAxis::logarithmic(0.15, 6.0, 6),
            &["0.1", "0.2", "0.5", "1", "2", "5", "10"],
        );
        check(
            PlotAxis::logarithmic(1e-300, 1.0, 4),
            &["1e-12", "1e-9", "1e-6", "0.001", "1"],
        );
    }

    #[test]
    fn places() {
        let axis = PlotAxis::logarithmic(0.01, 100.0, 4);
        assert_eq!(axis.place(1.0), Some(0.5));
        assert_eq!(
            (axis.place(0.0), axis.place(f64::NAN), axis.place(-1.0)),
            (None, None, None)
        );
    }
}
