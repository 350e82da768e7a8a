//! Stiff initial value problems `dy/dt = f(t, y)` with a sparse, fixed-pattern Jacobian.
//!
//! The integrator is a backward differentiation formula of order 1 to 5 with variable step, in
//! fixed-leading-coefficient form on a scaled derivative history (Nordsieck array).
//!
//! Invariants: nothing here knows a model, a file or a unit; no clock is read; nothing is allocated
//! inside a step; no result depends on an address, a hash or a thread.

mod bdf;
mod coefficients;
mod control;
mod corrector;
mod error;
mod history;
mod initial;
mod kernel;
mod linear;
pub mod lu;
mod norm;
mod options;
mod sensitivity;
mod snapshot;

pub use crate::watch::Interrupt;
pub use bdf::BdfSolver;
pub use error::SolveError;
pub use options::{SolveOptions, SolverStatistics};

/// Positions of the structural nonzeros of a square matrix, column by column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SparsityPattern {
    /// `n + 1` offsets into [`SparsityPattern::row_idx`]; column `j` owns `col_ptr[j]..col_ptr[j + 1]`.
    pub col_ptr: Vec<usize>,
    /// Row numbers, ascending and distinct within a column.
    pub row_idx: Vec<usize>,
}

impl SparsityPattern {
    /// Number of rows and columns.
    #[must_use]
    pub fn n(&self) -> usize {
        self.col_ptr.len().saturating_sub(1)
    }

    /// Number of structural nonzeros.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.row_idx.len()
    }

    /// Returns the full `n × n` pattern.
    #[must_use]
    pub fn dense(n: usize) -> Self {
        Self {
            col_ptr: (0..=n).map(|j| j * n).collect(),
            row_idx: (0..n).flat_map(|_| 0..n).collect(),
        }
    }

    /// Checks offsets, bounds and order for a matrix with `n` columns.
    ///
    /// # Errors
    /// [`SolveError::SparsityPattern`] says which column is wrong.
    pub fn check(&self, n: usize) -> Result<(), SolveError> {
        let bad = |column: usize, what: &'static str| SolveError::Pattern { column, what };
        if self.col_ptr.len() != n + 1 || self.col_ptr.first() != Some(&0) {
            return Err(bad(
                0,
                "the number of column offsets does not fit the dimension",
            ));
        }
        if self.col_ptr.last() != Some(&self.row_idx.len()) {
            return Err(bad(n, "the last offset is not the number of entries"));
        }
        for (column, ends) in self.col_ptr.windows(2).enumerate() {
            let (Some(&from), Some(&to)) = (ends.first(), ends.last()) else {
                continue;
            };
            let Some(rows) = self.row_idx.get(from..to) else {
                return Err(bad(column, "offsets are not ascending"));
            };
            if rows.iter().any(|&r| r >= n) {
                return Err(bad(column, "a row number is out of range"));
            }
            if !rows.is_sorted_by(|a, b| a < b) {
                return Err(bad(column, "row numbers are not ascending"));
            }
        }
        Ok(())
    }
}

/// A system `dy/dt = f(t, y)` with a fixed sparse Jacobian pattern.
pub trait OdeSystem {
    /// Number of states.
    fn dimension(&self) -> usize;

    /// Structural pattern of `∂f/∂y`. It may change only between two calls of [`BdfSolver::start`].
    fn pattern(&self) -> &SparsityPattern;

    /// Writes `f(t, y)` into `dy`. A value that is not finite makes the solver take a smaller step.
    fn rhs(&mut self, t: f64, y: &[f64], dy: &mut [f64]);

    /// Writes the entries of `∂f/∂y` in the order of [`OdeSystem::pattern`].
    fn jacobian(&mut self, t: f64, y: &[f64], values: &mut [f64]);

    /// Writes the derivatives of `f` along the sensitivities: for each state a row of numbers, one for each parameter.
    /// Asked for only after [`BdfSolver::start_sensitivities`]; both slices have the length of its argument.
    ///
    /// # Errors
    /// Why the run is to end, if that is known within a long evaluation.
    fn tangents(&mut self, t: f64, y: &[f64], s: &[f64], ds: &mut [f64]) -> Result<(), Interrupt> {
        let _ = (t, y, s);
        ds.fill(0.0);
        Ok(())
    }

    /// Asked before each internal step and each attempt at one, and now and then in long factorisations, with the time
    /// that the solution has reached; `Some` ends the run with [`SolveError::Interrupted`].
    fn interrupted(&mut self, t: f64) -> Option<Interrupt> {
        let _ = t;
        None
    }

    /// Called for each right-hand side that was not finite, with its time, the first such state and their count so far;
    /// for the caller's log.
    fn non_finite(&mut self, t: f64, state: usize, count: usize) {
        let _ = (t, state, count);
    }
}
