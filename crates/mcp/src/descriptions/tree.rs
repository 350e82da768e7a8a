//! A JSON text as a tree of slices: scalars keep their spelling, strings also their place, so that
//! one string can be replaced without touching a byte beside it.

use std::borrow::Cow;

use wire::text::{push_string, unescape};

/// Deepest text that is read; frames are refused at the same depth before anyone gets here.
const DEPTH_MAX: usize = 128;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node<'a> {
    /// Members in their order, names unescaped.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    /// Elements.
    Array(Vec<Node<'a>>),
    /// A string.
    String(Text<'a>),
    /// A number, `true`, `false` or `null`, as spelled.
    Scalar(&'a str),
}

/// A string as it is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    /// Between the quotes, still escaped.
    pub inner: &'a str,
    /// The byte at which the opening quote stands.
    pub at: usize,
}

impl<'a> Text<'a> {
    /// The string itself.
    #[must_use]
    pub fn value(&self) -> Cow<'a, str> {
        // Every frame was scanned, and a scan refuses malformed escapes.
        unescape(self.inner).unwrap_or(Cow::Borrowed(self.inner))
    }

    /// The byte behind the closing quote.
    #[must_use]
    pub fn end(&self) -> usize {
        self.at + self.inner.len() + 2
    }
}

impl<'a> Node<'a> {
    /// Reads a whole text. `None` where it is no JSON, or nests deeper than a frame may.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut reader = Reader { text, pos: 0 };
        let node = reader.value(DEPTH_MAX)?;
        reader.blank();
        (reader.pos == text.len()).then_some(node)
    }

    /// The member of this name, where this is an object that has it.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, v)| v),
            Self::Array(_) | Self::String(_) | Self::Scalar(_) => None,
        }
    }

    /// The canonical spelling: members sorted by name, no blanks, strings with the fewest escapes,
    /// numbers as they are spelled.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut out = Vec::new();
        self.push_canonical(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    fn push_canonical(&self, out: &mut Vec<u8>) {
        match self {
            Self::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
                out.push(b'{');
                for (at, (name, value)) in sorted.into_iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    push_string(out, name);
                    out.push(b':');
                    value.push_canonical(out);
                }
                out.push(b'}');
            }
            Self::Array(elements) => {
                out.push(b'[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    element.push_canonical(out);
                }
                out.push(b']');
            }
            Self::String(text) => push_string(out, &text.value()),
            Self::Scalar(raw) => out.extend_from_slice(raw.as_bytes()),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.blank();
        let found = self.peek() == Some(byte);
        self.pos += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        self.blank();
        match self.peek()? {
            b'{' => self.object(depth.checked_sub(1)?),
            b'[' => self.array(depth.checked_sub(1)?),
            b'"' => self.string().map(Node::String),
            _ => self.scalar(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        self.pos += 1;
        let mut members = Vec::new();
        if self.eat(b'}') {
            return Some(Node::Object(members));
        }
        loop {
            self.blank();
            let name = self.string()?.value();
            if !self.eat(b':') {
                return None;
            }
            members.push((name, self.value(depth)?));
            if self.eat(b'}') {
                return Some(Node::Object(members));
            }
            if !self.eat(b',') {
                return None;
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Node<'a>> {
        self.pos += 1;
        let mut elements = Vec::new();
        if self.eat(b']') {
            return Some(Node::Array(elements));
        }
        loop {
            elements.push(self.value(depth)?);
            if self.eat(b']') {
                return Some(Node::Array(elements));
            }
            if !self.eat(b',') {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<Text<'a>> {
        let at = self.pos;
        if self.peek()? != b'"' {
            return None;
        }
        let rest = self.text.as_bytes().get(at + 1..)?;
        let mut escaped = false;
        let len = rest.iter().position(|byte| {
            let closes = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            closes
        })?;
        let inner = self.text.get(at + 1..at + 1 + len)?;
        self.pos = at + len + 2;
        Some(Text { inner, at })
    }

    fn scalar(&mut self) -> Option<Node<'a>> {
        let rest = self.text.get(self.pos..)?;
        let len = rest
            .bytes()
            .position(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'-' | b'+' | b'.'))
            .unwrap_or(rest.len());
        let raw = rest.get(..len).filter(|raw| !raw.is_empty())?;
        self.pos += len;
        Some(Node::Scalar(raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_forgets_order_blanks_and_escapes_but_no_spelling_of_a_number() {
        let cases = [
            (
                r#" { "b" : 1.0 , "a" : [ true , null ] } "#,
                r#"{"a":[true,null],"b":1.0}"#,
            ),
            (r#"{"\u0061":"\u00e9\/"}"#, r#"{"a":"é/"}"#),
            (r#""\u200b\n""#, "\"\u{200b}\\n\""),
            ("1e5", "1e5"),
            ("-0", "-0"),
            (r#"{"a\"b":"\\"}"#, r#"{"a\"b":"\\"}"#),
            ("{}", "{}"),
            ("[]", "[]"),
        ];
        for (text, canonical) in cases {
            let node = Node::parse(text).unwrap();
            assert_eq!(node.canonical(), canonical, "{text}");
            assert_eq!(Node::parse(canonical).unwrap().canonical(), canonical);
        }
    }

    #[test]
    fn what_is_no_json_is_no_tree() {
        for bad in [
            "",
            "{",
            "[1,",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#""a"#,
            "1 2",
            "{1:2}",
        ] {
            assert_eq!(Node::parse(bad), None, "{bad}");
        }
        assert!(Node::parse(&"[".repeat(DEPTH_MAX + 1)).is_none());
        let deepest = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        assert!(Node::parse(&deepest).is_some());
        let deeper = format!("[{deepest}]");
        assert!(Node::parse(&deeper).is_none());
    }

    #[test]
    fn strings_know_their_place() {
        let text = r#"{"a":["x","\"y"]}"#;
        let node = Node::parse(text).unwrap();
        let Some(Node::Array(elements)) = node.member("a") else {
            panic!("{node:?}");
        };
        let Node::String(second) = &elements[1] else {
            panic!("{node:?}");
        };
        assert_eq!(&text[second.at..second.end()], r#""\"y""#);
        assert_eq!(second.value(), "\"y");
    }
}
