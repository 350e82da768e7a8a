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
pub(crate) use element::XmlElement;
use element::unescaped;
pub(crate) use name::ElementName;
use source::TextWindow;
pub(crate) use value::{flag, number};

/// Bounds of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XmlLimits {
    /// Bytes of the whole document.
    pub file_bytes_max: u64,
    /// Bytes of one tag or one stretch of text.
    pub tag_bytes_max: u64,
    /// Levels of nesting.
    pub depth_max: u64,
}

impl Default for XmlLimits {
    fn default() -> Self {
        Self {
            file_bytes_max: 512 << 20,
            tag_bytes_max: 16 << 20,
            depth_max: 256,
        }
    }
}

/// Next part of a document.
pub(crate) enum XmlNode<'a> {
    /// A start tag; its end follows as [`XmlNode::End`], also for an empty element.
    Start(XmlElement<'a>),
    /// An end tag.
    End,
    /// The end of the document.
    Eof,
}

/// The document, read once from front to back.
pub(crate) struct XmlScanner<R: BufRead> {
    window: TextWindow<R>,
    /// The start tag read last: its name, and what follows up to the closing bracket, within the window.
    name: Range<usize>,
    rest: Range<usize>,
    /// The line of that tag's end.
    line: u64,
    /// Names of the open elements, one after another, and where each begins.
    open: String,
    starts: Vec<usize>,
    /// The start tag read last was that of an empty element; its end is still to be returned.
    empty: bool,
    limits: XmlLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanStep {
    Start,
    End,
    Text,
    Eof,
}

impl<R: BufRead> XmlScanner<R> {
    pub(crate) fn new(inner: R, limits: XmlLimits) -> Self {
        Self {
            window: TextWindow::new(inner, limits),
            name: 0..0,
            rest: 0..0,
            line: 1,
            open: String::new(),
            starts: Vec::new(),
            empty: false,
            limits,
        }
    }

    /// Returns the line reached, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.window.line()
    }

    /// Returns the next start or end tag; text between is passed over.
    pub(crate) fn next(&mut self) -> Result<XmlNode<'_>, LoadError> {
        loop {
            match self.step(None)? {
                ScanStep::Start => return Ok(XmlNode::Start(self.element())),
                ScanStep::End => return Ok(XmlNode::End),
                ScanStep::Text => {}
                ScanStep::Eof => return Ok(XmlNode::Eof),
            }
        }
    }

    fn element(&self) -> XmlElement<'_> {
        let text = self.window.text();
        XmlElement {
            name: text.get(self.name.clone()).unwrap_or_default(),
            rest: text.get(self.rest.clone()).unwrap_or_default(),
            line: self.line,
        }
    }

    /// One piece of markup or text; a start tag stays in the window, text is appended to `text` if wanted.
    fn step(&mut self, text: Option<&mut String>) -> Result<ScanStep, LoadError> {
        if self.empty {
            self.empty = false;
            self.close();
            return Ok(ScanStep::End);
        }
        if self.window.rest().is_empty() && !self.window.holds(1)? {
            if self.starts.is_empty() {
                return Ok(ScanStep::Eof);
            }
            return Err(self
                .window
                .error_here("the document ends before its elements do"));
        }
        if self.window.rest().first() != Some(&b'<') {
            self.characters(text)?;
            return Ok(ScanStep::Text);
        }
        if !self.window.holds(2)? {
            return Err(self.window.error_here("the document ends within a tag"));
        }
        match self.window.rest().get(1) {
            Some(b'/') => self.end_tag(),
            Some(b'!') => self.declaration(text),
            Some(b'?') => {
                self.until(b"?>")?;
                Ok(ScanStep::Text)
            }
            _ => self.start_tag(),
        }
    }

    fn start_tag(&mut self) -> Result<ScanStep, LoadError> {
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
            return Err(self.window.error_here("a tag has no name"));
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
        Ok(ScanStep::Start)
    }

    /// Returns the position of the bracket that ends the start tag at the present place; brackets within quotes end
    /// nothing.
    fn tag_end(&mut self) -> Result<usize, LoadError> {
        loop {
            let found = bracket(self.window.rest());
            if let Some(found) = found {
                return Ok(self.window.at() + found);
            }
            if !self.window.more()? {
                return Err(self.window.error_here("the document ends within a tag"));
            }
        }
    }

    fn end_tag(&mut self) -> Result<ScanStep, LoadError> {
        let (from, to) = self.until(b">")?;
        let name = self.window.text().get(from + 2..to).unwrap_or_default();
        let name = name.trim_ascii_end();
        let start = self.starts.last().copied();
        let expected = start.and_then(|start| self.open.get(start..));
        if expected != Some(name) {
            return Err(self.window.error_here(match expected {
                Some(expected) => {
                    format!("the end tag '{name}' where that of '{expected}' was expected")
                }
                None => format!("the end tag '{name}' without a start"),
            }));
        }
        self.close();
        Ok(ScanStep::End)
    }

    fn close(&mut self) {
        if let Some(start) = self.starts.pop() {
            self.open.truncate(start);
        }
    }

    /// Returns a comment, or plain text; a document type is refused.
    fn declaration(&mut self, text: Option<&mut String>) -> Result<ScanStep, LoadError> {
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
                .error_here("markup that is neither a comment nor text"));
        }
        Ok(ScanStep::Text)
    }

    /// Consumes up to and with `end`; returns the begin of the consumed part and of `end` in the window.
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
                return Err(self.window.error_here("the document ends within a tag"));
            }
        }
    }

    /// Text up to the next tag, with its references resolved.
    fn characters(&mut self, text: Option<&mut String>) -> Result<(), LoadError> {
        loop {
            let rest = self.window.rest();
            // Without a reference in it, unwanted text need not stay in the window.
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
                        append(piece, out).map_err(|message| self.window.error_here(message))?;
                    } else if reference {
                        unescaped(piece).map_err(|message| self.window.error_here(message))?;
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

    /// Skips the rest of the element after its start tag.
    pub(crate) fn skip(&mut self) -> Result<(), LoadError> {
        let outside = self.starts.len().saturating_sub(1);
        while self.starts.len() > outside {
            if self.step(None)? == ScanStep::Eof {
                break;
            }
        }
        Ok(())
    }

    /// Returns the text of the element after its start tag, and reads its end; child elements are skipped.
    pub(crate) fn text(&mut self) -> Result<String, LoadError> {
        let outside = self.starts.len().saturating_sub(1);
        let mut text = String::new();
        while self.starts.len() > outside {
            if self.step(Some(&mut text))? == ScanStep::Eof {
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

    /// Calls `child` for every child of the element after its start tag; each call must consume its element.
    pub(crate) fn children(
        &mut self,
        mut child: impl FnMut(&mut Self, ElementName) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        loop {
            let name = match self.next()? {
                XmlNode::Start(element) => ElementName::new(element.name()),
                XmlNode::End | XmlNode::Eof => return Ok(()),
            };
            child(self, name)?;
        }
    }

    /// Returns the start tag read last.
    pub(crate) fn current(&self) -> Result<XmlElement<'_>, LoadError> {
        Ok(self.element())
    }
}

/// Returns the first closing bracket that is not within quotes.
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

/// Returns the next quote or closing bracket.
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
