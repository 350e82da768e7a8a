//! Correlated random numbers: independent normal scores, mixed by the Cholesky factor of their correlations.
//!
//! Source: G. Marsaglia, I. Olkin, "Generating correlation matrices", SIAM J. Sci. Stat. Comput. 5 (1984); as a copula
//! of parameters that are not normal: R. B. Nelsen, "An Introduction to Copulas", Springer 2006, §2.3.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: a square matrix, row by row"
)]

use super::table::PopulationError;
use crate::units::normal;

/// Correlation of the normal scores of two parameters; for normal parameters it is their own, for log-normal ones that
/// of their logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreCorrelation {
    /// Place of one parameter among those that differ.
    pub first: usize,
    /// Place of the other.
    pub second: usize,
    /// Between -1 and 1.
    pub value: f64,
}

/// A pivot below this means that the correlations contradict each other.
const PIVOT_MIN: f64 = 1e-12;

/// The lower Cholesky factor, row by row; nothing where all are independent.
pub(super) struct MixingMatrix {
    count: usize,
    factor: Vec<f64>,
}

impl MixingMatrix {
    pub(super) fn new(
        count: usize,
        correlations: &[ScoreCorrelation],
    ) -> Result<Self, PopulationError> {
        let wrong = |what: String| PopulationError::Correlation { what };
        let mut factor = Vec::new();
        if !correlations.is_empty() {
            factor = vec![0.0; count * count];
            (0..count).for_each(|i| factor[i * count + i] = 1.0);
        }
        for c in correlations {
            if c.first >= count || c.second >= count || c.first == c.second {
                return Err(wrong("each joins two different parameters".to_owned()));
            }
            if !(c.value > -1.0 && c.value < 1.0) {
                return Err(wrong(format!("{} does not lie between -1 and 1", c.value)));
            }
            let (row, column) = (c.first.max(c.second), c.first.min(c.second));
            factor[row * count + column] = c.value;
        }
        for i in 0..if factor.is_empty() { 0 } else { count } {
            for j in 0..=i {
                let dot: f64 = (0..j)
                    .map(|k| factor[i * count + k] * factor[j * count + k])
                    .sum();
                let rest = factor[i * count + j] - dot;
                if i == j {
                    if rest < PIVOT_MIN {
                        let what = "they contradict each other; no population has all of them";
                        return Err(wrong(what.to_owned()));
                    }
                    factor[i * count + i] = rest.sqrt();
                } else {
                    factor[i * count + j] = rest / factor[j * count + j];
                }
            }
        }
        Ok(Self { count, factor })
    }

    /// Products that correlate the numbers of an individual.
    pub(super) fn products(&self) -> usize {
        self.factor.len()
    }

    /// Independent numbers in (0, 1) to correlated ones.
    pub(super) fn mix(&self, numbers: &mut [f64]) {
        if self.factor.is_empty() {
            return;
        }
        let scores: Vec<f64> = numbers.iter().map(|u| normal::quantile(*u)).collect();
        for (row, number) in self.factor.chunks(self.count).zip(numbers) {
            let score: f64 = row.iter().zip(&scores).map(|(f, s)| f * s).sum();
            *number = normal::part_below(score);
        }
    }
}
