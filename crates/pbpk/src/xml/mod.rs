//! A bounded streaming view of an XML document: elements, attributes and text, nothing else.
//!
//! No entity is ever expanded beyond the five of the language and character numbers; a document type declaration
//! is refused; nesting, total size and the size of one tag or text are bounded. Memory does not grow with the file.

mod source;

use std::borrow::Cow;
use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::error::LoadError;
use source::Counted;

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

/// A start tag.
pub(crate) struct Element<'a> {
    tag: BytesStart<'a>,
    pub(crate) line: u64,
}

impl Element<'_> {
    /// The name without a prefix.
    pub(crate) fn name(&self) -> &str {
        self.tag.local_name().into_inner()
    }

    /// Calls `each` with every attribute's name and value.
    pub(crate) fn attributes(
        &self,
        mut each: impl FnMut(&str, Cow<'_, str>) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let mut list = self.tag.attributes();
        list.with_checks(false);
        for attribute in list {
            let attribute = attribute.map_err(|e| LoadError::Xml {
                line: self.line,
                message: e.to_string(),
            })?;
            let raw: &str = &attribute.value;
            let value = if raw.contains('&') {
                let text = quick_xml::escape::unescape(raw).map_err(|e| LoadError::Xml {
                    line: self.line,
                    message: e.to_string(),
                })?;
                Cow::Owned(text.into_owned())
            } else {
                Cow::Borrowed(raw)
            };
            each(attribute.key.local_name().into_inner(), value)?;
        }
        Ok(())
    }

    /// The value of one attribute.
    pub(crate) fn attribute(&self, name: &str) -> Result<Option<String>, LoadError> {
        let mut found = None;
        self.attributes(|key, value| {
            if key == name {
                found = Some(value.into_owned());
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The value of an attribute that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<String, LoadError> {
        self.attribute(name)?
            .ok_or_else(|| self.invalid(format!("{} without attribute '{name}'", self.name())))
    }

    /// An error at this tag.
    pub(crate) fn invalid(&self, message: String) -> LoadError {
        LoadError::Invalid {
            line: self.line,
            message,
        }
    }
}

/// The document, read once from front to back.
pub(crate) struct Scanner<R: BufRead> {
    reader: Reader<Counted<R>>,
    buffer: Vec<u8>,
    /// Length of the start tag's content; it stands in the buffer after an opening bracket, if that is kept.
    tag_bytes: usize,
    depth: u64,
    limits: Limits,
}

enum Step {
    Start,
    End,
    Text,
    Eof,
}

impl<R: BufRead> Scanner<R> {
    pub(crate) fn new(inner: R, limits: Limits) -> Self {
        let mut reader = Reader::from_reader(Counted::new(inner, limits));
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_end_names = true;
        Self {
            reader,
            buffer: Vec::with_capacity(4096),
            tag_bytes: 0,
            depth: 0,
            limits,
        }
    }

    /// The line reached, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.reader.get_ref().line()
    }

    fn failed(&self, message: String) -> LoadError {
        let counted = self.reader.get_ref();
        match counted.crossed() {
            Some((what, limit)) => LoadError::Limit {
                what,
                limit,
                line: counted.line(),
            },
            None => LoadError::Xml {
                line: counted.line(),
                message,
            },
        }
    }

    /// The next start or end tag; text between is passed over.
    pub(crate) fn next(&mut self) -> Result<Node<'_>, LoadError> {
        loop {
            match self.step(None)? {
                Step::Start => return self.element(),
                Step::End => return Ok(Node::End),
                Step::Text => {}
                Step::Eof => return Ok(Node::Eof),
            }
        }
    }

    /// The start tag that [`Scanner::step`] left in the buffer.
    fn element(&self) -> Result<Node<'_>, LoadError> {
        let opening = usize::from(self.buffer.first() == Some(&b'<'));
        let bytes = self
            .buffer
            .get(opening..opening + self.tag_bytes)
            .unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|e| self.failed(e.to_string()))?;
        let length = text
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(text.len());
        Ok(Node::Start(Element {
            tag: BytesStart::from_content(text, length),
            line: self.line(),
        }))
    }

    /// One event; a start tag's content stays in the buffer, text is appended to `text` if wanted.
    fn step(&mut self, mut text: Option<&mut String>) -> Result<Step, LoadError> {
        self.buffer.clear();
        self.reader.get_mut().begin_tag();
        let event = self.reader.read_event_into(&mut self.buffer);
        let step = match event {
            Err(e) => {
                let message = e.to_string();
                return Err(self.failed(message));
            }
            Ok(Event::Start(tag)) => {
                let content: &str = &tag;
                self.tag_bytes = content.len();
                Step::Start
            }
            Ok(Event::Empty(_)) => Step::Text,
            Ok(Event::End(_)) => Step::End,
            Ok(Event::Eof) => Step::Eof,
            Ok(Event::DocType(_)) => {
                return Err(LoadError::Invalid {
                    line: self.line(),
                    message: "document type declarations are refused".to_owned(),
                });
            }
            Ok(Event::Text(t)) => {
                if let Some(out) = text.as_deref_mut() {
                    out.push_str(&t.xml10_content());
                }
                Step::Text
            }
            Ok(Event::CData(t)) => {
                if let Some(out) = text.as_deref_mut() {
                    out.push_str(&t.xml10_content());
                }
                Step::Text
            }
            Ok(Event::GeneralRef(r)) => {
                let resolved = resolve(&r);
                match (resolved, text) {
                    (Some(c), Some(out)) => out.push(c),
                    (Some(_), None) => {}
                    (None, _) => {
                        return Err(self.failed(
                            "an entity that is not one of lt, gt, amp, quot, apos".to_owned(),
                        ));
                    }
                }
                Step::Text
            }
            Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => Step::Text,
        };
        match step {
            Step::Start => {
                self.depth += 1;
                if self.depth > self.limits.depth_max {
                    return Err(LoadError::Limit {
                        what: "levels of nesting",
                        limit: self.limits.depth_max,
                        line: self.line(),
                    });
                }
            }
            Step::End => self.depth = self.depth.saturating_sub(1),
            Step::Eof if self.depth > 0 => {
                return Err(self.failed("the document ends before its elements do".to_owned()));
            }
            Step::Eof | Step::Text => {}
        }
        Ok(step)
    }

    /// Passes over the rest of the element whose start tag was just read.
    pub(crate) fn skip(&mut self) -> Result<(), LoadError> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            if matches!(self.step(None)?, Step::Eof) {
                break;
            }
        }
        Ok(())
    }

    /// The text of the element whose start tag was just read, and its end; child elements are passed over.
    pub(crate) fn text(&mut self) -> Result<String, LoadError> {
        let outside = self.depth.saturating_sub(1);
        let mut text = String::new();
        while self.depth > outside {
            if matches!(self.step(Some(&mut text))?, Step::Eof) {
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
        mut child: impl FnMut(&mut Self, String) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        loop {
            let name = match self.next()? {
                Node::Start(element) => element.name().to_owned(),
                Node::End | Node::Eof => return Ok(()),
            };
            child(self, name)?;
        }
    }

    /// The start tag read last.
    pub(crate) fn current(&self) -> Result<Element<'_>, LoadError> {
        match self.element()? {
            Node::Start(element) => Ok(element),
            Node::End | Node::Eof => Err(self.failed("no element".to_owned())),
        }
    }
}

fn resolve(reference: &str) -> Option<char> {
    Some(match reference {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = reference.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

/// A number as the files write it: 15 digits, `INF`, `-INF`, `NaN`, `n. def.`, and their variants.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(value) = text.parse::<f64>() {
        return Some(value);
    }
    let folded: String = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .to_ascii_lowercase();
    match folded.as_str() {
        "n.def." | "nan" => Some(f64::NAN),
        "inf" | "+inf" | "infinity" | "\u{221e}" | "1.#inf" => Some(f64::INFINITY),
        "-inf" | "-infinity" | "-\u{221e}" | "-1.#inf" => Some(f64::NEG_INFINITY),
        _ => text.replace(',', ".").parse().ok(),
    }
}

/// `1`, `true` and their opposites.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "true" | "True" => Some(true),
        "0" | "false" | "False" => Some(false),
        _ => None,
    }
}
