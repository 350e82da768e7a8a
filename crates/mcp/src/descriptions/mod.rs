//! What a server says of itself, as a model may read it: without hidden characters, with suspicious
//! phrases flagged; on request without links, and cut to a length.
//!
//! Names are never changed, because calls are made by them: an entry whose name (or a name inside
//! it) holds hidden characters is not shown at all. What a schema is checked by (`type`, `pattern`,
//! `$ref`…) stays as it is, and so do icons, `_meta` and everything that had no fault.

pub mod definitions;
pub mod finding;
pub mod hidden;
pub mod links;
pub mod listing;
pub mod suspicious;
pub mod tree;

use std::borrow::Cow;

use crate::descriptions::finding::{Event, Finding};
use crate::descriptions::tree::{Node, Text};

/// Most findings about one entry.
const FINDINGS_MAX: usize = 32;
/// Longest place inside an entry that is told, in characters.
const PLACE_CHARS_MAX: usize = 160;

/// What is done about descriptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Hidden characters are taken out.
    pub invisible: bool,
    /// Suspicious phrases are written down.
    pub flag: bool,
    /// What becomes of links.
    pub links: Links,
    /// Longest description, in characters; what is longer is cut and ends in `…`.
    pub length_max: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            invisible: true,
            flag: true,
            links: Links::Keep,
            length_max: None,
        }
    }
}

/// What becomes of links in descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Links {
    /// They stay.
    #[default]
    Keep,
    /// Their text stays, their target goes.
    Strip,
}

/// What screening gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Screened {
    /// The new text, where anything had to change.
    pub text: Option<String>,
    /// What is to be told.
    pub findings: Vec<Finding>,
    /// A name in it holds hidden characters: it must not be shown.
    pub unseen_name: bool,
}

/// How a string is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Prose for the model.
    Prose,
    /// A value that the model may use.
    Value,
    /// A name: never changed.
    Name,
    /// Not for reading.
    Skip,
}

/// What an object or array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// An entry of a list, or something inside it that reads like one.
    Entry,
    /// What a server says of itself. No call is made by its name: that is cleaned as other texts are.
    Server,
    /// A JSON schema.
    Schema,
    /// Schemas by name.
    Named,
    /// Values that the model may use.
    Values,
    /// Not for reading.
    Skip,
}

impl Zone {
    /// What stands under a member: as an object or array, and as a string.
    fn below(self, name: &str) -> (Self, Kind) {
        match (self, name) {
            (Self::Skip, _) => (Self::Skip, Kind::Skip),
            (Self::Values, _) => (Self::Values, Kind::Value),
            (Self::Named, _) => (Self::Schema, Kind::Prose),
            (Self::Server, "name" | "version" | "websiteUrl") => (Self::Values, Kind::Value),
            (Self::Server, "icons" | "_meta") => (Self::Skip, Kind::Skip),
            (Self::Server, _) => (Self::Entry, Kind::Prose),
            (Self::Entry, "name" | "uri" | "uriTemplate") => (Self::Skip, Kind::Name),
            (Self::Entry, "mimeType" | "icons" | "_meta" | "execution") => (Self::Skip, Kind::Skip),
            (Self::Entry, "inputSchema" | "outputSchema") => (Self::Schema, Kind::Prose),
            (Self::Entry, _) => (Self::Entry, Kind::Prose),
            (
                Self::Schema,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            ) => (Self::Named, Kind::Prose),
            (
                Self::Schema,
                "$ref" | "$id" | "$schema" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "type"
                | "format" | "pattern" | "required" | "dependentRequired" | "contentEncoding"
                | "contentMediaType",
            ) => (Self::Skip, Kind::Skip),
            (Self::Schema, "default" | "const" | "enum" | "examples") => {
                (Self::Values, Kind::Value)
            }
            (Self::Schema, _) => (Self::Schema, Kind::Prose),
        }
    }
}

/// Screens one entry of a list. `of` names the entry in findings.
#[must_use]
pub fn entry(text: &str, node: &Node<'_>, of: &str, options: &Options) -> Screened {
    let mut screen = Screen::new(options, of);
    screen.walk(node, Zone::Entry, Kind::Prose);
    screen.finish(text)
}

/// Returns whether a handshake's result has instructions for the model.
#[must_use]
pub fn has_instructions(result: &str) -> bool {
    let Ok(scan) = wire::scan_reply(result.as_bytes(), &wire::Bounds::default()) else {
        return false;
    };
    let mut named = scan
        .members
        .iter()
        .filter(|(name, _)| name == "instructions");
    named.any(|(_, raw)| !matches!(raw.trim(), "null" | "\"\""))
}

/// Screens the `instructions` of a handshake's result, and what the server says of itself there.
#[must_use]
pub fn instructions(result: &str, options: &Options) -> Screened {
    let Some(node) = Node::parse(result) else {
        return Screened::default();
    };
    let mut screen = Screen::new(options, "the server's instructions");
    if let Node::Object(members) = &node {
        // Every one of them: a reply may hold a name twice, and clients differ in which they take.
        for (name, value) in members {
            match name.as_ref() {
                "instructions" => screen.walk(value, Zone::Entry, Kind::Prose),
                "serverInfo" => {
                    screen.of = "the server's serverInfo";
                    screen.walk(value, Zone::Server, Kind::Prose);
                }
                _ => {}
            }
        }
    }
    screen.finish(result)
}

struct Screen<'o, 'n> {
    options: &'o Options,
    of: &'o str,
    path: Vec<&'n str>,
    edits: Vec<(Text<'n>, String)>,
    findings: Vec<Finding>,
    unseen_name: bool,
}

impl<'o, 'n> Screen<'o, 'n> {
    fn new(options: &'o Options, of: &'o str) -> Self {
        Self {
            options,
            of,
            path: Vec::new(),
            edits: Vec::new(),
            findings: Vec::new(),
            unseen_name: false,
        }
    }

    fn walk(&mut self, node: &'n Node<'n>, zone: Zone, kind: Kind) {
        match node {
            Node::Object(members) => {
                for (name, child) in members {
                    self.path.push(name);
                    if zone != Zone::Skip {
                        self.name(name);
                    }
                    let (zone, kind) = zone.below(name);
                    self.walk(child, zone, kind);
                    self.path.pop();
                }
            }
            Node::Array(elements) => {
                for element in elements {
                    self.walk(element, zone, kind);
                }
            }
            Node::String(text) => self.string(text, kind),
            Node::Scalar(_) => {}
        }
    }

    fn name(&mut self, name: &str) {
        if self.options.invisible && hidden::any(name) {
            self.unseen_name = true;
            let what = "a name has invisible characters; it is not shown";
            self.find(Event::UnseenName, what.to_owned());
        }
    }

    fn string(&mut self, text: &Text<'n>, kind: Kind) {
        let value = match kind {
            Kind::Skip => return,
            Kind::Name => return self.name(&text.value()),
            Kind::Prose | Kind::Value => text.value(),
        };
        let mut clean = Cow::Borrowed(value.as_ref());
        if self.options.invisible {
            let (stripped, taken) = hidden::strip(&value);
            if taken > 0 {
                let what = format!("{taken} invisible characters were removed");
                self.find(Event::HiddenCharacters, what);
                clean = Cow::Owned(stripped.into_owned());
            }
        }
        if self.options.flag {
            for suspicion in suspicious::find(&clean) {
                self.find(Event::Suspicious, suspicion.label().to_owned());
            }
        }
        if kind == Kind::Prose {
            if self.options.links == Links::Strip {
                let without = links::strip(&clean);
                if without != clean {
                    clean = Cow::Owned(without);
                }
            }
            let is_description = self.path.last().is_none_or(|name| *name != "title");
            if let Some(max) = self.options.length_max.filter(|_| is_description)
                && let Some(cut) = cut(&clean, max)
            {
                clean = Cow::Owned(cut);
            }
        }
        if clean != value {
            let clean = clean.into_owned();
            self.edits.push((*text, clean));
        }
    }

    fn find(&mut self, event: Event, what: String) {
        if self.findings.len() >= FINDINGS_MAX {
            return;
        }
        let place: String = hidden::spelled_out(&self.path.join("."))
            .chars()
            .take(PLACE_CHARS_MAX)
            .collect();
        let message = if place.is_empty() {
            format!("{}: {what}", self.of)
        } else {
            format!("{}, {place}: {what}", self.of)
        };
        self.findings.push(Finding::new(event, message));
    }

    fn finish(self, text: &str) -> Screened {
        let mut out = Vec::new();
        let mut from = 0;
        // A walk meets strings in the order of the text.
        for (old, new) in &self.edits {
            out.extend_from_slice(text.get(from..old.at).unwrap_or_default().as_bytes());
            wire::text::push_string(&mut out, new);
            from = old.end();
        }
        out.extend_from_slice(text.get(from..).unwrap_or_default().as_bytes());
        Screened {
            text: (!self.edits.is_empty()).then(|| String::from_utf8_lossy(&out).into_owned()),
            findings: self.findings,
            unseen_name: self.unseen_name,
        }
    }
}

/// The beginning of a text, ending in `…`, where the text is longer than `max` characters.
fn cut(text: &str, max: usize) -> Option<String> {
    text.char_indices().nth(max)?;
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    Some(short)
}

#[cfg(test)]
mod tests;
