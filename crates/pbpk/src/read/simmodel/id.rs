//! Ids: nearly always small numbers, compared as the text that they are.

use std::fmt;

/// An id; whole numbers without leading zeros take no memory of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ObjectId {
    Number(u32),
    Text(Box<str>),
}

impl ObjectId {
    /// The time.
    pub(super) const TIME: Self = Self::Number(0);

    /// Returns the id of this text, blanks around it ignored.
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim();
        let canonical = text == "0"
            || text.starts_with(|c: char| matches!(c, '1'..='9'))
                && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if canonical => Self::Number(number),
            _ => Self::Text(text.into()),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ObjectId;

    #[test]
    fn ids_differ_where_their_texts_do() {
        assert_eq!(ObjectId::new(" 7 "), ObjectId::Number(7));
        assert_eq!(ObjectId::new("0"), ObjectId::TIME);
        for text in ["07", "+7", "a7", "", "99999999999", "00"] {
            assert_eq!(ObjectId::new(text), ObjectId::Text(text.into()));
            assert_eq!(ObjectId::new(text).to_string(), text);
        }
    }
}
