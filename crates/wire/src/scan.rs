//! The validating pass: one walk over a frame that proves it well-formed and notes where things are.
//!
//! What it proves: UTF-8, RFC 8259 grammar, depth within the bound, no member name twice in one
//! object (compared after unescaping, because that is how the receiver compares), no lone surrogate.
//! What it notes: the members of the message and of its `params`, and every string below
//! `params.arguments` that may be a path. Cost: at most 2 µs per KiB.

use std::borrow::Cow;

use crate::error::{WireError, WireErrorKind as K};
use crate::text;

/// Named limits of one pass.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Deepest nesting of arrays and objects.
    pub depth_max: usize,
    /// Most members in flight (all open objects together) and most noted leaves.
    pub members_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            depth_max: 128,
            members_max: 65_536,
        }
    }
}

/// A string below `params.arguments`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// The nearest member name above the string, unescaped; empty where there is none.
    pub key: Cow<'a, str>,
    /// The string without quotes, still escaped.
    pub value: &'a str,
    /// The string is itself a member name.
    pub is_name: bool,
    /// A listed ancestor's member name, from the top of `arguments` down to but excluding `key`:
    /// only the outermost is kept.
    pub top: Cow<'a, str>,
}

/// A member of an object: its unescaped name and its value as it came.
pub type Member<'a> = (Cow<'a, str>, &'a str);

/// The outcome of the pass.
#[derive(Debug, Default)]
pub struct Scan<'a> {
    /// Members of the message itself.
    pub members: Vec<Member<'a>>,
    /// Members of its `params`, where that is an object.
    pub params: Vec<Member<'a>>,
    /// Strings below `params.arguments`.
    pub leaves: Vec<Leaf<'a>>,
    /// Elements, where the frame is an array (a JSON-RPC batch).
    pub batch: Option<Vec<&'a str>>,
}

/// Walks a request or any frame that is to be judged: every check at every depth.
///
/// # Errors
/// The first fault, with its byte offset.
pub fn scan_request<'a>(frame: &'a [u8], bounds: &Bounds) -> Result<Scan<'a>, WireError> {
    Scanner::new(frame, bounds, usize::MAX)?.run()
}

/// Walks a reply: grammar and depth everywhere, member names only in the envelope.
///
/// # Errors
/// The first fault, with its byte offset.
pub fn scan_reply<'a>(frame: &'a [u8], bounds: &Bounds) -> Result<Scan<'a>, WireError> {
    Scanner::new(frame, bounds, 1)?.run()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    Message,
    Params,
    Arguments,
    Other,
}

struct Level<'a> {
    object: bool,
    zone: Zone,
    /// Where this object's names begin in `Scanner::names`.
    names_from: usize,
    /// The member whose value is being read; for arrays, the nearest one above.
    key: Cow<'a, str>,
    start: usize,
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    bounds: Bounds,
    names_depth_max: usize,
    stack: Vec<Level<'a>>,
    names: Vec<Cow<'a, str>>,
    out: Scan<'a>,
}

impl<'a> Scanner<'a> {
    fn new(frame: &'a [u8], bounds: &Bounds, names_depth_max: usize) -> Result<Self, WireError> {
        let text = std::str::from_utf8(frame)
            .map_err(|e| WireError::new(K::NotUtf8, e.valid_up_to(), "the frame is not utf-8"))?;
        Ok(Self {
            text,
            bytes: frame,
            pos: 0,
            bounds: *bounds,
            names_depth_max,
            stack: Vec::with_capacity(8),
            names: Vec::with_capacity(16),
            out: Scan::default(),
        })
    }

    fn run(mut self) -> Result<Scan<'a>, WireError> {
        self.blank();
        if self.peek() == Some(b'[') {
            self.out.batch = Some(Vec::new());
        }
        self.value()?;
        while let Some(level) = self.stack.last() {
            let object = level.object;
            self.blank();
            match (self.peek(), object) {
                (Some(b','), _) => {
                    self.pos += 1;
                    self.blank();
                    if object {
                        self.name()?;
                    }
                    self.value()?;
                }
                (Some(b'}'), true) | (Some(b']'), false) => self.close()?,
                _ => return Err(self.syntax("expected a comma or the end of an array or object")),
            }
        }
        self.blank();
        if self.pos < self.bytes.len() {
            return Err(self.syntax("there is more text after the message"));
        }
        Ok(self.out)
    }

    /// Reads a value, or opens containers until a scalar or an empty container has been read.
    fn value(&mut self) -> Result<(), WireError> {
        loop {
            let start = self.pos;
            match self.peek() {
                Some(b'{') => {
                    self.open(true)?;
                    if self.peek() == Some(b'}') {
                        return self.close();
                    }
                    self.name()?;
                }
                Some(b'[') => {
                    self.open(false)?;
                    if self.peek() == Some(b']') {
                        return self.close();
                    }
                }
                Some(b'"') => {
                    let inner = self.string()?;
                    self.leaf(inner, false)?;
                    return self.done(start);
                }
                Some(b'-' | b'0'..=b'9') => {
                    self.number()?;
                    return self.done(start);
                }
                Some(b't') => return self.word("true", start),
                Some(b'f') => return self.word("false", start),
                Some(b'n') => return self.word("null", start),
                Some(_) => return Err(self.syntax("expected a value")),
                None => return Err(self.syntax("the frame ends in the middle of a value")),
            }
        }
    }

    fn open(&mut self, object: bool) -> Result<(), WireError> {
        if self.stack.len() >= self.bounds.depth_max {
            return Err(WireError::new(
                K::TooDeep,
                self.pos,
                "the frame nests too deeply",
            ));
        }
        let (zone, key) = match self.stack.last() {
            None => (Zone::Message, Cow::Borrowed("")),
            Some(parent) => {
                let zone = match (parent.zone, parent.object, parent.key.as_ref()) {
                    (Zone::Message, true, "params") => Zone::Params,
                    (Zone::Params, true, "arguments") | (Zone::Arguments, _, _) => Zone::Arguments,
                    _ => Zone::Other,
                };
                let top = zone == Zone::Arguments && parent.zone == Zone::Params;
                (
                    zone,
                    if top {
                        Cow::Borrowed("")
                    } else {
                        parent.key.clone()
                    },
                )
            }
        };
        self.stack.push(Level {
            object,
            zone,
            names_from: self.names.len(),
            key,
            start: self.pos,
        });
        self.pos += 1;
        self.blank();
        Ok(())
    }

    fn close(&mut self) -> Result<(), WireError> {
        self.pos += 1;
        let Some(level) = self.stack.pop() else {
            return Ok(());
        };
        if level.object {
            let names = self.names.get_mut(level.names_from..).unwrap_or_default();
            if has_duplicate(names) {
                return Err(WireError::new(
                    K::DuplicateKey,
                    level.start,
                    "an object has the same member name twice",
                ));
            }
            self.names.truncate(level.names_from);
        }
        self.done(level.start)
    }

    /// A value has ended at `pos`: note it where its place is one of those kept.
    fn done(&mut self, start: usize) -> Result<(), WireError> {
        let Some(parent) = self.stack.last() else {
            return Ok(());
        };
        let raw = self.text.get(start..self.pos).unwrap_or_default();
        match (parent.zone, parent.object, self.stack.len()) {
            (Zone::Message, true, 1) => self.out.members.push((parent.key.clone(), raw)),
            (Zone::Message, false, 1) => {
                if let Some(batch) = &mut self.out.batch {
                    if batch.len() >= self.bounds.members_max {
                        return Err(WireError::new(
                            K::TooMany,
                            start,
                            "the batch has too many messages",
                        ));
                    }
                    batch.push(raw);
                }
            }
            (Zone::Params, true, 2) => self.out.params.push((parent.key.clone(), raw)),
            _ => {}
        }
        Ok(())
    }

    fn name(&mut self) -> Result<(), WireError> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a member name"));
        }
        let at = self.pos;
        let inner = self.string()?;
        let name = text::unescape(inner)
            .ok_or_else(|| WireError::new(K::Syntax, at, "a member name has a malformed escape"))?;
        self.leaf(inner, true)?;
        if self.stack.len() <= self.names_depth_max {
            if self.names.len() >= self.bounds.members_max {
                return Err(WireError::new(
                    K::TooMany,
                    at,
                    "the frame has too many members",
                ));
            }
            self.names.push(name.clone());
        }
        if let Some(level) = self.stack.last_mut() {
            level.key = name;
        }
        self.blank();
        if self.peek() != Some(b':') {
            return Err(self.syntax("expected a colon after a member name"));
        }
        self.pos += 1;
        self.blank();
        Ok(())
    }

    fn leaf(&mut self, inner: &'a str, is_name: bool) -> Result<(), WireError> {
        let Some(level) = self.stack.last() else {
            return Ok(());
        };
        if level.zone != Zone::Arguments {
            return Ok(());
        }
        if self.out.leaves.len() >= self.bounds.members_max {
            return Err(WireError::new(
                K::TooMany,
                self.pos,
                "the arguments have too many strings",
            ));
        }
        let key = if is_name {
            Cow::Borrowed("")
        } else {
            level.key.clone()
        };
        let top = self
            .stack
            .get(2)
            .map_or(Cow::Borrowed(""), |level| level.key.clone());
        self.out.leaves.push(Leaf {
            key,
            value: inner,
            is_name,
            top,
        });
        Ok(())
    }

    /// Reads a string and returns its inside; checks escapes and control characters.
    fn string(&mut self) -> Result<&'a str, WireError> {
        let open = self.pos;
        self.pos += 1;
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.pos += 2;
                }
                Some(0..=0x1f) => {
                    return Err(self.syntax("a string holds an unescaped control character"));
                }
                Some(_) => self.pos += 1,
                None => return Err(self.syntax("the frame ends inside a string")),
            }
        }
        let inner = self.text.get(open + 1..self.pos).unwrap_or_default();
        self.pos += 1;
        if escaped && text::unescape(inner).is_none() {
            return Err(WireError::new(
                K::Syntax,
                open,
                "a string has a malformed escape or a lone surrogate",
            ));
        }
        Ok(inner)
    }

    fn number(&mut self) -> Result<(), WireError> {
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        match self.peek() {
            Some(b'0') => self.pos += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.syntax("a number has no digits")),
        }
        if self.peek() == Some(b'.') {
            self.pos += 1;
            self.some_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.pos += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            self.some_digits()?;
        }
        Ok(())
    }

    fn some_digits(&mut self) -> Result<(), WireError> {
        let from = self.pos;
        self.digits();
        if self.pos == from {
            Err(self.syntax("a number has no digits after its point or exponent"))
        } else {
            Ok(())
        }
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
    }

    fn word(&mut self, word: &str, start: usize) -> Result<(), WireError> {
        if !self
            .bytes
            .get(self.pos..)
            .unwrap_or_default()
            .starts_with(word.as_bytes())
        {
            return Err(self.syntax("expected true, false or null"));
        }
        self.pos += word.len();
        self.done(start)
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn syntax(&self, message: &'static str) -> WireError {
        // A backslash at the very end is stepped over together with what should have followed it.
        WireError::new(K::Syntax, self.pos.min(self.bytes.len()), message)
    }
}

/// Quadratic below 16 names, which is nearly always, else by sorting: never worse than n log n.
fn has_duplicate(names: &mut [Cow<'_, str>]) -> bool {
    if names.len() <= 16 {
        return names
            .iter()
            .enumerate()
            .any(|(i, a)| names.iter().skip(i + 1).any(|b| a == b));
    }
    names.sort_unstable();
    names
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a == b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(frame: &[u8]) -> Result<(), K> {
        scan_request(frame, &Bounds::default())
            .map(|_| ())
            .map_err(|e| e.kind)
    }

    #[test]
    fn accepts_and_refuses() {
        let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        let cases: Vec<(Vec<u8>, Result<(), K>)> = vec![
            (
                br#"{"a":[1,-0.5e+3,true,false,null,"x\u00e9"],"b":{}}"#.to_vec(),
                Ok(()),
            ),
            (b" [ ] ".to_vec(), Ok(())),
            (br#"{"a":1,"a":2}"#.to_vec(), Err(K::DuplicateKey)),
            (
                br#"{"a":{"b":[{"c":1,"c":2}]}}"#.to_vec(),
                Err(K::DuplicateKey),
            ),
            (br#"{"a":1,"\u0061":2}"#.to_vec(), Err(K::DuplicateKey)),
            (br#"{"a":"\ud800"}"#.to_vec(), Err(K::Syntax)),
            (b"{\"a\":\"\x01\"}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":\xff}".to_vec(), Err(K::NotUtf8)),
            (b"\xef\xbb\xbf{}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":NaN}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":01}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":1.}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":1,}".to_vec(), Err(K::Syntax)),
            (b"{} {}".to_vec(), Err(K::Syntax)),
            (b"".to_vec(), Err(K::Syntax)),
            (b"{\"a\":\"\\\"}".to_vec(), Err(K::Syntax)),
            (deep(128), Ok(())),
            (deep(129), Err(K::TooDeep)),
            (deep(10_000), Err(K::TooDeep)),
        ];
        for (frame, expect) in cases {
            assert_eq!(
                kind(&frame),
                expect,
                "{}",
                String::from_utf8_lossy(&frame[..frame.len().min(60)])
            );
        }
    }

    #[test]
    fn duplicates_are_found_among_many_names() {
        let mut names: Vec<String> = (0..500).map(|i| format!("\"k{i}\":0")).collect();
        assert_eq!(kind(format!("{{{}}}", names.join(",")).as_bytes()), Ok(()));
        names.push("\"k250\":1".into());
        assert_eq!(
            kind(format!("{{{}}}", names.join(",")).as_bytes()),
            Err(K::DuplicateKey)
        );
    }

    #[test]
    fn notes_members_params_and_leaves() {
        let frame = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"copy","_meta":{"path":"/no"},
            "arguments":{"path":"/a","list":["x",{"file":"b\/c"}],"o":{"/key":"v"},"n":3}}}"#;
        let scan = scan_request(frame, &Bounds::default()).unwrap();
        let names: Vec<_> = scan.members.iter().map(|(k, _)| k.as_ref()).collect();
        assert_eq!(names, ["jsonrpc", "id", "method", "params"]);
        assert_eq!(
            scan.params.first().unwrap(),
            &(Cow::Borrowed("name"), "\"copy\"")
        );
        let leaves: Vec<_> = scan
            .leaves
            .iter()
            .filter(|l| !l.is_name)
            .map(|l| (l.key.as_ref(), l.value))
            .collect();
        assert_eq!(
            leaves,
            [
                ("path", "/a"),
                ("list", "x"),
                ("file", "b\\/c"),
                ("/key", "v")
            ]
        );
        assert!(scan.leaves.iter().any(|l| l.is_name && l.value == "/key"));
        assert_eq!(
            scan.leaves.iter().find(|l| l.value == "b\\/c").unwrap().top,
            "list"
        );
    }

    #[test]
    fn replies_are_checked_in_their_envelope_only() {
        let inner = br#"{"id":1,"result":{"a":1,"a":2}}"#;
        assert!(scan_reply(inner, &Bounds::default()).is_ok());
        assert!(scan_reply(br#"{"id":1,"id":2}"#, &Bounds::default()).is_err());
        assert_eq!(
            scan_reply(b"[1,2]", &Bounds::default()).unwrap().batch,
            Some(vec!["1", "2"])
        );
    }
}
