//! Numbers with their nouns.

use std::fmt::Display;

/// `1 segment`, `2 segments`: for nouns that take an s.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(count(0_usize, "key"), "0 keys");
        assert_eq!(count(1_usize, "key"), "1 key");
        assert_eq!(count(2_u64, "key"), "2 keys");
    }
}
