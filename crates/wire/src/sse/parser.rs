//! Reading a stream of events that arrives in any portions.

use std::fmt;

use super::{EVENT_BYTES_MAX, EVENT_ID_BYTES_MAX};

/// How much of a finished event's buffer is kept for the next one, in bytes.
const KEEP_BYTES: usize = 64 * 1024;

/// Cuts a byte stream into events with a bound on their size.
///
/// Bytes go in with [`SseParser::push`]; [`SseParser::next`] gives whole events. Comments cost
/// nothing, however long. An event that the end of the stream cuts short is never given out.
#[derive(Debug)]
pub struct SseParser {
    input: Vec<u8>,
    /// Start of what has not been looked at.
    at: usize,
    /// The line being read, where it came in portions.
    line: Line,
    begun: bool,
    /// The last line ended with a carriage return; a line feed right after it belongs to it.
    skip_line_feed: bool,
    event_bytes: usize,
    event_bytes_max: usize,
    too_long: bool,
    given_out: bool,
    has_data: bool,
    data: Vec<u8>,
    name: Vec<u8>,
    id: Option<String>,
    retry_ms: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Nothing of it was seen.
    Fresh,
    /// Its beginning is in the input; so many bytes of it hold no line end.
    Searched(usize),
    /// A comment, skipped up to its end.
    Comment,
}

/// An event, borrowed from the parser until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its data lines, joined with line feeds. Empty in events that only carry an id.
    pub data: &'a [u8],
    /// Its name; empty means `message`.
    pub name: &'a [u8],
}

/// An event is longer than the bound. The stream cannot be read on from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseFault;

impl fmt::Display for SseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of the stream is longer than the bound")
    }
}

impl std::error::Error for SseFault {}

impl Default for SseParser {
    fn default() -> Self {
        Self::new(EVENT_BYTES_MAX)
    }
}

impl SseParser {
    /// A parser that takes events of at most `event_bytes_max` bytes.
    #[must_use]
    pub fn new(event_bytes_max: usize) -> Self {
        Self {
            input: Vec::new(),
            at: 0,
            line: Line::Fresh,
            begun: false,
            skip_line_feed: false,
            event_bytes: 0,
            event_bytes_max,
            too_long: false,
            given_out: false,
            has_data: false,
            data: Vec::new(),
            name: Vec::new(),
            id: None,
            retry_ms: None,
        }
    }

    /// Takes bytes as they were read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.too_long {
            return;
        }
        self.input.drain(..self.at);
        self.at = 0;
        self.input.extend_from_slice(bytes);
    }

    /// The next whole event, if there is one.
    ///
    /// # Errors
    /// [`SseFault`] where an event is longer than the bound, from then on always.
    #[expect(
        clippy::should_implement_trait,
        reason = "lends from self, which Iterator cannot"
    )]
    pub fn next(&mut self) -> Result<Option<SseEvent<'_>>, SseFault> {
        if self.given_out {
            self.forget_event();
        }
        while !self.too_long {
            let Some((from, to)) = self.next_line() else {
                break;
            };
            if from == to {
                if self.has_data {
                    self.given_out = true;
                    return Ok(Some(SseEvent {
                        data: &self.data,
                        name: &self.name,
                    }));
                }
                self.forget_event();
            } else {
                self.take_line(from, to);
            }
        }
        if self.too_long {
            self.input = Vec::new();
            self.data = Vec::new();
            return Err(SseFault);
        }
        Ok(None)
    }

    /// The stream continues another one, after the event with this id.
    pub fn resume_after(&mut self, id: String) {
        self.id = Some(id);
    }

    /// The id of the last event that had one: where to resume the stream. Absent where none was given.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| !id.is_empty())
    }

    /// How long the server asks to wait before the stream is resumed, in milliseconds.
    #[must_use]
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// The bounds of the next whole line in the input, without its end; comments are passed over.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if !self.begin() {
            return None;
        }
        loop {
            if self.skip_line_feed {
                match self.input.get(self.at) {
                    None => return None,
                    Some(b'\n') => self.at += 1,
                    Some(_) => {}
                }
                self.skip_line_feed = false;
            }
            let rest = self.input.get(self.at..)?;
            if self.line == Line::Fresh {
                match rest.first() {
                    None => return None,
                    Some(b':') => self.line = Line::Comment,
                    Some(_) => self.line = Line::Searched(0),
                }
            }
            let searched = match self.line {
                Line::Searched(count) => count,
                Line::Fresh | Line::Comment => 0,
            };
            let found = memchr::memchr2(b'\r', b'\n', rest.get(searched..)?);
            let Some(end) = found.map(|end| self.at + searched + end) else {
                self.unfinished(rest.len());
                return None;
            };
            let from = self.at;
            self.at = end + 1;
            self.skip_line_feed = self.input.get(end) == Some(&b'\r');
            if std::mem::replace(&mut self.line, Line::Fresh) == Line::Comment {
                continue;
            }
            self.event_bytes += end - from;
            self.too_long = self.event_bytes > self.event_bytes_max;
            return (!self.too_long).then_some((from, end));
        }
    }

    /// Passes over the byte order mark. `false` while it cannot be known whether there is one.
    fn begin(&mut self) -> bool {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        if self.begun {
            return true;
        }
        let seen = self.input.get(self.at..).unwrap_or_default();
        if seen.starts_with(MARK) {
            self.at += MARK.len();
        } else if MARK.starts_with(seen) {
            return false;
        }
        self.begun = true;
        true
    }

    /// The input ends inside a line, of which `len` bytes are there.
    fn unfinished(&mut self, len: usize) {
        if self.line == Line::Comment {
            self.at += len;
        } else {
            self.line = Line::Searched(len);
            self.too_long = self.event_bytes + len > self.event_bytes_max;
        }
    }

    fn take_line(&mut self, from: usize, to: usize) {
        let line = self.input.get(from..to).unwrap_or_default();
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                let fits = value.len() <= EVENT_ID_BYTES_MAX;
                self.id = std::str::from_utf8(value)
                    .ok()
                    .filter(|_| fits)
                    .map(str::to_owned);
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let number = std::str::from_utf8(value).ok().and_then(|t| t.parse().ok());
                self.retry_ms = Some(number.unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }

    fn forget_event(&mut self) {
        self.given_out = false;
        self.has_data = false;
        self.event_bytes = 0;
        self.data.clear();
        self.data.shrink_to(KEEP_BYTES);
        self.name.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(stream: &[u8], portion: usize) -> Result<Vec<(String, String)>, SseFault> {
        let mut parser = SseParser::new(64);
        let mut seen = Vec::new();
        for part in stream.chunks(portion) {
            parser.push(part);
            while let Some(event) = parser.next()? {
                seen.push((
                    String::from_utf8_lossy(event.name).into_owned(),
                    String::from_utf8_lossy(event.data).into_owned(),
                ));
            }
        }
        Ok(seen)
    }

    #[test]
    fn reads_events_as_the_standard_says() {
        let cases: [(&str, &[(&str, &str)]); 14] = [
            ("data: a\n\n", &[("", "a")]),
            ("data:a\r\n\r\n", &[("", "a")]),
            ("data:a\r\rdata:b\r\r", &[("", "a"), ("", "b")]),
            ("data:  two\ndata\ndata:x\n\n", &[("", " two\n\nx")]),
            ("event: m\ndata: 1\n\ndata: 2\n\n", &[("m", "1"), ("", "2")]),
            ("\u{feff}data: a\n\n", &[("", "a")]),
            ("data: \u{feff}a\n\n", &[("", "\u{feff}a")]),
            (": hello\n:\n\ndata: a\n\n", &[("", "a")]),
            ("id: 7\ndata:\n\n", &[("", "")]),
            ("id: 7\n\n", &[]),
            ("event: lost\n\ndata: a\n\n", &[("", "a")]),
            ("data: cut short\n", &[]),
            ("other: x\nDATA: y\ndata: z\n\n", &[("", "z")]),
            ("\n\r\n\rdata: a\r\n\n", &[("", "a")]),
        ];
        for (stream, expect) in cases {
            let expect: Vec<(String, String)> = expect
                .iter()
                .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
                .collect();
            for portion in 1..=stream.len() {
                let seen = events(stream.as_bytes(), portion);
                assert_eq!(seen.as_ref(), Ok(&expect), "{stream:?} by {portion}");
            }
        }
    }

    #[test]
    fn ids_and_waits_are_kept_until_others_come() {
        let long = format!("id: {}\n", "x".repeat(EVENT_ID_BYTES_MAX + 1));
        let cases = [
            ("id: a\ndata: x\n\ndata: y\n\n", Some("a"), None),
            ("id: a\nid\n", None, None),
            ("id: a\0b\n", None, None),
            ("id: a\nid: b\0\n", Some("a"), None),
            (long.as_str(), None, None),
            ("retry: 500\n", None, Some(500)),
            ("retry: 5x\nretry:\nretry: -1\n", None, None),
            ("retry: 99999999999999999999999\n", None, Some(u64::MAX)),
        ];
        for (stream, id, retry_ms) in cases {
            let mut parser = SseParser::default();
            parser.push(stream.as_bytes());
            while parser.next().unwrap().is_some() {}
            assert_eq!(parser.last_event_id(), id, "{stream:?}");
            assert_eq!(parser.retry_ms(), retry_ms, "{stream:?}");
        }
    }

    #[test]
    fn an_endless_event_is_a_fault_and_an_endless_comment_is_not() {
        let fits = format!("data:{}\n\n", "x".repeat(59));
        let line = format!("data:{}", "x".repeat(60));
        let lines = "data\n".repeat(17);
        let comment = format!(":{}\n\ndata: a\n\n", "x".repeat(10_000));
        for portion in [1, 3, 1_000] {
            assert_eq!(events(fits.as_bytes(), portion).map(|e| e.len()), Ok(1));
            assert_eq!(events(line.as_bytes(), portion), Err(SseFault));
            assert_eq!(events(lines.as_bytes(), portion), Err(SseFault));
            assert_eq!(events(comment.as_bytes(), portion).map(|e| e.len()), Ok(1));
        }
        let mut parser = SseParser::new(64);
        for _ in 0..1_000 {
            parser.push(b"data: again and again\n");
            let _ = parser.next();
        }
        assert_eq!(parser.next(), Err(SseFault));
        assert!(
            parser.input.capacity() < 1_000,
            "nothing is stored any more"
        );
    }
}
