//! The MCP-like façade: what the server can do, its tools, and calling one.

use std::sync::PoisonError;
use std::time::Instant;

use net::http::server::{Request, Response};
use serde_json::{Value, json};
use toolkit::face::Behalf;

use super::answer::Answering;
use super::{Rest, body, result};
use crate::fault::{Fault, Kind};
use crate::tools::{Tool, tool};

pub(super) const CAPABILITIES: &str = "/mcp/capabilities";
pub(super) const LIST_TOOLS: &str = "/mcp/list_tools";
pub(super) const CALL_TOOL: &str = "/mcp/call_tool";

/// Longest idempotency key, in characters, as the tools that start jobs take it.
pub(super) const KEY_CHARS_MAX: usize = 256;
/// Longest body of a request, in kilobytes.
const PAYLOAD_KB_MAX: usize = 4 * 1024;

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

    /// Whether a worker process solves a model whose solution is known; tried at most once a minute.
    async fn probed(&self) -> Result<(), String> {
        // One at a time: everybody may ask, and each probe starts a process.
        let _alone = self.probing.lock().await;
        let known = self
            .probed
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some((_, known)) = known {
            return known;
        }
        let service = crate::service::served(&self.server);
        let fresh = tokio::task::spawn_blocking(move || {
            let service = service.ok_or("the server is not there")?;
            crate::jobs::probe(service.program())
        });
        let fresh = fresh.await;
        let fresh = fresh.unwrap_or_else(|_| Err("the engine has panicked".to_owned()));
        let mut probed = self.probed.write().unwrap_or_else(PoisonError::into_inner);
        *probed = Some((Instant::now(), fresh.clone()));
        fresh
    }

    /// The bridge's tools that the caller may see, as they are listed.
    pub(super) async fn listed(
        &self,
        behalf: Behalf<'_>,
    ) -> Result<Vec<(&'static Tool, Value)>, Fault> {
        let answer = self
            .calls
            .ask(&self.server, behalf, "tools/list", json!({}))
            .await;
        let gone = || Fault::new(Kind::InteropError, "the server is not there");
        let listed = answer.ok_or_else(gone)?;
        if let Some(error) = listed.get("error") {
            return Err(super::refused(error));
        }
        let tools = listed
            .get("result")
            .and_then(|result| result.get("tools")?.as_array());
        let of_bridge = |listed: &Value| {
            let tool = tool(listed.get("name")?.as_str()?).filter(|tool| tool.of_bridge)?;
            Some((tool, listed.clone()))
        };
        Ok(tools.into_iter().flatten().filter_map(of_bridge).collect())
    }

    pub(super) async fn list_tools(
        &self,
        behalf: Behalf<'_>,
        answering: &Answering,
    ) -> Result<Response, Fault> {
        let one = |(tool, listed): (&Tool, Value)| {
            json!({
                "name": tool.name,
                "description": listed.get("description"),
                "inputSchema": listed.get("inputSchema"),
                "outputSchema": listed.get("outputSchema"),
                "annotations": annotations(tool),
            })
        };
        let told: Vec<Value> = self.listed(behalf).await?.into_iter().map(one).collect();
        Ok(answering.json(200, &json!({"tools": told})))
    }

    pub(super) async fn call_tool(
        &self,
        behalf: Behalf<'_>,
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
        let key = match asked.get("idempotencyKey") {
            None | Some(Value::Null) => None,
            // Checked here: a tool that starts no job passes the key over.
            Some(Value::String(key)) if (1..=KEY_CHARS_MAX).contains(&key.chars().count()) => {
                Some(key.as_str())
            }
            Some(_) => {
                let wrong =
                    format!("idempotencyKey has to be a text of 1 to {KEY_CHARS_MAX} characters");
                return Err(Fault::input("idempotencyKey", wrong).code("value_error"));
            }
        };
        if let (Some(members), Some(key)) = (arguments.as_object_mut(), key) {
            members.insert("idempotencyKey".into(), key.into());
        }
        let confirmed = body::confirmed(&asked, "critical", &request.head);
        let structured = self.call(tool, behalf, arguments, confirmed).await?;
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
        behalf: Behalf<'_>,
        arguments: Value,
    ) -> Result<Value, Fault> {
        let params = json!({"name": name, "arguments": arguments});
        result(
            self.calls
                .ask(&self.server, behalf, "tools/call", params)
                .await,
        )
    }
}

fn annotations(tool: &Tool) -> Value {
    json!({
        "critical": tool.critical, "requiresConfirmation": tool.critical, "roles": tool.roles(),
    })
}
