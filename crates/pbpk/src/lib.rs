//! pbpk: placeholder header, replaced with the crate's purpose and its invariants.

pub mod csv;
pub mod pk;
pub mod plot;
pub mod solve;
