//! The code as the solver's system.

use super::{Question, START, Tell};
use crate::compile::{ModelEngine, TangentState};
use crate::solve::{Interrupt, OdeSystem, SparsityPattern};
use crate::watch::Watch;
use std::cell::Cell;

/// Not-finite rates that are written down one by one; further ones are only counted.
const LOGGED_MAX: usize = 10;

/// Number of progress reports over the time span.
const TOLD_PARTS: f64 = 1000.0;

/// Progress reports of a run.
#[derive(Default)]
pub(super) struct RunProgress<'b> {
    tell: Option<Tell<'b>>,
    span: f64,
    /// The last reported time.
    told: Cell<f64>,
}

impl<'b> RunProgress<'b> {
    /// Reports progress from the start to this time.
    pub(super) fn new(tell: Option<Tell<'b>>, end: f64) -> Self {
        Self {
            tell,
            span: end - START,
            told: Cell::new(START),
        }
    }

    /// Reports that the solution has reached `t`, perhaps beyond the end, if that is far enough from the last report.
    fn report_progress(&self, t: f64) {
        if self.tell.is_some() && (t - self.told.get()) * TOLD_PARTS >= self.span {
            self.tell(t);
        }
    }

    /// Reports the time `t`.
    pub(super) fn tell(&self, t: f64) {
        if let Some(tell) = self.tell {
            self.told.set(t);
            let part = if self.span > 0.0 {
                (t - START) / self.span
            } else {
                1.0
            };
            tell(part.min(1.0));
        }
    }
}

/// Code, question to the caller, and log.
pub(super) struct RunContext<'a, 'b> {
    pub(super) engine: &'a mut ModelEngine,
    pub(super) tangents: Option<&'a mut TangentState>,
    /// Time of the next possible jump: until then the rates before the jump count.
    pub(super) stop: Option<f64>,
    pub(super) interrupt: Option<Question<'b>>,
    pub(super) progress: &'a RunProgress<'b>,
    pub(super) warnings: &'a mut Vec<String>,
}

impl RunContext<'_, '_> {
    fn before_stop(&self, t: f64) -> f64 {
        match self.stop {
            Some(stop) if t >= stop => stop.next_down(),
            _ => t,
        }
    }
}

impl OdeSystem for RunContext<'_, '_> {
    fn dimension(&self) -> usize {
        self.engine.variant().pattern.n()
    }

    fn pattern(&self) -> &SparsityPattern {
        &self.engine.variant().pattern
    }

    fn rhs(&mut self, t: f64, y: &[f64], dy: &mut [f64]) {
        let t = self.before_stop(t);
        self.engine.rhs(t, y, dy);
    }

    fn jacobian(&mut self, t: f64, y: &[f64], values: &mut [f64]) {
        let t = self.before_stop(t);
        self.engine.jacobian(t, y, values);
    }

    fn tangents(&mut self, t: f64, y: &[f64], s: &[f64], ds: &mut [f64]) -> Result<(), Interrupt> {
        let t = self.before_stop(t);
        self.engine.evaluate(t, y);
        match &mut self.tangents {
            Some(tangents) => tangents.rates(self.engine, s, ds, &Watch::new(self.interrupt)),
            None => Ok(()),
        }
    }

    fn interrupted(&mut self, t: f64) -> Option<Interrupt> {
        self.progress.report_progress(t);
        self.interrupt.and_then(|ask| ask())
    }

    fn non_finite(&mut self, t: f64, state: usize, count: usize) {
        if count <= LOGGED_MAX {
            self.warnings.push(format!(
                "the rate of state {state} is not finite at t = {t}; a smaller step was tried"
            ));
        }
    }
}
