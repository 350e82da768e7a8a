//! The journal: what was decided and what became of it, written before it takes effect, in a form that shows later changes.
//!
//! One directory holds segments, one file each, one JSON line a record. Each record's hash covers its body and the hash before
//! it; signed checkpoints anchor the chain, and a signed head beside the keys states where each chain ends. `docs/journal.md` states the format with a vector, and what it does not prove.
//!
//! Invariants, stated as absences:
//! - no clock and no randomness of its own: both are passed in;
//! - no contents, argument values, tokens or secrets: there is no field for them, only keyed digests;
//! - no record after a failed write: a journal that has failed refuses everything, and with it every call;
//! - no segment is continued twice, and none that was not closed;
//! - no file is ever changed except at its end, and none deleted or moved without a signed record that says so.

mod abandoned;
pub mod audit;
mod begin;
mod body;
mod chain;
mod contents;
mod error;
pub mod head;
pub(crate) mod hex;
mod instant;
pub(crate) mod keys;
mod options;
mod record;
mod repair;
mod retention;
mod segment;
mod segment_files;
mod writer;

pub use chain::{
    BODY_BYTES_MAX, EntryHash, FORMAT, LINE_BYTES_MAX, Line, SegmentId, body_hash, entry_hash,
};
pub use error::JournalError;
pub use head::{FileWitness, HEAD_FILE, Step, WITNESS_BYTES_MAX, Witness};
pub use instant::{format_utc, parse_utc};
pub use keys::{
    CHECKPOINT_KEY_FILE, CHECKPOINT_PUBLIC_FILE, DIGEST_KEY_FILE, Digest, Keys, KeysError,
    PublicKey, secret,
};
pub use options::{Cadence, JournalOptions};
pub use record::{
    Auth, AuthEvent, Component, Config, ConfigEvent, Decision, EndReason, FACT_BYTES_MAX,
    FACT_START_BYTES, JournalEvent, Level, MatchedRule, Micros, Oidc, OpId, Operation, Record,
    RecordedAttempt, RecordedFact, RecordedJob, RecordedPath, RecordedText, Recovery,
    ResponseSummary, Stages, Status, System, SystemEvent, Usage,
};
pub use repair::{Repair, RepairError, RepairPaths, repair};
pub use state::SyncPolicy;
pub use writer::{Appended, Appending, Journal, Surroundings};
