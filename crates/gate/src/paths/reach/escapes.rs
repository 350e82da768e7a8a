//! Escape sequences of the languages that servers parse strings in.

/// Characters of Python's `\N{NAME}` that change where a path leads; every other name yields U+FFFD.
const NAMED: [(&str, char); 5] = [
    ("SOLIDUS", '/'),
    ("FULL STOP", '.'),
    ("TILDE", '~'),
    ("REVERSE SOLIDUS", '\\'),
    ("DOLLAR SIGN", '$'),
];

/// HTML's names of characters that change where a path leads.
const ENTITIES: [(&str, char); 16] = [
    ("sol", '/'),
    ("period", '.'),
    ("bsol", '\\'),
    ("dollar", '$'),
    ("tilde", '˜'),
    ("amp", '&'),
    ("AMP", '&'),
    ("quot", '"'),
    ("apos", '\''),
    ("lt", '<'),
    ("gt", '>'),
    ("nbsp", '\u{a0}'),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("colon", ':'),
    ("comma", ','),
];

/// Returns `text` with the backslash escapes of JSON, JavaScript, Python, C, YAML and Rust decoded; `None` if it has
/// none. Half of a surrogate pair yields U+FFFD, as lenient readers make it. A backslash before any other character
/// stays.
pub fn decode_escapes(text: &str) -> Option<String> {
    let mut rest = text.get(text.find('\\')?..)?;
    let mut decoded = String::with_capacity(text.len());
    decoded.push_str(text.get(..text.len() - rest.len())?);
    let mut is_changed = false;
    while let Some(at) = rest.find('\\') {
        let (before, escaped) = rest.split_at_checked(at)?;
        decoded.push_str(before);
        match read_escape(escaped) {
            Some((character, length)) => {
                decoded.extend(character);
                rest = escaped.get(length..)?;
                is_changed = true;
            }
            None => {
                decoded.push('\\');
                rest = escaped.get(1..)?;
            }
        }
    }
    decoded.push_str(rest);
    is_changed.then_some(decoded)
}

/// Returns `text` with its lines joined as YAML joins those of one string: an escaped line end is nothing, any other one
/// is a space, and the blanks around it are dropped. `None` if there is one line.
pub fn fold_lines(text: &str) -> Option<String> {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let text = text.replace("\r\n", "\n");
    let mut lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']);
    let mut folded = String::with_capacity(text.len());
    let mut line = lines.next()?;
    let mut count = 1_usize;
    loop {
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let is_escaped = backslashes % 2 == 1;
        folded.push_str(match is_escaped {
            true => line.get(..line.len() - 1)?,
            false => line.trim_end_matches(is_blank),
        });
        let Some(next) = lines.next() else {
            break;
        };
        count += 1;
        line = next.trim_start_matches(is_blank);
        if !is_escaped && !folded.ends_with([' ', '\n']) {
            folded.push(if line.is_empty() { '\n' } else { ' ' });
        }
    }
    (count > 1).then_some(folded)
}

/// Returns the character that the escape at the start of `text` stands for (none for an escaped line end) and the
/// length of the escape in bytes.
fn read_escape(text: &str) -> Option<(Option<char>, usize)> {
    let kind = text.chars().nth(1)?;
    let simple = |character| Some((Some(character), 1 + kind.len_utf8()));
    match kind {
        '"' | '\'' | '`' | '\\' | '/' | ' ' => simple(kind),
        'a' => simple('\u{7}'),
        'b' => simple('\u{8}'),
        't' | '\t' => simple('\t'),
        'n' => simple('\n'),
        'v' => simple('\u{b}'),
        'f' => simple('\u{c}'),
        'r' => simple('\r'),
        'e' => simple('\u{1b}'),
        '_' => simple('\u{a0}'),
        'L' => simple('\u{2028}'),
        'P' => simple('\u{2029}'),
        '\n' | '\r' => Some((None, 2)),
        'x' => hex(text, 2, 2),
        'u' if text.as_bytes().get(2) == Some(&b'{') => {
            let digits = text.get(3..)?.split_once('}')?.0;
            let is_code = (1..=8).contains(&digits.len());
            let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_code)?;
            Some((Some(to_char(code)), digits.len() + 4))
        }
        'u' => surrogate_pair(text).or_else(|| hex(text, 2, 4)),
        'U' => hex(text, 2, 8),
        'N' if text.as_bytes().get(2) == Some(&b'{') => {
            let name = text.get(3..)?.split_once('}')?.0;
            let mut named = NAMED
                .iter()
                .filter(|(known, _)| known.eq_ignore_ascii_case(name));
            let character = named
                .next()
                .map_or(char::REPLACEMENT_CHARACTER, |(_, c)| *c);
            Some((Some(character), name.len() + 4))
        }
        '0'..='7' => {
            let digits = text.get(1..)?;
            let length = digits
                .bytes()
                .take(3)
                .take_while(|b| matches!(b, b'0'..=b'7'))
                .count();
            let code = u32::from_str_radix(digits.get(..length)?, 8).ok()?;
            Some((Some(to_char(code)), 1 + length))
        }
        _ => None,
    }
}

/// Reads `length` hexadecimal digits at byte `from`.
fn hex(text: &str, from: usize, length: usize) -> Option<(Option<char>, usize)> {
    let digits = text.get(from..from + length)?;
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    Some((Some(to_char(code)), from + length))
}

/// Reads `\uD83D\uDE00` as one character.
fn surrogate_pair(text: &str) -> Option<(Option<char>, usize)> {
    let unit = |from: usize| {
        let digits = text.get(from..)?.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (high, low) = (unit(0)?, unit(6)?);
    let is_pair = (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low);
    let code = 0x1_0000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
    is_pair.then(|| (Some(to_char(code)), 12))
}

fn to_char(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns `text` with HTML's character references and `%uXXXX` decoded; `None` if it has none.
pub fn decode_references(text: &str) -> Option<String> {
    let is_mark = |c: char| c == '&' || c == '%';
    let mut decoded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_mark) {
        let (before, marked) = rest.split_at_checked(at)?;
        decoded.push_str(before);
        let found = read_reference(marked);
        let (character, length) = found.unwrap_or_else(|| {
            let mark = marked.chars().next().unwrap_or_default();
            (mark, mark.len_utf8())
        });
        decoded.push(character);
        rest = marked.get(length..)?;
    }
    decoded.push_str(rest);
    (decoded != text).then_some(decoded)
}

/// Returns the character that the reference at the start of `text` stands for, and the length of the reference.
pub(super) fn read_reference(text: &str) -> Option<(char, usize)> {
    /// Longest reference that is read, without its marks.
    const NAME_BYTES_MAX: usize = 12;
    if let Some(digits) = text.strip_prefix("%u").and_then(|rest| rest.get(..4)) {
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        return Some((to_char(code), 6));
    }
    let name = text.strip_prefix('&')?;
    if let Some(number) = name.strip_prefix('#') {
        let digits = number.strip_prefix(['x', 'X']).unwrap_or(number);
        let (radix, marks) = if digits.len() < number.len() {
            (16, 3)
        } else {
            (10, 2)
        };
        let is_digit = |b: &u8| char::from(*b).is_digit(radix);
        let length = digits
            .bytes()
            .take(NAME_BYTES_MAX)
            .take_while(is_digit)
            .count();
        let code = u32::from_str_radix(digits.get(..length)?, radix).ok()?;
        // Lenient readers take a number without its semicolon too.
        let ends = usize::from(digits.as_bytes().get(length) == Some(&b';'));
        return Some((to_char(code), marks + length + ends));
    }
    let (name, _) = name
        .split_once(';')
        .filter(|(name, _)| name.len() <= NAME_BYTES_MAX)?;
    let known = ENTITIES.iter().find(|(known, _)| *known == name);
    known.map(|(_, character)| (*character, name.len() + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_each_language_are_decoded() {
        for (text, decoded) in [
            (r"\u002fetc\/x", Some("/etc/x")),
            (r"\x2fetc\57x", Some("/etc/x")),
            (r"\u{2f}etc\U0000002fx", Some("/etc/x")),
            (r"\N{SOLIDUS}etc", Some("/etc")),
            (r"\ud83d\ude00\ud800/etc", Some("😀\u{fffd}/etc")),
            ("/e\\\ntc", Some("/etc")),
            (r"C:\qu\zz", None),
            ("/etc", None),
            (r"\", None),
            (r"\u12", None),
        ] {
            assert_eq!(decode_escapes(text).as_deref(), decoded, "{text}");
        }
    }

    #[test]
    fn character_references_are_decoded() {
        for (text, decoded) in [
            ("&#47;etc&#x2f;x", Some("/etc/x")),
            ("&sol;etc&period;", Some("/etc.")),
            ("&#47etc", Some("/etc")),
            ("%u002fetc", Some("/etc")),
            ("a&b;c", None),
            ("AT&T", None),
            ("100%", None),
        ] {
            assert_eq!(decode_references(text).as_deref(), decoded, "{text}");
        }
    }
}
