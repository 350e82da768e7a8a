//! A command in one argument, cut into words as a shell would: blanks separate, quotes and
//! backslashes keep together. Nothing is expanded.

/// Cuts a command into words.
///
/// # Errors
/// A sentence, where a quote is not closed or the text ends in a backslash.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                let next = chars.next().ok_or("the text ends in a backslash")?;
                word.get_or_insert_default().push(next);
            }
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("the quote {quote} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_cut_as_a_shell_cuts_them() {
        let cases: [(&str, &[&str]); 8] = [
            ("", &[]),
            ("  ", &[]),
            ("a b  c", &["a", "b", "c"]),
            ("a 'b c' \"d e\"", &["a", "b c", "d e"]),
            ("a\\ b", &["a b"]),
            ("'a'\"b\"c", &["abc"]),
            ("a '' b", &["a", "", "b"]),
            ("'\\' \"\\\"\" $X", &["\\", "\"", "$X"]),
        ];
        for (text, expect) in cases {
            assert_eq!(split(text).unwrap(), expect, "{text}");
        }
        for bad in ["'a", "\"a", "a\\"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
