//! Results of runs: as they are kept, and as they are told.

mod columns;
mod index;
mod told;

pub use columns::{Column, Columns};
pub use index::{Index, Kept, Place, Snapshot};
pub use told::{metrics, series};
