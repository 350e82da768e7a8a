//! A line of words as a shell would read and write it, without anything but words: no variables, no
//! patterns, no operators.

/// Splits a line into words. Quotes group, a backslash takes the next character as it is.
///
/// # Errors
/// A sentence, where a quote is not closed.
pub fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err("a quote (') is not closed"),
                        Some('\'') => break,
                        Some(c) => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err("a \" is not closed"),
                        Some('"') => break,
                        Some('\\') => word.push(chars.next().ok_or("a \" is not closed")?),
                        Some(c) => word.push(c),
                    }
                }
            }
            '\\' => word
                .get_or_insert_default()
                .push(chars.next().ok_or("the line ends with a \\")?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// A word as a shell has to be given it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_does() {
        for (line, expect) in [
            ("", Ok(&[][..])),
            ("  npx  -y @a/b\t/tmp ", Ok(&["npx", "-y", "@a/b", "/tmp"])),
            (
                "sh -c 'echo \"hi\" \\'",
                Ok(&["sh", "-c", "echo \"hi\" \\"]),
            ),
            (r#"a "b \" c" d\ e"#, Ok(&["a", "b \" c", "d e"])),
            ("a''b \"\"", Ok(&["ab", ""])),
            ("$HOME *", Ok(&["$HOME", "*"])),
            ("a 'b", Err("a quote (') is not closed")),
            ("a \"b", Err("a \" is not closed")),
            ("a \\", Err("the line ends with a \\")),
        ] {
            let expect =
                expect.map(|words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect());
            assert_eq!(split(line), expect, "{line}");
        }
    }

    #[test]
    fn what_is_quoted_splits_into_itself() {
        for word in ["plain", "", "two words", "it's", "\"", "\\", "$x", "é\n"] {
            assert_eq!(split(&quoted(word)).unwrap(), [word]);
        }
    }
}
