//! An interval by drawing launches again and again, for samples large enough to speak for themselves.

use super::{SeededRandom, mean, student};

/// Number of resamplings of the launches.
const DRAWS: usize = 2_000;
/// The draws are the same for the same values: a result can be worked out again from its document.
const SEED: u64 = 0x6475_7277_6172_6421;

/// The ends of the interval of the mean. The shares that are cut off are those of Student's t, widened for
/// the sample's own size (Hesterberg's expanded percentiles): plain percentiles are too narrow below some
/// hundred values.
pub(super) fn ends(values: &[f64], confidence: f64) -> (f64, f64) {
    let n = values.len();
    let mut random = SeededRandom::new(SEED);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let drawn: f64 = (0..n)
                .filter_map(|_| values.get(random.below(n)))
                .sum::<f64>();
            drawn / n.max(1) as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let wide = n as f64 / (n as f64 - 1.0).max(1.0);
    let t = student::two_sided(confidence, (n as f64 - 1.0).max(1.0));
    let tail = student::normal_tail(t * wide.sqrt());
    let rank = |share: f64| ((share * DRAWS as f64).ceil() as usize).clamp(1, DRAWS) - 1;
    let at = |share| {
        means
            .get(rank(share))
            .copied()
            .unwrap_or_else(|| mean(values))
    };
    (at(tail), at(1.0 - tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_values_give_the_same_ends_around_their_mean() {
        let values: Vec<f64> = (0..25).map(|v| f64::from(v % 7)).collect();
        let (low, high) = ends(&values, 0.95);
        assert_eq!((low, high), ends(&values, 0.95));
        assert!(low < mean(&values) && mean(&values) < high);
        let (lower, higher) = ends(&values, 0.99);
        assert!(lower < low && high < higher);
    }

    #[test]
    fn the_mean_of_twenty_is_covered_as_often_as_said() {
        // Skewed values, as times are; the mean of a lognormal number is known.
        let (mut random, truth) = (SeededRandom::new(3), 10.0 * (0.4_f64 * 0.4 / 2.0).exp());
        let hits = (0..400)
            .filter(|_| {
                let values: Vec<f64> = (0..20).map(|_| random.lognormal(10.0, 0.4)).collect();
                let (low, high) = ends(&values, 0.95);
                (low..=high).contains(&truth)
            })
            .count();
        assert!(hits >= 372, "{hits} of 400");
    }
}
