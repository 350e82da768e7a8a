//! Text to tokens. Spaces carry no meaning except around the words AND, OR and NOT: `P 1` is `P1`; a comma is a decimal
//! point.

use super::FormulaError;

/// One token and the character position where it starts, from 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A number that was not followed by letters.
    Number(f64),
    /// A name with its spaces removed.
    Name(String),
    /// A sign: operators, brackets, `?`, `:`, `;`.
    Sign(&'static str),
    /// The words AND, OR, NOT or their signs.
    And,
    Or,
    Not,
    End,
}

impl Kind {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Number(value) => format!("number {value}"),
            Self::Name(name) => format!("name '{name}'"),
            Self::Sign(sign) => format!("'{sign}'"),
            Self::And => "AND".to_owned(),
            Self::Or => "OR".to_owned(),
            Self::Not => "NOT".to_owned(),
            Self::End => "end of formula".to_owned(),
        }
    }
}

/// All tokens, ended by [`Kind::End`].
pub(super) fn tokens(
    text: &str,
    is_alias: impl Fn(&str) -> bool,
) -> Result<Vec<Token>, FormulaError> {
    let (chars, columns) = without_spaces(text);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let column = columns.get(at).copied().unwrap_or_default();
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        let (kind, used) = match sign(&chars, at) {
            Some(found) => found,
            None => word(&chars, at, &is_alias),
        };
        at += used.max(1);
        out.push(Token { kind, column });
    }
    out.push(Token {
        kind: Kind::End,
        column: text.chars().count() + 1,
    });
    Ok(out)
}

/// The characters with their positions from 1, without the spaces that separate nothing.
fn without_spaces(text: &str) -> (Vec<char>, Vec<usize>) {
    let all: Vec<char> = text.chars().collect();
    let (mut chars, mut columns) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
    let mut at = 0;
    while let Some(&c) = all.get(at) {
        if !c.is_whitespace() {
            chars.push(c);
            columns.push(at + 1);
            at += 1;
            continue;
        }
        let next = all.iter().skip(at).position(|c| !c.is_whitespace());
        let Some(next) = next.map(|n| at + n) else {
            break;
        };
        let is_part = |c: &&char| !c.is_whitespace() && !"+-*/^()<>=?:;!&|".contains(**c);
        let left: String = chars.iter().rev().take_while(is_part).collect();
        let left: String = left.chars().rev().collect();
        let right: String = all.iter().skip(next).take_while(is_part).collect();
        if logical(&left).is_some() || logical(&right).is_some() {
            chars.push(' ');
            columns.push(at + 1);
        }
        at = next;
    }
    (chars, columns)
}

fn logical(word: &str) -> Option<Kind> {
    Some(match word.to_ascii_uppercase().as_str() {
        "AND" => Kind::And,
        "OR" => Kind::Or,
        "NOT" => Kind::Not,
        _ => return None,
    })
}

fn sign(chars: &[char], at: usize) -> Option<(Kind, usize)> {
    let first = *chars.get(at)?;
    let next = chars.get(at + 1).copied();
    match (first, next) {
        ('&', Some('&')) => return Some((Kind::And, 2)),
        ('|', Some('|')) => return Some((Kind::Or, 2)),
        ('&', _) => return Some((Kind::And, 1)),
        ('|', _) => return Some((Kind::Or, 1)),
        ('\u{ac}', _) => return Some((Kind::Not, 1)),
        _ => {}
    }
    let (sign, length) = match (first, next) {
        ('<', Some('=')) => ("<=", 2),
        ('>', Some('=')) => (">=", 2),
        ('<', Some('>')) | ('!', Some('=')) => ("<>", 2),
        ('=', Some('=')) => ("=", 2),
        ('*', Some('*')) => ("^", 2),
        ('!', _) => return Some((Kind::Not, 1)),
        ('+', _) => ("+", 1),
        ('-', _) => ("-", 1),
        ('*', _) => ("*", 1),
        ('/', _) => ("/", 1),
        ('^', _) => ("^", 1),
        ('(', _) => ("(", 1),
        (')', _) => (")", 1),
        (';', _) => (";", 1),
        ('<', _) => ("<", 1),
        ('>', _) => (">", 1),
        ('=', _) => ("=", 1),
        ('?', _) => ("?", 1),
        (':', _) => (":", 1),
        _ => return None,
    };
    Some((Kind::Sign(sign), length))
}

fn ends_word(chars: &[char], at: usize) -> bool {
    chars
        .get(at)
        .is_none_or(|c| c.is_whitespace() || sign(chars, at).is_some())
}

/// A number, a name or one of the logical words.
fn word(chars: &[char], start: usize, is_alias: &impl Fn(&str) -> bool) -> (Kind, usize) {
    let mut text = String::new();
    let mut at = start;
    while let Some(&c) = chars.get(at) {
        if ends_word(chars, at) && !is_exponent_sign(&text, chars, at) {
            break;
        }
        text.push(if c == ',' { '.' } else { c });
        at += 1;
    }
    let used = at - start;
    if is_alias(&text) {
        return (Kind::Name(text), used);
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && let Ok(value) = text.parse::<f64>()
    {
        return (Kind::Number(value), used);
    }
    (logical(&text).unwrap_or(Kind::Name(text)), used)
}

/// The sign in `1E-3`: the text so far is a number and an `e`, and a digit follows.
fn is_exponent_sign(text: &str, chars: &[char], at: usize) -> bool {
    let Some(mantissa) = text.strip_suffix(['e', 'E']) else {
        return false;
    };
    matches!(chars.get(at), Some('+' | '-'))
        && mantissa.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && mantissa.chars().all(|c| c.is_ascii_digit() || c == '.')
        && mantissa.parse::<f64>().is_ok()
        && chars.get(at + 1).is_some_and(char::is_ascii_digit)
}
