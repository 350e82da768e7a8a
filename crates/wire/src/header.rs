//! Values of the headers that mirror a request's body (`Mcp-Name`, `Mcp-Param-*`; SEP-2243).
//!
//! What is printable ASCII without a blank at either end stands as it is; everything else goes as
//! `=?base64?…?=`, and so does what only looks like that form. No value so written can end a header.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const MARK: &str = "=?base64?";
const END: &str = "?=";

/// Why a header's value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// Neither printable ASCII nor the base64 form.
    Unfit,
    /// The base64 form, but what it holds is not base64 or not UTF-8.
    Malformed,
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfit => {
                "the header's value is not plain ascii; write it in the form =?base64?…?="
            }
            Self::Malformed => "the header's value is not base64 of UTF-8 text",
        })
    }
}

impl std::error::Error for HeaderFault {}

/// Writes a value for a header: borrowed where it may stand as it is.
#[must_use]
pub fn encode(value: &str) -> Cow<'_, str> {
    if is_plain(value.as_bytes()) && inside(value).is_none() {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{MARK}{}{END}", STANDARD.encode(value)))
}

/// Reads a value as it came in a header.
///
/// # Errors
/// [`HeaderFault`] where no writer that keeps to the rules can have written it.
pub fn decode(raw: &[u8]) -> Result<Cow<'_, str>, HeaderFault> {
    if !is_plain(raw) {
        return Err(HeaderFault::Unfit);
    }
    let text = std::str::from_utf8(raw).map_err(|_| HeaderFault::Unfit)?;
    let Some(coded) = inside(text) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(coded).map_err(|_| HeaderFault::Malformed)?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| HeaderFault::Malformed)
}

/// What stands between the marks of the base64 form.
fn inside(value: &str) -> Option<&str> {
    value.strip_prefix(MARK)?.strip_suffix(END)
}

fn is_plain(value: &[u8]) -> bool {
    let blank_end = matches!(value.first(), Some(b' ')) || matches!(value.last(), Some(b' '));
    !blank_end && !value.is_empty() && value.iter().all(|b| (0x20..=0x7e).contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_and_read_back() {
        let cases = [
            ("read_file", "read_file"),
            ("file:///a b?c=d", "file:///a b?c=d"),
            ("caf\u{e9}", "=?base64?Y2Fmw6k=?="),
            (" x", "=?base64?IHg=?="),
            ("x ", "=?base64?eCA=?="),
            ("", "=?base64??="),
            ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
            ("tab\t", "=?base64?dGFiCQ==?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ];
        for (value, written) in cases {
            assert_eq!(encode(value), written, "{value:?}");
            assert_eq!(decode(written.as_bytes()).as_deref(), Ok(value));
        }
    }

    #[test]
    fn values_that_nobody_may_write_are_refused() {
        let cases: [(&[u8], HeaderFault); 8] = [
            (b"", HeaderFault::Unfit),
            (b" x", HeaderFault::Unfit),
            (b"a\tb", HeaderFault::Unfit),
            (b"caf\xc3\xa9", HeaderFault::Unfit),
            (b"=?base64?Y2Fm w6k=?=", HeaderFault::Malformed),
            (b"=?base64?Y2Fmw6k?=", HeaderFault::Malformed),
            (b"=?base64?_-8=?=", HeaderFault::Malformed),
            (b"=?base64?/w==?=", HeaderFault::Malformed),
        ];
        for (raw, fault) in cases {
            assert_eq!(decode(raw), Err(fault), "{}", String::from_utf8_lossy(raw));
        }
    }
}
