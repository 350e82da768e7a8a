//! Reading a request that the gate has let through.

use serde::Deserialize;
use wire::jsonrpc::{Envelope, Kind, member, string};
use wire::revision::META_PROTOCOL_VERSION;
use wire::{Bounds, Id, Revision, Scan, scan_request};

use super::Dialect;
use super::fault::{Fault, MODERN};

const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a request wants.
#[derive(Debug)]
pub(super) enum Wanted {
    /// A legacy session, with the revision that is settled on.
    Initialize(Revision),
    Ping,
    Discover,
    ListTools,
    /// To hear of changes, of which there are none.
    Listen,
    Call {
        tool: String,
        /// Raw JSON.
        arguments: Option<String>,
        /// Raw JSON: a string or a number.
        progress_token: Option<String>,
    },
}

/// A request and how it is to be answered.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) wanted: Result<Wanted, Fault>,
    pub(super) dialect: Dialect,
}

/// What a frame is.
#[derive(Debug)]
pub(super) enum Message<'a> {
    Request(Id<'a>, Box<Request>),
    /// Nobody waits any more for the request with this id.
    Cancelled(Id<'a>),
    /// Anything else that wants no answer.
    Silent,
    Unreadable(Fault),
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a serde_json::value::RawValue>,
}

impl<'a> Message<'a> {
    /// Reads a frame of a session that settled on this revision, if it did.
    pub(super) fn read(frame: &'a [u8], settled: Option<Revision>) -> Self {
        let scanned = scan_request(frame, &Bounds::default());
        let read = scanned.and_then(|scan| Ok((Envelope::of(&scan)?, scan)));
        let (envelope, scan) = match read {
            Ok(read) => read,
            Err(error) => return Self::Unreadable(Fault::Unreadable(error)),
        };
        match envelope.kind {
            Kind::Request { id, method } => {
                Self::Request(id, Box::new(Request::of(&method, &scan, settled)))
            }
            Kind::Notification { method } if method == "notifications/cancelled" => envelope
                .payload
                .and_then(|params| serde_json::from_str::<Named<'_>>(params).ok()?.request_id)
                .and_then(|id| Id::from_raw(id.get()))
                .map_or(Self::Silent, Self::Cancelled),
            Kind::Notification { .. } | Kind::Response { .. } => Self::Silent,
        }
    }
}

impl Request {
    fn of(method: &str, scan: &Scan<'_>, settled: Option<Revision>) -> Self {
        let meta = Meta::of(scan);
        let modern = meta.version.is_some();
        let dialect = match (modern, settled) {
            (true, _) => Dialect(MODERN),
            (false, settled) => Dialect(settled.unwrap_or(Revision::V2025_11_25)),
        };
        let wanted = if modern {
            meta.modern().and_then(|()| modern_method(method, scan))
        } else {
            legacy_method(method, scan, settled)
        };
        let wanted = wanted.map(|wanted| match wanted {
            Wanted::Call {
                tool, arguments, ..
            } => Wanted::Call {
                tool,
                arguments,
                progress_token: meta.progress_token.clone(),
            },
            other => other,
        });
        Self { wanted, dialect }
    }
}

/// The members of `_meta` that matter here.
#[derive(Default)]
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

fn modern_method(method: &str, scan: &Scan<'_>) -> Result<Wanted, Fault> {
    match method {
        "server/discover" => Ok(Wanted::Discover),
        "subscriptions/listen" => match member(&scan.params, "notifications") {
            Some(raw) if raw.starts_with('{') => Ok(Wanted::Listen),
            _ => Err(Fault::Params("params.notifications is missing".into())),
        },
        "tools/call" if member(&scan.params, "requestState").is_some() => Err(Fault::Params(
            "params.requestState was not issued here".into(),
        )),
        "tools/call" | "tools/list" => tools(method, scan),
        other => Err(Fault::UnknownMethod(other.to_owned())),
    }
}

fn legacy_method(
    method: &str,
    scan: &Scan<'_>,
    settled: Option<Revision>,
) -> Result<Wanted, Fault> {
    match method {
        "initialize" => {
            let asked = member(&scan.params, "protocolVersion").and_then(string);
            let Some(asked) = asked else {
                return Err(Fault::Params(
                    "params.protocolVersion is not a string".into(),
                ));
            };
            let known = Revision::parse(&asked).filter(|known| *known < MODERN);
            Ok(Wanted::Initialize(known.unwrap_or(Revision::V2025_11_25)))
        }
        "ping" => Ok(Wanted::Ping),
        "tools/call" | "tools/list" if settled.is_none() => Err(Fault::NotOpened),
        "tools/call" | "tools/list" => tools(method, scan),
        other => Err(Fault::UnknownMethod(other.to_owned())),
    }
}

fn tools(method: &str, scan: &Scan<'_>) -> Result<Wanted, Fault> {
    let get = |name| member(&scan.params, name);
    if method == "tools/list" {
        return match get("cursor") {
            // There is one page, so no cursor was ever given out.
            Some(cursor) if cursor != "null" => {
                Err(Fault::Params("params.cursor was not issued here".into()))
            }
            _ => Ok(Wanted::ListTools),
        };
    }
    let Some(tool) = get("name").and_then(string) else {
        return Err(Fault::Params("params.name is not a string".into()));
    };
    match get("arguments") {
        Some(raw) if !raw.starts_with('{') => {
            Err(Fault::Params("params.arguments is not an object".into()))
        }
        arguments => Ok(Wanted::Call {
            tool: tool.into_owned(),
            arguments: arguments.map(str::to_owned),
            progress_token: None,
        }),
    }
}
