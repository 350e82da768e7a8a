//! The library against reference tables, published solutions and broken input; the command line too.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p pbpk cases::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails where its helpers do"
)]

mod ageing;
mod batch;
mod cache;
mod cases;
mod cli;
mod common;
mod csv_tables;
mod derivatives;
mod differential;
mod export_elements;
mod export_sbml;
mod export_simmodel;
mod files;
mod fit;
mod goodness;
mod likelihood;
mod nca_numpy;
mod observed_files;
mod overlays;
mod parity;
mod path_rules;
mod people;
mod phases;
mod pieces;
mod pk_reference;
mod plot_curves;
mod population;
mod population_parts;
mod properties;
mod questions;
mod readers_agree;
mod refolded;
mod refusals;
mod regimens;
mod regimes;
mod releases;
mod sensitivity;
mod solve_lu;
mod solve_problems;
mod steady;
mod stopping;
mod studies;
mod units;
