//! Numbers as people read them.

use crate::stats::Interval;

/// A unit that times are shown in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeUnit {
    pub(super) name: &'static str,
    /// Microseconds in one.
    pub(super) us: f64,
}

impl TimeUnit {
    /// Returns the unit in which a time of this size is a number of few digits.
    pub(super) fn of(largest_us: f64) -> Self {
        match largest_us {
            us if us < 10_000.0 => Self {
                name: "µs",
                us: 1.0,
            },
            us if us < 10_000_000.0 => Self {
                name: "ms",
                us: 1e3,
            },
            _ => Self { name: "s", us: 1e6 },
        }
    }
}

/// Returns a number with as many decimals as its size deserves.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "-".into(),
        size if size >= 1_000.0 => group_thousands(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 0.05 || size == 0.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Returns a whole number with commas between thousands.
pub(super) fn group_thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

/// Returns a time of microseconds in the unit of its size.
pub(super) fn time(us: f64) -> String {
    let unit = TimeUnit::of(us.abs());
    format!("{} {}", short(us / unit.us), unit.name)
}

/// The ends of an interval, or why there are none.
pub(super) fn ends(interval: &Interval) -> String {
    match (interval.ci_low, interval.ci_high) {
        (Some(low), Some(high)) => format!("[{}, {}]", short(low), short(high)),
        _ => "one launch, no interval".into(),
    }
}

/// Returns the estimate with its ends.
pub(super) fn whole(interval: &Interval) -> String {
    match interval.ci_low {
        Some(_) => format!("{} {}", short(interval.point), ends(interval)),
        None => short(interval.point),
    }
}

/// Returns the estimate with its ends, or a dash.
pub(super) fn maybe(interval: Option<&Interval>) -> String {
    interval.map_or_else(|| "-".into(), whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size() {
        for (value, expect) in [
            (0.0, "0.0"),
            (0.004, "0.004"),
            (3.94, "3.9"),
            (-12.34, "-12.3"),
            (123.4, "123"),
            (1_234.5, "1,234"),
            (-1_234_567.0, "-1,234,567"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(short(value), expect);
        }
        for (us, expect) in [(3.9, "3.9 µs"), (25_000.0, "25.0 ms"), (2e7, "20.0 s")] {
            assert_eq!(time(us), expect);
        }
    }
}
