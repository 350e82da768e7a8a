//! JSON-RPC ids: returned as they came, compared by value.

use std::borrow::Cow;

use crate::text;

/// A request id, borrowed from its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id<'a> {
    raw: &'a str,
}

/// An id by value, so that `1`, `1.0` and `1e0` are one id and `"1"` is another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdKey {
    /// An integral number.
    Number(i64),
    /// A string, unescaped.
    Text(String),
    /// Any other number, by its spelling.
    Other(String),
}

impl<'a> Id<'a> {
    /// Takes the raw text of an id. `None` where it is neither a string nor a number
    /// (JSON-RPC also knows `null`, which MCP forbids).
    #[must_use]
    pub fn from_raw(raw: &'a str) -> Option<Self> {
        match raw.as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9') => Some(Self { raw }),
            _ => None,
        }
    }

    /// The id as it was spelled.
    #[must_use]
    pub fn raw(self) -> &'a str {
        self.raw
    }

    /// The id by value.
    #[must_use]
    pub fn key(self) -> IdKey {
        if self.raw.starts_with('"') {
            let inner = self.raw.get(1..self.raw.len() - 1).unwrap_or_default();
            return IdKey::Text(
                text::unescape(inner).map_or_else(|| inner.to_owned(), Cow::into_owned),
            );
        }
        if let Ok(n) = self.raw.parse::<i64>() {
            return IdKey::Number(n);
        }
        match integral(self.raw) {
            Some(n) => IdKey::Number(n),
            None => IdKey::Other(self.raw.to_owned()),
        }
    }
}

/// The integer that a float spelling denotes exactly, below 2^53.
fn integral(raw: &str) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value: f64 = raw.parse().ok()?;
    if value.fract() == 0.0 && value.abs() < EXACT {
        // Exact by the two conditions above.
        #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
        return Some(value as i64);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_compare_by_value_and_keep_their_spelling() {
        let cases = [
            ("1", IdKey::Number(1)),
            ("1.0", IdKey::Number(1)),
            ("1e0", IdKey::Number(1)),
            ("-0", IdKey::Number(0)),
            ("\"1\"", IdKey::Text("1".into())),
            ("\"\\u0041\"", IdKey::Text("A".into())),
            ("1.5", IdKey::Other("1.5".into())),
            (
                "99999999999999999999",
                IdKey::Other("99999999999999999999".into()),
            ),
        ];
        for (raw, key) in cases {
            let id = Id::from_raw(raw).unwrap();
            assert_eq!(id.key(), key, "{raw}");
            assert_eq!(id.raw(), raw);
        }
        assert!(Id::from_raw("null").is_none());
        assert!(Id::from_raw("{}").is_none());
    }
}
