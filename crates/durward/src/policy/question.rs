//! A call that nobody makes, described as a real one would be.

use gate::facts::Facts;
use mcp::describe::{self, Context, PathSchemas};
use mcp::message::method::{self, Class};
use serde_json::json;
use serde_json::value::RawValue;
use wire::scan::{Bounds, scan_request};

use crate::local::LocalView;

/// What a server may ask of its client.
const SERVER_METHODS: [&str; 3] = ["sampling/createMessage", "elicitation/create", "roots/list"];

/// A call to ask about.
#[derive(Debug, Default)]
pub struct Question<'a> {
    pub method: &'a str,
    /// The tool, or the prompt.
    pub name: Option<&'a str>,
    /// Its arguments, as JSON.
    pub arguments: Option<&'a str>,
    /// In place of the arguments: one argument named `path`.
    pub path: Option<&'a str>,
    /// The resource.
    pub uri: Option<&'a str>,
    pub backend: &'a str,
    pub subject: &'a str,
}

impl Question<'_> {
    /// States the facts, by the very code that states them for a call.
    ///
    /// # Errors
    /// A sentence that says what is missing or wrong.
    pub fn facts(&self, view: &LocalView) -> Result<Facts, String> {
        let schemas = PathSchemas::default();
        let context = Context {
            backend_id: self.backend,
            subject_id: self.subject,
            view: Some(view),
            schemas: &schemas,
            definitions: None,
        };
        if SERVER_METHODS.contains(&self.method) {
            return Ok(describe::server_request(self.method, &context));
        }
        let reaches_for = match method::of(self.method).class {
            Class::Judged(reaches_for) => reaches_for,
            Class::Control(_) => {
                return Err(format!(
                    "{} is the protocol's own traffic: it passes without a judgement",
                    self.method
                ));
            }
            Class::List(_) => {
                return Err(format!(
                    "{} is not judged as such: each entry is shown if a call of it could pass; ask about the entry",
                    self.method
                ));
            }
        };
        let frame = self.frame()?;
        let scan = scan_request(frame.as_bytes(), &Bounds::default())
            .map_err(|error| format!("the arguments cannot be taken: {error}"))?;
        describe::client_request(self.method, reaches_for, &scan, &context).map_err(|missing| {
            let hint = match (self.method, self.name) {
                ("tools/call" | "prompts/get", None) => "; give it with --tool",
                (_, _) => "; give it with --uri",
            };
            format!("{missing}{hint}")
        })
    }

    /// The request as it would come.
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
                return Err("the arguments are no JSON object; write {\"path\": \"/tmp\"}".into());
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

    /// The facts of the tool in a list, where the arguments of a call are not known yet.
    pub fn listed(&self, view: &LocalView) -> Option<Facts> {
        let name = self.name.filter(|_| self.method == "tools/call")?;
        let schemas = PathSchemas::default();
        let context = Context {
            backend_id: self.backend,
            subject_id: self.subject,
            view: Some(view),
            schemas: &schemas,
            definitions: None,
        };
        Some(describe::listed(
            gate::facts::ResourceType::Tool,
            name,
            &context,
        ))
    }
}
