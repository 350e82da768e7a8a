//! A hypothetical call, described as a real one would be.

use std::fmt;
use std::sync::Arc;

use gate::Caller;
use gate::facts::{Fact, FactId, Facts, Kind, Stated};
use gate::paths::PathView;
use mcp::describe::{self, ArgumentRoles, Context, PathSchemas};
use mcp::message::method::{self, Class};
use serde_json::json;
use serde_json::value::RawValue;
use toolkit::mcp::Builtin;
use toolkit::server::SessionRef;
use wire::scan::{Bounds, scan_request};

/// Methods of a server's requests to its client.
const SERVER_METHODS: [&str; 3] = ["sampling/createMessage", "elicitation/create", "roots/list"];

/// A hypothetical call.
#[derive(Default)]
pub struct HypotheticalCall<'a> {
    /// The method of the protocol.
    pub method: &'a str,
    /// The tool, or the prompt.
    pub name: Option<&'a str>,
    /// Arguments, as JSON.
    pub arguments: Option<&'a str>,
    /// Instead of the arguments: one argument named `path`.
    pub path: Option<&'a str>,
    /// The resource.
    pub uri: Option<&'a str>,
    /// The server.
    pub backend: &'a str,
    /// The server itself, if it is a built-in one.
    pub builtin: Option<&'a Builtin>,
    /// The caller.
    pub subject: &'a str,
    /// Further facts.
    pub facts: &'a [GivenFact],
}

impl fmt::Debug for HypotheticalCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HypotheticalCall")
            .field("method", &self.method)
            .field("name", &self.name)
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

/// A fact that no request states.
#[derive(Debug, Clone)]
pub struct GivenFact {
    id: FactId,
    value: Stated,
}

impl GivenFact {
    /// Reads `NAME=VALUE`; the members of a list are joined by commas.
    ///
    /// # Errors
    /// A sentence about what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
        let values: Vec<&str> = value.split(',').collect();
        Self::of(name, &values)
    }

    /// Returns the fact of this name; one value if it is no list.
    ///
    /// # Errors
    /// A sentence about what is wrong.
    pub fn of(name: &str, values: &[&str]) -> Result<Self, String> {
        let id = FactId::named(name).ok_or_else(|| format!("no fact is called \"{name}\""))?;
        let value = match id.row().kind {
            Kind::Text => Stated::Text(values.join(",")),
            Kind::Texts => Stated::Texts(values.iter().map(|value| Arc::from(*value)).collect()),
            Kind::Number => {
                let number = values.join(",").parse::<u64>();
                Stated::Number(number.map_err(|_| format!("{name} is a whole number"))?)
            }
        };
        let given = Self { id, value };
        given.state(&mut Facts::default())?;
        Ok(given)
    }

    fn state(&self, facts: &mut Facts) -> Result<(), String> {
        let stated = facts.set(self.id, Fact::Known(self.value.clone()));
        stated.map_err(|error| error.to_string())
    }
}

impl HypotheticalCall<'_> {
    /// States the facts, by the very code that states them for a call.
    ///
    /// # Errors
    /// A sentence that says what is missing or wrong.
    pub fn facts(&self, view: &dyn PathView) -> Result<Facts, String> {
        let mut facts = self.describe(view)?;
        self.state(&mut facts)?;
        Ok(facts)
    }

    fn state(&self, facts: &mut Facts) -> Result<(), String> {
        self.facts.iter().try_for_each(|given| given.state(facts))
    }

    fn describe(&self, view: &dyn PathView) -> Result<Facts, String> {
        self.with_context(view, |context| self.describe_in(context))
    }

    /// Describes the call with the context that describing needs.
    fn with_context<T>(&self, view: &dyn PathView, describe: impl FnOnce(&Context<'_>) -> T) -> T {
        let (schemas, caller) = (PathSchemas::default(), Caller::local(self.subject));
        let roles = ArgumentRoles::default();
        describe(&Context {
            backend_id: self.backend,
            caller: &caller,
            view: Some(view),
            schemas: &schemas,
            roles: &roles,
            definitions: None,
            builtin: self.builtin,
            inline: None,
        })
    }

    fn describe_in(&self, context: &Context<'_>) -> Result<Facts, String> {
        if SERVER_METHODS.contains(&self.method) {
            let params = self
                .uri
                .map_or_else(|| json!({}), |uri| json!({"url": uri}));
            let asked = json!({"params": params}).to_string();
            return Ok(describe::server_request(
                self.method,
                asked.as_bytes(),
                context,
            ));
        }
        let reaches_for = match method::of(self.method).class {
            Class::Judged(reaches_for) => reaches_for,
            Class::Control(_) => {
                return Err(format!(
                    "{} is protocol traffic: it passes without being judged",
                    self.method
                ));
            }
            Class::List(_) => {
                return Err(format!(
                    "{} is not judged itself: each entry is shown if a call of it could pass; ask about the entry",
                    self.method
                ));
            }
        };
        let frame = self.frame()?;
        let scan = scan_request(frame.as_bytes(), &Bounds::default())
            .map_err(|error| format!("the arguments cannot be used: {error}"))?;
        let described = describe::client_request(self.method, reaches_for, &scan, context);
        let mut facts = described.map_err(|missing| {
            let hint = match (self.method, self.name) {
                ("tools/call" | "prompts/get", None) => "; give it with --tool",
                (_, _) => "; give it with --uri",
            };
            format!("{missing}{hint}")
        })?;
        if let Some(builtin) = context.builtin {
            let by = SessionRef {
                id: Arc::default(),
                caller: self.subject.into(),
                groups: Arc::default(),
                shares: false,
            };
            // A call that cannot be described fails, and is judged by what is known.
            let _ = builtin.describe(&builtin.read(&scan, by), &mut facts);
        }
        Ok(*facts)
    }

    /// Returns the request as a client would send it.
    fn frame(&self) -> Result<String, String> {
        let mut params = Vec::new();
        if let Some(name) = self.name {
            params.push(format!("\"name\":{}", json!(name)));
        }
        if let Some(uri) = self.uri {
            params.push(format!("\"uri\":{0},\"ref\":{{\"uri\":{0}}}", json!(uri)));
        }
        if let Some(arguments) = self.arguments {
            let raw: &RawValue = serde_json::from_str(arguments)
                .map_err(|error| format!("the arguments are not JSON: {error}"))?;
            if !raw.get().starts_with('{') {
                return Err(
                    "the arguments are not a JSON object; write {\"path\": \"/tmp\"}".into(),
                );
            }
            params.push(format!("\"arguments\":{}", raw.get()));
        } else if let Some(path) = self.path {
            params.push(format!("\"arguments\":{}", json!({ "path": path })));
        }
        Ok(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":{},\"params\":{{{}}}}}",
            json!(self.method),
            params.join(",")
        ))
    }

    /// Returns the facts of the tool in a list, before the arguments of a call are known.
    #[must_use]
    pub fn listed_facts(&self, view: &dyn PathView) -> Option<Facts> {
        let name = self.name.filter(|_| self.method == "tools/call")?;
        let tool = gate::facts::ResourceType::Tool;
        let mut facts = self.with_context(view, |context| describe::listed(tool, name, context));
        self.state(&mut facts).ok()?;
        Some(facts)
    }
}
