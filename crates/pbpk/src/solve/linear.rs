//! The iteration matrix `I − γJ`: when to evaluate, when to refactor, when to leave it alone.

use super::lu::{FactorError, LuFactors, SymbolicFactors};
use super::{OdeSystem, SolverStatistics, SparsityPattern};
use std::sync::Arc;

/// Steps after which the factors are renewed.
const FACTOR_AGE_MAX_STEPS: usize = 20;
/// Steps after which the Jacobian is evaluated again whenever the factors are renewed.
const JACOBIAN_AGE_MAX_STEPS: usize = 51;
/// Relative change of `γ` beyond which the factors are renewed.
const GAMMA_CHANGE_MAX: f64 = 0.3;
/// Below this change of `γ` a failure of convergence is blamed on the Jacobian.
const GAMMA_BLAMELESS: f64 = 0.2;

/// Why factors are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactorNeed {
    /// Nothing went wrong.
    Routine,
    /// Newton's iteration failed with an old Jacobian.
    StaleJacobian,
    /// The step is tried again after a failure of convergence.
    FailedStep,
}

/// Jacobian values and factors with their ages.
#[derive(Debug)]
pub(super) struct LinearSolver {
    pub(super) pattern: SparsityPattern,
    pub(super) factors: LuFactors,
    pub(super) jacobian: Vec<f64>,
    /// `γ` of the factors.
    pub(super) gamma: f64,
    /// Steps since the start when factors and Jacobian were made; `None` before the first.
    pub(super) factored_at: Option<usize>,
    pub(super) evaluated_at: Option<usize>,
    /// Whether the Jacobian belongs to the present step.
    pub(super) current: bool,
}

impl LinearSolver {
    pub(super) fn new(pattern: SparsityPattern, symbolic: Arc<SymbolicFactors>) -> Self {
        let nnz = pattern.nnz();
        Self {
            pattern,
            factors: LuFactors::new(symbolic),
            jacobian: vec![0.0; nnz],
            gamma: 0.0,
            factored_at: None,
            evaluated_at: None,
            current: false,
        }
    }

    pub(super) fn symbolic(&self) -> &Arc<SymbolicFactors> {
        self.factors.symbolic()
    }

    /// Forgets numbers, keeps the structure.
    pub(super) fn restart(&mut self) {
        self.factored_at = None;
        self.evaluated_at = None;
        self.current = false;
    }

    /// Present `γ` over that of the factors.
    pub(super) fn ratio(&self, gamma: f64) -> f64 {
        if self.factored_at.is_some() {
            gamma / self.gamma
        } else {
            1.0
        }
    }

    /// Returns whether the factors are too old for this step.
    pub(super) fn is_due(&self, step: usize, gamma: f64) -> bool {
        self.factored_at
            .is_none_or(|at| step >= at + FACTOR_AGE_MAX_STEPS)
            || (self.ratio(gamma) - 1.0).abs() > GAMMA_CHANGE_MAX
    }

    /// Makes factors for `γ`, with a new Jacobian at `(t, y)` if the old one will not do.
    ///
    /// # Errors
    /// [`FactorError`] if the matrix is singular.
    pub(super) fn set_up<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
        t: f64,
        y: &[f64],
        gamma: f64,
        step: usize,
        need: FactorNeed,
        statistics: &mut SolverStatistics,
    ) -> Result<(), FactorError> {
        let change = (self.ratio(gamma) - 1.0).abs();
        let stale = self
            .evaluated_at
            .is_none_or(|at| step >= at + JACOBIAN_AGE_MAX_STEPS)
            || need == FactorNeed::FailedStep
            || (need == FactorNeed::StaleJacobian && change < GAMMA_BLAMELESS);
        if stale {
            system.jacobian(t, y, &mut self.jacobian);
            // The matrix only steers the iteration. An infinite derivative (a root at zero, say)
            // would spoil all of it, a missing one only slows it down.
            for v in self.jacobian.iter_mut().filter(|v| !v.is_finite()) {
                *v = 0.0;
            }
            self.evaluated_at = Some(step);
            statistics.jacobians += 1;
        }
        self.current = stale;
        self.gamma = gamma;
        self.factored_at = Some(step);
        statistics.factorisations += 1;
        let outcome = self
            .factors
            .refactor_asking(gamma, &self.jacobian, &mut || system.interrupted(t));
        if self.factors.is_dense() {
            statistics.dense_factorisations += 1;
        }
        outcome
    }

    /// Solves for the Newton correction in place.
    pub(super) fn solve(&mut self, b: &mut [f64]) {
        self.factors.solve(b);
    }
}
