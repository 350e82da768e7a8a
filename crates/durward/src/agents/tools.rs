//! Tools of an agent: those that the policy shows to the caller, and other agents.

use std::sync::Arc;

use ::agents::chat::AgentRequest;
use ::agents::delta::read_completion;
use ::agents::plan::{ToolSpec, tool_names};
use ::agents::run::{StepUsage, ToolCall, ToolEnd};
use ::models::door::ModelEvent;
use dialects::Endpoint;
use gate::policy::NameGlob;
use mcp::http::door::ToolEvent;
use serde_json::{Value, json};
use toolkit::door::{CallContext, CallEnd};

use super::NamedAgent;
use crate::config::agents::{AgentToolset, PROVIDER};

/// Most tools of an agent.
const TOOLS_MAX: usize = 512;

/// Schema of the arguments of another agent.
const INPUT_SCHEMA: &str =
    r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}"#;

/// A tool call that has ended.
#[derive(Debug)]
pub struct EndedCall {
    /// Number of the call in its reply.
    pub number: usize,
    /// Text for the model.
    pub text: String,
    /// How it ended.
    pub end: ToolEnd,
    /// What a further agent has used.
    pub usage: StepUsage,
}

/// Returns whether a name matches one of these globs, which were checked when the configuration was read.
fn matches_any<'g>(globs: impl IntoIterator<Item = &'g String>, name: &str) -> bool {
    let mut globs = globs
        .into_iter()
        .filter_map(|text| NameGlob::parse(text).ok());
    globs.any(|glob| glob.matches(name))
}

/// Lists the tools of an agent. A server that cannot be listed is left out and named.
pub async fn list_tools(
    named: &NamedAgent,
    context: &CallContext,
    servers: &Arc<mcp::http::Face>,
) -> (Vec<ToolSpec>, Vec<String>) {
    let (mut found, mut missing) = (Vec::<ToolSpec>::new(), Vec::new());
    if !named.pattern.has_tools {
        return (found, missing);
    }
    for toolset in &named.agent.toolsets {
        match toolset {
            AgentToolset::Agent(name) => found.push(ToolSpec {
                name: String::new(),
                server: PROVIDER.to_owned(),
                tool: name.clone(),
                description: format!(
                    "Asks the agent {name}. It knows nothing of this conversation but the input."
                ),
                schema: INPUT_SCHEMA.to_owned(),
            }),
            AgentToolset::Server { name, tools } => match servers.list_tools(context, name).await {
                Ok(listed) => {
                    let is_wanted = |tool: &str| tools.is_empty() || matches_any(tools, tool);
                    let own = &named.agent.permissions;
                    let is_allowed = |tool: &str| {
                        let mut pairs = own.allow.iter().chain(&own.ask);
                        own.allow.is_empty()
                            || pairs.any(|(server, glob)| {
                                matches_any([server], name) && matches_any([glob], tool)
                            })
                    };
                    let listed = listed
                        .into_iter()
                        .filter(|tool| is_wanted(&tool.name) && is_allowed(&tool.name));
                    found.extend(listed.map(|tool| {
                        let text = |member: &str| tool.definition.get(member);
                        let about = text("description")
                            .and_then(Value::as_str)
                            .unwrap_or_default();
                        let schema = text("inputSchema").filter(|schema| schema.is_object());
                        let schema =
                            schema.map_or_else(|| json!({ "type": "object" }), Value::clone);
                        ToolSpec {
                            name: String::new(),
                            server: name.clone(),
                            description: about.to_owned(),
                            schema: schema.to_string(),
                            tool: tool.name,
                        }
                    }));
                }
                Err(outcome) => {
                    tracing::warn!(
                        "the tools of the server \"{name}\" cannot be listed: {}",
                        outcome.call.end
                    );
                    missing.push(name.clone());
                }
            },
        }
    }
    found.truncate(TOOLS_MAX);
    let pairs = found
        .iter()
        .map(|tool| (tool.server.as_str(), tool.tool.as_str()));
    let names = tool_names(pairs);
    let named = names.into_iter().zip(found);
    let specs = named.map(|(name, tool)| ToolSpec { name, ..tool });
    (specs.collect(), missing)
}

/// Calls a tool, or a further agent.
pub async fn call_tool(
    call: ToolCall,
    context: CallContext,
    models: Arc<::models::Face>,
    servers: Arc<mcp::http::Face>,
) -> EndedCall {
    let number = call.number;
    if call.server == PROVIDER {
        return call_agent(&call, &context, &models).await;
    }
    let ended = |text: String, end| EndedCall {
        number,
        text,
        end,
        usage: StepUsage::default(),
    };
    let mut stream = servers.call_tool_with(&context, &call.server, &call.tool, &call.arguments);
    let mut result = None;
    while let Some(event) = stream.next().await {
        match event {
            ToolEvent::Result(answer) => {
                let end = match answer.is_tool_error {
                    true => ToolEnd::Failed,
                    false => ToolEnd::Done,
                };
                result = Some(ended(result_text(&answer.value()), end));
            }
            ToolEvent::End(outcome) => {
                let end = outcome.call.end;
                return match (&end, result) {
                    (CallEnd::Done, Some(result)) => result,
                    (CallEnd::Denied(_) | CallEnd::Limited(_), _) => {
                        let reason = end.reason().unwrap_or_default();
                        ended(format!("refused ({reason}): {end}"), ToolEnd::Denied)
                    }
                    _ => ended(end.to_string(), ToolEnd::Failed),
                };
            }
            _ => {}
        }
    }
    ended("the call has no end".to_owned(), ToolEnd::Failed)
}

/// Returns a tool's result as text for a model.
fn result_text(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let mut parts: Vec<String> = Vec::new();
    for block in blocks.into_iter().flatten() {
        let kind = block
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("unknown");
        let text = block
            .get("text")
            .or_else(|| block.pointer("/resource/text"));
        parts.push(match text.and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => {
                let media = block
                    .get("mimeType")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let uri = block.get("uri").or_else(|| block.pointer("/resource/uri"));
                let uri = uri.and_then(Value::as_str).unwrap_or_default();
                format!("[{kind} {media} {uri}]")
                    .replace("  ", " ")
                    .replace(" ]", "]")
            }
        });
    }
    if parts.is_empty()
        && let Some(structured) = result.get("structuredContent")
    {
        return structured.to_string();
    }
    parts.join("\n")
}

async fn call_agent(
    call: &ToolCall,
    context: &CallContext,
    models: &Arc<::models::Face>,
) -> EndedCall {
    let mut ended = EndedCall {
        number: call.number,
        text: String::new(),
        end: ToolEnd::Failed,
        usage: StepUsage::default(),
    };
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let Some(input) = arguments.get("input").and_then(Value::as_str) else {
        ended.text = "the arguments need \"input\", a string".to_owned();
        return ended;
    };
    let body = json!({
        "model": format!("{PROVIDER}/{}", call.tool),
        "messages": [{ "role": "user", "content": input }],
    });
    debug_assert!(AgentRequest::read(body.to_string().as_bytes()).is_ok());
    let headers = http::HeaderMap::new();
    let text = body.to_string();
    let stream = models.complete_body(context, Endpoint::Chat, text.as_bytes(), &headers);
    let mut stream = stream.await;
    let mut reply = None;
    while let Some(event) = stream.next().await {
        match event {
            ModelEvent::Reply(whole) => reply = Some(whole.body),
            ModelEvent::End(outcome) => {
                let end = &outcome.call.end;
                let said = reply
                    .as_deref()
                    .and_then(|body| std::str::from_utf8(body).ok());
                match said.filter(|_| end.is_done()) {
                    Some(said) => {
                        let usage: Value = serde_json::from_str(said).unwrap_or_default();
                        let count =
                            |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
                        ended.usage.input = count("/usage/prompt_tokens");
                        ended.usage.output = count("/usage/completion_tokens");
                        ended.usage.cost_micros = count("/usage/cost_micros");
                        ended.text = read_completion(said)
                            .map(|delta| delta.text)
                            .unwrap_or_default();
                        ended.end = ToolEnd::Done;
                    }
                    None => {
                        ended.text = end.to_string();
                        if matches!(end, CallEnd::Denied(_) | CallEnd::Limited(_)) {
                            ended.end = ToolEnd::Denied;
                        }
                    }
                }
                return ended;
            }
            _ => {}
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_text() {
        let result = json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "resource_link", "uri": "file:///x" }] });
        assert_eq!(
            result_text(&result),
            "one\n[image image/png]\n[resource_link file:///x]"
        );
        let result = json!({ "content": [], "structuredContent": { "a": 1 } });
        assert_eq!(result_text(&result), "{\"a\":1}");
    }
}
