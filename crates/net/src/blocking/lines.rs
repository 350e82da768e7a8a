//! Newline-delimited frames out of a byte stream, bounded.

use std::io::{self, Read};

/// The longest frame a mock reads, in bytes. Twice what the gateway admits, so that the mock is
/// never the side that refuses first.
pub const FRAME_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How much one read asks for, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// A line reader over a caller's reads: it owns the buffer, never the descriptor, so that the caller
/// may wait, time out or interleave as it likes.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Start of what was not handed out yet.
    start: usize,
    /// End of what was read.
    end: usize,
    /// How far the search for a newline has come.
    searched: usize,
    frame_bytes_max: usize,
    skipping: bool,
}

/// One outcome of [`Lines::next_line`].
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A whole line without its newline.
    Frame(&'a [u8]),
    /// A line longer than the bound began; its bytes are dropped up to the next newline.
    TooLong,
    /// No whole line is buffered: read more.
    Incomplete,
}

impl Lines {
    /// A reader that refuses lines longer than `frame_bytes_max` bytes.
    #[must_use]
    pub fn new(frame_bytes_max: usize) -> Self {
        Self {
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            searched: 0,
            frame_bytes_max,
            skipping: false,
        }
    }

    /// Reads once from `source`; 0 means end of input.
    ///
    /// # Errors
    /// What the read said, `WouldBlock` and `Interrupted` included.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end, self.searched) = (0, 0, 0);
        }
        if self.buffer.len() - self.end < READ_BYTES / 2 {
            self.make_room();
        }
        let Some(space) = self.buffer.get_mut(self.end..) else {
            return Ok(0);
        };
        let read = source.read(space)?;
        self.end += read;
        Ok(read)
    }

    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < READ_BYTES / 2 {
            let grown = self.buffer.len().saturating_mul(2);
            self.buffer.resize(grown, 0);
        }
    }

    /// The next whole line that is already buffered.
    pub fn next_line(&mut self) -> Line<'_> {
        loop {
            let unsearched = self.buffer.get(self.searched..self.end).unwrap_or_default();
            let Some(offset) = memchr::memchr(b'\n', unsearched) else {
                self.searched = self.end;
                return self.unfinished();
            };
            let newline = self.searched + offset;
            let start = self.start;
            self.start = newline + 1;
            self.searched = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if newline - start > self.frame_bytes_max {
                return Line::TooLong;
            }
            return Line::Frame(self.buffer.get(start..newline).unwrap_or_default());
        }
    }

    fn unfinished(&mut self) -> Line<'_> {
        if self.skipping {
            self.start = self.end;
            return Line::Incomplete;
        }
        if self.end - self.start > self.frame_bytes_max {
            self.skipping = true;
            self.start = self.end;
            return Line::TooLong;
        }
        Line::Incomplete
    }

    /// Bytes that were read but belong to no whole line yet.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether a whole line is buffered. Does not consume it.
    #[must_use]
    pub fn has_line(&self) -> bool {
        self.buffer
            .get(self.searched..self.end)
            .is_some_and(|bytes| memchr::memchr(b'\n', bytes).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` in pieces of `step` bytes and writes down what came out.
    fn lines(input: &[u8], step: usize, frame_bytes_max: usize) -> Vec<String> {
        let mut lines = Lines::new(frame_bytes_max);
        let mut seen = Vec::new();
        for mut piece in input.chunks(step) {
            lines.fill(&mut piece).unwrap();
            loop {
                match lines.next_line() {
                    Line::Frame(frame) => seen.push(String::from_utf8_lossy(frame).into_owned()),
                    Line::TooLong => seen.push("<too long>".into()),
                    Line::Incomplete => break,
                }
            }
        }
        seen.push(format!("rest={}", String::from_utf8_lossy(lines.rest())));
        seen
    }

    #[test]
    fn frames_survive_any_split() {
        for step in 1..20 {
            assert_eq!(
                lines(b"one\n\ntwo\nthr", step, 8),
                ["one", "", "two", "rest=thr"],
                "step {step}"
            );
        }
    }

    #[test]
    fn a_long_line_is_named_once_and_the_next_is_read() {
        for step in 1..30 {
            assert_eq!(
                lines(b"123456789012345\nok\n", step, 8),
                ["<too long>", "ok", "rest="],
                "step {step}"
            );
        }
    }

    #[test]
    fn a_frame_beyond_the_first_buffer_arrives_whole() {
        let long = "x".repeat(3 * READ_BYTES);
        let input = format!("{long}\nend\n");
        assert_eq!(
            lines(input.as_bytes(), READ_BYTES, 4 * READ_BYTES),
            [long.as_str(), "end", "rest="]
        );
    }
}
