//! Frames of `application/vnd.amazon.eventstream`: a prelude with two lengths, headers, a payload, and a checksum over each of
//! the prelude and the whole.
//!
//! Feed it bytes as they arrive and take frames. Neither part is handed out before its checksum holds, and no length is
//! believed before that of the prelude does.

use std::fmt;

/// Two lengths and their checksum.
const PRELUDE: usize = 12;
/// The checksum at the end.
const TRAILER: usize = 4;
/// Longest headers of a frame, in bytes.
const HEADERS_MAX: usize = 128 * 1024;
/// The kind of a header's value that is a text.
const TEXT: u8 = 7;

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault {
    /// A frame is longer than it may be.
    TooLong,
    /// A checksum does not hold.
    Checksum,
    /// A frame's parts do not fit into each other.
    Malformed,
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "a frame of the event stream is too long",
            Self::Checksum => "a checksum of the event stream is wrong",
            Self::Malformed => "a frame of the event stream cannot be read",
        })
    }
}

impl std::error::Error for FrameFault {}

/// One frame, borrowed from the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    headers: Vec<(&'a str, &'a str)>,
    /// What it carries.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// A header that is a text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| *value)
    }
}

/// Reads frames. After a fault it reads nothing more: what cannot be read stays in front.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Where the next frame begins.
    at: usize,
    bytes_max: usize,
}

impl FrameReader {
    /// For frames of up to so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            at: 0,
            bytes_max,
        }
    }

    /// Takes bytes as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether the stream may end here: no frame has begun.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        self.at == self.buffer.len()
    }

    /// The next frame; `None` until more bytes come.
    ///
    /// # Errors
    /// [`FrameFault`].
    #[expect(
        clippy::should_implement_trait,
        reason = "what it hands out borrows from it, which no iterator can"
    )]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, FrameFault> {
        let rest = self.buffer.get(self.at..).unwrap_or_default();
        let Some(prelude) = rest.get(..PRELUDE) else {
            return Ok(None);
        };
        let (lengths, checksum) = prelude.split_at(PRELUDE - TRAILER);
        if number(checksum) != Some(crc32fast::hash(lengths)) {
            return Err(FrameFault::Checksum);
        }
        let (total, headers) = lengths.split_at(4);
        let (Some(total), Some(headers)) = (length(total), length(headers)) else {
            return Err(FrameFault::TooLong);
        };
        if total > self.bytes_max || headers > HEADERS_MAX {
            return Err(FrameFault::TooLong);
        }
        if total < PRELUDE + headers + TRAILER {
            return Err(FrameFault::Malformed);
        }
        let Some(frame) = rest.get(..total) else {
            return Ok(None);
        };
        let (all, checksum) = frame.split_at(total - TRAILER);
        if number(checksum) != Some(crc32fast::hash(all)) {
            return Err(FrameFault::Checksum);
        }
        let body = all.get(PRELUDE..).unwrap_or_default();
        let (headers, payload) = body.split_at(headers);
        let headers = texts(headers).ok_or(FrameFault::Malformed)?;
        self.at += total;
        Ok(Some(Frame { headers, payload }))
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(number(bytes)?).ok()
}

/// The headers that are texts; `None` where they do not end where they have to.
fn texts(mut rest: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    while let Some((name_bytes, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(usize::from(*name_bytes))?;
        let (kind, after) = after.split_first()?;
        let (prefix, bytes) = match *kind {
            // Yes and no.
            0 | 1 => (0, 0),
            2 => (0, 1),
            3 => (0, 2),
            4 => (0, 4),
            // Numbers and times of eight bytes.
            5 | 8 => (0, 8),
            // Bytes and texts tell their length.
            6 | TEXT => {
                let length = after.get(..2)?.try_into().ok()?;
                (2, usize::from(u16::from_be_bytes(length)))
            }
            9 => (0, 16),
            _ => return None,
        };
        let (value, after) = after.get(prefix..)?.split_at_checked(bytes)?;
        if *kind == TEXT {
            let name = std::str::from_utf8(name).ok()?;
            found.push((name, std::str::from_utf8(value).ok()?));
        }
        rest = after;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame with one header that is a text; its checksums are written here, not computed.
    const CORPUS: &[u8] = &[
        0x00, 0x00, 0x00, 0x3d, 0x00, 0x00, 0x00, 0x20, 0x07, 0xfd, 0x83, 0x96, 0x0c, b'c', b'o',
        b'n', b't', b'e', b'n', b't', b'-', b't', b'y', b'p', b'e', 0x07, 0x00, 0x10, b'a', b'p',
        b'p', b'l', b'i', b'c', b'a', b't', b'i', b'o', b'n', b'/', b'j', b's', b'o', b'n', b'{',
        b'\'', b'f', b'o', b'o', b'\'', b':', b'\'', b'b', b'a', b'r', b'\'', b'}', 0x8d, 0x9c,
        0x08, 0xb1,
    ];

    fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = u32::try_from(PRELUDE + headers.len() + payload.len() + TRAILER).unwrap();
        let mut out = total.to_be_bytes().to_vec();
        out.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
        out.extend(crc32fast::hash(&out).to_be_bytes());
        out.extend(headers);
        out.extend(payload);
        out.extend(crc32fast::hash(&out).to_be_bytes());
        out
    }

    #[test]
    fn a_frame_is_read_byte_by_byte() {
        let mut reader = FrameReader::new(1024);
        for byte in &CORPUS[..CORPUS.len() - 1] {
            reader.push(&[*byte]);
            assert_eq!(reader.next(), Ok(None));
            assert!(!reader.is_between_frames());
        }
        reader.push(&CORPUS[CORPUS.len() - 1..]);
        let found = reader.next().unwrap().unwrap();
        assert_eq!(found.header("content-type"), Some("application/json"));
        assert_eq!(found.header("x"), None);
        assert_eq!(found.payload, b"{'foo':'bar'}");
        assert!(reader.is_between_frames());
    }

    #[test]
    fn no_bit_may_differ() {
        for at in 0..CORPUS.len() {
            for bit in 0..8 {
                let mut bytes = CORPUS.to_vec();
                bytes[at] ^= 1 << bit;
                let mut reader = FrameReader::new(1024);
                reader.push(&bytes);
                assert_eq!(reader.next(), Err(FrameFault::Checksum), "{at} {bit}");
            }
        }
    }

    #[test]
    fn every_kind_of_header_is_passed_over_and_what_does_not_fit_is_refused() {
        let mut headers = Vec::new();
        for (kind, value) in [
            (0_u8, 0_usize),
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 4),
            (5, 8),
            (8, 8),
            (9, 16),
        ] {
            headers.extend([1, b'h', kind]);
            headers.extend(vec![0; value]);
        }
        headers.extend([1, b'b', 6, 0, 1, 0xff, 1, b't', 7, 0, 2, b'o', b'k']);
        let mut reader = FrameReader::new(1024);
        reader.push(&frame(&headers, b""));
        assert_eq!(reader.next().unwrap().unwrap().header("t"), Some("ok"));
        for odd in [
            &b"\x01"[..],
            b"\x01h",
            b"\x01h\x0a",
            b"\x01h\x04\0",
            b"\x01h\x07\0\x02o",
            b"\x01h\x07\0\x01\xff",
        ] {
            let mut reader = FrameReader::new(1024);
            reader.push(&frame(odd, b""));
            reader.push(CORPUS);
            for _ in 0..2 {
                assert_eq!(reader.next(), Err(FrameFault::Malformed), "{odd:?}");
            }
        }
    }

    #[test]
    fn lengths_are_bounded_before_the_bytes_come() {
        let prelude = |total: u32, headers: u32| {
            let mut out = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            out.extend(crc32fast::hash(&out).to_be_bytes());
            let mut reader = FrameReader::new(1024);
            reader.push(&out);
            reader.next().map(|frame| frame.is_some())
        };
        assert_eq!(prelude(1024, 1), Ok(false));
        assert_eq!(prelude(1025, 1), Err(FrameFault::TooLong));
        assert_eq!(prelude(u32::MAX, u32::MAX), Err(FrameFault::TooLong));
        assert_eq!(prelude(15, 0), Err(FrameFault::Malformed));
        assert_eq!(prelude(0, 0), Err(FrameFault::Malformed));
        assert_eq!(prelude(1024, 1009), Err(FrameFault::Malformed));
    }

    proptest! {
        #[test]
        fn however_it_is_cut_it_is_read_alike(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..5),
            cut in 1_usize..40,
        ) {
            let bytes: Vec<u8> = payloads.iter().flat_map(|own| frame(b"\x01t\x07\0\x01x", own)).collect();
            let mut reader = FrameReader::new(1024);
            let mut read = Vec::new();
            for part in bytes.chunks(cut) {
                reader.push(part);
                while let Some(found) = reader.next().unwrap() {
                    read.push(found.payload.to_vec());
                }
            }
            prop_assert_eq!(read, payloads);
        }

        #[test]
        fn no_bytes_make_it_panic(headers in prop::collection::vec(any::<u8>(), 0..60), noise in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut reader = FrameReader::new(1024);
            reader.push(&frame(&headers, &noise));
            let _ = reader.next();
            reader.push(&noise);
            let _ = reader.next();
        }
    }
}
