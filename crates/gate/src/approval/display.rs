//! Text of a caller, made safe to look at: what could hide, turn around or imitate is written out as
//! `\u{…}`, and what is left out is counted.
//!
//! The result is one line of printable characters. A backslash stands doubled, so that an escape which
//! is seen is one that was made here.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

/// Most characters shown of one string.
pub const STRING_CHARS_MAX: usize = 1_000;
/// Most characters shown of all arguments together.
pub const ARGUMENTS_CHARS_MAX: usize = 8_000;
/// Most combining marks in a row that are shown as such.
const MARKS_MAX: usize = 2;
/// Most blanks in a row that are shown as such: more push what comes behind them out of sight.
const BLANKS_MAX: usize = 32;

/// Characters that are not seen, or that change how others are seen (Unicode 16: default-ignorable,
/// bidirectional controls, line breaks, blanks that look like a space or like nothing).
const HIDDEN: [(char, char); 30] = [
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{a0}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2000}', '\u{200f}'),
    ('\u{2028}', '\u{202f}'),
    ('\u{205f}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{e000}', '\u{f8ff}'),
    ('\u{fdd0}', '\u{fdef}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{ffff}'),
    ('\u{11a47}', '\u{11a47}'),
    ('\u{13430}', '\u{1345f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d159}', '\u{1d159}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{1fffe}', '\u{1ffff}'),
    ('\u{e0000}', '\u{e0fff}'),
    ('\u{f0000}', '\u{fffff}'),
    ('\u{100000}', '\u{10ffff}'),
];

fn is_hidden(c: char) -> bool {
    HIDDEN
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c))
}

/// Whether a character beyond ASCII looks like, or folds to, ASCII.
fn looks_ascii(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let mut text = [0; 4];
    let text: &str = c.encode_utf8(&mut text);
    skeleton(text).all(|s| s.is_ascii()) || text.nfkc().all(|s| s.is_ascii())
}

/// One string, at most `chars_max` characters of it. What is missing is said at the end.
#[must_use]
pub fn text(text: &str, chars_max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(chars_max) + 8);
    let end = text
        .char_indices()
        .nth(chars_max)
        .map_or(text.len(), |(at, _)| at);
    let (shown, missing) = text.split_at(end);
    let mut rest = shown;
    while let Some(first) = rest.chars().next() {
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        if blanks > BLANKS_MAX {
            out.push_str(&format!("\\u{{20}}×{blanks}"));
            rest = rest.get(blanks..).unwrap_or_default();
            continue;
        }
        let is_word = |c: char| c.is_alphanumeric() || is_combining_mark(c);
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (part, after) = rest.split_at(length);
        push_part(&mut out, part);
        rest = after;
    }
    if !missing.is_empty() {
        out.push_str(&format!(
            "…[{} more characters not shown]",
            missing.chars().count()
        ));
    }
    out
}

/// A word, or one character between words.
fn push_part(out: &mut String, part: &str) {
    if part.is_ascii() && !part.contains(|c: char| c == '\\' || c.is_ascii_control()) {
        out.push_str(part);
        return;
    }
    // In a word that has an ASCII letter, or looks ASCII throughout, each look-alike is an impostor.
    let imitates = part.contains(|c: char| c.is_ascii_alphabetic())
        || part.chars().all(|c| c.is_ascii() || looks_ascii(c));
    let mut marks = 0;
    for c in part.chars() {
        marks = if is_combining_mark(c) { marks + 1 } else { 0 };
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_hidden(c) || marks > MARKS_MAX || (imitates && looks_ascii(c)) => {
                out.extend(c.escape_unicode());
            }
            _ => out.push(c),
        }
    }
}

/// Whether a text is longer than [`text`] shows of it.
#[must_use]
pub fn is_cut(text: &str, chars_max: usize) -> bool {
    text.char_indices().nth(chars_max).is_some()
}

/// Arguments as raw JSON, on one line: numbers and structure as they came, strings made safe; and whether
/// any of it is missing. Where all of it is too long, each string is cut shorter, so that no long one takes
/// the place of the others.
#[must_use]
pub fn arguments(raw: &str) -> (String, bool) {
    /// Shorter than this no string is cut for the sake of others.
    const STRING_CHARS_LEAST: usize = 30;
    let mut chars_max = STRING_CHARS_MAX;
    loop {
        match shown(raw, chars_max) {
            (out, Missing::End) if chars_max <= STRING_CHARS_LEAST => return (out, true),
            (_, Missing::End) => chars_max /= 2,
            (out, Missing::Within) => return (out, true),
            (out, Missing::Nothing) => return (out, false),
        }
    }
}

/// What is not shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Nothing,
    /// Parts of long strings.
    Within,
    /// What comes last.
    End,
}

/// The same with strings of at most so many characters.
fn shown(raw: &str, chars_max: usize) -> (String, Missing) {
    let mut out = String::new();
    let mut missing_of = Missing::Nothing;
    let mut left = ARGUMENTS_CHARS_MAX;
    let mut rest = raw;
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at(token_end(rest, first));
        rest = after;
        if first.is_whitespace() {
            continue;
        }
        let (shown, is_cut) = if first == '"' {
            string(token, chars_max)
        } else if matches!(token, ":" | ",") {
            (format!("{token} "), false)
        } else {
            (text(token, chars_max), is_cut(token, chars_max))
        };
        if is_cut {
            missing_of = Missing::Within;
        }
        let length = shown.chars().count();
        if length > left {
            let missing = token.chars().count() + rest.chars().count();
            out.push_str(&format!(
                "…[{missing} more characters of the arguments not shown]"
            ));
            return (out, Missing::End);
        }
        left -= length;
        out.push_str(&shown);
    }
    (out, missing_of)
}

/// Where the JSON token that begins here ends.
fn token_end(rest: &str, first: char) -> usize {
    match first {
        '"' => {
            let mut escaped = false;
            for (at, c) in rest.char_indices().skip(1) {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => return at + 1,
                    _ => {}
                }
            }
            rest.len()
        }
        '{' | '}' | '[' | ']' | ':' | ',' => 1,
        c if c.is_whitespace() => c.len_utf8(),
        _ => rest
            .find(|c: char| c.is_whitespace() || "{}[]:,\"".contains(c))
            .unwrap_or(rest.len()),
    }
}

/// A JSON string, decoded and made safe, in quotes. One that cannot be decoded (half of a surrogate
/// pair) is shown as it was spelled. And whether it is cut.
fn string(token: &str, chars_max: usize) -> (String, bool) {
    let decoded = serde_json::from_str::<String>(token);
    let inner = decoded.as_deref().unwrap_or(token.trim_matches('"'));
    let shown = text(inner, chars_max).replace('"', "\\\"");
    (format!("\"{shown}\""), is_cut(inner, chars_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_imitates_is_written_out() {
        let cases = [
            ("/tmp/plain file-1.txt", "/tmp/plain file-1.txt"),
            (
                "résumé naïve Привет 你好 γεια",
                "résumé naïve Привет 你好 γεια",
            ),
            ("a\\u{202e}b", "a\\\\u{202e}b"),
            ("line\nnext\tend\r\x1b[2J", "line\\nnext\\tend\\r\\u{1b}[2J"),
            ("invoice\u{202e}fdp.exe", "invoice\\u{202e}fdp.exe"),
            (
                "a\u{2066}b\u{2069}c\u{200b}d\u{feff}",
                "a\\u{2066}b\\u{2069}c\\u{200b}d\\u{feff}",
            ),
            ("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}"),
            ("nb\u{a0}sp", "nb\\u{a0}sp"),
            (
                concat!("ls", "                                        ", "; reboot"),
                "ls\\u{20}×40; reboot",
            ),
            ("four    blanks", "four    blanks"),
            ("p\u{430}ypal", "p\\u{430}ypal"),
            ("раураl", "\\u{440}\\u{430}\\u{443}\\u{440}\\u{430}l"),
            ("/etc\u{2215}passwd", "/etc\\u{2215}passwd"),
            ("\u{ff52}\u{ff4d}", "\\u{ff52}\\u{ff4d}"),
            ("vs\u{fe0f}x", "vs\\u{fe0f}x"),
            ("z\u{301}\u{302}\u{303}", "z\u{301}\u{302}\\u{303}"),
            ("\u{2028}", "\\u{2028}"),
        ];
        for (input, expected) in cases {
            assert_eq!(text(input, 1_000), expected, "{input:?}");
        }
    }

    #[test]
    fn nothing_unseen_survives() {
        for code in 0..=0x10_ffff {
            let Some(c) = char::from_u32(code) else {
                continue;
            };
            let shown = text(&format!("a{c}b"), 10);
            assert!(!shown.contains(is_hidden), "{code:x}: {shown:?}");
            assert!(!shown.contains(char::is_control), "{code:x}: {shown:?}");
        }
    }

    #[test]
    fn what_is_cut_is_counted() {
        assert_eq!(text("abcdef", 4), "abcd…[2 more characters not shown]");
        assert_eq!(text("äöüß", 4), "äöüß");
        let long = format!(r#"{{"content":"{}","path":"/tmp/x"}}"#, "x".repeat(5_000));
        let (shown, is_cut) = arguments(&long);
        assert!(is_cut);
        assert!(
            shown.contains("…[4000 more characters not shown]"),
            "{shown}"
        );
        assert!(shown.ends_with("\"path\": \"/tmp/x\"}"), "{shown}");
        let many = format!("[{}]", vec!["\"0123456789\""; 1_000].join(","));
        let (shown, is_cut) = arguments(&many);
        assert!(is_cut);
        assert!(
            shown.ends_with("more characters of the arguments not shown]"),
            "{shown}"
        );
        assert!(shown.chars().count() < ARGUMENTS_CHARS_MAX + 80);
    }

    #[test]
    fn j14_filler_does_not_hide_what_comes_behind_it() {
        let filler = format!("\"{}\"", "x".repeat(1_000));
        let fillers = vec![filler; 20].join(",");
        let (shown, is_cut) = arguments(&format!(r#"{{"a":[{fillers}],"path":"/etc/shadow"}}"#));
        assert!(is_cut);
        assert!(shown.ends_with(r#""path": "/etc/shadow"}"#), "{shown}");
        assert!(shown.chars().count() <= ARGUMENTS_CHARS_MAX);
    }

    #[test]
    fn arguments_are_shown_on_one_line() {
        let cases = [
            (
                r#"{"path" : "/tmp/a" , "n":1e5,
 "deep":[{"x":null}]}"#,
                r#"{"path": "/tmp/a", "n": 1e5, "deep": [{"x": null}]}"#,
            ),
            (r#"{"p":"a\u202eb\"c"}"#, r#"{"p": "a\u{202e}b\"c"}"#),
            (r#"{"\u202e":"x"}"#, r#"{"\u{202e}": "x"}"#),
            (r#"{"p":"\ud800"}"#, r#"{"p": "\\ud800"}"#),
            ("{}", "{}"),
        ];
        for (raw, expected) in cases {
            assert_eq!(arguments(raw), (expected.to_owned(), false), "{raw}");
        }
    }
}
