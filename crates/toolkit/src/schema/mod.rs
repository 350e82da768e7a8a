//! The part of JSON Schema 2020-12 that the tools of our own servers need, checked in full.
//!
//! A definition that uses a keyword beyond it is refused when the server is made, so that no constraint is
//! written down and then ignored. Patterns run in linear time; a value's depth is bounded by whoever read it.

mod check;
mod compile;

use std::fmt;

use serde_json::Value;

use compile::Node;
pub use compile::SchemaFault;

/// Most faults of one value that are told.
pub const FAULTS_MAX: usize = 8;

/// A schema and its text.
#[derive(Debug, Clone)]
pub struct Schema {
    json: Value,
    node: Node,
}

/// What is wrong with a value, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The member, as `tests[0].port`; empty for the whole.
    pub member: String,
    /// What is wrong with it: lowercase, to be read after its name.
    pub wrong: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.member.as_str() {
            "" => f.write_str(&self.wrong),
            member => write!(f, "\"{member}\" {}", self.wrong),
        }
    }
}

impl Schema {
    /// Takes a schema.
    ///
    /// # Errors
    /// [`SchemaFault`] where it is none, or uses a keyword that is not checked here.
    pub fn new(json: Value) -> Result<Self, SchemaFault> {
        let node = Node::of(&json)?;
        Ok(Self { json, node })
    }

    /// The schema as JSON.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Holds a value against it.
    ///
    /// # Errors
    /// The first [`FAULTS_MAX`] faults.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Fault>> {
        let mut faults = Vec::new();
        check::check(&self.node, value, &mut String::new(), &mut faults);
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }

    /// Puts in the defaults of members that are absent.
    pub fn fill(&self, value: &mut Value) {
        check::fill(&self.node, value);
    }
}

#[cfg(test)]
mod tests;
