//! Reading a stream in parts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use state::SpoolError;

use super::OutputReader;
use crate::results::ByteRange;

/// Most bytes of one page.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// How much is looked at to tell text from other bytes.
const LOOKED_AT_BYTES: usize = 8 * 1024;
/// Longest character of UTF-8, in bytes.
const CHAR_BYTES_MAX: usize = 4;

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it begins.
    pub at: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where the next one begins; absent where nothing more is there at present.
    pub next: Option<u64>,
}

/// A stream at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Its length, in bytes.
    pub length: u64,
    /// Whether it looks like text.
    pub is_text: bool,
    /// Its beginning.
    pub head: Vec<u8>,
    /// Its end, as far as the beginning does not have it.
    pub tail: Vec<u8>,
    /// Bytes between the two.
    pub omitted: u64,
}

/// Bytes in a message that can only hold text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// `text` or `base64`.
    pub encoding: &'static str,
    /// The text, or the bytes in base64.
    pub data: String,
}

/// Bytes as text where they are text, else in base64; both give back every byte.
#[must_use]
pub fn shown(bytes: &[u8]) -> Shown {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Shown {
            encoding: "text",
            data: text.to_owned(),
        },
        _ => Shown {
            encoding: "base64",
            data: STANDARD.encode(bytes),
        },
    }
}

impl OutputReader {
    /// Its length, in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.spool.length()
    }

    /// The bytes from `at` on, at most `bytes_max` and [`PAGE_BYTES_MAX`]. Text is cut between characters.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn page(&self, at: u64, bytes_max: usize) -> Result<Page, SpoolError> {
        let bytes_max = bytes_max.clamp(CHAR_BYTES_MAX, PAGE_BYTES_MAX);
        let mut bytes = self.spool.read(at, bytes_max)?;
        let end = at.saturating_add(bytes.len() as u64);
        if end < self.length()
            && let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
            && error.valid_up_to() > 0
        {
            bytes.truncate(error.valid_up_to());
        }
        let end = at.saturating_add(bytes.len() as u64);
        Ok(Page {
            at,
            next: (!bytes.is_empty() && end < self.length()).then_some(end),
            bytes,
        })
    }

    /// The bytes of a range, as far as they are there.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn range(&self, range: ByteRange) -> Result<Vec<u8>, SpoolError> {
        let length = usize::try_from(range.length()).unwrap_or(usize::MAX);
        self.spool.read(range.start(), length)
    }

    /// Its beginning and its end, each at most `bytes_max` and half of [`PAGE_BYTES_MAX`].
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn preview(&self, bytes_max: usize) -> Result<Preview, SpoolError> {
        let bytes_max = bytes_max.min(PAGE_BYTES_MAX / 2);
        let length = self.length();
        let looked_at = self.spool.read(0, LOOKED_AT_BYTES)?;
        let head = self.spool.read(0, bytes_max)?;
        let begun = head.len() as u64;
        let tail_at = length.saturating_sub(bytes_max as u64).max(begun);
        let tail = self.spool.read(tail_at, bytes_max)?;
        Ok(Preview {
            length,
            is_text: is_text(&looked_at),
            omitted: tail_at - begun,
            head,
            tail,
        })
    }
}

/// Whether bytes are text, the last character of which may be cut off.
fn is_text(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    valid && !bytes.contains(&0)
}
