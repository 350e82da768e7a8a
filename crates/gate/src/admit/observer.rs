//! What is told of a call beside its records, for telemetry.

use crate::facts::Facts;
use crate::journal::{Micros, OpId, Operation};
use crate::reason::Reason;

use super::call::Origin;

/// The outcome of a call that was refused, beside those of [`crate::journal::Status`].
pub const REFUSED: &str = "Refused";

/// A call that is over. Its arguments are not in it.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The call, as in its records.
    pub op: OpId,
    /// What it was about.
    pub facts: &'a Facts,
    /// Where it came from.
    pub origin: &'a Origin,
    /// The rule that decided.
    pub rule: &'a str,
    /// How long it waited for a person.
    pub approval: Micros,
    /// From the first byte of the request to the end.
    pub duration: Micros,
    /// How it ended.
    pub end: End<'a>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub enum End<'a> {
    /// It was refused, and nothing was sent.
    Refused(Reason),
    /// It was let through; this is its operation record.
    Operation(&'a Operation<'a>),
}

impl Observed<'_> {
    /// The outcome's label.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self.end {
            End::Refused(_) => REFUSED,
            End::Operation(operation) => operation.status.name(),
        }
    }

    /// The closed label of the reason.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match self.end {
            End::Refused(reason) => Some(reason.label()),
            End::Operation(operation) => operation.reason.map(|label| label.as_str()),
        }
    }
}

/// Whoever is told of calls. It is told on the path of the call: it must neither wait nor fail.
pub trait Observer: Send + Sync {
    /// A call is over, and its last record is on its way to the journal.
    fn observe(&self, call: &Observed<'_>);
}
