//! Results of runs: as they are kept, and as they are told.

mod columns;
mod index;
mod place;
mod signoffs;
mod told;

pub use columns::{Column, Columns};
pub use index::{Index, Kept, Snapshot};
pub use place::Place;
pub use signoffs::{Action, Signoff, is_whole};
pub use told::{metrics, series};
