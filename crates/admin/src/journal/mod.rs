//! The journal as a whole: its segments, verification, repair, witness, and export.

mod export;
mod repair;
mod segments;
mod verify;
mod witness;

pub use export::{ExportReport, export};
pub use repair::{JournalRepair, RepairRequest, RepairedJournal, repair};
pub use segments::{
    JournalSummary, SEGMENTS_READ_MAX, SegmentEntry, SegmentFile, SegmentPage, list_segments,
    summarize,
};
pub use verify::{JournalVerification, VerificationStatus, VerifyRequest, verify};
pub use witness::{WitnessState, read_witness};

#[cfg(test)]
mod tests;
