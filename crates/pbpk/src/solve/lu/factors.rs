//! Numbers in the pattern of [`SymbolicFactors`]: refactorisation and solution.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: every index comes from the checked pattern"
)]

use super::dense::DenseMatrix;
use super::elimination::EliminationWork;
use super::steps::FactorNumbers;
use super::symbolic::{SubstitutionEntry, SymbolicFactors};
use crate::watch::Interrupt;
use std::fmt;
use std::sync::Arc;

/// A pivot below this part of the terms it was formed from has lost all its digits.
const PIVOT_MIN_RELATIVE: f64 = 1e-12;

/// After this many multiplications, and the rest of a row, it is asked whether to go on.
pub(super) const OPERATIONS_UNASKED_MAX: usize = 1 << 20;

/// Why `I − γJ` was not factorised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorError {
    /// The matrix is singular or not finite.
    Singular,
    /// The caller asked to stop.
    Interrupted(Interrupt),
}

impl fmt::Display for FactorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Singular => {
                f.write_str("the iteration matrix is singular; a smaller step is needed")
            }
            Self::Interrupted(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for FactorError {}

/// Factors of `I − γJ`, refilled in place.
#[derive(Debug, Clone)]
pub struct LuFactors {
    symbolic: Arc<SymbolicFactors>,
    values: Vec<f64>,
    inverse: Vec<f64>,
    /// The same by state.
    by_state: Vec<f64>,
    x: Vec<f64>,
    /// Diagonal of the matrix, before the elimination.
    own: Vec<f64>,
    /// The row under elimination, by column.
    row: Vec<f64>,
    /// The factors of the steps of both substitutions, if the elimination does not leave them there.
    forward: Vec<f64>,
    back: Vec<f64>,
    dense: Option<DenseMatrix>,
    /// Room for many right-hand sides.
    rows: Vec<f64>,
}

impl LuFactors {
    /// Room for the factors of a structure.
    #[must_use]
    pub fn new(symbolic: Arc<SymbolicFactors>) -> Self {
        let (n, nnz) = (symbolic.n, symbolic.cols.len());
        let room = symbolic.steps.room(n);
        Self {
            symbolic,
            values: vec![0.0; nnz],
            inverse: vec![0.0; n],
            by_state: vec![0.0; n],
            x: vec![0.0; room],
            own: vec![0.0; n],
            row: vec![0.0; n],
            forward: Vec::new(),
            back: Vec::new(),
            dense: None,
            rows: Vec::new(),
        }
    }

    /// Returns the structure the factors belong to.
    #[must_use]
    pub fn symbolic(&self) -> &Arc<SymbolicFactors> {
        &self.symbolic
    }

    /// Returns whether the last factorisation had to be done densely.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.dense.is_some()
    }

    /// Factorises `I − γJ`, `jacobian` in pattern order.
    ///
    /// # Errors
    /// [`FactorError`] if the matrix is singular or not finite even with row exchanges.
    pub fn refactor(&mut self, gamma: f64, jacobian: &[f64]) -> Result<(), FactorError> {
        self.refactor_asking(gamma, jacobian, &mut || None)
    }

    /// As [`LuFactors::refactor`]; a long factorisation calls `ask` now and then.
    ///
    /// # Errors
    /// As [`LuFactors::refactor`], and [`FactorError::Interrupted`].
    pub fn refactor_asking(
        &mut self,
        gamma: f64,
        jacobian: &[f64],
        ask: &mut dyn FnMut() -> Option<Interrupt>,
    ) -> Result<(), FactorError> {
        let room = match self.dense.take() {
            Some(old) => old.cleared(),
            None if self.symbolic.dense => DenseMatrix::zero(self.symbolic.n),
            None => DenseMatrix::zero(0),
        };
        let mut dense = if self.symbolic.dense {
            self.full(room, gamma, jacobian)
        } else {
            if self.eliminate(gamma, jacobian, ask)? {
                return Ok(());
            }
            self.scatter(gamma, jacobian);
            self.spread()
        };
        dense.factor(ask)?;
        self.dense = Some(dense);
        Ok(())
    }

    /// Returns the matrix of a structure that is dense throughout.
    fn full(&self, mut dense: DenseMatrix, gamma: f64, jacobian: &[f64]) -> DenseMatrix {
        for &d in &self.symbolic.diagonal {
            dense.add(d as usize, 1.0);
        }
        for (&place, &j) in self.symbolic.scatter.iter().zip(jacobian) {
            dense.add(place as usize, -(gamma * j));
        }
        dense
    }

    /// Returns the scattered sparse matrix as a dense one.
    fn spread(&self) -> DenseMatrix {
        let s = &*self.symbolic;
        let mut dense = DenseMatrix::zero(s.n);
        for (i, ends) in s.row_ptr.windows(2).enumerate() {
            let (from, to) = (ends[0] as usize, ends[1] as usize);
            for (&j, &v) in s.cols[from..to].iter().zip(&self.values[from..to]) {
                dense.set(i, j as usize, v);
            }
        }
        dense
    }

    fn scatter(&mut self, gamma: f64, jacobian: &[f64]) {
        self.values.fill(0.0);
        for &d in &self.symbolic.diagonal {
            self.values[d as usize] = 1.0;
        }
        for (&place, &j) in self.symbolic.scatter.iter().zip(jacobian) {
            self.values[place as usize] -= gamma * j;
        }
    }

    /// Eliminates, and lays the factors out for the substitutions; false at the first pivot that is tiny or not a
    /// number.
    fn eliminate(
        &mut self,
        gamma: f64,
        jacobian: &[f64],
        ask: &mut dyn FnMut() -> Option<Interrupt>,
    ) -> Result<bool, FactorError> {
        if let Some(list) = &self.symbolic.elimination {
            list.scatter(gamma, jacobian, &mut self.values);
            let work = EliminationWork {
                values: &mut self.values,
                inverse: &mut self.inverse,
                own: &mut self.own,
            };
            if !list.run(work, is_sound) {
                return Ok(false);
            }
        } else {
            self.scatter(gamma, jacobian);
            if !self.eliminate_rows(ask)? {
                return Ok(false);
            }
            self.lay_out();
        }
        for (&state, &inverse) in self.symbolic.order.iter().zip(&self.inverse) {
            self.by_state[state as usize] = inverse;
        }
        Ok(true)
    }

    /// As [`LuFactors::eliminate`], row by row.
    fn eliminate_rows(
        &mut self,
        ask: &mut dyn FnMut() -> Option<Interrupt>,
    ) -> Result<bool, FactorError> {
        let s = &*self.symbolic;
        let mut unasked = 0;
        let work = self.row.as_mut_slice();
        for i in 0..s.n {
            let (from, to, diagonal) = (
                s.row_ptr[i] as usize,
                s.row_ptr[i + 1] as usize,
                s.diagonal[i] as usize,
            );
            let (above, rest) = self.values.split_at_mut(from);
            let row = &mut rest[..to - from];
            let cols = &s.cols[from..to];
            for (&j, &v) in cols.iter().zip(&*row) {
                work[j as usize] = v;
            }
            let own = row[diagonal - from];
            for &k in &cols[..diagonal - from] {
                let k = k as usize;
                let multiplier = work[k] * self.inverse[k];
                work[k] = multiplier;
                let upper = s.diagonal[k] as usize + 1..s.row_ptr[k + 1] as usize;
                unasked += upper.len();
                for (&j, &u) in s.cols[upper.clone()].iter().zip(&above[upper]) {
                    work[j as usize] -= multiplier * u;
                }
            }
            for (&j, v) in cols.iter().zip(row) {
                *v = work[j as usize];
            }
            let pivot = work[i];
            if !is_sound(pivot, own) {
                return Ok(false);
            }
            self.inverse[i] = 1.0 / pivot;
            if unasked > OPERATIONS_UNASKED_MAX {
                unasked = 0;
                if let Some(cause) = ask() {
                    return Err(FactorError::Interrupted(cause));
                }
            }
        }
        Ok(true)
    }

    /// Replaces `b` by the solution `x` of `(I − γJ)·x = b`.
    pub fn solve(&mut self, b: &mut [f64]) {
        let s = &*self.symbolic;
        if let Some(dense) = &mut self.dense {
            for (x, &state) in self.x.iter_mut().zip(&s.order) {
                *x = b[state as usize];
            }
            dense.solve(&mut self.x[..s.n]);
            for (&x, &state) in self.x.iter().zip(&s.order) {
                b[state as usize] = x;
            }
            return;
        }
        let (forward, back) = sides(s, &self.values, (&self.forward, &self.back));
        let numbers = FactorNumbers {
            forward,
            inverse: &self.by_state,
            back,
        };
        s.steps.solve(b, &mut self.x, numbers);
    }

    /// As [`LuFactors::solve`] for `width` right-hand sides at once: a row of `b` for each state.
    pub fn solve_rows(&mut self, b: &mut [f64], width: usize) {
        // It cannot be interrupted.
        let _ = self.solve_rows_asking(b, width, &mut || None);
    }

    /// As [`LuFactors::solve_rows`]; a long one calls `ask` now and then.
    ///
    /// # Errors
    /// The answer; `b` then holds no solution.
    pub fn solve_rows_asking(
        &mut self,
        b: &mut [f64],
        width: usize,
        ask: &mut dyn FnMut() -> Option<Interrupt>,
    ) -> Result<(), Interrupt> {
        if width == 0 {
            return Ok(());
        }
        if self.dense.is_some() {
            let mut one = vec![0.0; self.symbolic.n];
            for k in 0..width {
                if let Some(cause) = ask() {
                    return Err(cause);
                }
                for (x, row) in one.iter_mut().zip(b.chunks_exact(width)) {
                    *x = row[k];
                }
                self.solve(&mut one);
                for (x, row) in one.iter().zip(b.chunks_exact_mut(width)) {
                    row[k] = *x;
                }
            }
            return Ok(());
        }
        self.rows.resize(b.len(), 0.0);
        for (row, &state) in self.rows.chunks_exact_mut(width).zip(&self.symbolic.order) {
            row.copy_from_slice(&b[state as usize * width..][..width]);
        }
        let s = &*self.symbolic;
        let mut unasked = 0;
        let mut ask_in_time = |width: usize| {
            unasked += width;
            if unasked <= OPERATIONS_UNASKED_MAX {
                return Ok(());
            }
            unasked = 0;
            ask().map_or(Ok(()), Err)
        };
        let (forward, back) = sides(s, &self.values, (&self.forward, &self.back));
        for (entry, value) in s.lower.iter().zip(forward) {
            ask_in_time(width)?;
            subtract(&mut self.rows, width, entry, *value);
        }
        for (row, inverse) in self.rows.chunks_exact_mut(width).zip(&self.inverse) {
            for x in row {
                *x *= inverse;
            }
        }
        for (entry, value) in s.upper.iter().zip(back) {
            ask_in_time(width)?;
            subtract(&mut self.rows, width, entry, *value);
        }
        for (row, &state) in self.rows.chunks_exact(width).zip(&self.symbolic.order) {
            b[state as usize * width..][..width].copy_from_slice(row);
        }
        Ok(())
    }

    /// Lays the numbers out in the order in which the substitutions need them, rows of the upper factor
    /// divided by their pivots.
    fn lay_out(&mut self) {
        let s = &*self.symbolic;
        let values = &self.values;
        self.forward.clear();
        let lower = s.lower.iter().map(|e| values[e.place as usize]);
        self.forward.extend(lower);
        self.back.clear();
        let upper = s.upper.iter();
        let upper = upper.map(|e| values[e.place as usize] * self.inverse[e.row as usize]);
        self.back.extend(upper);
    }
}

/// Returns the factors of the steps of both substitutions: among the values, or in their own layout.
fn sides<'a>(
    s: &SymbolicFactors,
    values: &'a [f64],
    laid_out: (&'a [f64], &'a [f64]),
) -> (&'a [f64], &'a [f64]) {
    s.elimination
        .as_ref()
        .map_or(laid_out, |list| list.sides(values))
}

/// Returns whether a pivot is a number and has digits left; `own` is 1 − γJ_ii: its terms are 1 and 1 − own.
fn is_sound(pivot: f64, own: f64) -> bool {
    pivot.is_finite() && pivot.abs() > PIVOT_MIN_RELATIVE * (1.0 + (1.0 - own).abs())
}

/// One step of a substitution on rows of numbers.
fn subtract(rows: &mut [f64], width: usize, entry: &SubstitutionEntry, value: f64) {
    let (to, from) = (entry.row as usize * width, entry.col as usize * width);
    let (to, from) = if to < from {
        let (low, high) = rows.split_at_mut(from);
        (&mut low[to..to + width], &high[..width])
    } else {
        let (low, high) = rows.split_at_mut(to);
        (&mut high[..width], &low[from..from + width])
    };
    for (x, y) in to.iter_mut().zip(from) {
        *x -= value * y;
    }
}
