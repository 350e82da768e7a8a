//! Options of a caller, and counts of the solver.

use super::SolveError;

/// Largest order of the formula; beyond five the method loses its stability.
pub(super) const ORDER_MAX: usize = 5;

/// Tolerances and limits of one integration.
#[derive(Debug, Clone, PartialEq)]
pub struct SolveOptions {
    /// Relative tolerance, at least zero.
    pub rtol: f64,
    /// Absolute tolerance in the units of the states: one for all, or one per state.
    pub atol: Vec<f64>,
    /// First step after each start, in units of time; `None` or zero lets the solver estimate it.
    pub h0: Option<f64>,
    /// Smallest step; zero for no bound.
    pub hmin: f64,
    /// Largest step; zero or infinity for no bound.
    pub hmax: f64,
    /// Internal steps allowed between two output times; zero means 500.
    pub max_steps: usize,
    /// Highest order used, 1 to 5.
    pub max_order: usize,
    /// Right-hand sides that are not finite before the run is given up.
    pub max_non_finite: usize,
}

impl Default for SolveOptions {
    fn default() -> Self {
        Self {
            rtol: 1e-5,
            atol: vec![1e-10],
            h0: None,
            hmin: 0.0,
            hmax: 0.0,
            max_steps: 100_000,
            max_order: ORDER_MAX,
            max_non_finite: 1000,
        }
    }
}

impl SolveOptions {
    /// Checks every value for a system of `n` states.
    pub(super) fn check(&self, n: usize) -> Result<(), SolveError> {
        let bad = |name: &'static str, value: f64, rule: &'static str| {
            Err(SolveError::Option { name, value, rule })
        };
        if !(self.rtol >= 0.0 && self.rtol.is_finite()) {
            return bad(
                "relative tolerance",
                self.rtol,
                "must be finite and not negative",
            );
        }
        if self.atol.len() != 1 && self.atol.len() != n {
            #[expect(clippy::cast_precision_loss, reason = "a count shown in a message")]
            return bad(
                "number of absolute tolerances",
                self.atol.len() as f64,
                "must be one or one per state",
            );
        }
        for &a in &self.atol {
            if !(a >= 0.0 && a.is_finite()) {
                return bad("absolute tolerance", a, "must be finite and not negative");
            }
        }
        if let Some(h0) = self.h0
            && !(h0 >= 0.0 && h0.is_finite())
        {
            return bad("first step", h0, "must be finite and not negative");
        }
        if !(self.hmin >= 0.0 && self.hmin.is_finite()) {
            return bad(
                "smallest step",
                self.hmin,
                "must be finite and not negative",
            );
        }
        if self.hmax.is_nan() || self.hmax < 0.0 {
            return bad("largest step", self.hmax, "must not be negative");
        }
        if self.hmax > 0.0 && self.hmax < self.hmin {
            return bad(
                "largest step",
                self.hmax,
                "must not lie below the smallest step",
            );
        }
        if self.max_order == 0 || self.max_order > ORDER_MAX {
            #[expect(clippy::cast_precision_loss, reason = "a count shown in a message")]
            return bad(
                "largest order",
                self.max_order as f64,
                "must lie between 1 and 5",
            );
        }
        Ok(())
    }

    /// Inverse of the largest step, zero when there is none.
    pub(super) fn hmax_inverse(&self) -> f64 {
        if self.hmax > 0.0 {
            1.0 / self.hmax
        } else {
            0.0
        }
    }

    /// Steps allowed between two output times.
    pub(super) fn steps_max(&self) -> usize {
        if self.max_steps == 0 {
            500
        } else {
            self.max_steps
        }
    }
}

/// Counts since the solver was made; a restart does not reset them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SolverStatistics {
    /// Accepted steps.
    pub steps: usize,
    /// Evaluations of the right-hand side.
    pub rhs: usize,
    /// Evaluations of the Jacobian.
    pub jacobians: usize,
    /// Factorisations of `I − γJ`.
    pub factorisations: usize,
    /// Factorisations that had to be done densely with pivoting because a pivot was too small.
    pub dense_factorisations: usize,
    /// Newton iterations.
    pub newton_iterations: usize,
    /// Steps repeated because the local error was too large.
    pub error_test_failures: usize,
    /// Steps repeated because Newton's iteration did not converge.
    pub convergence_failures: usize,
    /// Right-hand sides that were not finite.
    pub non_finite: usize,
    /// Calls of `start`.
    pub starts: usize,
    /// Order of the last accepted step.
    pub last_order: usize,
    /// Size of the last accepted step.
    pub last_step: f64,
}
