//! What readers make of a string before they take it for a path.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use super::pieces::floor;

/// Longest content that is read as a path, in characters that anybody sees. No path is longer, however often it is
/// encoded.
const CONTENT_CHARS_MAX: usize = 1 << 20;

/// Characters that nobody sees and some readers drop. Line ends and tabs are no such characters.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{1}'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Without characters that nobody sees; `None` where there are none.
pub(super) fn without_unseen(text: &str) -> Option<String> {
    text.contains(is_unseen)
        .then(|| text.chars().filter(|c| !is_unseen(*c)).collect())
}

/// With characters of compatibility written plainly (a fullwidth slash is a slash); `None` where there
/// are none.
pub(super) fn compatible(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let plain: String = text.nfkc().collect();
    (plain != text).then_some(plain)
}

/// Characters that end a line for some reader, or a string.
pub(super) fn ends_line(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\0' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Without the quotes around it; `None` where there are none.
pub(super) fn unquoted(text: &str) -> Option<&str> {
    [
        ('\'', '\''),
        ('"', '"'),
        ('`', '`'),
        ('<', '>'),
        ('“', '”'),
        ('‘', '’'),
        ('«', '»'),
    ]
    .into_iter()
    .find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close))
}

/// Characters behind which a path may begin inside a string.
pub(super) fn comes_before(c: char) -> bool {
    ends_piece(c)
        || matches!(
            c,
            '=' | '@' | ':' | '+' | '\\' | '!' | '?' | '#' | '%' | '^'
        )
}

/// Characters that end a piece of a string.
pub(super) fn ends_piece(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | ','
                | ';'
                | '|'
                | '&'
                | '<'
                | '>'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
        )
}

/// What stands before marks that some reader cuts at: a query, a fragment, a parameter, a member of an
/// archive, a line number.
pub(super) fn cuts(text: &str) -> impl Iterator<Item = &str> {
    let marks = ['?', '#', ';', '!', ':', ','];
    let marked = marks.into_iter().filter_map(|mark| text.split_once(mark));
    marked
        .chain(text.split_once(char::is_whitespace))
        .map(|(before, _)| before)
        .filter(|before| before.len() > 1)
}

/// Signs before a group in an extended glob: `@(a|b)`.
const GROUPS: [&str; 5] = ["@(", "+(", "!(", "?(", "*("];

/// Whether a text has wildcards.
pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
        || (text.contains('(') && GROUPS.iter().any(|group| text.contains(group)))
}

/// A glob with a wildcard in the place of each group.
pub(super) fn plain_glob(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    loop {
        let begins = GROUPS.iter().filter_map(|group| out.find(group)).min();
        let Some((begin, length)) = begins.and_then(|at| Some((at, out.get(at..)?.find(')')?)))
        else {
            return out;
        };
        let before = out.get(..begin).unwrap_or_default();
        let behind = out.get(begin + length + 1..).unwrap_or_default();
        out = Cow::Owned(format!("{before}*{behind}"));
    }
}

/// Longest path below a directory that a shell finds out, in bytes.
const BELOW_BYTES_MAX: usize = 4 * 1024;

/// Paths below a directory that a shell finds out: behind `$NAME`, `${…}`, `$(…)`, backticks, `~+`.
pub(super) fn behind_unknown(text: &str) -> impl Iterator<Item = &str> {
    let has_any = text.contains(['$', '`']) || text.contains("~+") || text.contains("~-");
    let slashes = text.match_indices('/').filter(move |_| has_any);
    slashes.filter_map(|(at, _)| {
        let before = text.get(..at)?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_variable =
            || before.trim_end_matches(is_part).ends_with('$') && before.ends_with(is_part);
        let is_found_out = before.ends_with([')', '}', '`'])
            || before.ends_with("~+")
            || before.ends_with("~-")
            || is_variable();
        let below = text.get(at + 1..).filter(|_| is_found_out)?;
        // A path that is longer cannot be opened.
        let below = below.get(..floor(below, BELOW_BYTES_MAX))?;
        let end = below.find(ends_piece).unwrap_or(below.len());
        below.get(..end).filter(|below| !below.is_empty())
    })
}

/// Names of arguments whose strings are commands: each word of them counts.
pub(super) fn is_command_key(key: &str) -> bool {
    const KEYS: [&str; 12] = [
        "command",
        "cmd",
        "commands",
        "args",
        "argv",
        "arguments",
        "script",
        "code",
        "shell",
        "line",
        "cli",
        "exec",
    ];
    KEYS.iter().any(|name| key.eq_ignore_ascii_case(name))
}

/// Names of arguments whose strings are globs, even where they are nothing but wildcards.
pub(super) fn is_glob_key(key: &str) -> bool {
    const KEYS: [&str; 7] = [
        "pattern", "patterns", "glob", "globs", "include", "includes", "filter",
    ];
    KEYS.iter().any(|name| key.eq_ignore_ascii_case(name))
}

/// Whether a text is longer than any path that could be written in it.
pub(super) fn is_nothing_but_content(text: &str) -> bool {
    let counts = |c: &char| !c.is_whitespace() && !is_unseen(*c);
    text.len() > CONTENT_CHARS_MAX && text.chars().filter(counts).nth(CONTENT_CHARS_MAX).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_in_any_length_of_what_nobody_sees_and_nowhere_in_long_content() {
        let long = |fill: char| fill.to_string().repeat(CONTENT_CHARS_MAX);
        let hidden = format!("{}/etc/passwd", long('\u{200b}'));
        let padded = format!("{}/etc/passwd{}", long(' '), long('\n'));
        for read in [hidden, padded, long('x'), String::new()] {
            assert!(!is_nothing_but_content(&read));
        }
        assert!(is_nothing_but_content(&format!("/{}", long('x'))));
    }
}
