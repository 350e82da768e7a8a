//! Which member names a lenient reader takes for one and the same.
//!
//! Go's `encoding/json` compares names by Unicode simple case folding and lets the last one win;
//! other readers also accept `snake_case`, `kebab-case` and `camelCase` for one name. Here two names
//! are the same when they are equal after simple case folding and without `_` and `-`.
//!
//! The folding of a character is its simple upper case, then the simple lower case of that. This
//! joins at least what Unicode's simple case folding joins (`ſ` U+017F with `s`, `K` U+212A with
//! `k`), which a test checks against Go for every character. It also joins `ı` and `İ` with `i`, as
//! Java's `equalsIgnoreCase` does.

/// The folding of one character.
#[must_use]
pub fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    if c == '\u{130}' {
        return 'i';
    }
    let upper = sole(c, c.to_uppercase());
    sole(upper, upper.to_lowercase())
}

/// The one character of a mapping; `c` itself where the mapping has several.
fn sole(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// The characters by which a name is compared.
pub fn folded(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .map(fold_char)
}

/// Whether a lenient reader may take one name for the other. Equal names are the same.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    // Most names differ in their first character, and letters and digits are never left out.
    let first = |name: &str| name.bytes().next().filter(u8::is_ascii_alphanumeric);
    if let (Some(a), Some(b)) = (first(a), first(b))
        && !a.eq_ignore_ascii_case(&b)
    {
        return false;
    }
    folded(a).eq(folded(b))
}

/// The name among `known` for which a lenient reader may take `name`; `None` where `name` is itself
/// among them, or is like none of them.
#[must_use]
pub fn mistaken_for<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if known.contains(&name) {
        return None;
    }
    // Most names differ in their first character. That of `name` has to be a letter or digit, which is never left
    // out; one of `known` may fold to it where it is none of ASCII.
    let first = name.bytes().next().filter(u8::is_ascii_alphanumeric);
    let differs = |k: &str| {
        let (Some(a), Some(b)) = (first, k.bytes().next()) else {
            return false;
        };
        (a ^ b) & !0x20 != 0 && b.is_ascii() && !matches!(b, b'_' | b'-')
    };
    let mut candidates = known.iter().copied().filter(|k| !differs(k));
    candidates.find(|k| folded(name).eq(folded(k)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_lenient_reader_takes_for_one() {
        let cases = [
            ("method", "Method", true),
            ("method", "METHOD", true),
            ("params", "param\u{17f}", true),
            ("tokens", "to\u{212a}ens", true),
            ("jsonrpc", "json_rpc", true),
            ("id", "_I-D_", true),
            ("id", "\u{130}d", true),
            ("id", "\u{131}d", true),
            ("straße", "STRA\u{1e9e}E", true),
            ("σ", "ς", true),
            ("resourceSubscriptions", "resource_subscriptions", true),
            ("id", "idx", false),
            ("method", "metho", false),
            ("method", "meth\u{200b}od", false),
            ("a", "á", false),
            ("", "_", true),
        ];
        for (a, b, expect) in cases {
            assert_eq!(same(a, b), expect, "{a} {b}");
            assert_eq!(same(b, a), expect, "{b} {a}");
        }
    }

    #[test]
    fn a_known_name_is_mistaken_for_none() {
        let known = ["id", "ID_", "method"];
        assert_eq!(mistaken_for("id", &known), None);
        assert_eq!(mistaken_for("ID_", &known), None);
        assert_eq!(mistaken_for("Id", &known), Some("id"));
        assert_eq!(mistaken_for("other", &known), None);
    }

    #[test]
    fn folding_is_stable() {
        for c in ('\0'..=char::MAX).filter(|c| !c.is_ascii()) {
            let once = fold_char(c);
            assert_eq!(fold_char(once), once, "{c:?}");
        }
    }
}
