//! Modified Newton iteration for the implicit equation of one step.
//!
//! With the predicted history `z`, the correction `e` solves `e + z₁/l₁ − γ·f(t, z₀ + e) = 0` with
//! `γ = h/l₁`. Convergence control after A. C. Hindmarsh et al., "SUNDIALS", ACM TOMS 31 (2005), §2.1.

use super::OdeSystem;
use super::SolveError;
use super::bdf::BdfSolver;
use super::kernel;
use super::linear::FactorNeed;
use super::lu::FactorError;
use super::norm::{root_of_mean, wrms};

/// Newton iterations of one attempt.
const ITERATIONS_MAX: usize = 3;
/// Growth of the correction that counts as divergence.
const DIVERGENCE: f64 = 2.0;
/// Weight of the previous convergence rate.
const RATE_MEMORY: f64 = 0.3;
/// Part of the error-test budget that the iteration may leave.
const BUDGET: f64 = 0.1;

/// How the previous attempt at this step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreviousAttempt {
    First,
    AfterConvergenceFailure,
    AfterErrorTest,
}

/// Result of one attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CorrectionResult {
    /// Converged; the norm of the whole correction.
    Converged(f64),
    /// Did not converge, or the right-hand side was not finite.
    Failed,
}

impl BdfSolver {
    /// Solves for the correction of the predicted step at time `self.t`.
    pub(super) fn correct<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
        attempt: PreviousAttempt,
    ) -> Result<CorrectionResult, SolveError> {
        let gamma = self.history.h / self.coefficients.l1();
        let mut need = match attempt {
            PreviousAttempt::AfterConvergenceFailure => FactorNeed::FailedStep,
            PreviousAttempt::First | PreviousAttempt::AfterErrorTest => FactorNeed::Routine,
        };
        let mut renew =
            attempt != PreviousAttempt::First || self.linear.is_due(self.steps_since_start, gamma);
        loop {
            self.y.copy_from_slice(self.history.state());
            if !self.evaluate(system)? {
                return Ok(CorrectionResult::Failed);
            }
            if renew {
                let factored = self.linear.set_up(
                    system,
                    self.t,
                    &self.y,
                    gamma,
                    self.steps_since_start,
                    need,
                    &mut self.statistics,
                );
                self.rate = 1.0;
                match factored {
                    Ok(()) => {}
                    Err(FactorError::Singular) => return Ok(CorrectionResult::Failed),
                    Err(FactorError::Interrupted(cause)) => {
                        return Err(SolveError::Interrupted {
                            time: self.t,
                            cause,
                        });
                    }
                }
            } else {
                self.linear.current = false;
            }
            let outcome = self.iterate(system, gamma)?;
            if outcome != CorrectionResult::Failed || self.linear.current {
                return Ok(outcome);
            }
            // Perhaps only the Jacobian is to blame: once more with a new one, same step.
            renew = true;
            need = FactorNeed::StaleJacobian;
        }
    }

    /// Iterates from the prediction; `self.dy` holds the derivative there.
    fn iterate<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
        gamma: f64,
    ) -> Result<CorrectionResult, SolveError> {
        self.correction.fill(0.0);
        let inverse = 1.0 / self.coefficients.l1();
        // Factors made for another γ overshoot or undershoot; the secant of both is the best guess.
        let ratio = self.linear.ratio(gamma);
        // It is 1 where both are the same.
        let damping = 2.0 / (1.0 + ratio);
        let mut last = 0.0;
        for iteration in 0..ITERATIONS_MAX {
            kernel::residual(
                &mut self.delta,
                gamma,
                &self.dy,
                inverse,
                self.history.slope(),
                &self.correction,
            );
            self.linear.solve(&mut self.delta);
            self.statistics.newton_iterations += 1;
            let squares = kernel::correct(
                &mut self.correction,
                &self.delta,
                damping,
                &mut self.y,
                self.history.state(),
                &self.weights,
            );
            let size = root_of_mean(squares, self.delta.len());
            if !size.is_finite() {
                return Ok(CorrectionResult::Failed);
            }
            if iteration > 0 {
                self.rate = (RATE_MEMORY * self.rate).max(size / last);
            }
            if size * self.rate.min(1.0) * self.coefficients.error <= BUDGET {
                let whole = if iteration == 0 {
                    size
                } else {
                    wrms(&self.correction, &self.weights)
                };
                return Ok(CorrectionResult::Converged(whole));
            }
            if iteration + 1 == ITERATIONS_MAX || (iteration > 0 && size > DIVERGENCE * last) {
                break;
            }
            last = size;
            if !self.evaluate(system)? {
                break;
            }
        }
        Ok(CorrectionResult::Failed)
    }

    /// Evaluates the right-hand side at `(self.t, self.y)`; false if it is not finite.
    pub(super) fn evaluate<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
    ) -> Result<bool, SolveError> {
        system.rhs(self.t, &self.y, &mut self.dy);
        self.statistics.rhs += 1;
        if kernel::all_finite(&self.dy) {
            return Ok(true);
        }
        let state = self.dy.iter().position(|d| !d.is_finite()).unwrap_or(0);
        self.statistics.non_finite += 1;
        let count = self.statistics.non_finite;
        system.non_finite(self.t, state, count);
        if count > self.options.max_non_finite {
            return Err(SolveError::NonFinite {
                time: self.t,
                state,
                count,
            });
        }
        Ok(false)
    }
}
