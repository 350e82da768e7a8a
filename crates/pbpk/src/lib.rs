//! pbpk: placeholder header, replaced with the crate's purpose and its invariants.

pub mod solve;
