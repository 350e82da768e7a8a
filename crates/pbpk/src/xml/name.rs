//! Names of elements by value, so that a reader may go on while it holds one.

use std::fmt;

/// Longest name kept whole.
const NAME_BYTES_MAX: usize = 46;

/// The name of an element by value. Longer ones than any that is known are cut and end with a full stop.
#[derive(Clone, Copy)]
pub(crate) struct ElementName {
    bytes: [u8; NAME_BYTES_MAX],
    length: u8,
}

impl ElementName {
    pub(super) fn new(name: &str) -> Self {
        let mut kept = Self {
            bytes: [0; NAME_BYTES_MAX],
            length: 0,
        };
        let cut = name.len() > NAME_BYTES_MAX;
        let whole = if cut {
            name.floor_char_boundary(NAME_BYTES_MAX - 1)
        } else {
            name.len()
        };
        let text = name.as_bytes().get(..whole).unwrap_or_default();
        let text = text.iter().chain(cut.then_some(&b'.'));
        for (to, from) in kept.bytes.iter_mut().zip(text) {
            *to = *from;
            kept.length += 1;
        }
        kept
    }

    pub(crate) fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length));
        std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }
}

impl std::ops::Deref for ElementName {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for ElementName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<&str> for ElementName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(ElementName::new("Equation").as_str(), "Equation");
        let whole = "x".repeat(NAME_BYTES_MAX);
        assert_eq!(ElementName::new(&whole).as_str(), whole);
        let long = format!("{}\u{b5}\u{b5}", "x".repeat(NAME_BYTES_MAX - 2));
        assert_eq!(
            ElementName::new(&long).as_str(),
            format!("{}.", "x".repeat(NAME_BYTES_MAX - 2))
        );
    }
}
