//! What a tool is: its name, its schemas, and what calling it does.

use std::fmt;

use gate::effects::SIDE_EFFECTS;
use gate::facts::{Fact, FactId, Facts, Operation};
use gate::paths::{self, PathArgument, meanings};
use serde_json::{Map, Value, json};

use super::arguments::Args;
use crate::schema::{Schema, SchemaFault};

/// Longest name of a tool, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Most tools of one server.
pub const TOOLS_MAX: usize = 256;

/// Which part an argument plays, for the facts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A path that is looked at or changed.
    Path,
    /// A path from which something comes.
    Source,
    /// A path to which something goes.
    Destination,
    /// Text that is data, whatever it looks like: an allow rule about paths does not ask it to match.
    Content,
}

/// A tool as its server defines it.
#[derive(Debug, Clone)]
pub struct ToolDef {
    /// The name in calls and rules.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// What its arguments are.
    pub input: Schema,
    /// What its structured result is.
    pub output: Option<Schema>,
    /// What a call does to what it touches; a fact of every call.
    pub operation: Operation,
    /// What a call does to the world, of [`SIDE_EFFECTS`]; a fact of every call. Empty: nothing.
    pub side_effects: &'static [&'static str],
    /// Arguments (by their name at the top) that mean more than their text.
    pub roles: &'static [(&'static str, Role)],
    /// Facts that its server states of every call, by the arguments: not known where the tool is only listed.
    pub varies: &'static [FactId],
    /// The fact that a call stands and falls with: its server gets back what was judged, and does nothing where it is
    /// something else by then.
    pub binds: Option<FactId>,
    /// Whether calling it twice does the same as calling it once.
    pub idempotent: bool,
    /// Whether it reaches beyond what its server owns.
    pub open_world: bool,
}

/// Why a definition cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionFault {
    /// The tool.
    pub tool: String,
    /// What is wrong.
    pub wrong: String,
}

impl fmt::Display for DefinitionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool \"{}\": {}", self.tool, self.wrong)
    }
}

impl std::error::Error for DefinitionFault {}

impl ToolDef {
    /// A tool that only looks, with no side effects and no roles; the other members are set after.
    ///
    /// # Errors
    /// [`SchemaFault`] where `input` is no schema that is checked in full.
    pub fn new(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        input: Value,
    ) -> Result<Self, SchemaFault> {
        Ok(Self {
            name,
            title,
            description,
            input: Schema::new(input)?,
            output: None,
            operation: Operation::Read,
            side_effects: &[],
            roles: &[],
            varies: &[],
            binds: None,
            idempotent: true,
            open_world: false,
        })
    }

    /// The same with a schema of its structured result.
    ///
    /// # Errors
    /// [`SchemaFault`] where `output` is no schema that is checked in full.
    pub fn with_output(self, output: Value) -> Result<Self, SchemaFault> {
        Ok(Self {
            output: Some(Schema::new(output)?),
            ..self
        })
    }

    /// The definition as clients list it. `titled` adds the members that came with revision 2025-06-18,
    /// `annotated` those of 2025-03-26.
    #[must_use]
    pub fn listed(&self, titled: bool, annotated: bool) -> Value {
        let mut listed = Map::new();
        listed.insert("name".into(), self.name.into());
        if titled {
            listed.insert("title".into(), self.title.into());
        }
        listed.insert("description".into(), self.description.into());
        listed.insert("inputSchema".into(), self.input.json().clone());
        if let (true, Some(output)) = (titled, &self.output) {
            listed.insert("outputSchema".into(), output.json().clone());
        }
        if annotated {
            let reads = self.operation == Operation::Read;
            let mut hints = json!({"readOnlyHint": reads, "openWorldHint": self.open_world});
            if let (false, Some(hints)) = (reads, hints.as_object_mut()) {
                // The two below have a meaning only where something changes.
                let destroys = self.operation != Operation::Write || !self.idempotent;
                hints.insert("destructiveHint".into(), destroys.into());
                hints.insert("idempotentHint".into(), self.idempotent.into());
            }
            listed.insert("annotations".into(), hints);
        }
        Value::Object(listed)
    }

    /// States what the definition says of every call: what it does.
    pub(crate) fn define(&self, facts: &mut Facts) {
        facts.operation = Some(self.operation);
        facts.side_effects = Some(self.side_effects);
        for fact in self.varies {
            let _ = facts.set(*fact, Fact::Unknown);
        }
    }

    /// States what the definition knows of a call: what it does, and which of its arguments are paths.
    pub(crate) fn state(&self, args: Args<'_>, facts: &mut Facts) {
        self.define(facts);
        for (name, role) in self.roles {
            let texts = match args.get(name) {
                Some(Value::String(text)) => vec![text.as_str()],
                Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            for text in texts {
                state_path(*role, text, facts);
            }
        }
    }

    fn fault(&self) -> Option<String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
        if self.name.is_empty() || self.name.len() > NAME_BYTES_MAX || !self.name.chars().all(fits)
        {
            return Some(format!(
                "the name must be 1 to {NAME_BYTES_MAX} letters, digits, '_', '-' or '.'"
            ));
        }
        let is_object = |schema: &Schema| schema.json().get("type") == Some(&json!("object"));
        if !is_object(&self.input) || !self.output.as_ref().is_none_or(is_object) {
            return Some("the schemas must have \"type\": \"object\"".into());
        }
        let known = |name: &str| {
            let properties = self.input.json().get("properties");
            properties.is_some_and(|members| members.get(name).is_some())
        };
        if let Some((name, _)) = self.roles.iter().find(|(name, _)| !known(name)) {
            return Some(format!("the role of \"{name}\" is not that of an argument"));
        }
        self.side_effects
            .iter()
            .find(|effect| !SIDE_EFFECTS.contains(effect))
            .map(|effect| format!("\"{effect}\" is not a side effect"))
    }
}

/// Says of one argument that it is a path, or that it is none.
fn state_path(role: Role, text: &str, facts: &mut Facts) {
    let role = match role {
        Role::Path => Some(paths::Role::Path),
        Role::Source => Some(paths::Role::Source),
        Role::Destination => Some(paths::Role::Destination),
        Role::Content => None,
    };
    if facts.paths == Fact::Absent {
        facts.paths = Fact::Known(Vec::new());
    }
    // What is unknown stays so: it may be more than what is said here.
    let Fact::Known(known) = &mut facts.paths else {
        return;
    };
    let mut found = false;
    for path in known.iter_mut().filter(|path| path.text == text) {
        found = true;
        match role {
            Some(role) => (path.role, path.content) = (role, false),
            // Only what looks like a path without being named one.
            None if path.role == paths::Role::Shape => path.content = true,
            None => {}
        }
    }
    if let (Some(role), false) = (role, found) {
        known.push(PathArgument {
            text: text.to_owned(),
            role,
            content: false,
            // Without a view: links and relative paths are where the server is.
            meaning: meanings(text, None),
        });
    }
}

/// Whether these tools can be served together.
///
/// # Errors
/// [`DefinitionFault`] for a name twice or unfit, a schema that is not an object's, a role of an argument
/// that is none, an unknown side effect, or too many tools.
pub fn check(tools: &[ToolDef]) -> Result<(), DefinitionFault> {
    for (at, tool) in tools.iter().enumerate() {
        let earlier = tools.iter().take(at);
        let wrong = match tool.fault() {
            Some(wrong) => wrong,
            None if at >= TOOLS_MAX => format!("a server has at most {TOOLS_MAX} tools"),
            None if earlier.into_iter().any(|other| other.name == tool.name) => {
                "another tool has the same name".into()
            }
            None => continue,
        };
        return Err(DefinitionFault {
            tool: tool.name.to_owned(),
            wrong,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &'static str) -> ToolDef {
        ToolDef::new(
            name,
            "Title",
            "Does it.",
            json!({"type": "object", "properties": {"p": {"type": "string"}}}),
        )
        .unwrap()
    }

    #[test]
    fn definitions_are_checked_together() {
        check(&[tool("a"), tool("b")]).unwrap();
        let text = ToolDef {
            input: Schema::new(json!({"type": "string"})).unwrap(),
            ..tool("a")
        };
        let role = ToolDef {
            roles: &[("p", Role::Path), ("q", Role::Source)],
            ..tool("a")
        };
        let effect = ToolDef {
            side_effects: &["fs_read", "magic"],
            ..tool("a")
        };
        let cases = [
            (vec![tool("a"), tool("a")], "another tool has the same name"),
            (
                vec![tool("a b")],
                "the name must be 1 to 64 letters, digits, '_', '-' or '.'",
            ),
            (
                vec![tool("")],
                "the name must be 1 to 64 letters, digits, '_', '-' or '.'",
            ),
            (vec![text], "the schemas must have \"type\": \"object\""),
            (vec![role], "the role of \"q\" is not that of an argument"),
            (vec![effect], "\"magic\" is not a side effect"),
        ];
        for (tools, wrong) in cases {
            assert_eq!(check(&tools).unwrap_err().wrong, wrong);
        }
    }

    #[test]
    fn a_definition_states_what_it_knows_of_a_call() {
        let tool = ToolDef {
            operation: Operation::Delete,
            side_effects: &["fs_write"],
            roles: &[("p", Role::Destination), ("text", Role::Content)],
            ..tool("a")
        };
        let members = json!({"p": ["/srv/x", "/srv/y"], "text": "/etc/passwd"});
        let looks = PathArgument {
            text: "/etc/passwd".into(),
            role: paths::Role::Shape,
            content: false,
            meaning: meanings("/etc/passwd", None),
        };
        let mut facts = Facts {
            paths: Fact::Known(vec![looks]),
            ..Facts::default()
        };
        tool.state(Args::new(members.as_object().unwrap()), &mut facts);
        assert_eq!(facts.operation, Some(Operation::Delete));
        assert_eq!(facts.side_effects, Some(["fs_write"].as_slice()));
        let found: Vec<_> = facts
            .paths
            .known()
            .unwrap()
            .iter()
            .map(|path| (path.text.as_str(), path.role, path.content))
            .collect();
        assert_eq!(
            found,
            [
                ("/etc/passwd", paths::Role::Shape, true),
                ("/srv/x", paths::Role::Destination, false),
                ("/srv/y", paths::Role::Destination, false),
            ]
        );
        let mut unknown = Facts {
            paths: Fact::Unknown,
            ..Facts::default()
        };
        tool.state(Args::new(members.as_object().unwrap()), &mut unknown);
        assert_eq!(unknown.paths, Fact::Unknown);
    }

    #[test]
    fn a_listed_tool_has_what_its_revision_knows() {
        let tool = tool("a").with_output(json!({"type": "object"})).unwrap();
        let names = |titled, annotated| {
            let listed = tool.listed(titled, annotated);
            let names: Vec<String> = listed.as_object().unwrap().keys().cloned().collect();
            names.join(" ")
        };
        assert_eq!(names(false, false), "description inputSchema name");
        assert_eq!(
            names(false, true),
            "annotations description inputSchema name"
        );
        assert_eq!(
            names(true, true),
            "annotations description inputSchema name outputSchema title"
        );
        let hints = |operation, idempotent| {
            let tool = ToolDef {
                operation,
                idempotent,
                ..tool.clone()
            };
            tool.listed(true, true)["annotations"].to_string()
        };
        assert_eq!(
            hints(Operation::Read, true),
            r#"{"openWorldHint":false,"readOnlyHint":true}"#
        );
        assert_eq!(
            hints(Operation::Delete, true),
            r#"{"destructiveHint":true,"idempotentHint":true,"openWorldHint":false,"readOnlyHint":false}"#
        );
    }
}
