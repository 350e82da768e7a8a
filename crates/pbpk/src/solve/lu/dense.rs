//! Dense LU with partial pivoting: for matrices that fill up anyway, and the way out when diagonal pivots fail.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: indices run below the dimension"
)]

use super::factors::{FactorError, OPERATIONS_UNASKED_MAX};
use crate::watch::Interrupt;
use std::ops::Range;

/// Columns that are eliminated together: their rows stay in the cache while the rest is updated.
const PANEL: usize = 32;

/// A square matrix, row by row, or its factors.
#[derive(Debug, Clone)]
pub(super) struct DenseMatrix {
    n: usize,
    a: Vec<f64>,
    exchange: Vec<usize>,
    /// Rows with only a diagonal: their unknown is `b/d` exactly and is taken out first, so that an unknown that must
    /// stay zero is not touched by a row exchange.
    single: Vec<Option<f64>>,
    /// The columns of these; empty if there are none.
    columns: Vec<f64>,
}

impl DenseMatrix {
    pub(super) fn zero(n: usize) -> Self {
        Self {
            n,
            a: vec![0.0; n * n],
            exchange: Vec::with_capacity(n),
            single: vec![None; n],
            columns: Vec::new(),
        }
    }

    /// Returns the same, all zero again.
    pub(super) fn cleared(mut self) -> Self {
        self.a.fill(0.0);
        self.exchange.clear();
        self.single.fill(None);
        self.columns = Vec::new();
        self
    }

    pub(super) fn set(&mut self, i: usize, j: usize, v: f64) {
        self.a[i * self.n + j] = v;
    }

    /// Adds to the entry at this place, row by row.
    pub(super) fn add(&mut self, place: usize, v: f64) {
        self.a[place] += v;
    }

    /// Factorises in panels of columns; `ask` is called before each, and now and then within long ones.
    pub(super) fn factor(
        &mut self,
        ask: &mut dyn FnMut() -> Option<Interrupt>,
    ) -> Result<(), FactorError> {
        self.take_single_rows();
        let mut from = 0;
        while from < self.n {
            if let Some(cause) = ask() {
                return Err(FactorError::Interrupted(cause));
            }
            let to = (from + PANEL).min(self.n);
            self.panel(from, to)?;
            self.pivot_rows(from, to);
            self.rest(from, to, ask)?;
            from = to;
        }
        Ok(())
    }

    /// Eliminates the columns of a panel, within the panel.
    fn panel(&mut self, from: usize, to: usize) -> Result<(), FactorError> {
        let n = self.n;
        for k in from..to {
            let mut best = k;
            for i in k + 1..n {
                if self.a[i * n + k].abs() > self.a[best * n + k].abs() {
                    best = i;
                }
            }
            self.exchange.push(best);
            if best != k {
                let (above, below) = self.a.split_at_mut(best * n);
                above[k * n..(k + 1) * n].swap_with_slice(&mut below[..n]);
            }
            let pivot = self.a[k * n + k];
            if pivot == 0.0 || !pivot.is_finite() {
                return Err(FactorError::Singular);
            }
            let (above, below) = self.a.split_at_mut((k + 1) * n);
            let pivot_row = &above[k * n + k + 1..k * n + to];
            for row in below.chunks_exact_mut(n) {
                let multiplier = row[k] / pivot;
                row[k] = multiplier;
                if multiplier != 0.0 {
                    for (a, u) in row[k + 1..to].iter_mut().zip(pivot_row) {
                        *a -= multiplier * u;
                    }
                }
            }
        }
        Ok(())
    }

    /// Brings the panel's pivot rows up to date right of the panel.
    fn pivot_rows(&mut self, from: usize, to: usize) {
        let n = self.n;
        for i in from + 1..to {
            let (above, row) = self.a.split_at_mut(i * n);
            let row = &mut row[..n];
            for k in from..i {
                let multiplier = row[k];
                let pivot_row = &above[k * n + to..(k + 1) * n];
                for (a, u) in row[to..].iter_mut().zip(pivot_row) {
                    *a -= multiplier * u;
                }
            }
        }
    }

    /// Subtracts the panel's part from everything below and right of it, two rows at a time.
    fn rest(
        &mut self,
        from: usize,
        to: usize,
        ask: &mut dyn FnMut() -> Option<Interrupt>,
    ) -> Result<(), FactorError> {
        let n = self.n;
        let (above, below) = self.a.split_at_mut(to * n);
        let pivots = PivotPanel {
            rows: above,
            n,
            panel: from..to,
        };
        let mut unasked = 0;
        let mut pairs = below.chunks_exact_mut(2 * n);
        for pair in pairs.by_ref() {
            let (first, second) = pair.split_at_mut(n);
            pivots.subtract_from_two(first, second);
            unasked += 2 * (to - from) * (n - to);
            if unasked > OPERATIONS_UNASKED_MAX {
                unasked = 0;
                if let Some(cause) = ask() {
                    return Err(FactorError::Interrupted(cause));
                }
            }
        }
        if let [_, ..] = pairs.into_remainder() {
            let last = below.len() - n;
            pivots.subtract_from(&mut below[last..]);
        }
        Ok(())
    }

    /// Moves the columns of single rows to the right-hand side and puts 1 on their diagonal.
    fn take_single_rows(&mut self) {
        let n = self.n;
        if n == 0 {
            return;
        }
        for (i, row) in self.a.chunks_exact(n).enumerate() {
            let alone = row.iter().enumerate().all(|(j, &v)| j == i || v == 0.0);
            if alone && row[i] != 0.0 && row[i].is_finite() {
                self.single[i] = Some(row[i]);
            }
        }
        if self.single.iter().all(Option::is_none) {
            return;
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
        let singles = self.single.iter().enumerate().filter(|(_, d)| d.is_some());
        let known: Vec<(usize, f64)> = singles.map(|(i, _)| (i, x[i])).collect();
        // Whole rows were exchanged, multipliers included, so all exchanges come first.
        for (k, &other) in self.exchange.iter().enumerate() {
            x.swap(k, other);
        }
        for i in 0..n {
            x[i] -= dot(&self.a[i * n..i * n + i], x);
        }
        for i in (0..n).rev() {
            let row = &self.a[i * n + i + 1..(i + 1) * n];
            x[i] = (x[i] - dot(row, &x[i + 1..])) / self.a[i * n + i];
        }
        for (i, v) in known {
            x[i] = v;
        }
    }
}

/// The pivot rows of a panel, right of it.
struct PivotPanel<'a> {
    rows: &'a [f64],
    n: usize,
    panel: Range<usize>,
}

impl PivotPanel<'_> {
    fn row(&self, k: usize) -> &[f64] {
        &self.rows[k * self.n + self.panel.end..(k + 1) * self.n]
    }

    /// Subtracts the multiples of the pivot rows that a row's multipliers ask for, in order.
    fn subtract_from(&self, row: &mut [f64]) {
        let (left, right) = row.split_at_mut(self.panel.end);
        for (k, multiplier) in self.panel.clone().zip(&left[self.panel.start..]) {
            for (a, u) in right.iter_mut().zip(self.row(k)) {
                *a -= multiplier * u;
            }
        }
    }

    /// As [`PivotPanel::subtract_from`] for two rows, so that pivot rows are read once for both; the order of the
    /// operations on each number is the same.
    fn subtract_from_two(&self, first: &mut [f64], second: &mut [f64]) {
        let (left_a, right_a) = first.split_at_mut(self.panel.end);
        let (left_b, right_b) = second.split_at_mut(self.panel.end);
        let (four_a, rest_a) = left_a[self.panel.start..].as_chunks::<4>();
        let (four_b, rest_b) = left_b[self.panel.start..].as_chunks::<4>();
        let mut k = self.panel.start;
        for (a, b) in four_a.iter().zip(four_b) {
            let rows = [0, 1, 2, 3].map(|i| self.row(k + i));
            subtract_four(right_a, right_b, a, b, rows);
            k += 4;
        }
        for (a, b) in rest_a.iter().zip(rest_b) {
            for ((x, y), u) in right_a.iter_mut().zip(right_b.iter_mut()).zip(self.row(k)) {
                *x -= a * u;
                *y -= b * u;
            }
            k += 1;
        }
    }
}

/// Subtracts four multiples of rows from each of two rows, one after another.
fn subtract_four(
    x: &mut [f64],
    y: &mut [f64],
    of_x: &[f64; 4],
    of_y: &[f64; 4],
    rows: [&[f64]; 4],
) {
    let [p, q, r, s] = *of_x;
    let [t, u, v, w] = *of_y;
    let [a, b, c, d] = rows;
    for (((((x, y), a), b), c), d) in x.iter_mut().zip(y).zip(a).zip(b).zip(c).zip(d) {
        *x = *x - p * a - q * b - r * c - s * d;
        *y = *y - t * a - u * b - v * c - w * d;
    }
}

/// Sum of products over the shorter length, in four fixed lanes.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_four, a_rest) = a.as_chunks::<4>();
    let b = &b[..a.len()];
    let (b_four, b_rest) = b.as_chunks::<4>();
    let mut lanes = [0.0; 4];
    for (a, b) in a_four.iter().zip(b_four) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    let [p, q, r, s] = lanes;
    ((p + r) + (q + s)) + rest
}
