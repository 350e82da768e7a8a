//! Contract suites: the guarantees of every implementation of a store, as checks that any crate can run in its tests.
//!
//! A suite takes a function that creates a fresh, empty store, and returns a [`ContractReport`] or the first
//! [`ContractViolation`]. It needs no runtime: it polls its tasks in an order that a seed determines, and passes on
//! real wakers, so a store that waits for a socket works as well. Time is an argument; nothing sleeps.

pub mod cache;
pub mod counter;
pub mod lease;
pub mod rate;
mod tasks;

use std::fmt;

pub use tasks::{SeededRandom, SeededTasks, block_on};

/// Checks that a suite has run, and those that the store does not support.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContractReport {
    /// Names of the checks that passed.
    pub passed: Vec<&'static str>,
    /// Names of the checks that were skipped, each with the reason.
    pub skipped: Vec<(&'static str, &'static str)>,
}

/// First check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractViolation {
    /// Name of the check.
    pub check: &'static str,
    /// Expected and actual behaviour.
    pub detail: String,
}

impl fmt::Display for ContractViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.detail)
    }
}

impl std::error::Error for ContractViolation {}

/// Result of one check; the error says what differs.
pub type CheckResult = Result<(), String>;

/// Returns an error unless both values are equal.
pub(crate) fn expect_eq<T: PartialEq + fmt::Debug>(
    actual: T,
    expected: T,
    subject: &str,
) -> CheckResult {
    match actual == expected {
        true => Ok(()),
        false => Err(format!("{subject}: expected {expected:?}, got {actual:?}")),
    }
}

/// Returns an error unless the condition holds.
pub(crate) fn expect(condition: bool, detail: impl FnOnce() -> String) -> CheckResult {
    match condition {
        true => Ok(()),
        false => Err(detail()),
    }
}

impl ContractReport {
    /// Records the result of one check.
    pub(crate) fn record(
        &mut self,
        check: &'static str,
        result: CheckResult,
    ) -> Result<(), ContractViolation> {
        match result {
            Ok(()) => {
                self.passed.push(check);
                Ok(())
            }
            Err(detail) => Err(ContractViolation { check, detail }),
        }
    }
}
