//! The integrator: start, advance to an output time, one step.

use super::coefficients::{StepCoefficients, coefficients};
use super::control::{StepFailures, StepPlan};
use super::corrector::{CorrectionResult, PreviousAttempt};
use super::history::SolutionHistory;
use super::linear::LinearSolver;
use super::lu::SymbolicFactors;
use super::norm::weights;
use super::sensitivity::SensitivityRows;
use super::{OdeSystem, SolveError, SolveOptions, SolverStatistics};
use std::sync::Arc;

/// Variable-order, variable-step integrator for one system.
///
/// ```
/// use pbpk::solve::{BdfSolver, OdeSystem, SolveOptions, SparsityPattern};
///
/// struct Decay(SparsityPattern);
/// impl OdeSystem for Decay {
///     fn dimension(&self) -> usize { 1 }
///     fn pattern(&self) -> &SparsityPattern { &self.0 }
///     fn rhs(&mut self, _t: f64, y: &[f64], dy: &mut [f64]) { dy[0] = -y[0]; }
///     fn jacobian(&mut self, _t: f64, _y: &[f64], values: &mut [f64]) { values[0] = -1.0; }
/// }
///
/// let mut system = Decay(SparsityPattern::dense(1));
/// let mut solver = BdfSolver::new(&system, SolveOptions { rtol: 1e-8, ..SolveOptions::default() })?;
/// solver.start(&mut system, 0.0, &[1.0])?;
/// let mut y = [0.0];
/// solver.advance_to(&mut system, 1.0, &mut y)?;
/// assert!((y[0] - (-1.0_f64).exp()).abs() < 1e-6);
/// # Ok::<(), pbpk::solve::SolveError>(())
/// ```
#[derive(Debug)]
pub struct BdfSolver {
    pub(super) options: SolveOptions,
    pub(super) statistics: SolverStatistics,
    pub(super) linear: LinearSolver,
    pub(super) history: SolutionHistory,
    pub(super) coefficients: StepCoefficients,
    pub(super) plan: StepPlan,
    /// Time of the newest point, or of the prediction while a step is tried.
    pub(super) t: f64,
    pub(super) weights: Vec<f64>,
    pub(super) correction: Vec<f64>,
    pub(super) delta: Vec<f64>,
    pub(super) y: Vec<f64>,
    pub(super) dy: Vec<f64>,
    /// Convergence rate of Newton's iteration, remembered from step to step.
    pub(super) rate: f64,
    pub(super) steps_since_start: usize,
    pub(super) sensitivities: Option<SensitivityRows>,
    pub(super) stop: Option<f64>,
    pub(super) phase: SolverPhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SolverPhase {
    /// No start point yet.
    Idle,
    /// A start point, but neither slope nor step.
    Placed,
    /// At least the first step is known.
    Running,
}

impl BdfSolver {
    /// Checks options and pattern and prepares the factors.
    ///
    /// # Errors
    /// [`SolveError::Option`] or [`SolveError::Pattern`].
    pub fn new<S: OdeSystem + ?Sized>(
        system: &S,
        options: SolveOptions,
    ) -> Result<Self, SolveError> {
        system.pattern().check(system.dimension())?;
        let symbolic = Arc::new(SymbolicFactors::analyse(system.pattern()));
        Self::with_symbolic(system, options, symbolic)
    }

    /// As [`BdfSolver::new`], with the analysis of an earlier solver of the same structure.
    ///
    /// # Errors
    /// [`SolveError::Option`] or [`SolveError::Pattern`].
    pub fn with_symbolic<S: OdeSystem + ?Sized>(
        system: &S,
        options: SolveOptions,
        symbolic: Arc<SymbolicFactors>,
    ) -> Result<Self, SolveError> {
        let n = system.dimension();
        options.check(n)?;
        system.pattern().check(n)?;
        let zeros = || vec![0.0; n];
        Ok(Self {
            options,
            statistics: SolverStatistics::default(),
            linear: LinearSolver::new(system.pattern().clone(), symbolic),
            history: SolutionHistory::new(n),
            coefficients: StepCoefficients::default(),
            plan: StepPlan::start(0.0),
            t: 0.0,
            weights: zeros(),
            correction: zeros(),
            delta: zeros(),
            y: zeros(),
            dy: zeros(),
            rate: 1.0,
            steps_since_start: 0,
            sensitivities: None,
            stop: None,
            phase: SolverPhase::Idle,
        })
    }

    /// Returns the analysis, to be shared with solvers of the same structure.
    #[must_use]
    pub fn symbolic(&self) -> Arc<SymbolicFactors> {
        Arc::clone(self.linear.symbolic())
    }

    /// Places the solver at `(t0, y0)` and forgets the past. The analysis of the pattern is kept, or
    /// made again if the system now has another pattern; counts go on.
    ///
    /// # Errors
    /// [`SolveError::Dimension`] or [`SolveError::Pattern`].
    pub fn start<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
        t0: f64,
        y0: &[f64],
    ) -> Result<(), SolveError> {
        let n = self.y.len();
        if system.dimension() != n || y0.len() != n {
            return Err(SolveError::Dimension {
                expected: n,
                found: y0.len().min(system.dimension()),
            });
        }
        if *system.pattern() != self.linear.pattern {
            system.pattern().check(n)?;
            let pattern = system.pattern().clone();
            let mut ask = || match system.interrupted(t0) {
                None => Ok(()),
                Some(cause) => Err(SolveError::Interrupted { time: t0, cause }),
            };
            let symbolic = Arc::new(SymbolicFactors::analyse_asking(&pattern, &mut ask)?);
            self.linear = LinearSolver::new(pattern, symbolic);
        }
        self.linear.restart();
        self.history.restart(y0);
        self.correction.fill(0.0);
        self.t = t0;
        self.rate = 1.0;
        self.steps_since_start = 0;
        self.statistics.starts += 1;
        self.phase = SolverPhase::Placed;
        Ok(())
    }

    /// No step goes past this time until it is changed; for jumps of the system.
    pub fn set_stop(&mut self, time: Option<f64>) {
        self.stop = time;
    }

    /// Returns the time that no step goes past.
    #[must_use]
    pub fn stop(&self) -> Option<f64> {
        self.stop
    }

    /// Time of the newest step, at or beyond the last output time.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.t
    }

    /// Returns the options in force.
    #[must_use]
    pub fn options(&self) -> &SolveOptions {
        &self.options
    }

    /// Counts so far.
    #[must_use]
    pub fn statistics(&self) -> SolverStatistics {
        self.statistics
    }

    /// Integrates at least as far as `t` and writes the solution there into `y_out`, interpolated
    /// within the last step. Times must not descend between two starts.
    ///
    /// # Errors
    /// Any [`SolveError`]; after one the solver has to be started again.
    pub fn advance_to<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
        t: f64,
        y_out: &mut [f64],
    ) -> Result<(), SolveError> {
        if y_out.len() != self.y.len() {
            return Err(SolveError::Dimension {
                expected: self.y.len(),
                found: y_out.len(),
            });
        }
        if self.phase == SolverPhase::Idle {
            return Err(SolveError::NotStarted);
        }
        let fuzz = self.fuzz();
        if let Some(stop) = self.stop.filter(|&stop| t > stop + fuzz) {
            return Err(SolveError::PastStop { time: t, stop });
        }
        if !t.is_finite() {
            return Err(SolveError::PastStop {
                time: t,
                stop: self.stop.unwrap_or(f64::INFINITY),
            });
        }
        if self.phase == SolverPhase::Placed && t > self.t {
            self.first_step(system, t)?;
        }
        let limit = self.options.steps_max();
        let mut taken = 0;
        while self.t < t - self.fuzz() {
            self.ask(system, self.t)?;
            if taken >= limit {
                return Err(SolveError::TooManySteps {
                    time: self.t,
                    limit,
                });
            }
            if self.steps_since_start > 0 {
                self.weigh()?;
            }
            self.step(system)?;
            taken += 1;
        }
        self.output(t, y_out)
    }

    /// Writes the solution at `t`, a time within the last step.
    ///
    /// # Errors
    /// [`SolveError::Behind`] if the time lies before that step.
    pub fn output(&self, t: f64, y_out: &mut [f64]) -> Result<(), SolveError> {
        self.interpolate(&self.history, t, y_out)
    }

    /// Interpolates a history in step with the states' at `t`.
    pub(super) fn interpolate(
        &self,
        history: &SolutionHistory,
        t: f64,
        y_out: &mut [f64],
    ) -> Result<(), SolveError> {
        let earliest = if self.steps_since_start > 0 {
            self.t - self.statistics.last_step
        } else {
            self.t
        };
        if t < earliest - self.fuzz() {
            return Err(SolveError::Behind { time: t, earliest });
        }
        let h = self.history.h;
        let s = if h > 0.0 { (t - self.t) / h } else { 0.0 };
        if s == 0.0 {
            y_out.copy_from_slice(history.state());
        } else {
            history.interpolate(s, y_out);
        }
        Ok(())
    }

    /// Rounding of the time axis near the present point.
    fn fuzz(&self) -> f64 {
        100.0 * f64::EPSILON * (self.t.abs() + self.history.h)
    }

    fn weigh(&mut self) -> Result<(), SolveError> {
        let time = self.t;
        let norm = weights(
            self.history.state(),
            self.options.rtol,
            &self.options.atol,
            &mut self.weights,
        );
        let digits = f64::EPSILON * norm.map_err(|state| SolveError::Weight { time, state })?;
        if digits > 1.0 {
            return Err(SolveError::TooAccurate {
                time,
                factor: digits,
            });
        }
        Ok(())
    }

    /// Takes the slope at the start and chooses the first step.
    fn first_step<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
        target: f64,
    ) -> Result<(), SolveError> {
        self.weigh()?;
        self.y.copy_from_slice(self.history.state());
        if !self.evaluate(system)? {
            let state = self.dy.iter().position(|d| !d.is_finite()).unwrap_or(0);
            return Err(SolveError::NonFiniteStart {
                time: self.t,
                state,
            });
        }
        let h = match self.options.h0 {
            Some(h0) if h0 > 0.0 => h0,
            _ => self.estimate_step(system, target - self.t)?,
        };
        let h = h.max(self.options.hmin);
        let h = h / (h * self.options.hmax_inverse()).max(1.0);
        self.history.h = h;
        self.history.set_slope(&self.dy);
        self.first_sensitivities(system)?;
        self.plan = StepPlan::start(h);
        self.phase = SolverPhase::Running;
        Ok(())
    }

    /// Asks whether to go on; the solution has reached `time`.
    pub(super) fn ask<S: OdeSystem + ?Sized>(
        &self,
        system: &mut S,
        time: f64,
    ) -> Result<(), SolveError> {
        match system.interrupted(time) {
            None => Ok(()),
            Some(cause) => Err(SolveError::Interrupted { time, cause }),
        }
    }

    /// Takes one accepted step, however many attempts that needs.
    fn step<S: OdeSystem + ?Sized>(&mut self, system: &mut S) -> Result<(), SolveError> {
        if let Some(stop) = self.stop {
            let room = stop - self.t;
            if self.plan.h * (1.0 + 4.0 * f64::EPSILON) > room && room > 0.0 {
                self.plan.h = room * (1.0 - 4.0 * f64::EPSILON);
            }
        }
        self.apply_plan();
        let from = self.t;
        let mut failures = StepFailures::default();
        let mut attempt = PreviousAttempt::First;
        let error = loop {
            if attempt != PreviousAttempt::First {
                self.ask(system, from)?;
            }
            self.t = from + self.history.h;
            if self.t == from {
                return Err(SolveError::Convergence {
                    time: from,
                    step: self.history.h,
                });
            }
            // Within rounding of the stop time means at it.
            if let Some(stop) = self
                .stop
                .filter(|&stop| self.t > stop - 16.0 * f64::EPSILON * (stop.abs() + from.abs()))
            {
                self.t = stop;
            }
            self.history.predict();
            self.coefficients = coefficients(
                self.history.order,
                self.history.h,
                &self.history.tau,
                self.plan.wait == 1,
            );
            match self.correct(system, attempt)? {
                CorrectionResult::Failed => {
                    self.after_convergence_failure(&mut failures, from)?;
                    attempt = PreviousAttempt::AfterConvergenceFailure;
                }
                CorrectionResult::Converged(size) => {
                    let error = size * self.coefficients.error;
                    if error <= 1.0 {
                        break error;
                    }
                    attempt = self.after_error_test(system, &mut failures, error, from)?;
                }
            }
        };
        self.follow(system)?;
        self.complete(error);
        Ok(())
    }

    /// Takes the correction into the history and plans the next step.
    fn complete(&mut self, error: f64) {
        self.statistics.steps += 1;
        self.statistics.last_order = self.history.order;
        self.statistics.last_step = self.history.h;
        self.steps_since_start += 1;
        self.history.accept(&self.correction, &self.coefficients.l);
        self.plan.wait = self.plan.wait.saturating_sub(1);
        if self.plan.wait == 1 && self.history.order < self.options.max_order {
            self.history.saved.copy_from_slice(&self.correction);
            self.plan.saved_scale = self.coefficients.scale;
        }
        self.plan_next(error);
        self.allow_growth();
    }
}
