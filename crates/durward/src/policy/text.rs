//! Text from outside on a person's terminal, and tables.

use std::borrow::Borrow;
use std::fmt;

/// Text without what could drive a terminal or turn the direction of writing: such characters are
/// written as their numbers.
pub struct Plain<'a>(pub &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        let hidden = |c: char| {
            c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
        };
        self.0.chars().try_for_each(|c| {
            if hidden(c) {
                write!(f, "{}", c.escape_unicode())
            } else {
                f.write_char(c)
            }
        })
    }
}

/// One text as it is, several in brackets.
pub fn list<T: Borrow<str>>(texts: &[T]) -> String {
    match texts {
        [one] => Plain(one.borrow()).to_string(),
        several => format!("[{}]", Plain(&several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_drives_the_terminal() {
        for (text, shown) in [
            ("a/b", "a/b"),
            ("a\u{1b}[2J", "a\\u{1b}[2J"),
            ("\u{202e}x\u{2066}", "\\u{202e}x\\u{2066}"),
            ("a\u{200b}b\u{2028}", "a\\u{200b}b\\u{2028}"),
            ("é", "é"),
        ] {
            assert_eq!(Plain(text).to_string(), shown);
        }
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b"]), "[a, b]");
        assert_eq!(list::<&str>(&[]), "[]");
    }
}
