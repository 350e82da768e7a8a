//! A bounded streaming view of an XML document: elements, attributes and text, nothing else.
//!
//! No entity is ever expanded beyond the five of the language and character numbers; a document type declaration
//! is refused; nesting, total size and the size of one tag or text are bounded. Memory does not grow with the file.

mod element;
mod name;
mod source;
mod value;

use std::io::BufRead;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2, memchr3, memmem};

use crate::error::LoadError;
pub(crate) use element::Element;
use element::unescaped;
pub(crate) use name::Name;
use source::Window;
pub(crate) use value::{flag, number};

/// Bounds of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole document.
    pub file_bytes_max: u64,
    /// Bytes of one tag or one stretch of text.
    pub tag_bytes_max: u64,
    /// Levels of nesting.
    pub depth_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes_max: 512 << 20,
            tag_bytes_max: 16 << 20,
            depth_max: 256,
        }
    }
}

/// What comes next in a document.
pub(crate) enum Node<'a> {
    /// A start tag; its end follows as [`Node::End`], also for an empty element.
    Start(Element<'a>),
    /// An end tag.
    End,
    /// The end of the document.
    Eof,
}

/// The document, read once from front to back.
pub(crate) struct Scanner<R: BufRead> {
    window: Window<R>,
    /// The start tag read last: its name, and what follows up to the closing bracket, within the window.
    name: Range<usize>,
    rest: Range<usize>,
    /// The line of that tag's end.
    line: u64,
    /// Names of the open elements, one after another, and where each begins.
    open: String,
    starts: Vec<usize>,
    /// The start tag read last was that of an empty element; its end is still to be told.
    empty: bool,
    limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Start,
    End,
    Text,
    Eof,
}

impl<R: BufRead> Scanner<R> {
    pub(crate) fn new(inner: R, limits: Limits) -> Self {
        Self {
            window: Window::new(inner, limits),
            name: 0..0,
            rest: 0..0,
            line: 1,
            open: String::new(),
            starts: Vec::new(),
            empty: false,
            limits,
        }
    }

    /// The line reached, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.window.line()
    }

    /// The next start or end tag; text between is passed over.
    pub(crate) fn next(&mut self) -> Result<Node<'_>, LoadError> {
        loop {
            match self.step(None)? {
                Step::Start => return Ok(Node::Start(self.element())),
                Step::End => return Ok(Node::End),
                Step::Text => {}
                Step::Eof => return Ok(Node::Eof),
            }
        }
    }

    fn element(&self) -> Element<'_> {
        let text = self.window.text();
        Element {
            name: text.get(self.name.clone()).unwrap_or_default(),
            rest: text.get(self.rest.clone()).unwrap_or_default(),
            line: self.line,
        }
    }

    /// One piece of markup or text; a start tag stays in the window, text is appended to `text` if wanted.
    fn step(&mut self, text: Option<&mut String>) -> Result<Step, LoadError> {
        if self.empty {
            self.empty = false;
            self.close();
            return Ok(Step::End);
        }
        if self.window.rest().is_empty() && !self.window.holds(1)? {
            if self.starts.is_empty() {
                return Ok(Step::Eof);
            }
            return Err(self
                .window
                .failed("the document ends before its elements do"));
        }
        if self.window.rest().first() != Some(&b'<') {
            self.characters(text)?;
            return Ok(Step::Text);
        }
        if !self.window.holds(2)? {
            return Err(self.window.failed("the document ends within a tag"));
        }
        match self.window.rest().get(1) {
            Some(b'/') => self.end_tag(),
            Some(b'!') => self.declaration(text),
            Some(b'?') => {
                self.until(b"?>")?;
                Ok(Step::Text)
            }
            _ => self.start_tag(),
        }
    }

    fn start_tag(&mut self) -> Result<Step, LoadError> {
        let end = self.tag_end()?;
        let at = self.window.at() + 1;
        let bytes = self.window.bytes();
        self.empty = bytes.get(end.wrapping_sub(1)) == Some(&b'/') && end > at;
        let last = if self.empty { end - 1 } else { end };
        let tag = bytes.get(at..last).unwrap_or_default();
        let length = tag
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(tag.len());
        if length == 0 {
            return Err(self.window.failed("a tag has no name"));
        }
        self.name = at..at + length;
        self.rest = at + length..last;
        self.window.advance(end + 1);
        self.line = self.window.line();
        if self.starts.len() as u64 >= self.limits.depth_max {
            return Err(LoadError::Limit {
                what: "levels of nesting",
                limit: self.limits.depth_max,
                line: self.line(),
            });
        }
        self.starts.push(self.open.len());
        let name = self.window.text().get(self.name.clone());
        self.open.push_str(name.unwrap_or_default());
        Ok(Step::Start)
    }

    /// Where the bracket stands that ends the start tag at the present place; brackets within quotes end nothing.
    fn tag_end(&mut self) -> Result<usize, LoadError> {
        loop {
            let found = bracket(self.window.rest());
            if let Some(found) = found {
                return Ok(self.window.at() + found);
            }
            if !self.window.more()? {
                return Err(self.window.failed("the document ends within a tag"));
            }
        }
    }

    fn end_tag(&mut self) -> Result<Step, LoadError> {
        let (from, to) = self.until(b">")?;
        let name = self.window.text().get(from + 2..to).unwrap_or_default();
        let name = name.trim_ascii_end();
        let start = self.starts.last().copied();
        let expected = start.and_then(|start| self.open.get(start..));
        if expected != Some(name) {
            return Err(self.window.failed(match expected {
                Some(expected) => {
                    format!("the end tag '{name}' where that of '{expected}' was expected")
                }
                None => format!("the end tag '{name}' without a start"),
            }));
        }
        self.close();
        Ok(Step::End)
    }

    fn close(&mut self) {
        if let Some(start) = self.starts.pop() {
            self.open.truncate(start);
        }
    }

    /// A comment, or text as it stands; a document type is refused.
    fn declaration(&mut self, text: Option<&mut String>) -> Result<Step, LoadError> {
        self.window.holds(9)?;
        let rest = self.window.rest();
        if rest.starts_with(b"<!--") {
            let at = self.window.at();
            self.window.advance(at + 4);
            self.until(b"-->")?;
        } else if rest.starts_with(b"<![CDATA[") {
            let (from, to) = self.until(b"]]>")?;
            if let Some(out) = text {
                out.push_str(self.window.text().get(from + 9..to).unwrap_or_default());
            }
        } else if rest.len() >= 9
            && rest
                .get(..9)
                .is_some_and(|r| r.eq_ignore_ascii_case(b"<!DOCTYPE"))
        {
            return Err(LoadError::Invalid {
                line: self.line(),
                message: "document type declarations are refused".to_owned(),
            });
        } else {
            return Err(self
                .window
                .failed("markup that is neither a comment nor text"));
        }
        Ok(Step::Text)
    }

    /// Consumes up to and with `end`; where the consumed part and where `end` begin in the window.
    fn until(&mut self, end: &[u8]) -> Result<(usize, usize), LoadError> {
        loop {
            let rest = self.window.rest();
            let found = match end {
                [one] => memchr(*one, rest),
                _ => memmem::find(rest, end),
            };
            if let Some(found) = found {
                let from = self.window.at();
                self.window.advance(from + found + end.len());
                return Ok((from, from + found));
            }
            if !self.window.more()? {
                return Err(self.window.failed("the document ends within a tag"));
            }
        }
    }

    /// Text up to the next tag, with its references resolved.
    fn characters(&mut self, text: Option<&mut String>) -> Result<(), LoadError> {
        loop {
            let rest = self.window.rest();
            // Without a reference in it, text that nobody wants need not stay in the window.
            let end = match (memchr2(b'<', b'&', rest), &text) {
                (Some(i), _) if rest.get(i) == Some(&b'<') => Some(i),
                (Some(_), _) => memchr(b'<', rest),
                (None, None) => Some(rest.len()),
                (None, Some(_)) => None,
            };
            match end {
                Some(end) => {
                    let from = self.window.at();
                    let piece = self.window.text().get(from..from + end).unwrap_or_default();
                    let reference = memchr(b'&', piece.as_bytes()).is_some();
                    if let Some(out) = text {
                        append(piece, out).map_err(|message| self.window.failed(message))?;
                    } else if reference {
                        unescaped(piece).map_err(|message| self.window.failed(message))?;
                    }
                    self.window.advance(from + end);
                    return Ok(());
                }
                None if self.window.more()? => {}
                None => {
                    let all = self.window.bytes().len();
                    self.window.advance(all);
                    return Ok(());
                }
            }
        }
    }

    /// Passes over the rest of the element whose start tag was just read.
    pub(crate) fn skip(&mut self) -> Result<(), LoadError> {
        let outside = self.starts.len().saturating_sub(1);
        while self.starts.len() > outside {
            if self.step(None)? == Step::Eof {
                break;
            }
        }
        Ok(())
    }

    /// The text of the element whose start tag was just read, and its end; child elements are passed over.
    pub(crate) fn text(&mut self) -> Result<String, LoadError> {
        let outside = self.starts.len().saturating_sub(1);
        let mut text = String::new();
        while self.starts.len() > outside {
            if self.step(Some(&mut text))? == Step::Eof {
                break;
            }
            if text.len() as u64 > self.limits.tag_bytes_max {
                return Err(LoadError::Limit {
                    what: "bytes in one text",
                    limit: self.limits.tag_bytes_max,
                    line: self.line(),
                });
            }
        }
        Ok(text)
    }

    /// Calls `child` for every child element of the one whose start tag was just read; each call must consume its element.
    pub(crate) fn children(
        &mut self,
        mut child: impl FnMut(&mut Self, Name) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        loop {
            let name = match self.next()? {
                Node::Start(element) => Name::new(element.name()),
                Node::End | Node::Eof => return Ok(()),
            };
            child(self, name)?;
        }
    }

    /// The start tag read last.
    pub(crate) fn current(&self) -> Result<Element<'_>, LoadError> {
        Ok(self.element())
    }
}

/// The first closing bracket that does not stand within quotes.
fn bracket(bytes: &[u8]) -> Option<usize> {
    let first = memchr(b'>', bytes)?;
    let tag = bytes.get(..first)?;
    // Nearly always all quotes are double ones and closed before the first bracket.
    if memchr(b'\'', tag).is_none() && memchr_iter(b'"', tag).count().is_multiple_of(2) {
        return Some(first);
    }
    let mut at = 0;
    loop {
        let (i, sign) = first_of(bytes.get(at..)?)?;
        at += i + 1;
        if sign == b'>' {
            return Some(at - 1);
        }
        at += memchr(sign, bytes.get(at..)?)? + 1;
    }
}

/// The next quote or closing bracket.
fn first_of(bytes: &[u8]) -> Option<(usize, u8)> {
    let at = memchr3(b'"', b'\'', b'>', bytes)?;
    Some((at, *bytes.get(at)?))
}

/// Text with line ends as one sign and references resolved.
fn append(piece: &str, out: &mut String) -> Result<(), String> {
    if !piece.contains(['&', '\r']) {
        out.push_str(piece);
        return Ok(());
    }
    let piece = piece.replace("\r\n", "\n").replace('\r', "\n");
    out.push_str(&unescaped(&piece)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::bracket;

    #[test]
    fn brackets_within_quotes_end_no_tag() {
        for (text, expected) in [
            ("<a>b>", Some(2)),
            ("<a b=\"c>d\" e='\">'>", Some(17)),
            ("<a b=\"c>", None),
            ("<a b='c\"' d=\"'\">", Some(15)),
            ("<a", None),
        ] {
            assert_eq!(bracket(text.as_bytes()), expected, "{text}");
        }
    }
}
