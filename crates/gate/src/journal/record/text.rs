//! A text of a caller as a record holds it: whole, or as its length, its keyed digest and its beginning.

use std::borrow::Cow;

use serde::Deserialize;

/// A text that is read back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum RecordedText<'a> {
    /// As it was.
    #[serde(borrow)]
    Whole(Cow<'a, str>),
    /// It was longer than a record holds.
    Long {
        /// Its length.
        bytes: u64,
        /// Its keyed digest, in hexadecimal.
        digest: String,
        /// Its beginning.
        start: String,
    },
}

impl RecordedText<'_> {
    /// Returns the text; `None` where the record holds a part of it.
    #[must_use]
    pub fn whole(&self) -> Option<&str> {
        match self {
            Self::Whole(text) => Some(text),
            Self::Long { .. } => None,
        }
    }

    /// Returns the text for a person: of a long one its beginning, and how long it was.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Whole(text) => Cow::Borrowed(text),
            Self::Long { bytes, start, .. } => Cow::Owned(format!("{start}… ({bytes} bytes)")),
        }
    }
}
