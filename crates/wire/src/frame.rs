//! stdio framing: one message a line (MCP, *stdio transport*).

/// Longest line that is taken unless its reader says otherwise, in bytes: 16 MiB.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How much of an overlong line is kept, so that its id may still be found.
const HEAD_BYTES: usize = 4 * 1024;

/// Whether no reader of lines can take these bytes for more than one: no line feed, no carriage return (text mode cuts there).
#[must_use]
pub fn is_one_line(frame: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', frame).is_none()
}

/// Cuts a byte stream into lines with a bound on their length.
///
/// Bytes go in with [`LineFramer::push`] in any portions; [`LineFramer::next`] gives whole frames.
/// An overlong line is skipped to its end, not stored.
#[derive(Debug)]
pub struct LineFramer {
    buffer: Vec<u8>,
    /// Start of what has not been given out.
    start: usize,
    /// Up to here no newline was found.
    searched: usize,
    frame_bytes_max: usize,
    skipping: Option<Vec<u8>>,
}

/// What the framer found.
#[derive(Debug, PartialEq, Eq)]
pub enum FrameEvent<'a> {
    /// A line without its newline (and without a carriage return before it). Never empty.
    Frame(&'a [u8]),
    /// A line longer than the bound was dropped; its first bytes.
    TooLong(Vec<u8>),
}

impl Default for LineFramer {
    fn default() -> Self {
        Self::new(FRAME_BYTES_MAX)
    }
}

impl LineFramer {
    /// A framer that takes lines of at most `frame_bytes_max` bytes.
    #[must_use]
    pub fn new(frame_bytes_max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            frame_bytes_max,
            skipping: None,
        }
    }

    /// From now on lines of at most this many bytes are taken.
    pub fn take_at_most(&mut self, frame_bytes_max: usize) {
        self.frame_bytes_max = frame_bytes_max;
    }

    /// Takes bytes as they were read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            self.searched = 0;
        } else if self.start > 64 * 1024 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, if there is one.
    #[expect(
        clippy::should_implement_trait,
        reason = "lends from self, which Iterator cannot"
    )]
    pub fn next(&mut self) -> Option<FrameEvent<'_>> {
        loop {
            let Some(found) = self.newline() else {
                self.give_up_if_too_long();
                return None;
            };
            let (from, to) = (self.start, found);
            self.start = found + 1;
            self.searched = self.start;
            if let Some(head) = self.skipping.take() {
                return Some(FrameEvent::TooLong(head));
            }
            if to - from > self.frame_bytes_max {
                let head = self
                    .buffer
                    .get(from..from + HEAD_BYTES.min(to - from))
                    .unwrap_or_default();
                return Some(FrameEvent::TooLong(head.to_vec()));
            }
            let line = self.buffer.get(from..to).unwrap_or_default();
            let blank = line.iter().all(u8::is_ascii_whitespace);
            if !blank {
                // Borrowed again so that the borrow checker sees one path out of the loop.
                let line = self.buffer.get(from..to).unwrap_or_default();
                return Some(FrameEvent::Frame(line.strip_suffix(b"\r").unwrap_or(line)));
            }
        }
    }

    /// What remains when the stream has ended: an unfinished line, if any.
    #[must_use]
    pub fn remainder(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    fn newline(&mut self) -> Option<usize> {
        let from = self.searched;
        let unseen = self.buffer.get(from..)?;
        match memchr::memchr(b'\n', unseen) {
            Some(at) => Some(from + at),
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    fn give_up_if_too_long(&mut self) {
        let held = self.buffer.len() - self.start;
        if self.skipping.is_some() {
            self.buffer.clear();
        } else if held > self.frame_bytes_max {
            let head = self.remainder();
            self.skipping = Some(
                head.get(..HEAD_BYTES.min(held))
                    .unwrap_or_default()
                    .to_vec(),
            );
            self.buffer = Vec::new();
        } else {
            return;
        }
        self.start = 0;
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests;
