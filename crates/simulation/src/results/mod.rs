//! Results of runs: storage, and the form for clients.

mod columns;
mod index;
mod numbers;
mod place;
mod signoffs;

pub use columns::{Columns, ResultColumn};
pub use index::{ResultIndex, Snapshot, StoredResult};
pub use numbers::{metrics, series};
pub use place::ListCursor;
pub use signoffs::{Signoff, SignoffAction, is_whole};
