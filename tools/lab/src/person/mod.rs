//! The person in the loop, played by the lab: one approves every question, the other answers none.
//!
//! Invariants, as absences:
//! - it answers questions only of the process that the lab started itself, found by its number;
//! - no yes is remembered: each is for one call;
//! - no wait is without an end: if questions are not answered any more, the variant is ended and the measurement with
//!   it.

mod approver;
mod socket;
mod waiting;

#[cfg(test)]
mod tests;

use crate::driver::{ProtocolRevision, TimedOperation, VariantLink};
use crate::error::LabError;
use crate::variant::Variant;
use approver::Approver;
use socket::ControlConnection;
use std::time::Duration;
use waiting::{GATHER_MS_MAX, WaitingCalls};

/// Who sits at the control socket of the variants in the middle.
#[derive(Debug, Clone)]
pub(crate) enum PersonRole {
    /// Says yes to every question, this once, so long after it came.
    Approves {
        /// From the read of the question to the write of the answer.
        delay: Duration,
        /// How many questions may be open at once; each has its own delay.
        at_once: usize,
    },
    /// Answers nothing.
    Ignores {
        /// So many calls wait before the first counted one, and still wait after the last.
        calls: usize,
        /// What they ask for.
        operation: TimedOperation,
    },
}

/// A person at one started variant.
#[derive(Debug)]
pub(crate) enum PersonSession {
    Approver(Approver),
    Waiting(WaitingCalls),
}

impl PersonRole {
    /// Takes the seat at a variant that has shaken hands.
    pub(crate) fn sit(
        &self,
        arm: &Variant,
        link: &mut VariantLink,
        protocol: ProtocolRevision,
    ) -> Result<PersonSession, LabError> {
        let broken = |what| LabError::Broken {
            arm: arm.name.clone(),
            what,
        };
        let directory = arm.control().ok_or_else(|| {
            broken("nobody knows where its control socket is; --control NAME=DIR says it".into())
        })?;
        let pid = link
            .pid()
            .ok_or_else(|| broken("it was not started here; who it is nobody knows".into()))?;
        match self {
            Self::Approves { delay, at_once } => Approver::start(directory, pid, *delay, *at_once)
                .map(PersonSession::Approver)
                .map_err(broken),
            Self::Ignores { calls, operation } => {
                let control = ControlConnection::of(directory, pid).map_err(broken)?;
                link.leave_open(&operation.question(protocol), *calls)?;
                WaitingCalls::begin(control, *calls, GATHER_MS_MAX)
                    .map(PersonSession::Waiting)
                    .map_err(broken)
            }
        }
    }

    /// How reports call what happens to a call on its way.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Approves { .. } => "hitl".into(),
            Self::Ignores { calls, .. } => format!("allow, while {calls} calls wait"),
        }
    }

    /// Returns the fixed time from a question to its answer, in microseconds.
    pub(crate) fn delay_us(&self) -> Option<f64> {
        match self {
            Self::Approves { delay, .. } => Some(delay.as_secs_f64() * 1e6),
            Self::Ignores { .. } => None,
        }
    }
}

impl PersonSession {
    /// Starts to record waits.
    pub(crate) fn begin(&self) {
        if let Self::Approver(approver) = self {
            approver.begin();
        }
    }

    /// Returns why questions are not answered any more.
    fn fault(&self) -> Option<String> {
        match self {
            Self::Approver(approver) => approver.fault(),
            Self::Waiting(_) => None,
        }
    }

    /// Returns the error that a call met, with the person's own fault if that was its cause.
    pub(crate) fn explain(&self, arm: &str, error: LabError) -> LabError {
        match self.fault() {
            Some(fault) => LabError::Broken {
                arm: arm.into(),
                what: format!("its questions are not answered any more: {fault} (then: {error})"),
            },
            None => error,
        }
    }

    /// Ends it while the variant still lives; gives how long each counted call was held, in microseconds.
    pub(crate) fn leave(self, arm: &str) -> Result<Vec<f64>, LabError> {
        let left = match self {
            Self::Approver(approver) => approver.leave(),
            Self::Waiting(waiting) => waiting.leave().map(|()| Vec::new()),
        };
        left.map_err(|what| LabError::Invalid {
            arm: arm.into(),
            what,
        })
    }
}
