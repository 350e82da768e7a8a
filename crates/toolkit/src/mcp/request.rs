//! Reading what a client sends: once, where it is judged, into what is then carried out.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Map, Value};
use wire::jsonrpc::{Envelope, Kind, member, string};
use wire::revision::META_PROTOCOL_VERSION;
use wire::{Bounds, Id, Revision, Scan, WireError, id::IdKey, scan_request};

use super::fault::{Fault, MODERN};
use super::{Builtin, Dialect};
use crate::server::{ResourceAsked, SessionRef, ToolDef, Unfit, read_arguments};

const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A frame of a client for a built-in server, read: what it wants, and on whose behalf. Its arguments have
/// been held against the tool's schema.
#[derive(Debug, Clone)]
pub struct Message {
    pub(super) content: Content,
    pub(super) by: SessionRef,
    /// Why its call could not be described.
    pub(super) unfit: OnceLock<Unfit>,
}

/// What a frame is.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Request(Box<Request>),
    /// Nobody waits any more for the request with this id.
    Cancelled(IdKey),
    /// Anything else that wants no answer.
    Silent,
    Unreadable(WireError),
}

/// A request as it was sent.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Raw JSON.
    pub(super) id: String,
    pub(super) key: IdKey,
    meta: Meta,
    asked: Asked,
}

/// What a request asks for, and what is wrong with it; whether its session may ask is another matter.
#[derive(Debug, Clone)]
enum Asked {
    /// With the revision that the client would like.
    Initialize(Result<String, Fault>),
    Ping,
    Discover,
    Listen(Result<bool, Fault>),
    ListTools(Result<(), Fault>),
    Call {
        /// It says that it continues a call, and no state is ever given out here.
        continues: bool,
        call: Result<ToolAsked, Fault>,
    },
    ListTemplates(Result<(), Fault>),
    Resources(Result<ResourceAsked, Fault>),
    Other(String),
}

/// A call of a tool that there is.
#[derive(Debug, Clone)]
pub(super) struct ToolAsked {
    pub(super) tool: &'static str,
    pub(super) arguments: Result<Map<String, Value>, Unfit>,
    /// By what its server knows again what a person was shown of it.
    pub(super) shown: Option<String>,
    /// What was judged of the fact that its tool binds.
    pub(super) bound: Option<Arc<str>>,
}

/// What is to be done about a request.
#[derive(Debug)]
pub(super) enum Wanted {
    /// A legacy session, with the revision that is settled on.
    Initialize(Revision),
    Ping,
    Discover,
    ListTools,
    /// To hear of changes; whether of those of the tools.
    Listen(bool),
    Call(ToolAsked),
    ListTemplates,
    Resources(ResourceAsked),
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a serde_json::value::RawValue>,
}

impl Builtin {
    /// Reads a scanned frame that was sent on behalf of `by`.
    #[must_use]
    pub fn read(&self, scan: &Scan<'_>, by: SessionRef) -> Message {
        let content = match Envelope::of(scan) {
            Err(error) => Content::Unreadable(error),
            Ok(envelope) => match envelope.kind {
                Kind::Request { id, method } => {
                    Content::Request(Box::new(Request::of(id, &method, scan, self)))
                }
                Kind::Notification { method } if method == "notifications/cancelled" => envelope
                    .payload
                    .and_then(|params| serde_json::from_str::<Named<'_>>(params).ok()?.request_id)
                    .and_then(|id| Id::from_raw(id.get()))
                    .map_or(Content::Silent, |id| Content::Cancelled(id.key())),
                Kind::Notification { .. } | Kind::Response { .. } => Content::Silent,
            },
        };
        Message {
            content,
            by,
            unfit: OnceLock::new(),
        }
    }

    /// Reads a frame that nobody has read before.
    #[must_use]
    pub fn parse(&self, frame: &[u8], by: SessionRef) -> Message {
        match scan_request(frame, &Bounds::default()) {
            Ok(scan) => self.read(&scan, by),
            Err(error) => Message {
                content: Content::Unreadable(error),
                by,
                unfit: OnceLock::new(),
            },
        }
    }
}

impl Message {
    /// Why its call could not be described, once that was tried.
    #[must_use]
    pub fn unfit(&self) -> Option<&Unfit> {
        self.unfit.get()
    }

    /// Notes what a person is shown of the call beside its arguments, where something is: its server gets it back with
    /// the call.
    pub fn note_shown(&mut self, digest: Option<String>) {
        if let Some(call) = self.call_to_note() {
            call.shown = digest;
        }
    }

    /// The call, for something that is noted with it.
    pub(super) fn call_to_note(&mut self) -> Option<&mut ToolAsked> {
        match &mut self.content {
            Content::Request(request) => match &mut request.asked {
                Asked::Call { call, .. } => call.as_mut().ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The tool that it calls, where there is one of that name.
    pub(super) fn call(&self) -> Option<&ToolAsked> {
        match &self.content {
            Content::Request(request) => match &request.asked {
                Asked::Call { call, .. } => call.as_ref().ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The id under which it can be cancelled, where it stays under way.
    pub(super) fn stays(&self) -> Option<&IdKey> {
        match &self.content {
            Content::Request(request) => match &request.asked {
                Asked::Call { call: Ok(_), .. }
                | Asked::Listen(Ok(_))
                | Asked::Resources(Ok(_)) => Some(&request.key),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Request {
    fn of(id: Id<'_>, method: &str, scan: &Scan<'_>, builtin: &Builtin) -> Self {
        Self {
            id: id.raw().to_owned(),
            key: id.key(),
            meta: Meta::of(scan),
            asked: asked(method, scan, builtin),
        }
    }

    /// The client's progress token, as raw JSON.
    pub(super) fn progress_token(&self) -> Option<String> {
        self.meta.progress_token.clone()
    }

    /// In whose words it is answered, in a session that settled on this revision, if it did.
    pub(super) fn dialect(&self, settled: Option<Revision>) -> Dialect {
        match self.meta.version {
            Some(_) => Dialect(MODERN),
            None => Dialect(settled.unwrap_or(Revision::V2025_11_25)),
        }
    }

    /// What is to be done about it in such a session.
    pub(super) fn wanted(self, settled: Option<Revision>) -> Result<Wanted, Fault> {
        let unknown = |method: &str| Err(Fault::UnknownMethod(method.to_owned()));
        if self.meta.version.is_some() {
            self.meta.modern()?;
            return match self.asked {
                Asked::Initialize(_) => unknown("initialize"),
                Asked::Ping => unknown("ping"),
                Asked::Discover => Ok(Wanted::Discover),
                Asked::Listen(tools) => tools.map(Wanted::Listen),
                Asked::ListTools(fit) => fit.map(|()| Wanted::ListTools),
                Asked::Call {
                    continues: true, ..
                } => Err(Fault::Params(
                    "params.requestState was not issued here".into(),
                )),
                Asked::Call { call, .. } => call.map(Wanted::Call),
                Asked::ListTemplates(fit) => fit.map(|()| Wanted::ListTemplates),
                Asked::Resources(asked) => asked.map(Wanted::Resources),
                Asked::Other(method) => unknown(&method),
            };
        }
        match self.asked {
            Asked::Initialize(asked) => {
                let known = Revision::parse(&asked?).filter(|known| *known < MODERN);
                Ok(Wanted::Initialize(known.unwrap_or(Revision::V2025_11_25)))
            }
            Asked::Ping => Ok(Wanted::Ping),
            Asked::Discover => unknown("server/discover"),
            Asked::Listen(_) => unknown("subscriptions/listen"),
            Asked::ListTools(_)
            | Asked::Call { .. }
            | Asked::ListTemplates(_)
            | Asked::Resources(_)
                if settled.is_none() =>
            {
                Err(Fault::NotOpened)
            }
            Asked::ListTools(fit) => fit.map(|()| Wanted::ListTools),
            Asked::Call { call, .. } => call.map(Wanted::Call),
            Asked::ListTemplates(fit) => fit.map(|()| Wanted::ListTemplates),
            Asked::Resources(asked) => asked.map(Wanted::Resources),
            Asked::Other(method) => unknown(&method),
        }
    }
}

/// The members of `_meta` that matter here.
#[derive(Debug, Clone, Default)]
struct Meta {
    version: Option<String>,
    has_capabilities: bool,
    progress_token: Option<String>,
}

impl Meta {
    fn of(scan: &Scan<'_>) -> Self {
        let raw = member(&scan.params, "_meta").unwrap_or("{}");
        let Ok(inner) = scan_request(raw.as_bytes(), &Bounds::default()) else {
            return Self::default();
        };
        let get = |name| member(&inner.members, name);
        Self {
            version: get(META_PROTOCOL_VERSION)
                .map(|raw| string(raw).map_or_else(|| raw.to_owned(), Into::into)),
            has_capabilities: get(META_CAPABILITIES).is_some_and(|raw| raw.starts_with('{')),
            progress_token: get("progressToken")
                .and_then(Id::from_raw)
                .map(|token| token.raw().to_owned()),
        }
    }

    fn modern(&self) -> Result<(), Fault> {
        match &self.version {
            Some(version) if version != MODERN.name() => Err(Fault::Revision(version.clone())),
            _ if self.has_capabilities => Ok(()),
            _ => Err(Fault::Params(format!(
                "_meta lacks {META_CAPABILITIES}, an object; send {{}} if there are none"
            ))),
        }
    }
}

fn asked(method: &str, scan: &Scan<'_>, builtin: &Builtin) -> Asked {
    let get = |name| member(&scan.params, name);
    let wrong = |what: &str| Fault::Params(what.to_owned());
    // There is one page, so no cursor was ever given out.
    let one_page = || match get("cursor") {
        Some(cursor) if cursor != "null" => Err(wrong("params.cursor was not issued here")),
        _ => Ok(()),
    };
    match method {
        "initialize" => {
            let version = get("protocolVersion").and_then(string);
            let version = version.map(std::borrow::Cow::into_owned);
            Asked::Initialize(
                version.ok_or_else(|| wrong("params.protocolVersion is not a string")),
            )
        }
        "ping" => Asked::Ping,
        "server/discover" => Asked::Discover,
        "subscriptions/listen" => Asked::Listen(match get("notifications") {
            Some(raw) if raw.starts_with('{') => Ok(serde_json::from_str::<Value>(raw)
                .is_ok_and(|wanted| wanted.get("toolsListChanged") == Some(&Value::Bool(true)))),
            _ => Err(wrong("params.notifications is missing")),
        }),
        "tools/list" => Asked::ListTools(one_page()),
        "tools/call" => Asked::Call {
            continues: get("requestState").is_some(),
            call: call(scan, builtin.tools()),
        },
        "resources/templates/list" if builtin.has_resources() => Asked::ListTemplates(one_page()),
        "resources/list" if builtin.has_resources() => Asked::Resources(match get("cursor") {
            None | Some("null") => Ok(ResourceAsked::List { cursor: None }),
            Some(raw) => {
                let cursor = string(raw).map(std::borrow::Cow::into_owned);
                let listed = cursor.map(|cursor| ResourceAsked::List {
                    cursor: Some(cursor),
                });
                listed.ok_or_else(|| wrong("params.cursor is not a string"))
            }
        }),
        "resources/read" if builtin.has_resources() => {
            let uri = get("uri").and_then(string);
            let read = uri.map(|uri| ResourceAsked::Read {
                uri: uri.into_owned(),
            });
            Asked::Resources(read.ok_or_else(|| wrong("params.uri is not a string")))
        }
        other => Asked::Other(other.to_owned()),
    }
}

fn call(scan: &Scan<'_>, tools: &[ToolDef]) -> Result<ToolAsked, Fault> {
    let get = |name| member(&scan.params, name);
    let Some(name) = get("name").and_then(string) else {
        return Err(Fault::Params("params.name is not a string".into()));
    };
    let arguments = get("arguments");
    if arguments.is_some_and(|raw| !raw.starts_with('{')) {
        return Err(Fault::Params("params.arguments is not an object".into()));
    }
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        return Err(Fault::UnknownTool(name.into_owned()));
    };
    Ok(ToolAsked {
        shown: None,
        bound: None,
        tool: tool.name,
        arguments: read_arguments(arguments, &tool.input),
    })
}
