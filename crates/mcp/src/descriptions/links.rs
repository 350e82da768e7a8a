//! Links out of a description, on request: their text stays, their target goes.

/// Longest text or target that is looked for, in bytes.
const TARGET_BYTES_MAX: usize = 4_096;

/// A text whose Markdown links and images, bracketed addresses, and HTML anchors and images are
/// reduced to what a reader would see of them. Addresses that stand bare in the text stay.
#[must_use]
pub fn strip(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '!', '<']) {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        if let Some((shown, len)) = markdown(tail) {
            // A link may stand inside the text of another.
            out.push_str(shown);
            rest = tail.get(len..).unwrap_or_default();
        } else if let Some(len) = bracketed(tail) {
            rest = tail.get(len..).unwrap_or_default();
        } else {
            let mut chars = tail.chars();
            out.extend(chars.next());
            rest = chars.as_str();
        }
    }
    out.push_str(rest);
    out
}

/// `[text](target)` or `![text](target)` at the start: its text and its length.
fn markdown(tail: &str) -> Option<(&str, usize)> {
    let inner = tail.strip_prefix('!').unwrap_or(tail).strip_prefix('[')?;
    let lead = tail.len() - inner.len();
    let mut depth = 1_usize;
    let end = inner
        .char_indices()
        .take(TARGET_BYTES_MAX)
        .find_map(|(at, c)| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at)
        })?;
    let target = inner.get(end + 1..)?.strip_prefix('(')?;
    let mut depth = 1_usize;
    let close = target
        .bytes()
        .take(TARGET_BYTES_MAX)
        .enumerate()
        .find_map(|(at, byte)| {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at)
        })?;
    Some((inner.get(..end)?, lead + end + 2 + close + 1))
}

/// `<https://…>`, `<a …>`, `</a>` or `<img …>` at the start: its length.
fn bracketed(tail: &str) -> Option<usize> {
    let inner = tail.strip_prefix('<')?;
    let end = inner
        .bytes()
        .take(TARGET_BYTES_MAX)
        .position(|b| b == b'>')?;
    let tag = inner.get(..end)?.to_ascii_lowercase();
    let word: &str = tag
        .split(|c: char| c.is_ascii_whitespace() || c == '/')
        .find(|part| !part.is_empty())
        .unwrap_or_default();
    let address = ["http:", "https:", "mailto:", "ftp:", "data:", "javascript:"];
    (matches!(word, "a" | "img") || address.iter().any(|scheme| tag.starts_with(scheme)))
        .then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_go_and_texts_stay() {
        let cases = [
            ("see [the docs](https://x.y/a(b)c) now", "see the docs now"),
            ("![pixel](http://x/y.png?d=1)", "pixel"),
            ("<https://x.y> and <mailto:a@b>", " and "),
            (r#"<a href="http://x">click</a>"#, "click"),
            (r#"a <IMG src="http://x"/> b"#, "a  b"),
            (
                "arrays like [FILE] and [DIR] or a[0](1",
                "arrays like [FILE] and [DIR] or a[0](1",
            ),
            ("<path> < 3 > 2 <abbr>", "<path> < 3 > 2 <abbr>"),
            ("bare https://x.y stays", "bare https://x.y stays"),
            ("[a [b] c](t)", "a [b] c"),
            ("[unclosed", "[unclosed"),
            ("é![ü](x)ö", "éüö"),
        ];
        for (text, expect) in cases {
            assert_eq!(strip(text), expect, "{text}");
        }
    }

    #[test]
    fn a_target_without_end_stays() {
        for open in ["[a](", "[", "<a "] {
            let text = format!("{open}{}", "x".repeat(TARGET_BYTES_MAX + 10));
            assert_eq!(strip(&format!("{text})]>")), format!("{text})]>"));
        }
    }
}
