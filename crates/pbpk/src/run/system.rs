//! The code as the solver's system.

use super::{Question, START, Tell};
use crate::compile::{Engine, Tangents};
use crate::solve::{Interrupt, Pattern, System};
use crate::watch::Watch;
use std::cell::Cell;

/// Not-finite rates that are written down one by one; further ones are only counted.
const LOGGED_MAX: usize = 10;

/// Parts of the time span at which progress is told.
const TOLD_PARTS: f64 = 1000.0;

/// What is told of the part done.
#[derive(Default)]
pub(super) struct Progress<'b> {
    tell: Option<Tell<'b>>,
    span: f64,
    /// The time told last.
    told: Cell<f64>,
}

impl<'b> Progress<'b> {
    /// Tells of the way from the start to this time.
    pub(super) fn new(tell: Option<Tell<'b>>, end: f64) -> Self {
        Self {
            tell,
            span: end - START,
            told: Cell::new(START),
        }
    }

    /// The solution has come as far as `t`, perhaps beyond the end; told where that is a good bit further than before.
    fn reached(&self, t: f64) {
        if self.tell.is_some() && (t - self.told.get()) * TOLD_PARTS >= self.span {
            self.tell(t);
        }
    }

    /// Tells of the time `t`.
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
pub(super) struct Running<'a, 'b> {
    pub(super) engine: &'a mut Engine,
    pub(super) tangents: Option<&'a mut Tangents>,
    /// Where the system may jump next: on the way there the rates of before the jump count.
    pub(super) stop: Option<f64>,
    pub(super) interrupt: Option<Question<'b>>,
    pub(super) progress: &'a Progress<'b>,
    pub(super) warnings: &'a mut Vec<String>,
}

impl Running<'_, '_> {
    fn before_stop(&self, t: f64) -> f64 {
        match self.stop {
            Some(stop) if t >= stop => stop.next_down(),
            _ => t,
        }
    }
}

impl System for Running<'_, '_> {
    fn dimension(&self) -> usize {
        self.engine.variant().pattern.n()
    }

    fn pattern(&self) -> &Pattern {
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
        self.progress.reached(t);
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
