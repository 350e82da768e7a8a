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
    while let Some(slash) = rest.find('\\') {
        let (plain, tail) = rest.split_at_checked(slash)?;
        out.push_str(plain);
        let escape = *tail.as_bytes().get(1)?;
        let mut used = 2;
        match escape {
            b'"' => out.push('"'),
            b'\\' => out.push('\\'),
            b'/' => out.push('/'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let (ch, len) = unicode(tail)?;
                out.push(ch);
                used = len;
            }
            _ => return None,
        }
        rest = tail.get(used..)?;
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
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

/// Writes `text` as a JSON string, quotes included (RFC 8259 §7).
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for ch in text.chars() {
        match ch {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if u32::from(c) < 0x20 => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes())
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
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
