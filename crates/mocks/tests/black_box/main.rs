//! The mocks as processes, driven by the raw client.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod bare;
mod common;
mod conformance;
mod echo;
mod envelope;
mod eras;
mod files;
mod hostile;
mod http;
mod relay;
