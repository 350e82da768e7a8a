//! Reading a journal: is it what was written, and what does it say?
//!
//! Files are streamed line by line with a bound on the line, any bytes are taken, and what is wrong is named rather than met
//! with a panic. Nothing here writes.

mod anchors;
mod back;
mod closed;
mod completeness;
mod filter;
mod finding;
mod join;
pub(super) mod lines;
mod links;
mod newest;
mod read;
mod scan;
mod verify;

pub use anchors::{Anchors, By, is_head_of};
pub use back::{Look, Reach, back};
pub use closed::{ClosedSegments, VerifiedSegment};
pub use filter::{Filter, Kind};
pub use finding::{Finding, Note, Problem, Unproven, Verdict, VerifyReport};
pub use read::{Follower, Skipped, each, each_while, latest};
pub use verify::{AuditError, FINDINGS_MAX, SegmentWatch, verify, verify_against, verify_watched};
