//! JSON string text: unescaping what the scanner has already validated, and writing strings.

use std::borrow::Cow;

/// Unescapes the inside of a JSON string (without its quotes). `None` where an escape is malformed
/// or a surrogate stands alone; the scanner refuses such frames before anyone gets here.
#[must_use]
pub fn unescape(inner: &str) -> Option<Cow<'_, str>> {
    if !inner.as_bytes().contains(&b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(slash) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, tail) = rest.split_at_checked(slash)?;
        out.push_str(plain);
        let (ch, length) = escape(tail)?;
        out.push(ch);
        rest = tail.get(length..)?;
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// Whether every escape in the inside of a JSON string is one that JSON knows and no surrogate
/// stands alone.
#[must_use]
pub fn is_well_escaped(inner: &str) -> bool {
    let mut rest = inner;
    while let Some(slash) = memchr::memchr(b'\\', rest.as_bytes()) {
        let Some((_, length)) = rest.get(slash..).and_then(escape) else {
            return false;
        };
        rest = rest.get(slash + length..).unwrap_or_default();
    }
    true
}

/// Reads the escape at the start of `tail`; gives the character and the length of the escape.
/// `None` where JSON does not know it or a surrogate stands alone.
pub(crate) fn escape(tail: &str) -> Option<(char, usize)> {
    let ch = match tail.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(tail),
        _ => return None,
    };
    Some((ch, 2))
}

/// Reads `\uXXXX` or a surrogate pair at the start of `tail`; gives the character and the length.
fn unicode(tail: &str) -> Option<(char, usize)> {
    let first = hex4(tail.get(2..6)?)?;
    if !(0xD800..0xE000).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    let second = tail.get(6..12)?.strip_prefix("\\u").and_then(hex4)?;
    if first >= 0xDC00 || !(0xDC00..0xE000).contains(&second) {
        return None;
    }
    let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    Some((char::from_u32(code)?, 12))
}

fn hex4(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// Writes `text` as a JSON string, quotes included (RFC 8259 §7), in the one spelling that
/// [`crate::canonical`] knows.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut utf8 = [0; 4];
    for ch in text.chars() {
        match escaped(ch) {
            Some(escape) => out.extend_from_slice(escape.as_bytes()),
            None => out.extend_from_slice(ch.encode_utf8(&mut utf8).as_bytes()),
        }
    }
    out.push(b'"');
}

/// How a character is escaped that may not stand in a string as it is: what JSON forbids there
/// (quote, backslash, U+0000 to U+001F), and the line ends U+0085, U+2028 and U+2029, at which some
/// readers of lines cut. `None` for every other character, which stands for itself.
pub(crate) fn escaped(ch: char) -> Option<&'static str> {
    /// The control characters in their order.
    const CONTROLS: [&str; 32] = [
        "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007",
        "\\b", "\\t", "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011",
        "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019",
        "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
    ];
    match ch {
        '"' => Some("\\\""),
        '\\' => Some("\\\\"),
        '\u{85}' => Some("\\u0085"),
        '\u{2028}' => Some("\\u2028"),
        '\u{2029}' => Some("\\u2029"),
        _ => CONTROLS.get(usize::try_from(u32::from(ch)).ok()?).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unescapes_what_json_knows_and_nothing_else() {
        assert_eq!(unescape("plain").as_deref(), Some("plain"));
        assert_eq!(
            unescape("a\\n\\u00e9\\ud83d\\ude00/").as_deref(),
            Some("a\né😀/")
        );
        for bad in ["\\x", "\\ud800", "\\udc00\\ud800", "\\u12", "\\", "\\u+123"] {
            assert_eq!(unescape(bad), None, "{bad}");
            assert!(!is_well_escaped(bad), "{bad}");
        }
    }

    #[test]
    fn writes_strings_that_serde_json_reads_back() {
        let text = "q\"b\\ n\n t\t c\u{1} é 😀 \u{2028}";
        let mut out = Vec::new();
        push_string(&mut out, text);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
