//! Joins bytes to text across splits inside of a character.

use std::borrow::Cow;

/// Text of a sequence of byte pieces. Invalid bytes become U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Utf8Joiner {
    /// The begin of a character: at most three bytes.
    tail: Vec<u8>,
}

impl Utf8Joiner {
    /// Returns the text of all complete characters so far.
    pub(super) fn join<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        if self.tail.is_empty()
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Cow::Borrowed(text);
        }
        let mut all = std::mem::take(&mut self.tail);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && is_incomplete(invalid) {
                self.tail = invalid.to_vec();
            } else {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        Cow::Owned(text)
    }

    /// Returns the text that an incomplete last character becomes.
    pub(super) fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.tail).is_empty() {
            ""
        } else {
            "\u{fffd}"
        }
    }
}

/// Returns whether further bytes can make a character of these.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
