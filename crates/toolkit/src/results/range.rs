//! Parts of a whole, as HTTP asks for them (RFC 9110, section 14).

use std::fmt;

/// Most ranges of one request.
pub const RANGES_MAX: usize = 16;

/// A part of a whole: bytes `start..end`, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ByteRange {
    start: u64,
    end: u64,
}

impl ByteRange {
    /// The bytes `start..end`; none where that is empty.
    #[must_use]
    pub fn new(start: u64, end: u64) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// The first byte.
    #[must_use]
    pub fn start(self) -> u64 {
        self.start
    }

    /// The byte after the last.
    #[must_use]
    pub fn end(self) -> u64 {
        self.end
    }

    /// How many bytes.
    #[must_use]
    pub fn length(self) -> u64 {
        self.end - self.start
    }

    /// The value of a `Content-Range` header for this part of a whole of `length` bytes.
    #[must_use]
    pub fn content_range(self, length: u64) -> String {
        format!("bytes {}-{}/{length}", self.start, self.end - 1)
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.end - 1)
    }
}

/// What a `Range` header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranges {
    /// The whole: the header is absent, in another unit, or makes no sense, and is then to be ignored.
    Whole,
    /// These parts, as asked for: at least one, ordered as in the header, together no longer than the whole.
    Parts(Vec<ByteRange>),
    /// Nothing that is there. To be answered with 416 and `Content-Range: bytes */LENGTH`.
    Unsatisfiable,
}

impl Ranges {
    /// Reads the value of a `Range` header, for a whole of `length` bytes. More than [`RANGES_MAX`] ranges, or
    /// ranges that together are longer than the whole, are not worth their cost: they get the whole.
    #[must_use]
    pub fn read(header: &str, length: u64) -> Self {
        let Some((unit, set)) = header.split_once('=') else {
            return Self::Whole;
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return Self::Whole;
        }
        let mut parts = Vec::new();
        let mut seen = 0;
        for spec in set.split(',').map(|spec| spec.trim_matches([' ', '\t'])) {
            if spec.is_empty() {
                // An empty element of a list is to be skipped (section 5.6.1).
                continue;
            }
            seen += 1;
            match part(spec, length) {
                Some(found) => parts.extend(found),
                None => return Self::Whole,
            }
            if seen > RANGES_MAX {
                return Self::Whole;
            }
        }
        let asked = parts
            .iter()
            .fold(0_u64, |sum, part| sum.saturating_add(part.length()));
        match (seen, parts.is_empty()) {
            (0, _) => Self::Whole,
            (_, true) => Self::Unsatisfiable,
            _ if asked > length => Self::Whole,
            _ => Self::Parts(parts),
        }
    }
}

/// One range: `None` where it makes no sense, `Some(None)` where nothing of it is there.
fn part(spec: &str, length: u64) -> Option<Option<ByteRange>> {
    let (first, last) = spec.split_once('-')?;
    if first.is_empty() {
        let suffix = number(last)?;
        return Some(ByteRange::new(length.saturating_sub(suffix), length));
    }
    let first = number(first)?;
    let end = match last {
        "" => length,
        last => {
            let last = number(last)?;
            if last < first {
                return None;
            }
            last.saturating_add(1).min(length)
        }
    };
    Some(ByteRange::new(first, end))
}

/// Digits only: `+1` and ` 1` are no numbers here. What is larger than any whole is as large as one can be.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
