//! The bytes of a document as text: a window that moves from front to back.

use std::cell::Cell;
use std::io::BufRead;

use super::XmlLimits;
use crate::error::LoadError;

/// Taken over at once, so that bounds are noticed in time even when the whole document lies in memory.
const CHUNK_BYTES: usize = 1 << 16;

/// A window of checked text over a stream. It holds what is being looked at and at most a chunk more.
pub(super) struct TextWindow<R> {
    inner: R,
    text: String,
    /// The first byte that is not consumed.
    at: usize,
    /// The beginning of a character that is not fully read yet.
    cut: Vec<u8>,
    ended: bool,
    total: u64,
    limits: XmlLimits,
    /// The line of the byte at `counted`.
    line: Cell<u64>,
    counted: Cell<usize>,
}

impl<R: BufRead> TextWindow<R> {
    pub(super) fn new(inner: R, limits: XmlLimits) -> Self {
        Self {
            inner,
            text: String::with_capacity(2 * CHUNK_BYTES),
            at: 0,
            cut: Vec::new(),
            ended: false,
            total: 0,
            limits,
            line: Cell::new(1),
            counted: Cell::new(0),
        }
    }

    /// Returns the line of the first byte that is not consumed, from 1.
    pub(super) fn line(&self) -> u64 {
        let counted = self.counted.replace(self.at);
        let passed = self.bytes().get(counted..self.at).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', passed).count();
        self.line.set(self.line.get() + lines as u64);
        self.line.get()
    }

    /// Everything in the window, consumed bytes included.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Returns the offset of the rest in the window.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns the bytes that are not consumed.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes().get(self.at..).unwrap_or_default()
    }

    /// Consumes up to this place of the window.
    pub(super) fn advance(&mut self, to: usize) {
        self.at = to;
    }

    /// Returns an error at the present place.
    pub(super) fn error_here(&self, message: impl Into<String>) -> LoadError {
        LoadError::Xml {
            line: self.line(),
            message: message.into(),
        }
    }

    fn crossed(&self, what: &'static str, limit: u64) -> LoadError {
        LoadError::Limit {
            what,
            limit,
            line: self.line(),
        }
    }

    /// Makes sure that `length` bytes follow the present place; false at the end of the document.
    pub(super) fn holds(&mut self, length: usize) -> Result<bool, LoadError> {
        while self.rest().len() < length {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Forgets what is consumed and takes another chunk; false at the end of the document.
    pub(super) fn more(&mut self) -> Result<bool, LoadError> {
        if self.rest().len() as u64 > self.limits.tag_bytes_max {
            return Err(self.crossed("bytes in one tag", self.limits.tag_bytes_max));
        }
        if self.ended {
            return Ok(false);
        }
        self.line();
        self.text.drain(..self.at);
        self.at = 0;
        self.counted.set(0);
        let chunk = match self.inner.fill_buf() {
            Ok(chunk) => chunk,
            Err(e) => return Err(self.error_here(e.to_string())),
        };
        let chunk = chunk.get(..CHUNK_BYTES).unwrap_or(chunk);
        let length = chunk.len();
        self.ended = length == 0;
        let valid = append(&mut self.text, &mut self.cut, chunk);
        self.inner.consume(length);
        self.total += length as u64;
        if self.total > self.limits.file_bytes_max {
            return Err(self.crossed("bytes in the file", self.limits.file_bytes_max));
        }
        if !valid || self.ended && !self.cut.is_empty() {
            self.at = self.text.len();
            return Err(self.error_here("the text is not UTF-8"));
        }
        Ok(!self.ended)
    }
}

/// Appends a chunk to the text, a character that it cuts off to `cut`; false if the bytes are no text.
fn append(text: &mut String, cut: &mut Vec<u8>, chunk: &[u8]) -> bool {
    let mut chunk = chunk;
    while !cut.is_empty() {
        let Some((first, rest)) = chunk.split_first() else {
            return true;
        };
        cut.push(*first);
        chunk = rest;
        match std::str::from_utf8(cut) {
            Ok(character) => {
                text.push_str(character);
                cut.clear();
            }
            Err(e) if e.error_len().is_some() => return false,
            Err(_) => {}
        }
    }
    match std::str::from_utf8(chunk) {
        Ok(all) => text.push_str(all),
        Err(e) => {
            let (good, rest) = chunk.split_at(e.valid_up_to());
            text.push_str(std::str::from_utf8(good).unwrap_or_default());
            if e.error_len().is_some() {
                return false;
            }
            cut.extend_from_slice(rest);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives one byte at a time.
    struct DrippingReader<'a>(&'a [u8]);

    impl std::io::Read for DrippingReader<'_> {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Ok(0)
        }
    }

    impl BufRead for DrippingReader<'_> {
        fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
            Ok(self.0.get(..1).unwrap_or_default())
        }
        fn consume(&mut self, amount: usize) {
            self.0 = self.0.get(amount..).unwrap_or_default();
        }
    }

    #[test]
    fn characters_are_put_together_across_chunks() {
        let mut window = TextWindow::new(
            DrippingReader("a\n\u{b5}\u{2082}z".as_bytes()),
            XmlLimits::default(),
        );
        while window.more().unwrap() {}
        assert_eq!(window.text(), "a\n\u{b5}\u{2082}z");
        window.advance(2);
        assert_eq!(window.line(), 2);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        for bytes in [&b"ab\xffc"[..], b"ab\xc2", b"\xe2\x82x"] {
            let mut window = TextWindow::new(DrippingReader(bytes), XmlLimits::default());
            let outcome = loop {
                match window.more() {
                    Ok(true) => {}
                    other => break other,
                }
            };
            assert!(outcome.is_err(), "{bytes:?}");
        }
    }
}
