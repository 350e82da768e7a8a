//! pbpk: reads Open Systems Pharmacology models (pkml and SimModel xml) and solves them.
//!
//! A pure library: it opens no socket, starts no thread (but for populations on the command line) and no process, knows
//! no async runtime and no clock, and holds no unsafe code. Files are opened only by [`read::file`] and the command
//! line; everything else works on readers and slices. No number of a run depends on the machine's load or on the number
//! of threads.
//!
//! The way of a model: [`read`] → [`model::Model`] → [`compile`] → [`run`].

#[cfg(feature = "cli")]
pub mod cli;
pub mod compile;
pub mod csv;
pub mod error;
pub mod export;
pub mod fit;
pub mod formula;
pub mod model;
pub mod observed;
pub mod path;
pub mod pk;
mod place;
pub mod plot;
pub mod population;
pub mod read;
pub mod regimen;
pub mod run;
pub mod sensitivity;
pub mod solve;
pub mod steady;
pub mod units;
pub mod usage;
pub mod watch;
mod words;
pub mod xml;

/// The README's code, compiled and run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
