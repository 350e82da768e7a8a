//! Where in the list of a caller's results a page begins.

use crate::models::hex;

/// A place in the list of a caller's results. Under another caller it leads to nothing of the first one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListCursor {
    made_ms: i64,
    name: [u8; 32],
}

impl ListCursor {
    pub(super) fn of(made_ms: i64, results_id: &str) -> Self {
        Self {
            made_ms,
            name: *blake3::hash(results_id.as_bytes()).as_bytes(),
        }
    }

    /// Returns the text for clients.
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{:x}-{}", self.made_ms, hex(&self.name))
    }

    /// From such a text.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (made, name) = text.split_once('-')?;
        let name = blake3::Hash::from_hex(name).ok()?;
        Some(Self {
            made_ms: i64::from_str_radix(made, 16).ok().filter(|ms| *ms >= 0)?,
            name: *name.as_bytes(),
        })
    }

    /// Returns its key behind that of its caller: newer results come first.
    pub(super) fn key(&self, mut at: Vec<u8>) -> Vec<u8> {
        at.extend_from_slice(&newest_first(self.made_ms));
        at.extend_from_slice(&self.name);
        at
    }
}

/// Returns a time so that later ones come first in order of bytes.
pub(super) fn newest_first(ms: i64) -> [u8; 8] {
    (u64::MAX - u64::try_from(ms).unwrap_or_default()).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_only_as_it_was_written() {
        let place = ListCursor::of(1_234, "x");
        assert_eq!(ListCursor::read(&place.to_text()), Some(place));
        for text in [
            "",
            "1",
            "1-",
            "x-00",
            "-1-00",
            "1-zz",
            &format!("-{}", place.to_text()),
        ] {
            assert_eq!(ListCursor::read(text), None, "{text}");
        }
    }
}
