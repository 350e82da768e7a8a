//! What the strings of a call may lead to, in every reading that a server might have of them.
//!
//! An allow rule asks for one plain reading, and looks at [`super::PathArgument`]s alone. What refuses or asks
//! looks at all of this as well: a list of paths in one string, a path behind `--file=` or `@`, in quotes,
//! in a URI of any scheme, with characters that nobody sees, relative to a directory that only the server
//! knows, as a glob, and whatever lies below a directory that is read as a whole.

mod below;
#[cfg(debug_assertions)]
pub mod blind;
mod escapes;
mod literals;
mod pieces;
mod plain;
mod read;
mod texts;

pub use below::{may_say_below, reads_below};
pub use literals::{Literal, Literals, read_literals};
pub(super) use plain::is_plain_path;
pub use read::Reader;
pub use texts::is_unseen;

use crate::urls::CallUrls;

/// Everything that strings may lead to beside what is plainly a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// Absolute places.
    pub places: Vec<String>,
    /// Single words below the server's directory: nearly every string is one.
    pub words: Vec<String>,
    /// Relative texts, tidied: below some directory that nobody here knows.
    pub relative: Vec<String>,
    /// Absolute globs.
    pub globs: Vec<String>,
    /// Schemes of URIs, lower case.
    pub schemes: Vec<String>,
    /// Whatever lies below the places is read as well.
    pub below: bool,
    /// There is more than is read here.
    pub unread: bool,
    /// URLs, and the addresses that they lead to.
    pub urls: CallUrls,
}

/// A string of a call.
#[derive(Debug, Clone, Copy)]
pub struct Text<'t> {
    /// The string.
    pub text: &'t str,
    /// The name of the argument that it belongs to; empty where it has none.
    pub key: &'t str,
    /// Its argument is a path, by its name or by the tool's schema.
    pub is_path: bool,
    /// What is written rather than where: it is a path only as a whole.
    pub is_content: bool,
}

impl Reach {
    /// Whether there is nothing that only this knows of.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0 && self.words.is_empty() && self.relative.is_empty() && !self.unread
    }

    /// How many places and globs there are that no path argument tells of.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len() + self.globs.len()
    }

    /// Every place, single words included.
    pub fn every_place(&self) -> impl Iterator<Item = &str> {
        self.places.iter().chain(&self.words).map(String::as_str)
    }
}
