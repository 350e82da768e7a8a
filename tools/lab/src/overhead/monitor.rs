//! What goes on beside a measurement: progress for people, Ctrl-C, resource samples.

use super::measure::{Launch, OverheadPlan};
use super::store::OverheadStore;
use crate::error::LabError;
use crate::interrupt::InterruptFlag;
use crate::progress::ProgressOutput;
use crate::run::ResourceSampler;
use std::time::Instant;

/// Activities beside a measurement.
pub(crate) struct RunMonitor<'a> {
    pub(crate) progress: ProgressOutput<'a>,
    pub(crate) interrupt: InterruptFlag,
    pub(crate) sampler: Option<ResourceSampler>,
    /// Store of the calls of each launch.
    pub(crate) store: Option<OverheadStore>,
    /// Why they could not be.
    pub(crate) unkept: Option<LabError>,
    /// When the run began: the origin of the times in its records.
    pub(crate) start: Instant,
}

impl<'a> RunMonitor<'a> {
    /// Returns a measurement that begins now.
    pub(crate) fn new(progress: ProgressOutput<'a>, interrupt: InterruptFlag) -> Self {
        Self {
            progress,
            interrupt,
            sampler: None,
            store: None,
            unkept: None,
            start: Instant::now(),
        }
    }

    /// Keeps the calls of a launch that is over. A failure does not end the measurement; its figures are still
    /// reported.
    pub(super) fn keep(&mut self, plan: &OverheadPlan, launch: &Launch) {
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
