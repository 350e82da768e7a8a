//! What goes on beside a measurement: progress for people, Ctrl-C, resource samples.

use super::measure::{Launch, Plan};
use super::store::Store;
use crate::error::LabError;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::run::Sampler;
use std::time::Instant;

/// What goes on beside a measurement.
pub(crate) struct Monitor<'a> {
    pub(crate) progress: Progress<'a>,
    pub(crate) interrupt: Interrupt,
    pub(crate) sampler: Option<Sampler>,
    /// Where the calls of each launch are kept.
    pub(crate) store: Option<Store>,
    /// Why they could not be.
    pub(crate) unkept: Option<LabError>,
    /// When the run began: the origin of the times in its records.
    pub(crate) start: Instant,
}

impl<'a> Monitor<'a> {
    /// A measurement that begins now.
    pub(crate) fn new(progress: Progress<'a>, interrupt: Interrupt) -> Self {
        Self {
            progress,
            interrupt,
            sampler: None,
            store: None,
            unkept: None,
            start: Instant::now(),
        }
    }

    /// Keeps the calls of a launch that is over. Where that fails the measurement goes on: what is measured
    /// is told all the same.
    pub(super) fn keep(&mut self, plan: &Plan, launch: &Launch) {
        if let Some(store) = &mut self.store
            && let Err(error) = store.launch(plan, launch)
        {
            self.unkept.get_or_insert(error);
            self.store = None;
        }
    }

    /// An error once an end was asked for.
    pub(crate) fn go_on(&self) -> Result<(), LabError> {
        if self.interrupt.is_set() {
            return Err(LabError::Aborted);
        }
        Ok(())
    }
}
