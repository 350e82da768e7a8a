//! Members that the protocol knows: one that is only like one of them is refused, because a reader that
//! folds case or drops `_` takes it for that one.

use wire::jsonrpc::Own;
use wire::members::Shape;
use wire::{Bounds, Canonical, WireError};

const META: Shape = Shape::flat(&[
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/subscriptionId",
]);

/// `params` of requests and notifications, of whichever method: no method may know less by another
/// spelling.
pub const PARAMS: Shape = Shape {
    known: &[
        "name",
        "arguments",
        "uri",
        "cursor",
        "ref",
        "argument",
        "context",
        "level",
        "protocolVersion",
        "capabilities",
        "clientInfo",
        "notifications",
        "requestId",
        "reason",
        "progressToken",
        "progress",
        "requestState",
        "inputResponses",
        "task",
        "taskId",
        "_meta",
    ],
    below: &[
        ("_meta", &META),
        (
            "notifications",
            &Shape::flat(&[
                "toolsListChanged",
                "promptsListChanged",
                "resourcesListChanged",
                "resourceSubscriptions",
            ]),
        ),
        ("ref", &Shape::flat(&["type", "name", "uri"])),
        ("argument", &Shape::flat(&["name", "value"])),
    ],
};

/// An entry of a list.
const ENTRY: Shape = Shape::flat(&[
    "name",
    "title",
    "description",
    "uri",
    "uriTemplate",
    "mimeType",
    "inputSchema",
    "outputSchema",
    "annotations",
    "arguments",
    "icons",
]);

/// Results, of whichever method, as far as they are read here.
pub const RESULT: Shape = Shape {
    known: &[
        "tools",
        "resources",
        "resourceTemplates",
        "prompts",
        "nextCursor",
        "cacheScope",
        "inputRequests",
        "requestState",
        "resultType",
        "isError",
        "instructions",
        "serverInfo",
        "capabilities",
        "protocolVersion",
    ],
    below: &[
        ("tools", &ENTRY),
        ("resources", &ENTRY),
        ("resourceTemplates", &ENTRY),
        ("prompts", &ENTRY),
    ],
};

/// Errors, as far as they are read here.
const ERROR: Shape = Shape {
    known: &["code", "message", "data"],
    below: &[("data", &Shape::flat(&["elicitations"]))],
};

/// `params` of what a server says by itself, as far as they are read here.
const OF_SERVER: Shape = Shape::flat(&["requestId", "progressToken", "inputRequests", "_meta"]);

/// A message of a client, written anew.
///
/// # Errors
/// The first fault, with its byte offset.
pub fn of_client(frame: &[u8]) -> Result<Canonical, WireError> {
    let canonical = Canonical::of(frame, &Bounds::default())?;
    if canonical.has(Own::Method) {
        canonical.params_are(&PARAMS)?;
    }
    Ok(canonical)
}

/// A message of a server, written anew.
///
/// # Errors
/// As [`of_client`].
pub fn of_server(frame: &[u8]) -> Result<Canonical, WireError> {
    let canonical = Canonical::of(frame, &Bounds::default())?;
    if canonical.has(Own::Result) {
        canonical.reply_is(&RESULT)?;
    } else if canonical.has(Own::Error) {
        canonical.reply_is(&ERROR)?;
    }
    if canonical.has(Own::Method) {
        canonical.params_are(&OF_SERVER)?;
    }
    Ok(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j01_j02_j03_j11_what_a_folding_reader_reads_otherwise_is_refused() {
        let client = [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"delete_all"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"Arguments":{"x":1}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"paramſ":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resource_subscriptions":["a"]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"ID":2,"result":{}}"#,
        ];
        for frame in client {
            assert!(of_client(frame.as_bytes()).is_err(), "{frame}");
        }
        let server = [
            r#"{"jsonrpc":"2.0","id":1,"result":{"Tools":[{"name":"evil"}],"tools":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","Name":"b"}]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"InputRequests":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"Code":-32042,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m","data":{"Elicitations":[]}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"input_requests":{}}}"#,
        ];
        for frame in server {
            assert!(of_server(frame.as_bytes()).is_err(), "{frame}");
        }
        let cut = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\r{\"method\":\"tools/call\"}\r}}";
        assert!(!of_client(cut).unwrap().text().contains('\r'));
    }
}
