//! Dense LU with partial pivoting, the way out when diagonal pivots fail.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: indices run below the dimension"
)]

use super::factors::FactorError;

/// A square matrix, row by row, or its factors.
#[derive(Debug, Clone)]
pub(super) struct Dense {
    n: usize,
    a: Vec<f64>,
    exchange: Vec<usize>,
    /// Rows whose only nonzero is the diagonal: their unknown is `b/d` exactly and is taken out
    /// first, so that an unknown that must stay zero is not touched by a row exchange.
    single: Vec<Option<f64>>,
    columns: Vec<f64>,
}

impl Dense {
    pub(super) fn zero(n: usize) -> Self {
        Self {
            n,
            a: vec![0.0; n * n],
            exchange: Vec::with_capacity(n),
            single: vec![None; n],
            columns: Vec::new(),
        }
    }

    pub(super) fn set(&mut self, i: usize, j: usize, v: f64) {
        self.a[i * self.n + j] = v;
    }

    pub(super) fn factor(&mut self) -> Result<(), FactorError> {
        let n = self.n;
        if n == 0 {
            return Ok(());
        }
        self.take_single_rows();
        for k in 0..n {
            let mut best = k;
            for i in k + 1..n {
                if self.a[i * n + k].abs() > self.a[best * n + k].abs() {
                    best = i;
                }
            }
            self.exchange.push(best);
            if best != k {
                for j in 0..n {
                    self.a.swap(k * n + j, best * n + j);
                }
            }
            let pivot = self.a[k * n + k];
            if pivot == 0.0 || !pivot.is_finite() {
                return Err(FactorError);
            }
            let (above, below) = self.a.split_at_mut((k + 1) * n);
            let pivot_row = &above[k * n..];
            for row in below.chunks_exact_mut(n) {
                let multiplier = row[k] / pivot;
                row[k] = multiplier;
                if multiplier != 0.0 {
                    for (a, u) in row[k + 1..].iter_mut().zip(&pivot_row[k + 1..]) {
                        *a -= multiplier * u;
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves the columns of single rows to the right-hand side and puts 1 on their diagonal.
    fn take_single_rows(&mut self) {
        let n = self.n;
        for (i, row) in self.a.chunks_exact(n).enumerate() {
            let alone = row.iter().enumerate().all(|(j, &v)| j == i || v == 0.0);
            if alone && row[i] != 0.0 && row[i].is_finite() {
                self.single[i] = Some(row[i]);
            }
        }
        self.columns = vec![0.0; n * n];
        for (i, row) in self.a.chunks_exact_mut(n).enumerate() {
            for (j, v) in row.iter_mut().enumerate() {
                if self.single[j].is_some() {
                    if i == j {
                        *v = 1.0;
                    } else {
                        self.columns[i * n + j] = std::mem::take(v);
                    }
                }
            }
        }
    }

    pub(super) fn solve(&mut self, x: &mut [f64]) {
        let n = self.n;
        if n == 0 {
            return;
        }
        for (x, d) in x.iter_mut().zip(&self.single) {
            if let Some(d) = d {
                *x /= d;
            }
        }
        for (i, row) in self.columns.chunks_exact(n).enumerate() {
            if self.single[i].is_none() {
                let moved: f64 = row
                    .iter()
                    .zip(x.iter())
                    .filter(|(c, _)| **c != 0.0)
                    .map(|(c, x)| c * x)
                    .sum();
                x[i] -= moved;
            }
        }
        let known: Vec<(usize, f64)> = self
            .single
            .iter()
            .enumerate()
            .filter(|(_, d)| d.is_some())
            .map(|(i, _)| (i, x[i]))
            .collect();
        // Whole rows were exchanged, multipliers included, so all exchanges come first.
        for (k, &other) in self.exchange.iter().enumerate() {
            x.swap(k, other);
        }
        for i in 0..n {
            let row = &self.a[i * n..i * n + i];
            let sum: f64 = row.iter().zip(x.iter()).map(|(l, x)| l * x).sum();
            x[i] -= sum;
        }
        for i in (0..n).rev() {
            let row = &self.a[i * n + i + 1..(i + 1) * n];
            let sum: f64 = row.iter().zip(&x[i + 1..]).map(|(u, x)| u * x).sum();
            x[i] = (x[i] - sum) / self.a[i * n + i];
        }
        for (i, v) in known {
            x[i] = v;
        }
    }
}
