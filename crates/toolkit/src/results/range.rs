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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let parts = |list: &[(u64, u64)]| {
            Ranges::Parts(
                list.iter()
                    .map(|(a, b)| ByteRange::new(*a, *b).unwrap())
                    .collect(),
            )
        };
        let cases = [
            ("bytes=0-499", 10_000, parts(&[(0, 500)])),
            ("bytes=500-999", 10_000, parts(&[(500, 1000)])),
            ("bytes=-500", 10_000, parts(&[(9500, 10_000)])),
            ("bytes=9500-", 10_000, parts(&[(9500, 10_000)])),
            ("bytes=0-0,-1", 10_000, parts(&[(0, 1), (9999, 10_000)])),
            ("BYTES= 5-6 ,\t1-2", 10, parts(&[(5, 7), (1, 3)])),
            ("bytes=5-99999999999999999999999", 10, parts(&[(5, 10)])),
            ("bytes=-99999999999999999999999", 10, parts(&[(0, 10)])),
            ("bytes=4-5,20-30", 10, parts(&[(4, 6)])),
            ("bytes=10-", 10, Ranges::Unsatisfiable),
            ("bytes=-0", 10, Ranges::Unsatisfiable),
            ("bytes=0-", 0, Ranges::Unsatisfiable),
            ("bytes=-5", 0, Ranges::Unsatisfiable),
            ("bytes=5-4", 10, Ranges::Whole),
            ("bytes=", 10, Ranges::Whole),
            ("bytes=,,", 10, Ranges::Whole),
            ("bytes=a-b", 10, Ranges::Whole),
            ("bytes=+1-2", 10, Ranges::Whole),
            ("bytes=1 - 2", 10, Ranges::Whole),
            ("bytes=1", 10, Ranges::Whole),
            ("bytes=-", 10, Ranges::Whole),
            ("bytes=--1", 10, Ranges::Whole),
            ("lines=0-1", 10, Ranges::Whole),
            ("bytes", 10, Ranges::Whole),
            ("bytes=0-9,0-9", 10, Ranges::Whole),
        ];
        for (header, length, expect) in cases {
            assert_eq!(Ranges::read(header, length), expect, "{header} of {length}");
        }
        let many = format!("bytes={}", vec!["0-0"; RANGES_MAX + 1].join(","));
        assert_eq!(Ranges::read(&many, 1000), Ranges::Whole);
        let part = ByteRange::new(5, 10).unwrap();
        assert_eq!(part.content_range(100), "bytes 5-9/100");
        assert_eq!(ByteRange::new(5, 5), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_asked_stays_within_the_whole(header in "(bytes=)?[-0-9, ]{0,40}|\\PC{0,40}", length in 0..500_u64) {
            if let Ranges::Parts(parts) = Ranges::read(&header, length) {
                prop_assert!(!parts.is_empty() && parts.len() <= RANGES_MAX);
                let sum: u64 = parts.iter().map(|part| part.length()).sum();
                prop_assert!(sum <= length);
                for part in parts {
                    prop_assert!(part.start() < part.end() && part.end() <= length);
                }
            }
        }

        #[test]
        fn one_range_is_that_range(first in 0..100_u64, more in 0..100_u64, length in 1..150_u64) {
            let read = Ranges::read(&format!("bytes={first}-{}", first + more), length);
            let expect = match ByteRange::new(first, (first + more + 1).min(length)) {
                Some(part) => Ranges::Parts(vec![part]),
                None => Ranges::Unsatisfiable,
            };
            prop_assert_eq!(read, expect);
        }
    }
}
