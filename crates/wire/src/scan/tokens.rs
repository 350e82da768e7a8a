//! Strings and numbers: where a token ends, and what is wrong with it.

/// A string as it is spelled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonString<'a> {
    /// Between the quotes, still escaped.
    pub inner: &'a str,
    /// Holds at least one escape, which nobody has looked at yet.
    pub is_escaped: bool,
    /// Holds U+0085, U+2028 or U+2029 unescaped.
    pub has_line_break: bool,
}

impl<'a> JsonString<'a> {
    /// One in which each character stands for itself.
    pub(super) fn plain(inner: &'a str) -> Self {
        Self {
            inner,
            is_escaped: false,
            has_line_break: false,
        }
    }

    /// Whether each character stands for itself and none ends a line.
    pub(crate) fn is_plain(&self) -> bool {
        !(self.is_escaped || self.has_line_break)
    }
}

/// The inside of the string whose opening quote stands at `open`, where it is plain ASCII: most are. `None` where
/// [`string`] has to look at it.
pub(super) fn plain(text: &str, open: usize) -> Option<&str> {
    let rest = text.get(open + 1..)?;
    let length = plain_bytes(rest.as_bytes());
    let (inner, behind) = rest.split_at_checked(length)?;
    behind.starts_with('"').then_some(inner)
}

/// Reads the string whose opening quote stands at `open`; gives it and the byte behind it.
///
/// # Errors
/// The byte and the fault.
pub(super) fn string(text: &str, open: usize) -> Result<(JsonString<'_>, usize), Fault> {
    let bytes = text.as_bytes();
    let mut pos = open + 1;
    let (mut is_escaped, mut has_line_break) = (false, false);
    loop {
        let rest = bytes.get(pos..).unwrap_or_default();
        pos += plain_bytes(rest);
        match bytes.get(pos) {
            Some(b'"') => break,
            Some(b'\\') => {
                is_escaped = true;
                pos += 2;
            }
            Some(0..=0x1f) => {
                return Err((pos, "a string holds an unescaped control character"));
            }
            Some(0x80..) => {
                let rest = bytes.get(pos..).unwrap_or_default();
                let (length, found) = beyond_ascii(rest);
                has_line_break |= found;
                pos += length;
            }
            Some(_) => pos += 1,
            // A backslash at the very end is stepped over together with what should have followed it.
            None => return Err((bytes.len(), "the frame ends inside a string")),
        }
    }
    let string = JsonString {
        inner: text.get(open + 1..pos).unwrap_or_default(),
        is_escaped,
        has_line_break,
    };
    Ok((string, pos + 1))
}

/// At which byte, and what.
pub(super) type Fault = (usize, &'static str);

/// How many bytes from the beginning are ASCII and none of quote, backslash and control character.
/// Eight at a time: a byte is marked by its highest bit, and the lowest mark is exact.
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    const BELOW_SPACE: u64 = ONES * 0x20;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word;
    let (words, tail) = bytes.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = zero_bytes(word ^ (ONES * u64::from(b'"')));
        let backslash = zero_bytes(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(BELOW_SPACE) & !word;
        let marks = (quote | backslash | control | word) & HIGH;
        if marks != 0 {
            return n * 8 + marks.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |b: &u8| matches!(b, 0x20..=0x7f) && !matches!(b, b'"' | b'\\');
    words.len() * 8 + tail.iter().take_while(|b| is_plain(b)).count()
}

/// How many bytes from the beginning are not ASCII, and whether NEL, LS or PS is among them.
fn beyond_ascii(bytes: &[u8]) -> (usize, bool) {
    let length = bytes.iter().take_while(|b| !b.is_ascii()).count();
    let run = bytes.get(..length).unwrap_or_default();
    let found = run
        .windows(3)
        .any(|w| matches!(w, [0xe2, 0x80, 0xa8 | 0xa9]))
        || run.windows(2).any(|w| matches!(w, [0xc2, 0x85]));
    (length, found)
}

/// Gives the byte behind the number that begins at `from`.
///
/// # Errors
/// The byte and the fault.
pub(super) fn number(bytes: &[u8], from: usize) -> Result<usize, Fault> {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let some_digits = |from: usize| match digits(from) {
        0 => Err((from, "a number has no digits after its point or exponent")),
        n => Ok(from + n),
    };
    let mut pos = from;
    if bytes.get(pos) == Some(&b'-') {
        pos += 1;
    }
    match bytes.get(pos) {
        Some(b'0') => pos += 1,
        Some(b'1'..=b'9') => pos += digits(pos),
        _ => return Err((pos, "a number has no digits")),
    }
    if bytes.get(pos) == Some(&b'.') {
        pos = some_digits(pos + 1)?;
    }
    if matches!(bytes.get(pos), Some(b'e' | b'E')) {
        pos += 1;
        if matches!(bytes.get(pos), Some(b'+' | b'-')) {
            pos += 1;
        }
        pos = some_digits(pos)?;
    }
    Ok(pos)
}

#[cfg(test)]
mod tests;
