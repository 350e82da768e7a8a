//! The Hodges-Lehmann estimate: an average that one odd launch cannot move far.

use super::median;

/// The median of the means of all pairs of values, each value paired with itself too; 0 for none.
pub(crate) fn hodges_lehmann(values: &[f64]) -> f64 {
    let means: Vec<f64> = values
        .iter()
        .enumerate()
        .flat_map(|(at, left)| {
            let rest = values.get(at..).unwrap_or_default();
            rest.iter().map(move |right| f64::midpoint(*left, *right))
        })
        .collect();
    median(&means)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_examples() {
        for (values, expect) in [
            (&[][..], 0.0),
            (&[4.0], 4.0),
            (&[1.0, 3.0], 2.0),
            // 1, 1.5, 2, 2, 2.5, 3 and the means with 100: the middle of ten is (2.5 + 3) / 2.
            (&[1.0, 2.0, 3.0, 100.0], 2.75),
        ] {
            assert!(
                (hodges_lehmann(values) - expect).abs() < 1e-12,
                "{values:?}"
            );
        }
    }
}
