//! The MCP-like façade: capabilities, the list of tools, and calls.

use std::sync::PoisonError;
use std::time::Instant;

use net::http::server::{Request, Response};
use serde_json::{Value, json};
use toolkit::face::Behalf;

use super::answer::PendingAnswer;
use super::{RestFace, body, result};
use crate::fault::{Fault, Kind};
use crate::jobs::OspsuiteInfo;
use crate::tools::{Tool, tool};

pub(super) const CAPABILITIES: &str = "/mcp/capabilities";
pub(super) const LIST_TOOLS: &str = "/mcp/list_tools";
pub(super) const CALL_TOOL: &str = "/mcp/call_tool";

/// Longest idempotency key, in characters, as the tools that start jobs take it.
pub(super) const KEY_CHARS_MAX: usize = 256;
/// Longest body of a request, in kilobytes.
const PAYLOAD_KB_MAX: usize = 4 * 1024;

impl RestFace {
    pub(super) async fn capabilities(&self, answering: &PendingAnswer) -> Response {
        let probed = self.probed().await;
        let issues: Vec<String> = probed.as_ref().err().cloned().into_iter().collect();
        let service = crate::service::last_served(&self.server);
        let timeout_ms = service
            .as_ref()
            .map_or(0, |service| service.configured.job_timeout_ms);
        let over_r = service.and_then(|service| service.over_r());
        let libraries = over_r.as_ref().map(|how| {
            let listed = how.libraries.iter().map(|folder| folder.to_string_lossy());
            listed.collect::<Vec<_>>().join(":")
        });
        let r = probed.as_ref().ok().and_then(Option::as_ref);
        let told = json!({
            "transports": ["http-streamable"],
            "adapter": {
                "name": match (r, &over_r) {
                    (Some(r), _) => r.name(),
                    (None, Some(_)) => "ospsuite",
                    (None, None) => crate::BACKEND,
                },
                "populationSupported": true,
                "health": {
                    "status": if probed.is_ok() { "initialised" } else { "stopped" },
                    "environment": {
                        "available": probed.is_ok(),
                        "rPath": over_r.as_ref().map(|how| how.rscript.to_string_lossy()),
                        "ospsuiteLibs": libraries.filter(|listed| !listed.is_empty()),
                        "rVersion": r.map(|r| &r.r),
                        "ospsuiteAvailable": r.is_some(), "issues": issues,
                    },
                },
            },
            "maxPayloadKb": PAYLOAD_KB_MAX,
            "timeouts": {"defaultMs": timeout_ms, "adapterTimeoutMs": timeout_ms},
            "annotations": {"service": "durward", "environment": "local"},
        });
        answering.json(200, &told)
    }

    /// Returns whether a worker process solves a model with a known solution; tried at most once a minute.
    async fn probed(&self) -> Result<Option<OspsuiteInfo>, String> {
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
        let service = crate::service::last_served(&self.server);
        let fresh = tokio::task::spawn_blocking(move || {
            let service = service.ok_or("the server is not there")?;
            service.probe()
        });
        let fresh = fresh.await;
        let fresh = fresh.unwrap_or_else(|_| Err("the engine has panicked".to_owned()));
        let mut probed = self.probed.write().unwrap_or_else(PoisonError::into_inner);
        *probed = Some((Instant::now(), fresh.clone()));
        fresh
    }

    /// Returns the bridge's tools that the caller may see, as they are listed.
    pub(super) async fn visible_tools(
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
            return Err(super::refusal_fault(error));
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
        answering: &PendingAnswer,
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
        let told: Vec<Value> = self
            .visible_tools(behalf)
            .await?
            .into_iter()
            .map(one)
            .collect();
        Ok(answering.json(200, &json!({"tools": told})))
    }

    pub(super) async fn call_tool(
        &self,
        behalf: Behalf<'_>,
        request: &mut Request,
        answering: &PendingAnswer,
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
        let structured = self.call(tool, behalf, arguments, confirmed).await;
        let structured = structured.map_err(|fault| match fault.kind {
            Kind::Forbidden => fault.hint(format!(
                "roles that may call it, where they are groups: {}",
                tool.roles().join(", ")
            )),
            _ => fault,
        })?;
        let mut annotations = annotations(tool);
        if let Some(members) = annotations.as_object_mut() {
            members.extend(trusted(&structured));
            members.extend(key.map(|key| ("idempotencyKey".to_owned(), key.into())));
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
    pub(super) async fn judge_call(
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

/// Returns the members of a result's contract of trust as annotations.
fn trusted(result: &Value) -> impl Iterator<Item = (String, Value)> {
    let contract = result.get("trustSurfaceContract");
    let named = [
        ("trustBearing", "trustBearing"),
        ("trustSurfaceContractVersion", "summaryVersion"),
        ("trustSurfaceCount", "surfaceCount"),
        ("requiresContextualRendering", "requiresContextualRendering"),
    ];
    named.into_iter().filter_map(move |(name, member)| {
        let told = contract?.get(member)?;
        Some((name.to_owned(), told.clone()))
    })
}

fn annotations(tool: &Tool) -> Value {
    json!({
        "critical": tool.critical, "requiresConfirmation": tool.critical, "roles": tool.roles(),
    })
}
