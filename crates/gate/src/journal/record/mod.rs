//! What a record says, kind by kind.
//!
//! Every fact has a class, and the class decides its type here:
//! - **plain**: names and places (tool, path, host, model, subject, rule) — borrowed text;
//! - **digest**: what must be comparable but not readable (arguments, bodies) — [`Digest`], keyed, never text;
//! - **never**: contents, argument values, tokens, secrets — there is no field for them.
//!
//! Absent facts are left out of the line. Names follow the logs that users of the field already parse.

mod auth;
mod config;
mod decision;
mod event;
mod members;
mod operation;
mod system;
mod text;

use std::fmt;

use serde::{Serialize, Serializer};

pub use auth::{Auth, Oidc};
pub use config::Config;
pub use decision::{Decision, MatchedRule, RecordedFact, RecordedPath};
pub use event::{AuthEvent, Component, ConfigEvent, EndReason, JournalEvent, Level, SystemEvent};
pub use operation::{Operation, RecordedAttempt, Recovery, ResponseSummary, Stages, Status, Usage};
pub use system::{RecordedJob, System};

use super::keys::{Digest, Keys};
use members::Members;
pub use members::{FACT_BYTES_MAX, FACT_START_BYTES};
pub use text::RecordedText;

/// One record, as the journal takes it.
#[derive(Debug, Clone, Copy)]
pub enum Record<'a> {
    /// What was decided about a call, before anything leaves.
    Decision(&'a Decision<'a>),
    /// What became of it, after the reply.
    Operation(&'a Operation<'a>),
    /// Something about a caller's credentials or session.
    Auth(&'a Auth<'a>),
    /// Something about the program itself.
    System(&'a System<'a>),
    /// A change of configuration or policy.
    Config(&'a Config<'a>),
}

impl Record<'_> {
    /// The record's kind, as it stands in the line.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Record::Decision(_) => "decision",
            Record::Operation(_) => "operation",
            Record::Auth(_) => "auth",
            Record::System(_) => "system",
            Record::Config(_) => "config",
        }
    }

    /// Appends the record's members, each with a comma before it.
    pub(super) fn write(&self, out: &mut Vec<u8>, keys: &Keys) {
        let members = &mut Members::bounded(out, keys);
        match self {
            Record::Decision(record) => record.write(members),
            Record::Operation(record) => record.write(members),
            Record::Auth(record) => record.write(members),
            Record::System(record) => record.write(members),
            Record::Config(record) => record.write(members),
        }
    }
}

/// The 128-bit, time-ordered name of one call; it joins the call's records.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct OpId(pub u128);

impl OpId {
    /// Reads 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<OpId> {
        super::hex::parse(text.as_bytes())
            .map(u128::from_be_bytes)
            .map(OpId)
    }

    /// When it was given, in milliseconds since 1970, as the gate makes names; no record of the call is older.
    #[must_use]
    pub fn time_ms(self) -> i64 {
        i64::try_from(self.0 >> 80).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for OpId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::hex::text(&self.0.to_be_bytes()))
    }
}

/// A duration, kept in nanoseconds and written in microseconds with up to three decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Micros {
    nanos: u64,
}

impl Micros {
    /// From nanoseconds.
    #[must_use]
    pub fn from_nanos(nanos: u64) -> Micros {
        Micros { nanos }
    }

    /// From a duration, up to 584 years.
    #[must_use]
    pub fn from_duration(duration: std::time::Duration) -> Micros {
        Micros {
            nanos: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// In nanoseconds.
    #[must_use]
    pub fn nanos(self) -> u64 {
        self.nanos
    }
}
