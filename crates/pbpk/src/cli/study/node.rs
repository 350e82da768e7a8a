//! Nodes of a YAML or JSON document: texts, lists and maps.

use granit_parser::{Event, Parser};

use crate::path;

/// Most nodes of a document, and how deep they are nested.
const NODES_MAX: usize = 200_000;
const DEPTH_MAX: usize = 32;

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DocumentNode {
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// A list or map that is not complete.
enum OpenNode {
    List(Vec<DocumentNode>),
    Map(Vec<(String, DocumentNode)>, Option<String>),
}

impl OpenNode {
    fn push(&mut self, node: DocumentNode) -> Result<(), String> {
        match self {
            Self::List(items) => items.push(node),
            Self::Map(members, key) => match (key.take(), node) {
                (Some(key), node) => members.push((key, node)),
                (None, DocumentNode::Text(name)) => {
                    if members.iter().any(|(known, _)| *known == name) {
                        return Err(format!("'{name}' occurs twice"));
                    }
                    *key = Some(name);
                }
                (None, _) => return Err("a name must be a text".to_owned()),
            },
        }
        Ok(())
    }
}

impl DocumentNode {
    /// Reads a document.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut open, mut whole) = (Vec::<OpenNode>::new(), None);
        let mut count = 0_usize;
        for next in Parser::new_from_str(text) {
            let (event, span) = next.map_err(|e| e.to_string())?;
            let line = span.start.line();
            let at = |what: String| format!("line {line}: {what}");
            count += 1;
            if count > NODES_MAX || open.len() > DEPTH_MAX {
                return Err(at("the document is too large or nested too deep".to_owned()));
            }
            let node = match event {
                Event::Scalar(text, ..) => Self::Text(text.into_owned()),
                Event::SequenceStart(..) => {
                    open.push(OpenNode::List(Vec::new()));
                    continue;
                }
                Event::MappingStart(..) => {
                    open.push(OpenNode::Map(Vec::new(), None));
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                    Some(OpenNode::List(items)) => Self::List(items),
                    Some(OpenNode::Map(members, _)) => Self::Map(members),
                    None => continue,
                },
                Event::Alias(..) => return Err(at("anchors are not read here".to_owned())),
                _ => continue,
            };
            match open.last_mut() {
                Some(last) => last.push(node).map_err(at)?,
                None if whole.is_none() => whole = Some(node),
                None => return Err(at("there is a second document".to_owned())),
            }
        }
        whole.ok_or_else(|| "the document is empty".to_owned())
    }

    /// Returns its text.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the member of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(members) => members
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns the items of the list that is the member of this name.
    pub(super) fn items(&self, name: &str) -> &[Self] {
        match self.get(name) {
            Some(Self::List(items)) => items,
            _ => &[],
        }
    }

    /// Returns the number that is the member of this name.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.text()?.parse().ok()
    }
}

/// Members of a map, with the place of the map for messages.
pub(super) struct NodeMembers<'n> {
    pub(super) place: String,
    members: &'n [(String, DocumentNode)],
}

impl<'n> NodeMembers<'n> {
    /// Returns the members of a map that has these names alone.
    pub(super) fn new(node: &'n DocumentNode, place: &str, names: &[&str]) -> Result<Self, String> {
        let DocumentNode::Map(members) = node else {
            return Err(format!("{place} has to have names with values"));
        };
        for (name, _) in members {
            if !names.contains(&name.as_str()) {
                let near = path::nearest(name, names.iter().copied(), 1);
                let near = near.first().map_or("", String::as_str);
                return Err(format!("{place} has no '{name}'; did you mean {near}?"));
            }
        }
        Ok(Self {
            place: place.to_owned(),
            members,
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&'n DocumentNode> {
        let found = self.members.iter().find(|(known, _)| known == name);
        found.map(|(_, node)| node)
    }

    /// Returns a text, if there is one.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(DocumentNode::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{}: {name} has to be a text", self.place)),
        }
    }

    /// Returns a text that has to be there.
    pub(super) fn needed(&self, name: &str) -> Result<String, String> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("{}: {name} is missing", self.place))
    }

    /// Returns a list, empty if there is none.
    pub(super) fn list(&self, name: &str) -> Result<&'n [DocumentNode], String> {
        match self.get(name) {
            None => Ok(&[]),
            Some(DocumentNode::List(items)) => Ok(items),
            Some(_) => Err(format!("{}: {name} has to be a list", self.place)),
        }
    }

    /// Returns a list of texts.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let items = self.list(name)?.iter();
        let text = |item: &DocumentNode| {
            let text = item.text().map(str::to_owned);
            text.ok_or_else(|| format!("{}: {name} has to be a list of texts", self.place))
        };
        items.map(text).collect()
    }
}
