//! Populations: many individuals of one simulation, computed and kept in chunks.
//!
//! A chunk that has been computed is noted in the job's checkpoint, and is not computed again after a restart. The
//! result depends on the cohort alone, not on how many threads there are or what ran before.

mod aggregate;
mod chunk;
mod cohort;

pub use aggregate::{Aggregate, USUAL};
pub use chunk::{CONTENT_TYPE, PopulationChunk, failures, preview};
pub use cohort::{CohortRecord, SIZE_MAX};
