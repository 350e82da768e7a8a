//! A line: its keyword and its words, split as OpenSSH splits them.

/// Splits a line. `None` where it is empty or a comment.
///
/// # Errors
/// A quote that is not closed, or a keyword without a value.
pub(super) fn split(line: &str) -> Result<Option<(String, Vec<String>)>, &'static str> {
    let line = line.trim_end_matches([' ', '\t', '\r', '\n', '\u{c}']);
    let line = line.trim_start_matches([' ', '\t']);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let is_space = |c: char| c == ' ' || c == '\t' || c == '\r';
    let end = line.find(|c| is_space(c) || c == '=' || c == '"');
    let (keyword, rest) = line.split_at(end.unwrap_or(line.len()));
    if keyword.is_empty() || rest.starts_with('"') {
        return Err("a line begins with a keyword");
    }
    // One `=` may stand between the two, with spaces around it.
    let rest = rest.trim_start_matches(is_space);
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    let words = words(rest.trim_start_matches(is_space))?;
    if words.is_empty() {
        return Err("the keyword has no value");
    }
    Ok(Some((keyword.to_ascii_lowercase(), words)))
}

fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut letters = text.chars().peekable();
    loop {
        while letters.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
        match letters.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => {}
        }
        let mut word = String::new();
        let mut quote = None;
        while let Some(letter) = letters.next() {
            match (letter, quote) {
                ('\\', _) => {
                    let next = letters.peek().copied();
                    let escapes = matches!(next, Some('\'' | '"' | '\\'))
                        || quote.is_none() && next == Some(' ');
                    match (escapes, next) {
                        (true, Some(next)) => {
                            letters.next();
                            word.push(next);
                        }
                        _ => word.push('\\'),
                    }
                }
                (' ' | '\t', None) => break,
                ('"' | '\'', None) => quote = Some(letter),
                (letter, Some(open)) if letter == open => quote = None,
                (letter, _) => word.push(letter),
            }
        }
        if quote.is_some() {
            return Err("a quote is not closed");
        }
        words.push(word);
    }
}
