//! Forward sensitivities: the linear systems `s' = J·s + ∂f/∂p` of all parameters, integrated with the states in the
//! same steps (staggered direct method: M. Caracotsios, W. E. Stewart, Comput. Chem. Eng. 9 (1985)).
//!
//! After each accepted step of the states, with the Jacobian at its end, one solution for each parameter is exact: no
//! iteration is needed. Steps and orders follow the states alone.

use super::bdf::BdfSolver;
use super::history::SolutionHistory;
use super::lu::{FactorError, LuFactors};
use super::{OdeSystem, SolveError};

/// Sensitivities beside a [`BdfSolver`]: rows of `width` numbers, one row for each state.
#[derive(Debug)]
pub(super) struct SensitivityRows {
    width: usize,
    pub(super) history: SolutionHistory,
    /// Corrections of the newest step.
    correction: Vec<f64>,
    slopes: Vec<f64>,
    jacobian: Vec<f64>,
    factors: LuFactors,
}

impl SensitivityRows {
    /// Raises the order with the states'.
    pub(super) fn raise(&mut self) {
        self.history.raise(&self.correction);
    }
}

impl BdfSolver {
    /// From the present start on, integrates these sensitivities too: `start` has a row of numbers for each state.
    ///
    /// # Errors
    /// [`SolveError::Dimension`] if the rows are not as many as the states.
    pub fn start_sensitivities(&mut self, start: &[f64]) -> Result<(), SolveError> {
        let n = self.y.len();
        if n == 0 || !start.len().is_multiple_of(n) {
            return Err(SolveError::Dimension {
                expected: n,
                found: start.len(),
            });
        }
        let width = start.len() / n;
        let mut sensitivities = match self.sensitivities.take() {
            Some(old) if old.width == width => old,
            _ => SensitivityRows {
                width,
                history: SolutionHistory::new(start.len()),
                correction: vec![0.0; start.len()],
                slopes: vec![0.0; start.len()],
                jacobian: Vec::new(),
                factors: LuFactors::new(self.symbolic()),
            },
        };
        if !std::sync::Arc::ptr_eq(sensitivities.factors.symbolic(), self.linear.symbolic()) {
            sensitivities.factors = LuFactors::new(self.symbolic());
        }
        sensitivities.jacobian.clear();
        sensitivities
            .jacobian
            .resize(self.linear.pattern.nnz(), 0.0);
        sensitivities.history.restart(start);
        sensitivities.correction.fill(0.0);
        self.sensitivities = Some(sensitivities);
        Ok(())
    }

    /// Writes the sensitivities at `t`, a time within the last step.
    ///
    /// # Errors
    /// As [`BdfSolver::output`].
    pub fn output_sensitivities(&self, t: f64, out: &mut [f64]) -> Result<(), SolveError> {
        match &self.sensitivities {
            Some(sensitivities) => self.interpolate(&sensitivities.history, t, out),
            None => Err(SolveError::NotStarted),
        }
    }

    /// Computes the slopes of the sensitivities at the start, if the states' slope is known.
    pub(super) fn first_sensitivities<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
    ) -> Result<(), SolveError> {
        let Some(own) = &mut self.sensitivities else {
            return Ok(());
        };
        let time = self.t;
        let found = system.tangents(time, &self.y, own.history.state(), &mut own.slopes);
        found.map_err(|cause| SolveError::Interrupted { time, cause })?;
        own.history.h = self.history.h;
        own.history.set_slope(&own.slopes);
        Ok(())
    }

    /// Takes the sensitivities through the step that the states have just made, before these take it into their
    /// history.
    pub(super) fn follow<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
    ) -> Result<(), SolveError> {
        let Some(own) = &mut self.sensitivities else {
            return Ok(());
        };
        // Failed attempts may have lowered the order and shortened the step.
        while own.history.order > self.history.order {
            own.history.lower();
        }
        if own.history.h != self.history.h {
            own.history.rescale(self.history.h / own.history.h);
            own.history.h = self.history.h;
        }
        let (time, step) = (self.t, self.history.h);
        let stopped = |cause| SolveError::Interrupted { time, cause };
        own.history.predict();
        let found = system.tangents(time, &self.y, own.history.state(), &mut own.slopes);
        found.map_err(stopped)?;
        system.jacobian(self.t, &self.y, &mut own.jacobian);
        let l1 = self.coefficients.l1();
        let gamma = self.history.h / l1;
        let inverse = 1.0 / l1;
        let predicted = own.history.slope();
        for ((e, s), z) in own.correction.iter_mut().zip(&own.slopes).zip(predicted) {
            *e = gamma * s - inverse * z;
        }
        let mut ask = || system.interrupted(time);
        if let Some(cause) = ask() {
            return Err(stopped(cause));
        }
        let factored = own.factors.refactor_asking(gamma, &own.jacobian, &mut ask);
        factored.map_err(|error| match error {
            FactorError::Interrupted(cause) => stopped(cause),
            FactorError::Singular => SolveError::Convergence { time, step },
        })?;
        let solved = own
            .factors
            .solve_rows_asking(&mut own.correction, own.width, &mut ask);
        solved.map_err(stopped)?;
        own.history.accept(&own.correction, &self.coefficients.l);
        Ok(())
    }
}
