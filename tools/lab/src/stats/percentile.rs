//! Percentiles by nearest rank: the sample at rank ⌈q·n⌉, never a number that was not measured, so
//! that p95 ≤ max always.

/// Samples in ascending order.
#[derive(Debug, Clone)]
pub(crate) struct SortedSamples(Vec<f64>);

impl SortedSamples {
    /// Sorts the samples.
    pub(crate) fn new(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        Self(samples)
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the sample at rank ⌈q·n⌉ for a share `q` of (0, 1]; nothing for no samples.
    pub(crate) fn at(&self, q: f64) -> Option<f64> {
        // The product of a share like 0.95 and a count may land a hair above the whole number it means.
        let rank = (q * self.0.len() as f64 - 1e-9).ceil().max(1.0);
        self.0.get(rank as usize - 1).copied()
    }

    /// Returns the same, if there are enough samples to say anything about that percentile.
    pub(crate) fn at_supported(&self, q: f64) -> Option<f64> {
        (self.0.len() >= samples_min(q)).then(|| self.at(q))?
    }

    /// Returns the smallest and the largest sample.
    pub(crate) fn ends(&self) -> Option<(f64, f64)> {
        Some((*self.0.first()?, *self.0.last()?))
    }
}

/// Returns how many samples a distribution-free, two-sided 95 % interval of the percentile needs.
pub(crate) fn samples_min(q: f64) -> usize {
    const TABLE: [(f64, usize); 5] = [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3_688)];
    TABLE
        .iter()
        .find(|(share, _)| q <= *share + 1e-12)
        .map_or(36_888, |(_, n)| *n)
}

/// Returns the middle of the values, the mean of the two middle ones for an even count; 0 for none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let upper = sorted.get(half).copied().unwrap_or_default();
    if sorted.len() % 2 == 1 || half == 0 {
        return upper;
    }
    let lower = sorted.get(half - 1).copied().unwrap_or_default();
    f64::midpoint(lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SeededRandom;

    #[test]
    fn nearest_rank_on_exact_references() {
        let hundred = SortedSamples::new((1..=100).map(f64::from).collect());
        for (q, expect) in [
            (0.01, 1.0),
            (0.5, 50.0),
            (0.9, 90.0),
            (0.95, 95.0),
            (0.99, 99.0),
            (0.999, 100.0),
            (1.0, 100.0),
        ] {
            assert_eq!(hundred.at(q), Some(expect), "{q}");
        }
        let fifteen = SortedSamples::new((1..=15).map(f64::from).collect());
        assert_eq!(fifteen.at(0.95), Some(15.0));
        assert_eq!(fifteen.at(0.5), Some(8.0));
        assert_eq!(SortedSamples::new(vec![]).at(0.5), None);
    }

    #[test]
    fn a_percentile_is_a_sample_and_never_above_the_largest() {
        let mut random = SeededRandom::new(7);
        for n in 1..300 {
            let samples: Vec<f64> = (0..n).map(|_| random.lognormal(1.0, 1.0)).collect();
            let sorted = SortedSamples::new(samples.clone());
            let (_, max) = sorted.ends().unwrap();
            for q in [0.5, 0.9, 0.95, 0.99, 0.999] {
                let value = sorted.at(q).unwrap();
                assert!(value <= max && samples.contains(&value));
                let below = samples.iter().filter(|s| **s <= value).count() as f64;
                assert!(below >= q * f64::from(n) - 1e-6, "{q} of {n}");
                let strictly = samples.iter().filter(|s| **s < value).count() as f64;
                assert!(strictly < q * f64::from(n), "{q} of {n}");
            }
        }
    }

    #[test]
    fn too_few_samples_tell_nothing() {
        let few = SortedSamples::new(vec![1.0; 71]);
        assert_eq!(few.at_supported(0.95), None);
        assert_eq!(few.at_supported(0.9), Some(1.0));
        assert_eq!(
            SortedSamples::new(vec![1.0; 72]).at_supported(0.95),
            Some(1.0)
        );
        assert_eq!(SortedSamples::new(vec![1.0; 367]).at_supported(0.99), None);
    }

    #[test]
    fn medians() {
        for (values, expect) in [
            (&[][..], 0.0),
            (&[3.0], 3.0),
            (&[4.0, 1.0], 2.5),
            (&[9.0, 1.0, 2.0], 2.0),
        ] {
            assert_eq!(median(values), expect);
        }
    }
}
