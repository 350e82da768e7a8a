//! Progress of long operations, and how a caller ends them early.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far a long operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationProgress {
    /// Units that are done: segments of a verification, records of a replay or an export.
    pub done: u64,
    /// All units, if that is known.
    pub total: Option<u64>,
}

/// Receives the progress of a long operation and can cancel it.
#[derive(Default)]
pub struct OperationWatch<'a> {
    report: Option<&'a mut dyn FnMut(OperationProgress)>,
    cancel: Option<&'a AtomicBool>,
}

impl fmt::Debug for OperationWatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationWatch")
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

impl<'a> OperationWatch<'a> {
    /// Reports each step to this callback.
    #[must_use]
    pub fn with_report(mut self, report: &'a mut dyn FnMut(OperationProgress)) -> Self {
        self.report = Some(report);
        self
    }

    /// Cancels the operation at its next step after the flag is set.
    #[must_use]
    pub fn with_cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Reports a step; breaks if the operation is cancelled.
    pub(crate) fn step(&mut self, done: u64, total: Option<u64>) -> ControlFlow<()> {
        if let Some(report) = &mut self.report {
            report(OperationProgress { done, total });
        }
        match self.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Returns whether the operation is to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel
            .is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}
