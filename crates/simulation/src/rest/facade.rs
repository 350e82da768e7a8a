//! The MCP-like façade: what the server can do, its tools, and calling one.

use std::sync::PoisonError;
use std::time::Instant;

use gate::Caller;
use net::http::server::{Request, Response};
use serde_json::{Value, json};

use super::answer::Answering;
use super::{Rest, body, result};
use crate::fault::{Fault, Kind};
use crate::tools::{Tool, tool};

pub(super) const CAPABILITIES: &str = "/mcp/capabilities";
pub(super) const LIST_TOOLS: &str = "/mcp/list_tools";
pub(super) const CALL_TOOL: &str = "/mcp/call_tool";

/// Longest body of a request, in kilobytes.
const PAYLOAD_KB_MAX: usize = 4 * 1024;
/// A model of one state that decays, with which the engine is tried.
const PROBE: &str = include_str!("probe.xml");
/// How far the probe's last value may be from the exact one, as a part of it.
const PROBE_TOLERANCE: f64 = 1e-4;

impl Rest {
    pub(super) async fn capabilities(&self, answering: &Answering) -> Response {
        let probed = self.probed().await;
        let issues: Vec<String> = probed.as_ref().err().cloned().into_iter().collect();
        let timeout_ms = crate::service::served(&self.server)
            .map_or(0, |service| service.configured.job_timeout_ms);
        let told = json!({
            "transports": ["http-streamable"],
            "adapter": {
                "name": crate::BACKEND,
                "populationSupported": true,
                "health": {
                    "status": if probed.is_ok() { "initialised" } else { "stopped" },
                    "environment": {
                        "available": probed.is_ok(),
                        "rPath": null, "ospsuiteLibs": null, "rVersion": null,
                        "ospsuiteAvailable": false, "issues": issues,
                    },
                },
            },
            "maxPayloadKb": PAYLOAD_KB_MAX,
            "timeouts": {"defaultMs": timeout_ms, "adapterTimeoutMs": timeout_ms},
            "annotations": {"service": "durward", "environment": "local"},
        });
        answering.json(200, &told)
    }

    /// Whether the engine solves a model whose solution is known; tried at most once a minute.
    async fn probed(&self) -> Result<(), String> {
        let known = self
            .probed
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some((_, known)) = known {
            return known;
        }
        let fresh = tokio::task::spawn_blocking(probe).await;
        let fresh = fresh.unwrap_or_else(|_| Err("the engine has panicked".to_owned()));
        let mut probed = self.probed.write().unwrap_or_else(PoisonError::into_inner);
        *probed = Some((Instant::now(), fresh.clone()));
        fresh
    }

    pub(super) async fn list_tools(
        &self,
        caller: &Caller,
        answering: &Answering,
    ) -> Result<Response, Fault> {
        let answer = self
            .calls
            .ask(&self.server, caller, "tools/list", json!({}))
            .await;
        let gone = || Fault::new(Kind::InteropError, "the server is not there");
        let listed = answer.ok_or_else(gone)?;
        if let Some(error) = listed.get("error") {
            return Err(super::refused(error));
        }
        let tools = listed
            .get("result")
            .and_then(|result| result.get("tools")?.as_array());
        let told: Vec<Value> = tools
            .into_iter()
            .flatten()
            .filter_map(|listed| {
                let tool = tool(listed.get("name")?.as_str()?).filter(|tool| tool.of_bridge)?;
                Some(json!({
                    "name": tool.name,
                    "description": listed.get("description"),
                    "inputSchema": listed.get("inputSchema"),
                    "outputSchema": listed.get("outputSchema"),
                    "annotations": annotations(tool),
                }))
            })
            .collect();
        Ok(answering.json(200, &json!({"tools": told})))
    }

    pub(super) async fn call_tool(
        &self,
        caller: &Caller,
        request: &mut Request,
        answering: &Answering,
    ) -> Result<Response, Fault> {
        let asked = body::object(request).await?;
        let named = asked
            .get("tool")
            .and_then(Value::as_str)
            .ok_or_else(|| Fault::input("tool", "tool is required").code("missing"))?;
        let tool = tool(named).filter(|tool| tool.of_bridge).ok_or_else(|| {
            Fault::missing(
                "tool",
                format!(
                    "there is no tool '{}' in this version",
                    named.escape_debug()
                ),
            )
        })?;
        let mut arguments = match asked.get("arguments") {
            None | Some(Value::Null) => json!({}),
            Some(Value::Object(members)) => Value::Object(members.clone()),
            Some(_) => {
                let wrong = "arguments has to be an object";
                return Err(Fault::input("arguments", wrong).code("value_error"));
            }
        };
        let key = asked.get("idempotencyKey").and_then(Value::as_str);
        if let (Some(members), Some(key)) = (arguments.as_object_mut(), key) {
            members.insert("idempotencyKey".into(), key.into());
        }
        let confirmed = body::confirmed(&asked, "critical", &request.head);
        let structured = self.call(tool, caller, arguments, confirmed).await?;
        let mut annotations = annotations(tool);
        if let (Some(members), Some(key)) = (annotations.as_object_mut(), key) {
            members.insert("idempotencyKey".into(), key.into());
        }
        let text = serde_json::to_string_pretty(&structured).unwrap_or_default();
        Ok(answering.json(
            200,
            &json!({
                "content": [{"type": "text", "text": text}],
                "isError": false,
                "tool": tool.name,
                "structuredContent": structured,
                "annotations": annotations,
            }),
        ))
    }

    /// Has a call judged that a stream will answer.
    pub(super) async fn judged(
        &self,
        name: &'static str,
        caller: &Caller,
        arguments: Value,
    ) -> Result<Value, Fault> {
        let params = json!({"name": name, "arguments": arguments});
        result(
            self.calls
                .ask(&self.server, caller, "tools/call", params)
                .await,
        )
    }
}

fn annotations(tool: &Tool) -> Value {
    json!({
        "critical": tool.critical, "requiresConfirmation": tool.critical, "roles": tool.roles(),
    })
}

/// Solves dy/dt = -y from 1 to t = 1.
fn probe() -> Result<(), String> {
    let read = pbpk::read::bytes(PROBE.as_bytes(), &pbpk::read::Options::default());
    let model = std::sync::Arc::new(read.map_err(|error| error.to_string())?);
    let outputs = model.outputs();
    let structure =
        pbpk::compile::Structure::new(model, outputs).map_err(|error| error.to_string())?;
    let instance = pbpk::compile::Instance::new(&structure);
    let results = pbpk::run::run(&instance, &pbpk::run::RunOptions::default());
    let results = results.map_err(|failure| failure.to_string())?;
    let last = results.column(0).last().unwrap_or(f64::NAN);
    let exact = (-1.0_f64).exp();
    match ((last - exact) / exact).abs() <= PROBE_TOLERANCE {
        true => Ok(()),
        false => Err(format!("the engine gives {last} for {exact}")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_probe_is_a_solve_that_is_held_against_the_exact_value() {
        assert_eq!(super::probe(), Ok(()));
    }
}
