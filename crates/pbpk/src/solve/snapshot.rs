//! The state of an integrator as words: an integrator that was written and read back continues with the same bits.

use super::bdf::{BdfSolver, SolverPhase};
use super::control::StepPlan;
use super::history::SolutionHistory;
use super::linear::LinearSolver;
use super::options::ORDER_MAX;
use super::{SolverStatistics, lu};
use crate::words::{DamagedBytes, WordBuffer};

impl BdfSolver {
    /// Writes the integrator, or reads it into one of the same structure and options. Sensitivities are not part of it.
    pub(crate) fn pass(&mut self, words: &mut WordBuffer) -> Result<(), DamagedBytes> {
        self.statistics.pass(words)?;
        self.history.pass(words)?;
        let c = &mut self.coefficients;
        words.numbers(&mut c.l)?;
        for number in [
            &mut c.error,
            &mut c.error_lower,
            &mut c.error_higher,
            &mut c.scale,
            &mut self.t,
            &mut self.rate,
        ] {
            words.number(number)?;
        }
        self.plan.pass(words)?;
        for vector in [
            &mut self.weights,
            &mut self.correction,
            &mut self.delta,
            &mut self.y,
            &mut self.dy,
        ] {
            words.numbers(vector)?;
        }
        words.count(&mut self.steps_since_start, usize::MAX)?;
        words.maybe(&mut self.stop, WordBuffer::number)?;
        let mut phase = self.phase as usize;
        words.count(&mut phase, 3)?;
        self.phase = match phase {
            0 => SolverPhase::Idle,
            1 => SolverPhase::Placed,
            _ => SolverPhase::Running,
        };
        self.linear.pass(words)
    }
}

impl SolverStatistics {
    /// Writes or reads all counts.
    pub(crate) fn pass(&mut self, words: &mut WordBuffer) -> Result<(), DamagedBytes> {
        for count in [
            &mut self.steps,
            &mut self.rhs,
            &mut self.jacobians,
            &mut self.factorisations,
            &mut self.dense_factorisations,
            &mut self.newton_iterations,
            &mut self.error_test_failures,
            &mut self.convergence_failures,
            &mut self.non_finite,
            &mut self.starts,
            &mut self.last_order,
        ] {
            words.count(count, usize::MAX)?;
        }
        words.number(&mut self.last_step)
    }
}

impl SolutionHistory {
    fn pass(&mut self, words: &mut WordBuffer) -> Result<(), DamagedBytes> {
        for column in &mut self.z {
            words.numbers(column)?;
        }
        words.numbers(&mut self.saved)?;
        words.numbers(&mut self.tau)?;
        order(words, &mut self.order)?;
        words.number(&mut self.h)
    }
}

impl StepPlan {
    fn pass(&mut self, words: &mut WordBuffer) -> Result<(), DamagedBytes> {
        order(words, &mut self.order)?;
        words.number(&mut self.h)?;
        words.count(&mut self.wait, usize::MAX)?;
        words.number(&mut self.growth_max)?;
        words.number(&mut self.saved_scale)
    }
}

impl LinearSolver {
    /// The factors are made again of the Jacobian that they were made of.
    fn pass(&mut self, words: &mut WordBuffer) -> Result<(), DamagedBytes> {
        words.numbers(&mut self.jacobian)?;
        words.number(&mut self.gamma)?;
        for step in [&mut self.factored_at, &mut self.evaluated_at] {
            words.maybe(step, |words, step| words.count(step, usize::MAX))?;
        }
        words.flag(&mut self.current)?;
        if words.reads() && self.factored_at.is_some() {
            match self.factors.refactor(self.gamma, &self.jacobian) {
                // A matrix without factors was followed by another attempt, which made new ones.
                Ok(()) | Err(lu::FactorError::Singular) => {}
                Err(lu::FactorError::Interrupted(_)) => return Err(DamagedBytes),
            }
        }
        Ok(())
    }
}

/// An order that the formulas have.
fn order(words: &mut WordBuffer, order: &mut usize) -> Result<(), DamagedBytes> {
    words.count(order, ORDER_MAX + 1)?;
    if *order == 0 {
        Err(DamagedBytes)
    } else {
        Ok(())
    }
}
