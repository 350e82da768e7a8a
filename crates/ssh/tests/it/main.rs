//! The server against a real OpenSSH.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test says by panicking what is wrong"
)]

mod access;
mod client_config;
mod commands;
mod context;
mod edits;
mod fan_out;
mod forms;
mod forwards;
mod full_disk;
mod identities;
mod jobs;
mod lines;
mod load;
mod no_paths;
mod opened;
mod paths;
mod random;
mod servers;
mod shipped;
mod smuggled;
mod startup;
mod stopping;
mod sudo;
mod target;
mod terminals;
mod tools;
mod transfers;
mod words;
