//! From the JSON of a schema to what is checked.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde_json::{Map, Value};

/// Deepest nesting of a schema.
const DEPTH_MAX: usize = 32;

/// Keywords that say something to readers only.
const SILENT: [&str; 9] = [
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "examples",
    "deprecated",
    "format",
    "default",
];

/// What is wrong with a schema, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// The place in the schema, as a JSON pointer.
    pub at: String,
    /// What is wrong.
    pub wrong: String,
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema at \"{}\": {}", self.at, self.wrong)
    }
}

impl std::error::Error for SchemaFault {}

/// A type of JSON, with `integer` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Object,
    Array,
    Number,
    Integer,
    String,
}

impl Type {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "object" => Self::Object,
            "array" => Self::Array,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "string" => Self::String,
            _ => return None,
        })
    }

    /// With its article, for messages.
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Object => "an object",
            Self::Array => "a list",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::String => "a string",
        }
    }
}

/// A count with a lower and an upper bound.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// What members that are not listed may be.
#[derive(Debug, Clone, Default)]
pub(super) enum Others {
    #[default]
    Anything,
    None,
    Like(Box<Node>),
}

/// One schema, compiled.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) types: Vec<Type>,
    pub(super) choices: Option<Vec<Value>>,
    pub(super) members: BTreeMap<String, Node>,
    pub(super) required: Vec<String>,
    pub(super) others: Others,
    pub(super) items: Option<Box<Node>>,
    pub(super) item_count: Bounds,
    pub(super) unique: bool,
    pub(super) length: Bounds,
    pub(super) pattern: Option<Regex>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) above: Option<f64>,
    pub(super) below: Option<f64>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) default: Option<Value>,
}

impl Node {
    pub(super) fn of(json: &Value) -> Result<Self, SchemaFault> {
        Place {
            at: String::new(),
            depth: 0,
        }
        .node(json)
    }
}

struct Place {
    at: String,
    depth: usize,
}

impl Place {
    fn wrong<T>(&self, wrong: impl Into<String>) -> Result<T, SchemaFault> {
        Err(SchemaFault {
            at: self.at.clone(),
            wrong: wrong.into(),
        })
    }

    fn below(&self, name: &str) -> Self {
        Self {
            at: format!("{}/{name}", self.at),
            depth: self.depth + 1,
        }
    }

    fn node(&self, json: &Value) -> Result<Node, SchemaFault> {
        if self.depth > DEPTH_MAX {
            return self.wrong(format!("nests deeper than {DEPTH_MAX}"));
        }
        let members = match json {
            Value::Bool(true) => return Ok(Node::default()),
            Value::Object(members) => members,
            _ => return self.wrong("is neither an object nor true"),
        };
        let mut node = Node::default();
        for (keyword, value) in members {
            self.below(keyword).keyword(keyword, value, &mut node)?;
        }
        if let Some(missing) = self.undescribed(&node) {
            return self.wrong(format!(
                "requires \"{missing}\", which is not among its properties"
            ));
        }
        node.default = members.get("default").cloned();
        Ok(node)
    }

    fn undescribed<'n>(&self, node: &'n Node) -> Option<&'n String> {
        let closed = matches!(node.others, Others::None);
        node.required
            .iter()
            .find(|name| closed && !node.members.contains_key(*name))
    }

    fn keyword(&self, keyword: &str, value: &Value, node: &mut Node) -> Result<(), SchemaFault> {
        match keyword {
            "type" => node.types = self.types(value)?,
            "enum" => node.choices = Some(self.list(value)?.clone()),
            "const" => node.choices = Some(vec![value.clone()]),
            "properties" => {
                for (name, value) in self.object(value)? {
                    let member = self.below(name).node(value)?;
                    node.members.insert(name.clone(), member);
                }
            }
            "required" => node.required = self.names(value)?,
            "additionalProperties" => {
                node.others = match value {
                    Value::Bool(false) => Others::None,
                    Value::Bool(true) => Others::Anything,
                    schema => Others::Like(Box::new(self.node(schema)?)),
                }
            }
            "items" => node.items = Some(Box::new(self.node(value)?)),
            "minItems" => node.item_count.min = Some(self.count(value)?),
            "maxItems" => node.item_count.max = Some(self.count(value)?),
            "uniqueItems" => node.unique = value.as_bool().unwrap_or_default(),
            "minLength" => node.length.min = Some(self.count(value)?),
            "maxLength" => node.length.max = Some(self.count(value)?),
            "pattern" => node.pattern = Some(self.pattern(value)?),
            "minimum" => node.minimum = Some(self.number(value)?),
            "maximum" => node.maximum = Some(self.number(value)?),
            "exclusiveMinimum" => node.above = Some(self.number(value)?),
            "exclusiveMaximum" => node.below = Some(self.number(value)?),
            "anyOf" => node.any_of = self.nodes(value)?,
            "oneOf" => node.one_of = self.nodes(value)?,
            silent if SILENT.contains(&silent) || silent.starts_with("x-") => {}
            _ => return self.wrong("is a keyword that is not checked here; leave it out"),
        }
        Ok(())
    }

    fn types(&self, value: &Value) -> Result<Vec<Type>, SchemaFault> {
        let named = match value {
            Value::String(_) => std::slice::from_ref(value),
            Value::Array(names) => names,
            _ => &[],
        };
        let types: Option<Vec<Type>> = named
            .iter()
            .map(|name| Type::parse(name.as_str()?))
            .collect();
        match types {
            Some(types) if !types.is_empty() => Ok(types),
            _ => self.wrong("is not a type of JSON"),
        }
    }

    fn nodes(&self, value: &Value) -> Result<Vec<Node>, SchemaFault> {
        let list = self.list(value)?.iter().enumerate();
        list.map(|(at, schema)| self.below(&at.to_string()).node(schema))
            .collect()
    }

    fn list<'v>(&self, value: &'v Value) -> Result<&'v Vec<Value>, SchemaFault> {
        match value.as_array() {
            Some(list) if !list.is_empty() => Ok(list),
            _ => self.wrong("is not a list, or an empty one"),
        }
    }

    fn names(&self, value: &Value) -> Result<Vec<String>, SchemaFault> {
        let names = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Option<Vec<String>> = names
            .iter()
            .map(|name| name.as_str().map(str::to_owned))
            .collect();
        match names {
            Some(names) if value.is_array() => Ok(names),
            _ => self.wrong("is not a list of names"),
        }
    }

    fn object<'v>(&self, value: &'v Value) -> Result<&'v Map<String, Value>, SchemaFault> {
        match value.as_object() {
            Some(members) => Ok(members),
            None => self.wrong("is not an object"),
        }
    }

    fn count(&self, value: &Value) -> Result<u64, SchemaFault> {
        match value.as_u64() {
            Some(count) => Ok(count),
            None => self.wrong("is not a count"),
        }
    }

    fn number(&self, value: &Value) -> Result<f64, SchemaFault> {
        match value.as_f64() {
            Some(number) => Ok(number),
            None => self.wrong("is not a number"),
        }
    }

    fn pattern(&self, value: &Value) -> Result<Regex, SchemaFault> {
        let Some(text) = value.as_str() else {
            return self.wrong("is not a string");
        };
        match Regex::new(text) {
            Ok(pattern) => Ok(pattern),
            Err(_) => self.wrong("is not a pattern, or one that does not run in linear time"),
        }
    }
}
