//! Pins: which definition of each tool was approved, so that a server cannot change what a person
//! has looked at without anybody noticing.
//!
//! A definition is text here; who calls decides what belongs to it. The first complete list of a
//! server is trusted as it comes. What differs from it later *waits* until it is approved: a changed
//! definition, or a tool that was not there. Under [`PinMode::Warn`] a waiting tool passes and is
//! told of; under [`PinMode::Enforce`] it is not shown and not called.

mod book;
mod error;
mod file;
mod watch;

pub use crate::reason::Quarantine;
pub use book::{Approval, Book, Definition, Standing, TOOLS_MAX, Tool};
pub use error::{PinError, PinFault};
pub use file::{FILE_BYTES_MAX, PinFile, servers};
pub use watch::{Observation, Page, PinOptions, Pins};

use sha2::{Digest as _, Sha256};

/// How strictly pins are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PinMode {
    /// Nothing is read or written.
    Off,
    /// What waits passes, and is told of.
    #[default]
    Warn,
    /// What waits is hidden and refused.
    Enforce,
}

/// The digest of a definition: SHA-256, 64 hexadecimal digits.
#[must_use]
pub fn digest(definition: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(definition.as_bytes()) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}
