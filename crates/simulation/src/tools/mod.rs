//! The tools, one row each in [`TOOLS`], and what they do.

mod bundle;
mod facts;
mod fit;
mod inputs;
mod jobs;
mod models;
mod observed;
mod page;
mod parameters;
mod plot;
mod png;
mod progress;
mod results;
mod review;
mod sensitivity;
mod shape;
mod signoff;
mod snapshots;
mod table;

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use gate::facts::{FactId, Operation};
use serde_json::{Map, Value};
use toolkit::schema::SchemaFault;
use toolkit::server::{Args, Content, Role, ToolDef};

pub use facts::{cohort_size, cost, opened, parameters, state_opened};
pub(crate) use progress::progress;
pub(crate) use results::{chunk_series, find_chunk};
pub use table::TOOLS;

use crate::fault::{Detail, Fault, Kind};
use crate::service::Context;

/// From a result to what a model reads of it.
type Shown = fn(&Value) -> Result<Vec<Content>, Fault>;

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a few words.
    pub title: &'static str,
    /// How it is used.
    pub about: &'static str,
    /// Whether it wants to be confirmed.
    pub critical: bool,
    /// Whether the bridge has it: others are listed to MCP clients only.
    pub of_bridge: bool,
    /// Whether only operators may call it, by the policy that comes with the server.
    pub operator: bool,
    operation: Operation,
    side_effects: &'static [&'static str],
    input: fn() -> Value,
    /// Its result, in the notation of [`schema`].
    pub output: &'static str,
    /// What a model reads of a result, where that is not the result as a text.
    pub shown: Option<Shown>,
    /// What it does.
    pub run: fn(&Context<'_>, Args<'_>) -> Result<Value, Fault>,
}

/// Why the server cannot be used: its adapter, or a definition of this crate that is wrong.
#[derive(Debug)]
pub struct ToolFault(String);

impl fmt::Display for ToolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ToolFault {}

impl ToolFault {
    pub(crate) fn new(why: String) -> Self {
        Self(why)
    }
}

impl From<SchemaFault> for ToolFault {
    fn from(fault: SchemaFault) -> Self {
        Self(fault.to_string())
    }
}

/// The schema of a result that is written in the notation of [`shape`].
///
/// # Errors
/// [`ToolFault`] where it is not of that notation.
pub fn schema(shape: &str) -> Result<Value, ToolFault> {
    shape::schema(shape).map_err(ToolFault)
}

/// The tool of this name.
#[must_use]
pub fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The tools as the server lists them.
///
/// # Errors
/// [`ToolFault`].
pub fn definitions() -> Result<Vec<ToolDef>, ToolFault> {
    TOOLS.iter().map(Tool::definition).collect()
}

impl Tool {
    fn definition(&self) -> Result<ToolDef, ToolFault> {
        let input = self.input_schema();
        let output = schema(self.output)?;
        let has = |name| {
            input
                .get("properties")
                .is_some_and(|all| all.get(name).is_some())
        };
        let roles: &[(&str, Role)] = match (has("filePath"), has("modelPath")) {
            (true, _) => &[("filePath", Role::Path)],
            (_, true) => &[("modelPath", Role::Path)],
            _ => &[],
        };
        Ok(ToolDef {
            operation: self.operation,
            side_effects: self.side_effects,
            roles,
            idempotent: !self.critical,
            // What is loaded under an id may be another model by the time of the call.
            binds: Some(FactId::SimulationModel),
            ..ToolDef::new(self.name, self.title, self.about, input)?.with_output(output)?
        })
    }

    /// What it takes, without the word of confirmation.
    #[must_use]
    pub fn plain_input_schema(&self) -> Value {
        (self.input)()
    }

    /// What it takes.
    #[must_use]
    pub fn input_schema(&self) -> Value {
        let mut input = self.plain_input_schema();
        if self.critical
            && let Some(properties) = input.get_mut("properties").and_then(Value::as_object_mut)
        {
            properties.insert("confirm".into(), inputs::confirm());
        }
        input
    }

    /// Whether it has an argument of this name, or of one that differs in the case of its letters only.
    #[must_use]
    pub fn may_mean(&self, name: &str) -> bool {
        self.known().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The names of its arguments.
    fn known(&self) -> impl Iterator<Item = &'static String> {
        static KNOWN: LazyLock<Vec<(&str, Value)>> = LazyLock::new(|| {
            let all = TOOLS.iter();
            all.map(|tool| (tool.name, tool.input_schema())).collect()
        });
        let own = KNOWN.iter().find(|(tool, _)| *tool == self.name);
        let known = own.and_then(|(_, schema)| schema.get("properties")?.as_object());
        known.into_iter().flat_map(|known| known.keys())
    }

    /// The arguments that it takes: others are passed over, and none of them may be read by anything that it does.
    #[must_use]
    pub fn taken<'m>(&self, members: &'m Map<String, Value>) -> Cow<'m, Map<String, Value>> {
        let takes = |name: &String| self.known().any(|known| known == name);
        if members.keys().all(takes) {
            return Cow::Borrowed(members);
        }
        let taken = members.iter().filter(|(name, _)| takes(name));
        Cow::Owned(
            taken
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// Who may call it, as the bridge says it.
    #[must_use]
    pub fn roles(&self) -> &'static [&'static str] {
        match self.operator {
            true => &["operator", "admin"],
            false => &["viewer", "operator", "admin"],
        }
    }

    /// The answer where nobody has confirmed.
    #[must_use]
    pub fn unconfirmed(&self) -> Fault {
        let message = format!("{} changes something and was not confirmed", self.name);
        Fault {
            kind: Kind::ConfirmationRequired,
            details: vec![Detail {
                issue: message.clone(),
                field: Some("confirm".into()),
                hint: Some("call it again with confirm: true".into()),
                code: Some("confirmation_required".into()),
            }],
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_can_be_served() {
        let all = definitions().unwrap();
        toolkit::server::check_tools(&all).unwrap();
        assert_eq!(all.len(), TOOLS.len());
    }
}
