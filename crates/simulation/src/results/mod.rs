//! Results of runs: as they are kept, and as they are told.

mod columns;
mod index;
mod numbers;
mod place;
mod signoffs;

pub use columns::{Column, Columns};
pub use index::{Index, Kept, Snapshot};
pub use numbers::{metrics, series};
pub use place::Place;
pub use signoffs::{Action, Signoff, is_whole};
