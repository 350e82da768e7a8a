//! Strings inside a string that a server parses as JSON, JSON5, YAML or a Python literal.
//!
//! Servers coerce a string into the list or map that a tool declares, each with a parser of its own: `json.loads` takes
//! `NaN` and half of a surrogate pair, `ast.literal_eval` takes tuples and single quotes, YAML takes words without
//! quotes. This reader accepts the union of what they accept, so it reports every string that any of them yields, and
//! some that none does.

use std::borrow::Cow;
use std::rc::Rc;

use super::escapes::{decode_escapes, fold_lines};
use super::pieces::floor;

/// Deepest nesting of lists and maps whose member names are tracked.
const DEPTH_MAX: usize = 4_096;
/// Most strings that are reported for one text.
const STRINGS_MAX: usize = 65_536;
/// Longest string that strings beside one another are joined to, in bytes: no path is longer.
const JOINED_BYTES_MAX: usize = 8 * 1024;
/// Most bytes of a member's value in [`Literals::members`].
const VALUE_BYTES_MAX: usize = 16;

/// A string found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal<'t> {
    /// The characters, escapes decoded.
    pub text: Cow<'t, str>,
    /// The nearest member name above it; `None` where it has none of its own.
    pub key: Option<Rc<str>>,
    /// Whether it is a member name itself.
    pub is_name: bool,
}

/// The strings of one text.
#[derive(Debug, Default)]
pub struct Literals<'t> {
    /// In the order of the text.
    pub strings: Vec<Literal<'t>>,
    /// Each member's name with the first bytes of its value; `[` for a list or map.
    pub members: Vec<(Rc<str>, Cow<'t, str>)>,
    /// Whether the text holds more than is read here.
    pub is_truncated: bool,
    /// Whether the text is one list or map of JSON: nobody makes anything else of it.
    pub is_json: bool,
}

/// Returns the strings in `text`; `None` if no parser makes more of it than one string.
#[must_use]
pub fn read_literals(text: &str) -> Option<Literals<'_>> {
    let bare = text.trim_matches(is_margin);
    #[cfg(debug_assertions)]
    if super::blind::skips(bare, !is_structured(bare)) {
        return None;
    }
    let mut reader = LiteralReader::new(bare);
    if is_structured(bare) {
        reader.is_json = bare.starts_with(['[', '{']);
        reader.read();
        reader.found.is_json = reader.is_json && reader.open.is_empty();
    } else if is_block_yaml(bare) {
        reader.read_block();
    } else {
        return None;
    }
    Some(reader.found)
}

/// Whether some parser strips this character from the ends of its input.
fn is_margin(c: char) -> bool {
    c.is_whitespace() || super::is_unseen(c)
}

/// Whether a text begins like a list, a map, a tuple, or a quoted string.
fn is_structured(text: &str) -> bool {
    let unmarked = skip_yaml_marks(text);
    unmarked.starts_with(['[', '{', '(', '"', '\'', '`']) || string_prefix(unmarked) > 0
}

/// Returns `text` without comments, document marks, tags and anchors that YAML and JSON5 allow before a value.
fn skip_yaml_marks(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(is_margin);
        let next = if let Some(behind) = rest.strip_prefix("---") {
            Some(behind)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map(|(_, behind)| behind)
        } else if rest.starts_with(['#', '%']) || rest.starts_with("//") {
            rest.split_once('\n').map(|(_, behind)| behind)
        } else if rest.starts_with(['!', '&']) {
            rest.split_once(char::is_whitespace)
                .map(|(_, behind)| behind)
        } else {
            None
        };
        match next {
            Some(next) => rest = next,
            None => return rest,
        }
    }
}

/// Returns the length of a prefix of Python's string literals at the start of `text`: `b"`, `Rb'`, `u"`.
fn string_prefix(text: &str) -> usize {
    let letters = text
        .bytes()
        .take(2)
        .take_while(|b| b"bBrRuU".contains(b))
        .count();
    let quote = text.as_bytes().get(letters);
    if letters > 0 && matches!(quote, Some(b'"' | b'\'')) {
        letters
    } else {
        0
    }
}

/// Whether each line of a text is an entry of a YAML block list or map: lines of prose are not.
fn is_block_yaml(text: &str) -> bool {
    let mut has_entry = false;
    let lines = text
        .split(['\n', '\r'])
        .map(|line| line.trim_matches(is_margin));
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let is_entry = skip_block_marks(line).1 > 0;
        if !is_entry && line != "---" && line != "..." {
            return false;
        }
        has_entry |= is_entry;
    }
    has_entry
}

/// Returns a line without the marks of list entries and member names before its value, and how many there were.
fn skip_block_marks(line: &str) -> (&str, usize) {
    let (mut rest, mut marks) = (line, 0);
    loop {
        let next = rest.strip_prefix("- ").or_else(|| rest.strip_prefix("? "));
        let next = next.or_else(|| {
            let (name, behind) = rest.split_once(':')?;
            let is_name = !name.contains(char::is_whitespace) || name.starts_with(['"', '\'']);
            let is_mark = is_name && (behind.is_empty() || behind.starts_with(char::is_whitespace));
            is_mark.then_some(behind)
        });
        match next {
            Some(next) => {
                rest = next.trim_start_matches(is_margin);
                marks += 1;
            }
            None => return (rest, marks),
        }
    }
}

/// A tokenizer over the union of the grammars.
struct LiteralReader<'t> {
    text: &'t str,
    at: usize,
    /// For each open list or map, the member name that its values belong to.
    open: Vec<Option<Rc<str>>>,
    /// The name before the value that comes next.
    name: Option<Rc<str>>,
    /// The string or word read last, until a colon or the next token says whether it is a name.
    last: Option<Token<'t>>,
    /// The byte behind the last line end, white space or end of a comment: no mark is skipped beyond it.
    marks_end: usize,
    /// Whether all that was read so far is JSON.
    is_json: bool,
    found: Literals<'t>,
}

/// A string or word.
struct Token<'t> {
    text: Cow<'t, str>,
    is_quoted: bool,
}

impl<'t> LiteralReader<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            open: Vec::new(),
            name: None,
            last: None,
            marks_end: text
                .rfind(char::is_whitespace)
                .max(text.rfind("*/"))
                .unwrap_or(0),
            is_json: false,
            found: Literals::default(),
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads flow syntax: `[…]`, `{…}`, `(…)` and quoted strings.
    fn read(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            match c {
                c if is_margin(c) => self.at += c.len_utf8(),
                '[' | '{' | '(' => {
                    self.at += 1;
                    self.is_json &= c != '(';
                    self.end_value();
                    if let Some(name) = &self.name {
                        self.found
                            .members
                            .push((Rc::clone(name), Cow::Borrowed("[")));
                    }
                    let name = self
                        .name
                        .take()
                        .or_else(|| self.open.last().cloned().flatten());
                    if self.open.len() < DEPTH_MAX {
                        self.open.push(name);
                    } else {
                        self.found.is_truncated = true;
                    }
                }
                ']' | '}' | ')' => {
                    self.at += 1;
                    self.end_value();
                    self.name = None;
                    self.is_json &= self.open.pop().is_some() && c != ')';
                }
                ',' | ';' => {
                    self.at += 1;
                    self.end_value();
                    self.name = None;
                }
                ':' | '=' | '?' => {
                    self.at += 1;
                    self.end_name();
                }
                '"' | '\'' | '`' => self.read_quoted(0),
                '!' | '&' | '#' | '/' if self.skip_marks() => {}
                _ if string_prefix(self.rest()) > 0 => self.read_quoted(string_prefix(self.rest())),
                _ => self.read_word(),
            }
            if self.found.strings.len() >= STRINGS_MAX {
                self.found.is_truncated = true;
                return;
            }
        }
        self.end_value();
    }

    /// Skips a tag, an anchor or a comment. The text of a comment is read as values too: in another grammar it is none.
    fn skip_marks(&mut self) -> bool {
        if self.at > self.marks_end {
            return false;
        }
        let rest = self.rest();
        let length = rest.len() - skip_yaml_marks(rest).len();
        let skipped = rest.get(..length).unwrap_or_default();
        if skipped.is_empty() {
            return false;
        }
        if skipped.starts_with(['#', '/']) {
            let mut inner = LiteralReader::new(skipped.get(1..).unwrap_or_default());
            inner.read_flat();
            self.found.strings.append(&mut inner.found.strings);
        }
        self.at += length;
        true
    }

    /// Reports the parts of a comment.
    fn read_flat(&mut self) {
        for part in self
            .text
            .split([',', '[', ']', '{', '}', '(', ')', '"', '\'', '\n', '\r'])
        {
            self.report(Cow::Borrowed(part.trim_matches(is_margin)), None, false);
        }
    }

    /// Reads YAML's block syntax, line by line.
    fn read_block(&mut self) {
        let lines = self
            .text
            .split(['\n', '\r'])
            .map(|line| line.trim_matches(is_margin));
        for line in lines.filter(|line| !line.is_empty()) {
            let (value, marks) = skip_block_marks(line);
            let named = line.get(..line.len() - value.len()).unwrap_or_default();
            let name = named.trim_start_matches(['-', '?', ' ']).split(':').next();
            let name = name
                .map(|name| name.trim_matches(['"', '\'', ' ']))
                .filter(|name| !name.is_empty());
            if marks > 0 {
                self.name = name.map(Rc::from);
            }
            if let Some(name) = name {
                self.report(Cow::Borrowed(name), None, true);
            }
            let mut inner = LiteralReader::new(value);
            inner.name = self.name.clone();
            if is_structured(value) {
                inner.read();
            } else if !value.is_empty() {
                let text = Cow::Borrowed(value);
                inner.last = Some(Token {
                    text,
                    is_quoted: false,
                });
                inner.end_value();
            }
            self.found.strings.append(&mut inner.found.strings);
            self.found.members.append(&mut inner.found.members);
            self.found.is_truncated |=
                inner.found.is_truncated || self.found.strings.len() >= STRINGS_MAX;
            if self.found.is_truncated {
                return;
            }
        }
    }

    /// Reads a quoted string behind a prefix of `prefix` letters.
    fn read_quoted(&mut self, prefix: usize) {
        let rest = self.rest().get(prefix..).unwrap_or_default();
        let quote = rest.get(..1).unwrap_or_default();
        self.is_json &= prefix == 0 && quote == "\"";
        let triple = quote.repeat(3);
        let mark = if rest.starts_with(&triple) && rest.len() >= 6 {
            triple.as_str()
        } else {
            quote
        };
        let inner = rest.get(mark.len()..).unwrap_or_default();
        let (length, is_doubtful) = quoted_length(inner, mark);
        let spelled = inner.get(..length).unwrap_or_default();
        self.found.is_truncated |= is_doubtful;
        self.at += prefix + mark.len() + length + mark.len();
        let text = decode_escapes(spelled).map_or(Cow::Borrowed(spelled), Cow::Owned);
        if text != spelled && quote != "\"" {
            // Raw strings, and YAML's single quotes, keep their backslashes.
            self.end_value();
            self.report(Cow::Borrowed(spelled), None, false);
        }
        if let Some(folded) = fold_lines(spelled) {
            // No JSON has line ends in strings, and YAML joins the lines.
            self.is_json = false;
            let folded = decode_escapes(&folded).unwrap_or(folded);
            self.report(Cow::Owned(folded), None, false);
        }
        match self.last.take() {
            // Python joins strings that stand beside one another.
            Some(before)
                if before.is_quoted && before.text.len() + text.len() <= JOINED_BYTES_MAX =>
            {
                let joined = format!("{}{text}", before.text);
                self.last = Some(before);
                self.end_value();
                self.report(text, None, false);
                self.last = Some(Token {
                    text: Cow::Owned(joined),
                    is_quoted: true,
                });
            }
            before => {
                self.last = before;
                self.end_value();
                self.last = Some(Token {
                    text,
                    is_quoted: true,
                });
            }
        }
    }

    /// Reads a word without quotes, up to what ends it in a YAML flow or in JSON5.
    fn read_word(&mut self) {
        let rest = self.rest();
        let mut behind = rest.char_indices().skip(1).peekable();
        let mut end = rest.len();
        // Brackets of a call are a part of the word: `f(x)`.
        let mut parentheses = 0_usize;
        while let Some((at, c)) = behind.next() {
            let begins_value = |c: &char| is_margin(*c) || "\"'[{(".contains(*c);
            let ends = match c {
                ':' => behind.peek().is_none_or(|(_, next)| begins_value(next)),
                ')' => parentheses == 0,
                c => matches!(c, ',' | '[' | ']' | '{' | '}' | '\n' | '\r'),
            };
            if ends {
                end = at;
                break;
            }
            match c {
                '(' => parentheses += 1,
                ')' => parentheses -= 1,
                _ => {}
            }
        }
        let spelled = rest.get(..end).unwrap_or_default();
        self.at += end.max(1);
        self.is_json &= matches!(spelled.trim(), "true" | "false" | "null")
            || spelled.trim().parse::<f64>().is_ok();
        self.end_value();
        let word = spelled.trim_end_matches(is_margin);
        self.last = Some(Token {
            text: Cow::Borrowed(word),
            is_quoted: false,
        });
    }

    /// Reports the last token as a value.
    fn end_value(&mut self) {
        let Some(token) = self.last.take() else {
            return;
        };
        let name = self.name.clone();
        if let Some(name) = &name {
            let end = floor(&token.text, VALUE_BYTES_MAX);
            let value = match &token.text {
                Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or_default()),
                Cow::Owned(text) => Cow::Owned(text.get(..end).unwrap_or_default().to_owned()),
            };
            self.found.members.push((Rc::clone(name), value));
        }
        self.report(token.text, name, false);
    }

    /// Takes the last token for the name of the value that comes next.
    fn end_name(&mut self) {
        if let Some(token) = self.last.take() {
            self.name = Some(Rc::from(&*token.text));
            self.report(token.text, None, true);
        }
    }

    fn report(&mut self, text: Cow<'t, str>, key: Option<Rc<str>>, is_name: bool) {
        if text.is_empty() {
            return;
        }
        let key = key.or_else(|| self.name.clone().filter(|_| !is_name));
        let key = key.or_else(|| self.open.last().cloned().flatten());
        self.found.strings.push(Literal { text, key, is_name });
    }
}

/// Returns the length of a quoted string up to its closing `mark`, and whether parsers disagree on where it closes.
fn quoted_length(inner: &str, mark: &str) -> (usize, bool) {
    let bytes = inner.as_bytes();
    let mut is_doubtful = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if inner.get(at..).is_some_and(|rest| rest.starts_with(mark)) {
            return (at, is_doubtful);
        }
        if *byte == b'\\' {
            // In YAML's single quotes and in raw strings a backslash escapes nothing.
            let is_closed = mark != "\""
                && inner
                    .get(at + 1..)
                    .is_some_and(|rest| rest.starts_with(mark));
            is_doubtful |= is_closed;
            at += 1;
        }
        at += 1;
        // No index behind the end is a boundary: a backslash may be the last byte.
        while at < inner.len() && !inner.is_char_boundary(at) {
            at += 1;
        }
    }
    (inner.len(), is_doubtful)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_string_are_joined_as_yaml_joins_them() {
        for text in [
            "[\"/etc/\\\n  pass\\\r\n\twd\"]",
            "{x: \"/etc/\\\r pass\\\n wd\"}",
            "[\"/etc/\\\u{2028} pass\\\u{85}wd\"]",
        ] {
            let found = values(text);
            assert!(
                found.contains(&"/etc/passwd".to_owned()),
                "{text}: {found:?}"
            );
        }
        let block = fold_lines("- \"/etc\\\n  \\x2fpasswd\"").unwrap();
        assert_eq!(values(&block), ["/etc/passwd"]);
        let found = values("['/my\n  notes/a', \"/my  \n\tnotes/a\"]");
        let folded = found.iter().filter(|text| *text == "/my notes/a");
        assert_eq!(folded.count(), 2, "{found:?}");
    }

    #[test]
    fn a_string_that_ends_with_a_backslash_is_read_to_its_end() {
        for quote in ["\"", "'", "`", "\"\"\"", "b'"] {
            for inside in ["", "a", "/etc/passwd", "ü", "\\\\"] {
                for opening in ["", "[", "{x: "] {
                    let text = format!("{opening}{quote}{inside}\\");
                    assert!(read_literals(&text).is_some(), "{text}");
                }
            }
        }
    }

    fn values(text: &str) -> Vec<String> {
        let found = read_literals(text).unwrap_or_default();
        let values = found.strings.into_iter().filter(|literal| !literal.is_name);
        values.map(|literal| literal.text.into_owned()).collect()
    }

    #[test]
    fn every_parser_s_lists_are_read() {
        for text in [
            r#"["\u002fetc\u002fx","\ud800"]"#,
            " \t[\"/etc/x\"]",
            "\u{a0}[\"/etc/x\"]",
            "\u{feff}['/etc/x']",
            "('/etc/x',)",
            "[/etc/x]",
            "[ /etc/x , NaN]",
            "[b'/etc/x', 1e999]",
            r"[r'/etc/x']",
            r"['\x2fetc\57x']",
            "['/et' 'c/x']",
            "[[[[\"/etc/x\"]]]]",
            "{'k': [\"/etc/x\"]}",
            "{k: /etc/x}",
            "- /etc/x",
            "a: 1\nb: /etc/x",
            "---\n- \"\\x2fetc/x\"",
            "!!seq [\"/etc/x\"]",
            "// c\n[\"/etc/x\"]",
            "# c\n[/etc/x]",
            "\"/etc/x\"",
            "'''/etc/x'''",
        ] {
            assert!(
                values(text).iter().any(|value| value == "/etc/x"),
                "{text}: {:?}",
                values(text)
            );
        }
        let deep = format!("{}\"/etc/x\"{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read_literals(&deep).is_some_and(|found| found.is_truncated));
    }

    #[test]
    fn values_know_the_name_above_them() {
        let found = read_literals(r#"{"path": ["a", {"x": "b"}], "n": "c", "r": true}"#)
            .unwrap_or_default();
        let keyed = |literal: &Literal<'_>| {
            (
                literal.key.as_deref().unwrap_or_default().to_owned(),
                literal.text.to_string(),
            )
        };
        let values = found
            .strings
            .iter()
            .filter(|literal| !literal.is_name)
            .map(keyed);
        let values: Vec<(String, String)> = values.collect();
        let expect = [("path", "a"), ("x", "b"), ("n", "c"), ("r", "true")];
        assert_eq!(
            values,
            expect.map(|(key, text)| (key.to_owned(), text.to_owned()))
        );
        assert!(
            found
                .members
                .iter()
                .any(|(name, value)| &**name == "r" && *value == "true")
        );
    }

    #[test]
    fn prose_code_and_paths_are_no_lists() {
        for text in [
            "/etc/x",
            "see [1] and \"/etc\"",
            "note: it is at /etc/x, read it\nand then go",
            "x",
            "",
            "C:\\x",
            "http://x/y",
        ] {
            assert!(read_literals(text).is_none(), "{text}");
        }
        // One word to YAML, and no value to anybody else.
        assert!(
            values("{ isNaN(x) ? \"/a\" : \"\\ud83d\" }")
                .iter()
                .all(|value| !value.starts_with('/'))
        );
    }
}
