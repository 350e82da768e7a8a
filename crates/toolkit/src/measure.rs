//! What a built-in server counts and times, for `/metrics`.

use std::time::Duration;

/// One value at one moment. All values of a name have the same kind and the same labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// The family's name, without the ending `_total`.
    pub name: &'static str,
    /// What it says, a sentence.
    pub about: &'static str,
    /// Labels and their values.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Measured,
}

/// A value of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Only ever grows.
    Count(u64),
    /// How many there are now.
    Level(u64),
    /// Times in seconds.
    Times {
        /// Their sum.
        sum_s: f64,
        /// How many there were up to each bound, not counting those up to the bound before; the last bound is infinite.
        classes: Vec<(f64, u64)>,
    },
}

impl Measure {
    /// A value with these labels.
    #[must_use]
    pub fn new(
        name: &'static str,
        about: &'static str,
        labels: &[(&'static str, &str)],
        value: Measured,
    ) -> Self {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        Self {
            name,
            about,
            labels,
            value,
        }
    }
}

/// Times, counted by class.
#[derive(Debug, Clone)]
pub struct Times {
    bounds_s: &'static [f64],
    counts: Vec<u64>,
    sum: Duration,
}

impl Times {
    /// No times yet. The bounds are in seconds, and grow.
    #[must_use]
    pub fn new(bounds_s: &'static [f64]) -> Self {
        Self {
            bounds_s,
            // The last one is of those above every bound.
            counts: vec![0; bounds_s.len() + 1],
            sum: Duration::ZERO,
        }
    }

    /// Counts one.
    pub fn add(&mut self, time: Duration) {
        let class = self
            .bounds_s
            .partition_point(|bound| *bound < time.as_secs_f64());
        if let Some(count) = self.counts.get_mut(class) {
            *count = count.saturating_add(1);
        }
        self.sum = self.sum.saturating_add(time);
    }

    /// As they are told.
    #[must_use]
    pub fn measured(&self) -> Measured {
        let bounds = self.bounds_s.iter().copied().chain([f64::INFINITY]);
        Measured::Times {
            sum_s: self.sum.as_secs_f64(),
            classes: bounds.zip(self.counts.iter().copied()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_below_the_first_bound_that_it_does_not_exceed() {
        let mut times = Times::new(&[0.001, 0.5]);
        for ms in [0, 1, 2, 500, 501] {
            times.add(Duration::from_millis(ms));
        }
        let Measured::Times { sum_s, classes } = times.measured() else {
            panic!("{times:?}");
        };
        assert_eq!(classes, [(0.001, 2), (0.5, 2), (f64::INFINITY, 1)]);
        assert!((sum_s - 1.004).abs() < 1e-12);
    }
}
