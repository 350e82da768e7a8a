//! Checks the headers of a request, and that its body agrees with them.

use crate::json::RpcEnvelope;
use crate::server::{LEGACY_VERSIONS, ProtocolMachine, RequestFault, RoutingParams};
use http::{HeaderMap, HeaderName};
use net::http::server::single;
use serde_json::Value;
use wire::header::decode;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

/// Which rules a request falls under, by its headers alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderRules {
    Legacy,
    Modern,
    /// No revision is named: the body decides.
    Open,
}

/// Returns the rules for a request with these headers.
pub(super) fn rules(headers: &HeaderMap) -> Result<HeaderRules, RequestFault> {
    Ok(match value(headers, &PROTOCOL_VERSION)? {
        None => HeaderRules::Open,
        Some(version) if LEGACY_VERSIONS.contains(&version) => HeaderRules::Legacy,
        Some(_) => HeaderRules::Modern,
    })
}

/// Returns a header's value, if it is there once at most.
pub(super) fn value<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, RequestFault> {
    single(headers, name).map_err(|what| RequestFault::HeaderMismatch(format!("{name}: {what}")))
}

/// Returns whether a list header names a type, or every type.
pub(super) fn lists(headers: &HeaderMap, name: &HeaderName, kind: &str) -> bool {
    let (group, _) = kind.split_once('/').unwrap_or((kind, ""));
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|part| part.split(';').next())
        .map(|part| part.trim().to_ascii_lowercase())
        .any(|part| part == kind || part == "*/*" || part == format!("{group}/*"))
}

/// Compares the headers of a Modern request with its body, SEP-2243.
pub(super) fn mirror(
    headers: &HeaderMap,
    envelope: &RpcEnvelope<'_>,
    params: &RoutingParams<'_>,
    machine: &dyn ProtocolMachine,
) -> Result<(), RequestFault> {
    same(headers, &PROTOCOL_VERSION, params.version_named())?;
    same(headers, &METHOD, Some(&envelope.method))?;
    let member = match &*envelope.method {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" => params.uri,
        _ => return Ok(()),
    };
    let name: Option<String> = member.and_then(|raw| serde_json::from_str(raw.get()).ok());
    same(headers, &NAME, name.as_deref())?;
    let mirrored = match &*envelope.method {
        "tools/call" => machine.mirrored_parameters(name.as_deref().unwrap_or_default()),
        _ => &[],
    };
    for (header, argument) in mirrored {
        let header = HeaderName::from_bytes(format!("mcp-param-{header}").as_bytes())
            .map_err(|error| RequestFault::Internal(error.to_string()))?;
        let arguments: Option<Value> = params
            .arguments
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        let given = arguments.as_ref().and_then(|all| all.get(*argument));
        let given = given.map(|given| given.as_str().map_or(given.to_string(), str::to_owned));
        same(headers, &header, given.as_deref())?;
    }
    Ok(())
}

fn same(headers: &HeaderMap, name: &HeaderName, body: Option<&str>) -> Result<(), RequestFault> {
    let unlike = |what: &str| Err(RequestFault::HeaderMismatch(format!("{name} {what}")));
    let Some(raw) = value(headers, name)? else {
        return match body {
            Some(_) => unlike("is missing"),
            None => Ok(()),
        };
    };
    match decode(raw.as_bytes()) {
        Ok(said) if Some(&*said) == body => Ok(()),
        Ok(_) => unlike("says something else than the body"),
        Err(fault) => unlike(&fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    #[test]
    fn a_list_header_names_types_in_any_spelling() {
        let cases = [
            ("application/json, text/event-stream", true),
            ("text/event-stream;q=0.5", true),
            ("TEXT/Event-Stream", true),
            ("text/*", true),
            ("*/*", true),
            ("application/json", false),
            ("text/event-streams", false),
            ("", false),
        ];
        for (accept, expect) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(lists(&headers, &ACCEPT, EVENTS), expect, "{accept}");
        }
    }
}
