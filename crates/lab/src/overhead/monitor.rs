//! What goes on beside a measurement: progress for people, Ctrl-C, resource samples.

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
            start: Instant::now(),
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
