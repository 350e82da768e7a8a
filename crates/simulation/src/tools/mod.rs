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

use crate::fault::{Fault, FaultDetail, Kind};
use crate::service::CallContext;

/// From a result to what a model reads of it.
type Shown = fn(&Value) -> Result<Vec<Content>, Fault>;

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Title, a few words.
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
    /// Content that a model reads of a result, if that is not the result as a text.
    pub shown: Option<Shown>,
    /// Runs the tool.
    pub run: fn(&CallContext<'_>, Args<'_>) -> Result<Value, Fault>,
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

/// Returns the schema of a result that is written in the notation of [`shape`].
///
/// # Errors
/// [`ToolFault`] if it is not of that notation.
pub fn schema(shape: &str) -> Result<Value, ToolFault> {
    shape::schema(shape).map_err(ToolFault)
}

/// Returns the tool of this name.
#[must_use]
pub fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns the tools as the server lists them.
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
            // The id may have another model by the time of the call.
            binds: Some(FactId::SimulationModel),
            ..ToolDef::new(self.name, self.title, self.about, input)?.with_output(output)?
        })
    }

    /// Returns the schema of its arguments, without the confirmation.
    #[must_use]
    pub fn plain_input_schema(&self) -> Value {
        (self.input)()
    }

    /// Returns the schema of its arguments.
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

    /// Returns whether it has an argument of this name, or of one that differs in the case of its letters only.
    #[must_use]
    pub fn may_mean(&self, name: &str) -> bool {
        self.argument_names()
            .any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Returns the names of its arguments.
    fn argument_names(&self) -> impl Iterator<Item = &'static String> {
        static KNOWN: LazyLock<Vec<(&str, Value)>> = LazyLock::new(|| {
            let all = TOOLS.iter();
            all.map(|tool| (tool.name, tool.input_schema())).collect()
        });
        let own = KNOWN.iter().find(|(tool, _)| *tool == self.name);
        let known = own.and_then(|(_, schema)| schema.get("properties")?.as_object());
        known.into_iter().flat_map(|known| known.keys())
    }

    /// Rejects arguments that it does not take, also inside of those that it takes, and offers the nearest name.
    ///
    /// # Errors
    /// [`Fault`] of the first unknown name.
    pub fn check_names(&self, members: &Map<String, Value>) -> Result<(), Fault> {
        let named = members.iter().filter(|(name, _)| *name != CONFIRM);
        let named: Map<String, Value> = named
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        match unknown(&self.plain_input_schema(), &Value::Object(named), "") {
            None => Ok(()),
            Some((field, near)) => {
                let wrong = format!("{} does not take '{}'", self.name, field.escape_debug());
                let fault = Fault::input(&field, wrong).code("unknown_argument");
                Err(match near.is_empty() {
                    true => fault,
                    false => fault.hint(format!("did you mean {}?", near.join(" or "))),
                })
            }
        }
    }

    /// Returns the arguments that it takes; what a call is judged by holds no others.
    #[must_use]
    pub fn accepted_arguments<'m>(
        &self,
        members: &'m Map<String, Value>,
    ) -> Cow<'m, Map<String, Value>> {
        let takes = |name: &String| self.argument_names().any(|known| known == name);
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

    /// Returns the fault of a call without a confirmation.
    #[must_use]
    pub fn unconfirmed(&self) -> Fault {
        let message = format!("{} changes something and was not confirmed", self.name);
        Fault {
            kind: Kind::ConfirmationRequired,
            details: vec![FaultDetail {
                issue: message.clone(),
                field: Some("confirm".into()),
                hint: Some("call it again with confirm: true".into()),
                code: Some("confirmation_required".into()),
            }],
            message,
        }
    }
}

/// The word of confirmation, which every tool takes.
const CONFIRM: &str = "confirm";
/// Most names that are offered for an unknown one.
const NEAREST_MAX: usize = 1;

/// Returns the first member that the schema does not have, with the nearest names. An object without properties is
/// open.
fn unknown(schema: &Value, value: &Value, at: &str) -> Option<(String, Vec<String>)> {
    match value {
        Value::Object(members) => {
            let known = schema.get("properties")?.as_object()?;
            members.iter().find_map(|(name, value)| {
                let field = match at {
                    "" => name.clone(),
                    at => format!("{at}.{name}"),
                };
                match known.get(name) {
                    Some(schema) => unknown(schema, value, &field),
                    None => {
                        let names = known.keys().map(String::as_str);
                        Some((field, pbpk::path::nearest(name, names, NEAREST_MAX)))
                    }
                }
            })
        }
        Value::Array(items) => {
            let schema = schema.get("items")?;
            let mut items = items.iter().enumerate();
            items.find_map(|(i, item)| unknown(schema, item, &format!("{at}[{i}]")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_arguments_are_refused_with_the_nearest_name() {
        let refused = |name: &str, members: Value| {
            let fault = tool(name)
                .unwrap()
                .check_names(members.as_object().unwrap())
                .unwrap_err();
            let detail = fault.details[0].clone();
            (detail.field.unwrap(), detail.hint.unwrap_or_default())
        };
        let set = json!({"simulationId": "a", "parameterPath": "b", "value": 70, "untt": "g", "confirm": true});
        let (field, hint) = refused("set_parameter_value", set);
        assert_eq!(
            (field.as_str(), hint.as_str()),
            ("untt", "did you mean unit?")
        );
        let cohort = json!({"simulationId": "a", "cohort": {"size": 3, "sampelling": "lhs"}});
        let (field, hint) = refused("run_population_simulation", cohort);
        assert_eq!(field, "cohort.sampelling");
        assert!(hint.contains("sampling"), "{hint}");
        let fit =
            json!({"simulationId": "a", "parameters": [{"path": "p"}, {"path": "q", "mim": 1}]});
        let (field, hint) = refused("fit_parameters", fit);
        assert_eq!(field, "parameters[1].mim");
        assert!(hint.contains("min"), "{hint}");
        for tool in TOOLS {
            assert!(tool.check_names(&Map::new()).is_ok(), "{}", tool.name);
            let confirmed = json!({"confirm": true});
            assert!(tool.check_names(confirmed.as_object().unwrap()).is_ok());
            let other = json!({"zzz": 1});
            assert!(
                tool.check_names(other.as_object().unwrap()).is_err(),
                "{}",
                tool.name
            );
        }
        // Free text of the caller is open.
        let open = json!({"simulationId": "a", "request": {"anything": [{"x": 1}]}});
        let tool = tool("validate_simulation_request").unwrap();
        assert!(tool.check_names(open.as_object().unwrap()).is_ok());
    }

    #[test]
    fn every_definition_can_be_served() {
        let all = definitions().unwrap();
        toolkit::server::check_tools(&all).unwrap();
        assert_eq!(all.len(), TOOLS.len());
    }
}
