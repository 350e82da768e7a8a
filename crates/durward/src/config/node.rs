//! YAML as a tree in which every value knows where it stands.
//!
//! Scalars are kept as text: what a word means is decided by the key that it is given to, so a server
//! called `no` is not a truth value and `012` not ten.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, Spanned};

use super::fault::{Fault, Position};

/// Longest configuration, in bytes.
pub const CONFIG_BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting.
const DEPTH_MAX: usize = 16;
/// Most values of any kind, those that aliases repeat included.
const NODES_MAX: usize = 20_000;
/// Most anchors, and most aliases.
const ALIASES_MAX: usize = 64;

/// A value and where it stands.
#[derive(Clone)]
pub struct Node {
    pub at: Position,
    pub value: Value,
}

/// What a value is.
#[derive(Clone)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Nothing,
    /// Text as it was written, without its quotes.
    Scalar(String),
    List(Vec<Node>),
    /// Members in the order of the file; each name once.
    Map(Vec<Member>),
}

/// A member of a map.
#[derive(Clone)]
pub struct Member {
    pub name: String,
    /// Where the name stands.
    pub at: Position,
    pub node: Node,
}

impl Value {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Scalar(_) => "a single value",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// Reads a document. Nothing at all is an empty map.
pub fn parse(text: &str) -> Result<Node, Fault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_documents: 2,
            max_nodes: NODES_MAX,
            max_events: NODES_MAX * 4,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_replay_stack_depth: DEPTH_MAX,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    };
    let empty = Position { line: 1, column: 1 };
    let raw: Option<Spanned<Raw>> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| fault_of(text, &error))?;
    let node = raw.map_or(
        Node {
            at: empty,
            value: Value::Nothing,
        },
        |raw| node(text, raw),
    );
    Ok(match node.value {
        Value::Nothing => Node {
            at: empty,
            value: Value::Map(Vec::new()),
        },
        _ => node,
    })
}

/// The parser's words without its excerpt of the file, in which a secret may stand.
fn fault_of(text: &str, error: &serde_saphyr::Error) -> Fault {
    let error = error.without_snippet();
    let at = error
        .location()
        .filter(|found| *found != Location::UNKNOWN)
        .map_or_else(|| end_of(text), position);
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let said = said.split(" (defined at ").next().unwrap_or_default();
    let said = said.trim_end_matches('.').trim();
    let (message, hint) = match error {
        serde_saphyr::Error::Budget { .. }
        | serde_saphyr::Error::AliasReplayLimitExceeded { .. }
        | serde_saphyr::Error::AliasReplayStackDepthExceeded { .. } => (
            format!("the file is nested too deeply or repeats too much: {said}"),
            "write it flatter, with fewer aliases",
        ),
        serde_saphyr::Error::MergeKeyNotAllowed { .. } => (
            "merge keys (<<) are not supported".to_owned(),
            "write the members out",
        ),
        serde_saphyr::Error::DuplicateMappingKey { key, .. } => (
            match key {
                Some(key) => format!("\"{}\" is given twice", key.escape_debug()),
                None => "a key is given twice".to_owned(),
            },
            "keep one of the two",
        ),
        serde_saphyr::Error::UnsupportedTag { .. } => (
            "tags (!name) are not supported".to_owned(),
            "a value that begins with ! has to be quoted",
        ),
        serde_saphyr::Error::RecursiveReferencesRequireWeakTypes { .. } => (
            "an alias refers to a value that contains it".to_owned(),
            "write the value out",
        ),
        serde_saphyr::Error::MultipleDocuments { .. } => (
            "the file holds more than one document".to_owned(),
            "remove the second ---",
        ),
        serde_saphyr::Error::UnknownAnchor { .. } => (
            "an alias refers to an anchor that is not defined before it".to_owned(),
            "a value that begins with * has to be quoted",
        ),
        // These come wrapped, or without a name of their own.
        _ if said.contains("recursion limit") || said.contains("alias replay") => (
            "the file is nested too deeply or repeats too much".to_owned(),
            "write it flatter, with fewer aliases",
        ),
        _ => (
            format!("this is not YAML: {}", lower_first(said)),
            "values with : # { [ * & ! % @ ` in front have to be quoted",
        ),
    };
    Fault::new(at, message).hint(hint)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

fn end_of(text: &str) -> Position {
    Position {
        line: text.lines().count().max(1),
        column: 1,
    }
}

fn position(location: Location) -> Position {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    Position {
        line: number(location.line()),
        column: number(location.column()),
    }
}

/// As the parser gives it; what looked like a number or a truth value has lost its spelling.
enum Raw {
    Nothing,
    Text(String),
    Spelled,
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

/// Gives scalars their spelling back, out of the text.
fn node(text: &str, raw: Spanned<Raw>) -> Node {
    let at = position(raw.referenced);
    let value = match raw.value {
        Raw::Nothing => Value::Nothing,
        Raw::Text(text) => Value::Scalar(text),
        Raw::Spelled => Value::Scalar(slice(text, raw.defined)),
        Raw::List(items) => Value::List(items.into_iter().map(|item| node(text, item)).collect()),
        Raw::Map(members) => Value::Map(
            members
                .into_iter()
                .map(|(name, value)| Member {
                    at: position(name.referenced),
                    name: name.value,
                    node: node(text, value),
                })
                .collect(),
        ),
    };
    Node { at, value }
}

fn slice(text: &str, location: Location) -> String {
    let span = location.span();
    let bounds = span.byte_offset().zip(span.byte_len());
    let found = bounds.and_then(|(start, length)| {
        let start = usize::try_from(start).ok()?;
        text.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    });
    found.unwrap_or_default().trim().to_owned()
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_none<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Spelled)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Spelled)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Spelled)
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Spelled)
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Spelled)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Spelled)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Raw::Map(members))
    }
}
