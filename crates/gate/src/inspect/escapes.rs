//! Texts that hold JSON: what stands in its strings is looked at as it reads, so that an escape hides nothing.
//! The arguments of a model's tool call are such a text, and so is what a tool answers where it is JSON.

use std::ops::Range;

use super::rule::Hit;

/// How many times a text is read so: JSON in a string of JSON in a string.
const DEPTH_MAX: usize = 4;
/// Most matches of one text that are compared with those of its other readings; of more some are counted twice.
const ALIKE_MAX: usize = 1_000;

/// Adds what is found in a text with its escapes undone, where it stands in the text.
pub(super) fn undone(text: &str, hits: &mut Vec<Hit>, find: impl Fn(&str, &mut Vec<Hit>)) {
    let mut readings: Vec<Undone> = Vec::new();
    while readings.len() < DEPTH_MAX
        && let Some(next) = Undone::of(readings.last().map_or(text, |last| &last.text))
    {
        let mut found = Vec::new();
        find(&next.text, &mut found);
        readings.push(next);
        for Hit { at, rule } in found {
            let place = |at: Range<usize>, reading: &Undone| reading.place(&at);
            let at = readings.iter().rev().fold(at, place);
            let is_it = |known: &Hit| {
                known.rule == rule && known.at.start < at.end && at.start < known.at.end
            };
            if hits.len() > ALIKE_MAX || !hits.iter().any(is_it) {
                hits.push(Hit { at, rule });
            }
        }
    }
}

/// A text with its escapes undone, and where each part of it stood before.
struct Undone {
    text: String,
    /// For each escape, in order: the byte behind what it says here, and the byte behind it there.
    ends: Vec<(Range<usize>, Range<usize>)>,
}

impl Undone {
    fn of(text: &str) -> Option<Self> {
        let mut at = text.find('\\')?;
        let mut undone = Self {
            text: String::with_capacity(text.len()),
            ends: Vec::new(),
        };
        let mut copied = 0;
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let next = match escape(rest) {
                Some((says, length)) => {
                    undone
                        .text
                        .push_str(text.get(copied..at).unwrap_or_default());
                    let start = undone.text.len();
                    undone.text.push(says);
                    undone
                        .ends
                        .push((start..undone.text.len(), at..at + length));
                    copied = at + length;
                    copied
                }
                None => at + 1,
            };
            match text.get(next..).and_then(|rest| rest.find('\\')) {
                Some(found) => at = next + found,
                None => break,
            }
        }
        undone.text.push_str(text.get(copied..).unwrap_or_default());
        (!undone.ends.is_empty()).then_some(undone)
    }

    /// Where a place in it stood before: whole escapes.
    fn place(&self, at: &Range<usize>) -> Range<usize> {
        self.spelled(at.start).start..self.spelled(at.end.saturating_sub(1)).end
    }

    fn spelled(&self, at: usize) -> Range<usize> {
        let before = self.ends.partition_point(|(here, _)| here.start <= at);
        let last = before.checked_sub(1).and_then(|last| self.ends.get(last));
        match last {
            None => at..at + 1,
            Some((here, there)) if at < here.end => there.clone(),
            Some((here, there)) => {
                let start = there.end + (at - here.end);
                start..start + 1
            }
        }
    }
}

/// A text with its escapes undone once.
#[cfg(test)]
pub(super) fn read_once(text: &str) -> Option<String> {
    Undone::of(text).map(|undone| undone.text)
}

/// What an escape at the beginning of a text says, and its length. The crate `wire` has the like, which refuses what
/// this one passes over; the gate uses no crate of the wire.
fn escape(text: &str) -> Option<(char, usize)> {
    let says = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = unit(text)?;
            if let Some(says) = char::from_u32(first) {
                return Some((says, 6));
            }
            let second = unit(text.get(6..)?)?;
            let is_pair = (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second);
            let code = 0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
            return char::from_u32(code).filter(|_| is_pair).map(|c| (c, 12));
        }
        _ => return None,
    };
    Some((says, 2))
}

fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_whole_escapes() {
        let text = r#"é\u002d1 \ud83d\ude00\"x\/y\ud800 \q \u12"#;
        let undone = Undone::of(text).unwrap();
        assert_eq!(undone.text, "é-1 😀\"x/y\\ud800 \\q \\u12");
        for (part, spelled) in [
            ("-1 ", r"\u002d1 "),
            ("😀", r"\ud83d\ude00"),
            ("😀\"x", r#"\ud83d\ude00\"x"#),
            ("x/y", r"x\/y"),
            ("y\\ud", r"y\ud"),
        ] {
            let at = undone.text.find(part).unwrap();
            let place = undone.place(&(at..at + part.len()));
            assert_eq!(text.get(place), Some(spelled), "{part}");
        }
        assert!(Undone::of("plain").is_none() && Undone::of(r"C:\qu").is_none());
    }
}
