//! Local error test, and the choice of the next order and step.
//!
//! Rules and safety factors after P. N. Brown, G. D. Byrne and A. C. Hindmarsh, "VODE" (1989), §3.

use super::OdeSystem;
use super::SolveError;
use super::bdf::BdfSolver;
use super::corrector::PreviousAttempt;
use super::kernel;
use super::norm::wrms;
use super::options::ORDER_MAX;

/// Safety factors on the error estimates of the same, the lower and the higher order.
const BIAS_SAME: f64 = 6.0;
const BIAS_LOWER: f64 = 6.0;
const BIAS_HIGHER: f64 = 10.0;
/// Keeps a step ratio finite when the estimate is zero.
const ADD_ON: f64 = 1e-6;
/// A step is not lengthened by less than this.
const GROWTH_MIN: f64 = 1.5;
/// Longest growth in one go: first step ever, and later.
const GROWTH_FIRST: f64 = 1e4;
const GROWTH_LATER: f64 = 10.0;
/// Bounds of a step cut after a failed error test, the upper one from the second failure on.
const CUT_MIN: f64 = 0.1;
const CUT_MAX: f64 = 0.2;
/// Cut after a failure of convergence.
const CUT_CONVERGENCE: f64 = 0.25;
/// Failed error tests at full order, and in all; failures of convergence in all.
const ERROR_TESTS_AT_ORDER: usize = 3;
const ERROR_TESTS_MAX: usize = 7;
const CONVERGENCE_FAILURES_MAX: usize = 10;

/// Failures within one step.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepFailures {
    error_tests: usize,
    convergence: usize,
}

/// Step and order to take next.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepPlan {
    /// Order of the next step.
    pub(super) order: usize,
    /// Size of the next step.
    pub(super) h: f64,
    /// Steps to wait before the order may change.
    pub(super) wait: usize,
    /// Longest growth allowed after this step.
    pub(super) growth_max: f64,
    /// `scale` of the step with the saved correction; zero when there is none.
    pub(super) saved_scale: f64,
}

impl StepPlan {
    /// Plan of a fresh start with step `h`.
    pub(super) fn start(h: f64) -> Self {
        Self {
            order: 1,
            h,
            wait: 2,
            growth_max: GROWTH_FIRST,
            saved_scale: 0.0,
        }
    }
}

/// Step ratio that would bring `error` (1 = at tolerance) to the safe side.
fn ratio(bias: f64, error: f64, order: usize) -> f64 {
    let x = bias * error;
    // The common roots need no general power.
    let root = match order {
        1 => x,
        2 => x.sqrt(),
        4 => x.sqrt().sqrt(),
        3 => x.cbrt(),
        6 => x.sqrt().cbrt(),
        #[expect(clippy::cast_precision_loss, reason = "orders are at most five")]
        k => x.powf(1.0 / k as f64),
    };
    1.0 / (root + ADD_ON)
}

impl BdfSolver {
    /// Prepares another attempt after Newton's iteration failed.
    pub(super) fn after_convergence_failure(
        &mut self,
        failures: &mut StepFailures,
        from: f64,
    ) -> Result<(), SolveError> {
        self.statistics.convergence_failures += 1;
        failures.convergence += 1;
        self.take_back(from);
        self.plan.growth_max = 1.0;
        let h = self.history.h;
        if h <= self.options.hmin * (1.0 + 1e-6) || failures.convergence >= CONVERGENCE_FAILURES_MAX
        {
            return Err(SolveError::Convergence {
                time: from,
                step: h,
            });
        }
        self.history
            .rescale(CUT_CONVERGENCE.max(self.options.hmin / h));
        Ok(())
    }

    /// Prepares another attempt after the local error (1 = at tolerance) was too large.
    pub(super) fn after_error_test<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
        failures: &mut StepFailures,
        error: f64,
        from: f64,
    ) -> Result<PreviousAttempt, SolveError> {
        self.statistics.error_test_failures += 1;
        failures.error_tests += 1;
        self.take_back(from);
        let h = self.history.h;
        if h <= self.options.hmin * (1.0 + 1e-6) || failures.error_tests >= ERROR_TESTS_MAX {
            return Err(SolveError::ErrorTest {
                time: from,
                step: h,
            });
        }
        self.plan.growth_max = 1.0;
        let floor = self.options.hmin / h;
        if failures.error_tests <= ERROR_TESTS_AT_ORDER {
            let mut eta = ratio(BIAS_SAME, error, self.history.order + 1)
                .max(CUT_MIN)
                .max(floor);
            if failures.error_tests >= 2 {
                eta = eta.min(CUT_MAX).max(floor);
            }
            self.history.rescale(eta);
            return Ok(PreviousAttempt::AfterErrorTest);
        }
        let eta = CUT_MIN.max(floor);
        if self.history.order > 1 {
            self.history.lower();
            self.plan.wait = self.history.order + 1;
            self.history.rescale(eta);
            return Ok(PreviousAttempt::AfterErrorTest);
        }
        // At order one the history is to blame: take the slope afresh.
        self.history.h *= eta;
        self.plan.wait = 10;
        self.t = from;
        self.y.copy_from_slice(self.history.state());
        if !self.evaluate(system)? {
            return Err(SolveError::ErrorTest {
                time: from,
                step: h,
            });
        }
        self.history.set_slope(&self.dy);
        Ok(PreviousAttempt::AfterErrorTest)
    }

    /// Undoes the prediction of a failed attempt.
    fn take_back(&mut self, from: f64) {
        self.t = from;
        self.history.retract();
    }

    /// Chooses order and step after an accepted step with local error `error` (1 = at tolerance).
    pub(super) fn plan_next(&mut self, error: f64) {
        let (q, h) = (self.history.order, self.history.h);
        self.plan.order = q;
        self.plan.h = h;
        if self.plan.growth_max == 1.0 {
            // A step that failed before it succeeded is not lengthened.
            self.plan.wait = self.plan.wait.max(2);
            return;
        }
        let same = ratio(BIAS_SAME, error, q + 1);
        if self.plan.wait > 0 {
            self.lengthen(same);
            return;
        }
        self.plan.wait = 2;
        let lower = if q > 1 {
            let estimate = wrms(self.history.last(), &self.weights) * self.coefficients.error_lower;
            ratio(BIAS_LOWER, estimate, q)
        } else {
            0.0
        };
        let higher = self.higher();
        let best = same.max(lower).max(higher);
        if best < GROWTH_MIN {
            return;
        }
        if best == lower && lower > same {
            self.plan.order = q - 1;
        } else if best > same {
            self.plan.order = q + 1;
        }
        self.lengthen(best);
    }

    /// Step ratio the next higher order would allow; zero if it may not be used.
    fn higher(&mut self) -> f64 {
        let q = self.history.order;
        if q >= self.options.max_order || self.plan.saved_scale == 0.0 {
            return 0.0;
        }
        let [_, _, before, ..] = self.history.tau;
        let mut power = 1.0;
        for _ in 0..=q {
            power *= self.history.h / before;
        }
        let quotient = self.coefficients.scale / self.plan.saved_scale * power;
        let (correction, saved) = (&self.correction, &self.history.saved);
        kernel::difference(&mut self.delta, correction, quotient, saved);
        let estimate = wrms(&self.delta, &self.weights) * self.coefficients.error_higher;
        ratio(BIAS_HIGHER, estimate, q + 2)
    }

    fn lengthen(&mut self, eta: f64) {
        let h = self.history.h;
        if eta < GROWTH_MIN {
            self.plan.order = self.history.order;
            return;
        }
        let eta = eta.min(self.plan.growth_max);
        self.plan.h = h * (eta / (h * self.options.hmax_inverse() * eta).max(1.0));
    }

    /// Brings the history to the planned order and step.
    pub(super) fn apply_plan(&mut self) {
        let planned = self.plan.order;
        if planned > self.history.order && self.history.order < ORDER_MAX {
            self.history.raise(&self.correction);
            if let Some(sensitivities) = &mut self.sensitivities {
                sensitivities.raise();
            }
            self.plan.wait = planned + 1;
        } else if planned < self.history.order {
            self.history.lower();
            self.plan.wait = planned + 1;
        }
        if self.plan.h != self.history.h {
            let eta = self.plan.h / self.history.h;
            self.history.rescale(eta);
            // The quotient may be off by a rounding; the plan is what counts.
            self.history.h = self.plan.h;
        }
        self.plan.order = self.history.order;
    }

    /// Growth allowed from now on.
    pub(super) fn allow_growth(&mut self) {
        self.plan.growth_max = GROWTH_LATER;
    }
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn a_sixteenth_of_the_error_doubles_the_step_at_order_three() {
        assert!((ratio(1.0, 1.0 / 16.0, 4) - 2.0).abs() < 1e-5);
        for k in 1..=7 {
            let expected = 1.0 / (0.01_f64.powf(1.0 / f64::from(k as u8)) + 1e-6);
            assert!((ratio(2.0, 0.005, k) / expected - 1.0).abs() < 1e-14);
        }
    }
}
