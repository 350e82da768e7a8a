//! Text to tokens. Spaces carry no meaning except around the words AND, OR and NOT: `P 1` is `P1`; a comma is a decimal
//! point.

use std::borrow::Cow;

/// One token and its first byte in the cleaned text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// A number that was not followed by letters.
    Number(f64),
    /// A name with its spaces removed.
    Name(&'a str),
    Sign(OperatorSign),
    /// The words AND, OR, NOT or their signs.
    And,
    Or,
    Not,
    End,
}

/// Operators, brackets, `?`, `:`, `;`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperatorSign {
    Plus,
    Minus,
    Times,
    Over,
    Power,
    Open,
    Close,
    Semicolon,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Question,
    Colon,
}

impl OperatorSign {
    fn text(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "/",
            Self::Power => "^",
            Self::Open => "(",
            Self::Close => ")",
            Self::Semicolon => ";",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Question => "?",
            Self::Colon => ":",
        }
    }
}

impl TokenKind<'_> {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Number(value) => format!("number {value}"),
            Self::Name(name) => format!("name '{name}'"),
            Self::Sign(sign) => format!("'{}'", sign.text()),
            Self::And => "AND".to_owned(),
            Self::Or => "OR".to_owned(),
            Self::Not => "NOT".to_owned(),
            Self::End => "end of formula".to_owned(),
        }
    }
}

/// A text without the spaces that separate nothing, and with points for commas.
pub(super) struct CleanText<'a> {
    original: &'a str,
    pub(super) text: Cow<'a, str>,
    /// For each byte of the text the character position in the original, from 1; only where spaces were removed.
    columns: Option<Vec<usize>>,
}

impl<'a> CleanText<'a> {
    pub(super) fn new(original: &'a str) -> Self {
        if original.chars().any(char::is_whitespace) {
            let (text, columns) = without_spaces(original);
            return Self {
                original,
                text: Cow::Owned(text.replace(',', ".")),
                columns: Some(columns),
            };
        }
        let text = if original.contains(',') {
            Cow::Owned(original.replace(',', "."))
        } else {
            Cow::Borrowed(original)
        };
        Self {
            original,
            text,
            columns: None,
        }
    }

    /// Returns the character position in the original, from 1, of this byte of the cleaned text.
    pub(super) fn column(&self, at: usize) -> usize {
        let end = || self.original.chars().count() + 1;
        match &self.columns {
            Some(columns) => columns.get(at).copied().unwrap_or_else(end),
            None => self
                .text
                .get(..at)
                .map_or_else(end, |t| t.chars().count() + 1),
        }
    }
}

/// Returns all tokens of a cleaned text, ended by [`TokenKind::End`]. A word that could be a number or a logical word
/// is a name where `is_alias` says so.
pub(super) fn tokens(text: &str, is_alias: impl Fn(&str) -> bool) -> Vec<Token<'_>> {
    let mut out = Vec::with_capacity(text.len() / 3 + 2);
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(&first) = rest.as_bytes().first()
    {
        if first == b' ' {
            at += 1;
            continue;
        }
        let (kind, used) = sign(rest.as_bytes()).unwrap_or_else(|| word(rest, &is_alias));
        out.push(Token { kind, at });
        at += used.max(1);
    }
    out.push(Token {
        kind: TokenKind::End,
        at: usize::MAX,
    });
    out
}

/// Returns the text without the spaces that separate nothing, and where each of its bytes stood.
fn without_spaces(text: &str) -> (String, Vec<usize>) {
    let all: Vec<char> = text.chars().collect();
    let (mut kept, mut columns) = (
        String::with_capacity(text.len()),
        Vec::with_capacity(text.len()),
    );
    let mut push = |c: char, at: usize| {
        kept.push(c);
        columns.extend(std::iter::repeat_n(at + 1, c.len_utf8()));
    };
    let is_part = |c: &&char| !c.is_whitespace() && !"+-*/^()<>=?:;!&|".contains(**c);
    // The part of a word left of the present place, spaces removed.
    let mut left = String::new();
    let mut at = 0;
    while let Some(&c) = all.get(at) {
        if !c.is_whitespace() {
            push(c, at);
            if is_part(&&c) {
                left.push(c);
            } else {
                left.clear();
            }
            at += 1;
            continue;
        }
        let next = all.iter().skip(at).position(|c| !c.is_whitespace());
        let Some(next) = next.map(|n| at + n) else {
            break;
        };
        let right: String = all.iter().skip(next).take_while(is_part).take(4).collect();
        if logical(&left).is_some() || logical(&right).is_some() {
            push(' ', at);
            left.clear();
        }
        at = next;
    }
    (kept, columns)
}

fn logical(word: &str) -> Option<TokenKind<'static>> {
    let known = [
        ("AND", TokenKind::And),
        ("OR", TokenKind::Or),
        ("NOT", TokenKind::Not),
    ];
    let found = known
        .into_iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name));
    found.map(|(_, kind)| kind)
}

/// Returns the sign at the beginning of these bytes, with its length.
fn sign(bytes: &[u8]) -> Option<(TokenKind<'static>, usize)> {
    let first = *bytes.first()?;
    let next = bytes.get(1).copied();
    let (sign, length) = match (first, next) {
        (b'&', Some(b'&')) => return Some((TokenKind::And, 2)),
        (b'|', Some(b'|')) => return Some((TokenKind::Or, 2)),
        (b'&', _) => return Some((TokenKind::And, 1)),
        (b'|', _) => return Some((TokenKind::Or, 1)),
        // The sign ¬.
        (0xc2, Some(0xac)) => return Some((TokenKind::Not, 2)),
        (b'<', Some(b'=')) => (OperatorSign::LessOrEqual, 2),
        (b'>', Some(b'=')) => (OperatorSign::GreaterOrEqual, 2),
        (b'<', Some(b'>')) | (b'!', Some(b'=')) => (OperatorSign::NotEqual, 2),
        (b'=', Some(b'=')) => (OperatorSign::Equal, 2),
        (b'*', Some(b'*')) => (OperatorSign::Power, 2),
        (b'!', _) => return Some((TokenKind::Not, 1)),
        (b'+', _) => (OperatorSign::Plus, 1),
        (b'-', _) => (OperatorSign::Minus, 1),
        (b'*', _) => (OperatorSign::Times, 1),
        (b'/', _) => (OperatorSign::Over, 1),
        (b'^', _) => (OperatorSign::Power, 1),
        (b'(', _) => (OperatorSign::Open, 1),
        (b')', _) => (OperatorSign::Close, 1),
        (b';', _) => (OperatorSign::Semicolon, 1),
        (b'<', _) => (OperatorSign::Less, 1),
        (b'>', _) => (OperatorSign::Greater, 1),
        (b'=', _) => (OperatorSign::Equal, 1),
        (b'?', _) => (OperatorSign::Question, 1),
        (b':', _) => (OperatorSign::Colon, 1),
        _ => return None,
    };
    Some((TokenKind::Sign(sign), length))
}

/// Returns a number, a name or one of the logical words at the beginning of a text, with its length.
fn word<'a>(text: &'a str, is_alias: &impl Fn(&str) -> bool) -> (TokenKind<'a>, usize) {
    let bytes = text.as_bytes();
    let mut length = 0;
    while let Some(rest) = bytes.get(length..)
        && let Some(&byte) = rest.first()
    {
        let ends = byte == b' ' || sign(rest).is_some();
        if ends && !is_exponent_sign(text, length) {
            break;
        }
        length += 1;
    }
    let word = text.get(..length).unwrap_or_default();
    let numeric = word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let kind = if numeric && !is_alias(word) {
        word.parse()
            .map_or(TokenKind::Name(word), TokenKind::Number)
    } else {
        logical(word)
            .filter(|_| !is_alias(word))
            .unwrap_or(TokenKind::Name(word))
    };
    (kind, length)
}

/// Returns the sign in `1E-3`: the text so far is a number and an `e`, and a digit follows.
fn is_exponent_sign(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    if !matches!(bytes.get(at), Some(b'+' | b'-'))
        || !bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    {
        return false;
    }
    let Some(mantissa) = text.get(..at).and_then(|t| t.strip_suffix(['e', 'E'])) else {
        return false;
    };
    mantissa.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && mantissa.chars().all(|c| c.is_ascii_digit() || c == '.')
        && mantissa.parse::<f64>().is_ok()
}
