//! The bridge's own paths over HTTP. Each request becomes a call of a tool, which is judged, recorded and carried out
//! like that of any client; this face only reads bodies and writes answers in the bridge's shapes.

mod answer;
mod audit;
mod body;
mod columns;
mod facade;
mod inspecting;
mod openapi;
mod paths;
mod resources;
mod routes;
mod streams;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use gate::Caller;
use gate::identity::IdentityFault;
use http::{Method, StatusCode};
use net::http::server::{Request, Response};
use serde_json::{Value, json};
use toolkit::Trace;
use toolkit::face::{Behalf, Face, Route, Scope};
use toolkit::mcp::{META_FAILURE, META_REFUSAL};
use toolkit::server::BoxFuture;

use crate::fault::{Fault, Kind};
use crate::jobs::OspsuiteInfo;
use crate::tools::{Tool, tool};
use answer::PendingAnswer;
use paths::RestPath;

/// How this face reaches the tools.
pub trait ToolCaller: Send + Sync {
    /// Sends a request to a server on a caller's behalf, through the gate; returns the whole answer as JSON-RPC. `None`
    /// if the server is not there.
    fn ask<'a>(
        &'a self,
        server: &'a str,
        behalf: Behalf<'a>,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Option<Value>>;

    /// Returns whether anything is looked for in what this server answers.
    fn inspects(&self, server: &str) -> bool;

    /// Applies the rules of `inspect:` to content that is sent beside the answer to a call.
    ///
    /// # Errors
    /// The error of a rule that refuses it, as JSON-RPC.
    fn inspect<'a>(
        &'a self,
        server: &'a str,
        caller: &'a Arc<str>,
        sent: SentContent,
    ) -> BoxFuture<'a, Result<String, Value>>;
}

/// Content that is sent beside the answer to a call.
#[derive(Debug)]
pub enum SentContent {
    /// A JSON value.
    Json(String),
    /// A text.
    Text(String),
}

/// When it was tried whether runs can be computed, and what came of it.
type Probed = (std::time::Instant, Result<Option<OspsuiteInfo>, String>);

/// The face.
pub struct RestFace {
    /// The server with the tools.
    server: String,
    calls: Arc<dyn ToolCaller>,
    routes: Vec<Route>,
    probed: RwLock<Option<Probed>>,
    /// Held while it is found out.
    probing: tokio::sync::Mutex<()>,
    /// When it was made, in milliseconds since 1970.
    since_ms: i64,
}

impl RestFace {
    /// Returns the paths of this server.
    #[must_use]
    pub fn new(server: &str, calls: Arc<dyn ToolCaller>) -> Self {
        // Some paths are known under two methods.
        let mut named: Vec<&str> = paths::ALL.iter().map(|path| path.path).collect();
        named.dedup();
        let exact = named.into_iter().map(|path| Route::Exact(path.into()));
        let more = [
            facade::CAPABILITIES,
            facade::LIST_TOOLS,
            facade::CALL_TOOL,
            openapi::OPENAPI,
            audit::EVENTS,
        ];
        let prefixes = [streams::JOBS, streams::CHUNKS, resources::RESOURCES];
        Self {
            server: server.to_owned(),
            calls,
            routes: exact
                .chain(more.map(|path| Route::Exact(path.into())))
                .chain(prefixes.map(|path| Route::Prefix(path.into())))
                .collect(),
            probed: RwLock::default(),
            probing: tokio::sync::Mutex::default(),
            since_ms: now_ms(),
        }
    }

    async fn answer(
        &self,
        who: Result<Caller, IdentityFault>,
        mut request: Request,
        answering: &PendingAnswer,
    ) -> Response {
        let path = request.head.uri.path().to_owned();
        // The server leaves the body of an answer to HEAD out.
        let method = match request.head.method.clone() {
            Method::HEAD => Method::GET,
            other => other,
        };
        if path == facade::CAPABILITIES {
            return match method {
                Method::GET => self.capabilities(answering).await,
                _ => answering.not_allowed("GET"),
            };
        }
        if path == openapi::OPENAPI {
            return match (method, openapi::document()) {
                (Method::GET, Ok(document)) => answering.json(200, &document),
                (Method::GET, Err(fault)) => {
                    answering.fault(&Fault::new(Kind::InternalError, fault.to_string()))
                }
                _ => answering.not_allowed("GET"),
            };
        }
        let caller = match who {
            Ok(caller) => caller,
            Err(fault) => return answering.unknown(fault),
        };
        let trace = Trace::of(&request.head.headers);
        let behalf = Behalf {
            caller: &caller,
            trace: &trace,
        };
        let done = match path.as_str() {
            facade::LIST_TOOLS if method == Method::GET => self.list_tools(behalf, answering).await,
            facade::CALL_TOOL if method == Method::POST => {
                self.call_tool(behalf, &mut request, answering).await
            }
            facade::LIST_TOOLS => return answering.not_allowed("GET"),
            facade::CALL_TOOL => return answering.not_allowed("POST"),
            other => match (path_of(other, &method), paths::methods(other)) {
                (Some(known), _) => self.tool_path(known, behalf, &mut request, answering).await,
                (None, known) if !known.is_empty() => {
                    return answering.not_allowed(&known.join(", "));
                }
                (None, _) if method != Method::GET => return answering.not_allowed("GET"),
                (None, _) if other == audit::EVENTS => {
                    self.audit(behalf, &request.head, answering).await
                }
                (None, _) if other.starts_with(resources::RESOURCES) => {
                    self.resource(other, behalf, &request, answering).await
                }
                (None, _) => self.stream(other, behalf, &request, answering).await,
            },
        };
        done.unwrap_or_else(|fault| answering.fault(&fault))
    }

    /// Returns a path that is one tool.
    async fn tool_path(
        &self,
        path: &RestPath,
        behalf: Behalf<'_>,
        request: &mut Request,
        answering: &PendingAnswer,
    ) -> Result<Response, Fault> {
        let Some(tool) = tool(path.tool) else {
            return Err(Fault::missing(
                "tool",
                format!("there is no tool {}", path.tool),
            ));
        };
        let read = match path.method {
            Method::GET => body::typed_query(&request.head, &tool.plain_input_schema()),
            _ => body::object(request).await,
        };
        // Who may not call it learns that before anything about the body.
        let (mut arguments, unread) = match read {
            Ok(arguments) => (arguments, None),
            Err(fault) => (json!({}), Some(fault)),
        };
        let confirmed = body::confirmed(&arguments, "confirm", &request.head);
        if let (Some(members), Some(key), true) = (
            arguments.as_object_mut(),
            body::header(&request.head, "idempotency-key"),
            tool.may_mean("idempotencyKey"),
        ) {
            members.insert("idempotencyKey".into(), key.into());
        }
        let told = self.call(tool, behalf, arguments, confirmed).await;
        match (told, unread) {
            (Err(fault), Some(unread))
                if matches!(fault.kind, Kind::InvalidInput | Kind::ConfirmationRequired) =>
            {
                Err(unread)
            }
            (Err(fault), _) => Err(fault),
            (Ok(_), Some(unread)) => Err(unread),
            (Ok(result), None) => Ok(answering.json(path.status, &(path.shape)(result))),
        }
    }

    /// Calls a tool; faults are reported in the order of the bridge: role, confirmation, arguments.
    async fn call(
        &self,
        tool: &Tool,
        behalf: Behalf<'_>,
        mut arguments: Value,
        confirmed: bool,
    ) -> Result<Value, Fault> {
        if let Some(members) = arguments.as_object_mut() {
            members.remove("confirm");
            if tool.critical && confirmed {
                members.insert("confirm".into(), true.into());
            }
        }
        let params = json!({"name": tool.name, "arguments": arguments});
        let answer = self
            .calls
            .ask(&self.server, behalf, "tools/call", params)
            .await;
        match result(answer) {
            Err(fault) if fault.kind == Kind::InvalidInput && tool.critical && !confirmed => {
                Err(tool.unconfirmed())
            }
            other => other,
        }
    }
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the tool that answers at a path under a method.
fn path_of(path: &str, method: &Method) -> Option<&'static RestPath> {
    let mut all = paths::ALL.iter();
    all.find(|known| known.path == path && known.method == method)
}

/// Returns the structured result of an answer, or what is wrong.
fn result(answer: Option<Value>) -> Result<Value, Fault> {
    let gone = || Fault::new(Kind::InteropError, "the server is not there");
    let answer = answer.ok_or_else(gone)?;
    if let Some(error) = answer.get("error") {
        return Err(refusal_fault(error));
    }
    let result = answer.get("result").ok_or_else(gone)?;
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(match refusal(result) {
            Some(refusal) => refusal_fault(&refusal),
            None => failure(result.get("_meta").and_then(|meta| meta.get(META_FAILURE))),
        });
    }
    let structured = result.get("structuredContent").cloned();
    structured.ok_or_else(|| Fault::new(Kind::Forbidden, "the call waits for somebody's answer"))
}

/// Returns a refusal by the gate that came as a result, as the error that it would be otherwise.
fn refusal(result: &Value) -> Option<Value> {
    let data = result.get("_meta")?.get(META_REFUSAL)?;
    let message = result.pointer("/content/0/text");
    Some(json!({ "message": message, "data": data }))
}

/// Returns a failure of the server, as the fault that it was.
fn failure(failure: Option<&Value>) -> Fault {
    let text = |name: &str| {
        let found = failure.and_then(|failure| failure.get(name)?.as_str());
        found.unwrap_or_default().to_owned()
    };
    let code = text("code");
    if code == "unfit_arguments" {
        let faults = failure.and_then(|failure| failure.get("faults")?.as_array());
        let details = faults.into_iter().flatten().map(|fault| {
            let of = |name: &str| {
                fault
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            crate::fault::FaultDetail {
                code: Some(
                    if of("wrong") == "is required" {
                        "missing"
                    } else {
                        "value_error"
                    }
                    .into(),
                ),
                issue: of("wrong"),
                field: Some(of("member")),
                hint: None,
            }
        });
        return Fault {
            kind: Kind::InvalidInput,
            message: text("message"),
            details: details.collect(),
        };
    }
    let kind = Kind::ALL.iter().find(|kind| kind.label() == code);
    let details = failure.and_then(|failure| failure.get("details").cloned());
    Fault {
        kind: kind.copied().unwrap_or(match code.as_str() {
            "result_too_large" => Kind::InvalidInput,
            _ => Kind::InternalError,
        }),
        message: text("message"),
        details: serde_json::from_value(details.unwrap_or_default()).unwrap_or_default(),
    }
}

/// Returns a refusal by the gate, or an error of the protocol.
fn refusal_fault(error: &Value) -> Fault {
    let message = error
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or("refused")
        .to_owned();
    let reason = error
        .get("data")
        .and_then(|data| data.get("reason")?.as_str());
    let known = gate::Reason::ALL
        .into_iter()
        .find(|known| Some(known.label()) == reason);
    let kind = match known.map(toolkit::reasons::http_status) {
        Some(StatusCode::FORBIDDEN) => Kind::Forbidden,
        Some(StatusCode::TOO_MANY_REQUESTS) => Kind::RateLimited,
        Some(_) => Kind::EnvironmentMissing,
        // The request cannot be judged, such as one with names that can be read as one another.
        None if reason.is_some_and(|reason| reason.starts_with("frame_")) => Kind::InvalidInput,
        None => Kind::InteropError,
    };
    let mut fault = Fault::of(kind, "tool", message);
    if let Some(reason) = reason {
        fault = fault.code(reason);
    }
    fault
}

impl Face<Request, Response> for RestFace {
    fn name(&self) -> &'static str {
        "simulation"
    }

    fn routes(&self) -> &[Route] {
        &self.routes
    }

    fn scope<'p>(&'p self, path: &'p str) -> Scope<'p> {
        match path {
            facade::CAPABILITIES | openapi::OPENAPI => Scope::Open,
            _ => Scope::Server(&self.server),
        }
    }

    fn handle(
        &self,
        who: Result<Caller, IdentityFault>,
        request: Request,
    ) -> BoxFuture<'_, Response> {
        Box::pin(async move {
            let answering = PendingAnswer::of(&request.head);
            let service = crate::service::last_served(&self.server);
            let (method, route) = (&request.head.method, request.head.uri.path());
            let (method, route) = (routes::method(method), routes::of(route));
            let counting = service
                .as_ref()
                .map(|service| service.metrics.request(method, route));
            let answer = self.answer(who, request, &answering).await;
            if let Some(counting) = counting {
                counting.end_with_status(answer.status().as_u16());
            }
            answer
        })
    }

    fn tick(&self) {
        // A probe is good for a minute.
        let mut probed = self.probed.write().unwrap_or_else(PoisonError::into_inner);
        let old = |(at, _): &(std::time::Instant, _)| at.elapsed().as_secs() >= 60;
        if probed.as_ref().is_some_and(old) {
            *probed = None;
        }
    }
}
