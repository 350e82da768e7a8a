//! What a client's request says of itself, whichever way it came.

use std::sync::Arc;

use wire::jsonrpc::{member, string};
use wire::scan::Scan;
use wire::{Bounds, Revision, scan_reply};

use crate::describe::{self, Context};
use crate::message::method::{self, Class};
use gate::facts::{Facts, ResourceType};
use gate::{ControlKind, Gate};

/// The `_meta` member in which a Modern client names itself.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// The `_meta` member in which it says what it can do.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// What a client is told that uses an id twice at a time.
pub const ID_IN_USE: &str = "this id is already in use by a call under way";
/// The sentence for a client that sends a second handshake in a session, or one in a batch.
pub const OPEN_ALREADY: &str = "the session is open already; send initialize once, alone and first";

/// Longest name of a client program that is kept, in characters.
const CLIENT_NAME_CHARS_MAX: usize = 128;

/// Longest message that is taken from a client, in bytes.
#[must_use]
pub fn bytes_max(gate: &Gate) -> usize {
    usize::try_from(gate.limits().request_bytes_max).unwrap_or(usize::MAX)
}

/// What happens to a request. A subscription that names no resource is the protocol's own traffic.
#[must_use]
pub fn classify(method: &str, scan: &Scan<'_>) -> Class {
    let names_resources = || {
        let Some(filter) = member(&scan.params, "notifications") else {
            return false;
        };
        let filter = scan_reply(filter.as_bytes(), &Bounds::default());
        // What cannot be read, or is new, is judged.
        const CHANGES: [&str; 3] = [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
        ];
        !filter.is_ok_and(|filter| {
            let names = filter.members.iter();
            names
                .into_iter()
                .all(|(name, _)| CHANGES.contains(&&**name))
        })
    };
    if method == "subscriptions/listen" && !names_resources() {
        return Class::Control(ControlKind::Handshake);
    }
    let class = method::of(method).class;
    let has_more = || scan.params.iter().any(|(name, _)| &**name != "_meta");
    match class {
        // The protocol has no parameters for it: what else it carries is judged as that of a method that MCP does not have.
        Class::Control(ControlKind::Ping) if has_more() => {
            Class::Judged(Some(ResourceType::Server))
        }
        class => class,
    }
}

/// The facts of a request that is judged; `None` where its method is not, or it lacks something.
#[must_use]
pub fn described(method: &str, scan: &Scan<'_>, context: &Context<'_>) -> Option<Facts> {
    let Class::Judged(reaches_for) = classify(method, scan) else {
        return None;
    };
    let described = describe::client_request(method, reaches_for, scan, context);
    described.ok().map(|facts| *facts)
}

/// The name in a client's description of itself.
#[must_use]
pub fn client_name(info: &str) -> Option<Arc<str>> {
    let info: serde_json::Value = serde_json::from_str(info).ok()?;
    let name = info.get("name")?.as_str()?;
    let name: String = name.chars().take(CLIENT_NAME_CHARS_MAX).collect();
    Some(name.into())
}

/// The revision that the answer to `initialize` settles on.
#[must_use]
pub fn version_of(result: &str) -> Option<Revision> {
    let scan = scan_reply(result.as_bytes(), &Bounds::default()).ok()?;
    Revision::parse(&string(member(&scan.members, "protocolVersion")?)?)
}
