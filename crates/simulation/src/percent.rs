//! Percent-encoding (RFC 3986): names in paths, queries and URIs.

use std::fmt::Write as _;

/// `%20` and `+` as blanks. Invalid escapes stay unchanged.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|two| u8::from_str_radix(two, 16).ok());
        rest = match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                after.get(2..).unwrap_or_default()
            }
            (b'+', _) => {
                bytes.push(b' ');
                after
            }
            (other, _) => {
                bytes.push(*other);
                after
            }
        };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Returns a name with every byte encoded but the unreserved characters and `*`, which patterns need.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'*' => {
                out.push(char::from(byte));
            }
            // Writing to a string does not fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_spelled_right_stays_as_it_is() {
        assert_eq!(decoded("a%20b+c%zz%7"), "a b c%zz%7");
        assert_eq!(decoded("%ff"), "%ff", "no utf-8");
        assert_eq!(encoded("a b|c/ä~"), "a%20b%7Cc%2F%C3%A4~");
    }

    #[test]
    fn every_name_is_read_as_it_was_written() {
        for name in [
            "",
            "run-1",
            "a b",
            "a+b",
            "%20",
            "ä/ö?ü#",
            "\u{0}\n",
            "名前",
            "*|**",
        ] {
            assert_eq!(decoded(&encoded(name)), name);
        }
    }
}
