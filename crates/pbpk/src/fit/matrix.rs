//! Small symmetric matrices.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: indices run below the dimension"
)]

use super::PRODUCTS_OF_A_UNIT;
use crate::watch::{Interrupt, Watch};

/// The lower factor of Cholesky, after scaling the diagonal to 1, with the scales.
struct CholeskyFactor {
    l: Vec<f64>,
    scale: Vec<f64>,
}

/// A symmetric matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SymmetricMatrix {
    n: usize,
    a: Vec<f64>,
}

impl SymmetricMatrix {
    pub(super) fn zero(n: usize) -> Self {
        Self {
            n,
            a: vec![0.0; n * n],
        }
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.a[i * self.n + j]
    }

    /// Adds to an entry and its mirror image.
    pub(super) fn add(&mut self, i: usize, j: usize, value: f64) {
        self.a[i * self.n + j] += value;
        if i != j {
            self.a[j * self.n + i] += value;
        }
    }

    /// Rows and columns of these numbers only.
    pub(super) fn part(&self, kept: &[usize]) -> Self {
        let entries = kept
            .iter()
            .flat_map(|i| kept.iter().map(|j| self.at(*i, *j)));
        Self {
            n: kept.len(),
            a: entries.collect(),
        }
    }

    /// Multiplies the diagonal.
    pub(super) fn lengthen_diagonal(&mut self, factor: f64) {
        for i in 0..self.n {
            self.a[i * self.n + i] *= factor;
        }
    }

    /// Its factor; nothing if the matrix is not positive definite.
    fn factor(&self, watch: &Watch<'_>) -> Result<Option<CholeskyFactor>, Interrupt> {
        let n = self.n;
        let scale: Vec<f64> = (0..n).map(|i| self.at(i, i).sqrt()).collect();
        if scale.iter().any(|s| !(s.is_finite() && *s > 0.0)) {
            return Ok(None);
        }
        let mut l = vec![0.0; n * n];
        for i in 0..n {
            watch.work(1 + i * i / PRODUCTS_OF_A_UNIT)?;
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
                let rest = self.at(i, j) / (scale[i] * scale[j]) - known;
                if i == j {
                    if rest <= f64::EPSILON * n as f64 {
                        return Ok(None);
                    }
                    l[i * n + i] = rest.sqrt();
                } else {
                    l[i * n + j] = rest / l[j * n + j];
                }
            }
        }
        Ok(Some(CholeskyFactor { l, scale }))
    }

    /// Returns the solution of `A·x = b`; nothing if the matrix is not positive definite.
    pub(super) fn solve(
        &self,
        b: &[f64],
        watch: &Watch<'_>,
    ) -> Result<Option<Vec<f64>>, Interrupt> {
        let factor = self.factor(watch)?;
        Ok(factor.map(|factor| factor.solve(b)))
    }

    /// Returns the inverse; nothing if the matrix is not positive definite.
    pub(super) fn inverse(&self, watch: &Watch<'_>) -> Result<Option<Self>, Interrupt> {
        let Some(factor) = self.factor(watch)? else {
            return Ok(None);
        };
        let mut inverse = Self::zero(self.n);
        for j in 0..self.n {
            watch.work(1 + self.n * self.n / PRODUCTS_OF_A_UNIT)?;
            let mut unit = vec![0.0; self.n];
            unit[j] = 1.0;
            for (i, v) in factor.solve(&unit).into_iter().enumerate() {
                inverse.a[i * self.n + j] = v;
            }
        }
        Ok(Some(inverse))
    }
}

impl CholeskyFactor {
    fn solve(&self, b: &[f64]) -> Vec<f64> {
        let (l, scale, n) = (&self.l, &self.scale, self.scale.len());
        let mut x: Vec<f64> = b.iter().zip(scale).map(|(b, s)| b / s).collect();
        for i in 0..n {
            let known: f64 = (0..i).map(|k| l[i * n + k] * x[k]).sum();
            x[i] = (x[i] - known) / l[i * n + i];
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| l[k * n + i] * x[k]).sum();
            x[i] = (x[i] - known) / l[i * n + i];
        }
        for (x, s) in x.iter_mut().zip(scale) {
            *x /= s;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::SymmetricMatrix;
    use crate::watch::Watch;

    #[test]
    fn inverse_times_matrix_is_one() {
        let mut m = SymmetricMatrix::zero(3);
        for (i, j, v) in [
            (0, 0, 4e6),
            (1, 0, 2e3),
            (1, 1, 9.0),
            (2, 1, 1e-4),
            (2, 2, 1e-6),
        ] {
            m.add(i, j, v);
        }
        let inverse = m.inverse(&Watch::default()).unwrap().unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let sum: f64 = (0..3).map(|k| m.at(i, k) * inverse.at(k, j)).sum();
                let one = if i == j { 1.0 } else { 0.0 };
                assert!((sum - one).abs() < 1e-9, "{i} {j}: {sum}");
            }
        }
        let mut singular = SymmetricMatrix::zero(2);
        for (i, j) in [(0, 0), (1, 0), (1, 1)] {
            singular.add(i, j, 1.0);
        }
        assert_eq!(singular.inverse(&Watch::default()), Ok(None));
    }
}
