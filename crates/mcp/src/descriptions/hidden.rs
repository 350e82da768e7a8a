//! Characters that a person does not see and a model reads.
//!
//! Kept: line feed, tab, a carriage return before a line feed; a presentation selector behind an
//! emoji; a joiner between emoji, or between letters of the scripts that are written with it.

use std::borrow::Cow;

/// Longest terminal string (title, link) that is taken out as one, in characters; of a longer one
/// only its introducer goes.
const TERMINAL_STRING_MAX: usize = 4_096;

/// A text without its hidden characters, and how many there were.
#[must_use]
pub fn strip(text: &str) -> (Cow<'_, str>, usize) {
    if text
        .bytes()
        .all(|b| matches!(b, b'\t' | b'\n' | b' '..=b'~'))
    {
        return (Cow::Borrowed(text), 0);
    }
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut taken = 0;
    while let Some(&c) = chars.get(at) {
        let escape = terminal_sequence(chars.get(at..).unwrap_or_default());
        if escape > 0 {
            taken += escape;
            at += escape;
            continue;
        }
        let before = out.chars().next_back();
        let after = chars.get(at + 1).copied();
        if matches!(c, '\u{2028}' | '\u{2029}') {
            out.push('\n');
            taken += 1;
        } else if is_hidden(c) && !is_meant(c, before, after) {
            taken += 1;
        } else {
            out.push(c);
        }
        at += 1;
    }
    if taken == 0 {
        (Cow::Borrowed(text), 0)
    } else {
        (Cow::Owned(out), taken)
    }
}

/// Whether a text holds a hidden character that [`strip`] would take out.
#[must_use]
pub fn any(text: &str) -> bool {
    strip(text).1 > 0
}

/// A text of others for a person's eyes: what cannot be seen is spelled out as `\u{…}`, on one line.
#[must_use]
pub fn spelled_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_hidden(c) || matches!(c, '\u{2028}' | '\u{2029}') {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character has no shape of its own: control, format, bidirectional, tag, selector,
/// filler, or reserved for such.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    match u32::from(c) {
        0x09 | 0x0a => false,
        0x00..=0x1f | 0x7f..=0x9f => true,
        0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x3164 | 0xfeff | 0xffa0 => true,
        0x180b..=0x180f | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f => true,
        0xfdd0..=0xfdef | 0xfe00..=0xfe0f | 0xfff0..=0xfffb => true,
        0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff => true,
        // The last two code points of each plane are no characters.
        code => code & 0xfffe == 0xfffe,
    }
}

/// Whether a hidden character does what it is there for.
fn is_meant(c: char, before: Option<char>, after: Option<char>) -> bool {
    match c {
        '\r' => after == Some('\n'),
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|b| {
            is_pictograph(b) || (after == Some('\u{20e3}') && matches!(b, '0'..='9' | '#' | '*'))
        }),
        '\u{200d}' => {
            let joins = |c: char| is_pictograph(c) || c == '\u{fe0f}';
            before.is_some_and(joins) && after.is_some_and(is_pictograph)
                || between_joining_letters(before, after)
        }
        '\u{200c}' => between_joining_letters(before, after),
        _ => false,
    }
}

fn is_pictograph(c: char) -> bool {
    matches!(u32::from(c),
        0xa9 | 0xae | 0x203c | 0x2049 | 0x2100..=0x2bff | 0x3030 | 0x303d | 0x3297 | 0x3299 | 0x1f000..=0x1faff)
}

/// Arabic, Syriac and their kin, the scripts of India, Sri Lanka, Myanmar, Khmer and Mongolia.
fn between_joining_letters(before: Option<char>, after: Option<char>) -> bool {
    let joining = |c: Option<char>| {
        c.is_some_and(|c| {
            matches!(u32::from(c),
                0x620..=0x8ff | 0x900..=0xdff | 0x1000..=0x109f | 0x1780..=0x17b3 | 0x17b6..=0x17ff | 0x1820..=0x18aa)
        })
    };
    joining(before) && joining(after)
}

/// How many characters at the start are one terminal sequence (ECMA-48); 0 where none begins.
fn terminal_sequence(chars: &[char]) -> usize {
    let (kind, body) = match chars {
        ['\u{1b}', kind, ..] => (*kind, 2),
        ['\u{9b}', ..] => ('[', 1),
        ['\u{90}', ..] => ('P', 1),
        ['\u{98}', ..] => ('X', 1),
        ['\u{9d}', ..] => (']', 1),
        ['\u{9e}', ..] => ('^', 1),
        ['\u{9f}', ..] => ('_', 1),
        _ => return 0,
    };
    let rest = chars.get(body..).unwrap_or_default();
    match kind {
        '[' => {
            let parameters = rest
                .iter()
                .take_while(|c| matches!(c, '\u{20}'..='\u{3f}'))
                .count();
            let ends = matches!(rest.get(parameters), Some('\u{40}'..='\u{7e}'));
            if ends { body + parameters + 1 } else { body }
        }
        'P' | 'X' | ']' | '^' | '_' => {
            // It ends at its terminator; whatever else a terminal would act on shows that it never does.
            let length = rest
                .iter()
                .take(TERMINAL_STRING_MAX)
                .position(|c| matches!(c, '\u{7}' | '\u{1b}' | '\u{80}'..='\u{9f}'));
            let end = length.and_then(|at| match (rest.get(at), rest.get(at + 1)) {
                (Some('\u{7}' | '\u{9c}'), _) => Some(at + 1),
                (Some('\u{1b}'), Some('\\')) => Some(at + 2),
                _ => None,
            });
            body + end.unwrap_or(0)
        }
        '\u{20}'..='\u{2f}' => {
            let between = rest
                .iter()
                .take_while(|c| matches!(c, '\u{20}'..='\u{2f}'))
                .count();
            let ends = matches!(rest.get(between), Some('\u{30}'..='\u{7e}'));
            if ends { body + between + 1 } else { 1 }
        }
        '\u{30}'..='\u{7e}' => body,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_goes() {
        let cases = [
            ("a\u{200b}b\u{2060}c\u{feff}", "abc", 3),
            ("\u{202e}txet\u{202c} \u{2066}x\u{2069}", "txet x", 4),
            ("a\u{200e}b\u{61c}", "ab", 2),
            ("a\u{e0001}\u{e0069}\u{e007f}b", "ab", 3),
            ("a\u{fe00}\u{fe0f}\u{e0101}", "a", 3),
            ("\u{1b}[8mhidden\u{1b}[0m", "hidden", 8),
            ("\u{9b}31mred", "red", 4),
            ("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\", "link", 21),
            ("\u{1b}]0;never ended", "0;never ended", 2),
            ("\u{1b}(Bx\u{1b}c\u{1b}", "x", 6),
            ("\u{1b}[", "", 2),
            ("a\u{7}\u{8}\u{0}b\u{7f}\u{85}", "ab", 5),
            ("a\rb", "ab", 1),
            ("a\u{2028}b\u{2029}", "a\nb\n", 2),
            ("a\u{ad}b\u{34f}\u{3164}\u{115f}", "ab", 4),
            ("\u{fffe}\u{fdd0}\u{10ffff}", "", 3),
            ("x\u{200d}y\u{200c}z", "xyz", 2),
        ];
        for (text, clean, taken) in cases {
            assert_eq!(strip(text), (clean.into(), taken), "{}", spelled_out(text));
            assert!(!any(clean), "{clean}");
        }
    }

    #[test]
    fn what_is_meant_stays() {
        for text in [
            "",
            "plain\ttext\n",
            "line\r\nline",
            "é ü ß 中文 日本語 한국어 עברית",
            "\u{26a0}\u{fe0f} careful",
            "1\u{fe0f}\u{20e3}",
            "\u{1f468}\u{200d}\u{1f4bb}",
            "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}",
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "e\u{301}",
            "“quotes” – dashes … •",
        ] {
            assert_eq!(strip(text), (Cow::Borrowed(text), 0), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        assert_eq!(
            spelled_out("a\u{202e}b\u{1b}[1m\n\u{e0041}é"),
            "a\\u{202e}b\\u{1b}[1m\\n\\u{e0041}é"
        );
    }

    #[test]
    fn a_terminal_string_without_end_stays_as_text() {
        let long = "x".repeat(TERMINAL_STRING_MAX);
        assert_eq!(
            strip(&format!("\u{1b}]{long}\u{7}")),
            (long.clone().into(), 3)
        );
        let short = "x".repeat(TERMINAL_STRING_MAX - 1);
        assert_eq!(strip(&format!("\u{1b}]{short}\u{7}")).0, "");
    }
}
