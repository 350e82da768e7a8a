//! The tools of port forwards: what they take, and what they answer.

use gate::facts::{FactId, Operation};
use serde_json::{Value, json};
use toolkit::schema::SchemaFault;
use toolkit::server::ToolDef;

use super::definitions::{object, session};

/// Most targets of a dynamic forward.
const TARGETS_MAX: usize = 64;

fn told() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "properties": {
            "forward": {"type": "string"}, "kind": {"enum": ["local", "remote", "dynamic"]},
            "listening": {"type": "string", "description": "ADDRESS:PORT, here or at the host."},
            "targets": {"type": "array", "items": {"type": "string"}},
            "open": count, "taken": count, "turned_away": count, "bytes_sent": count, "bytes_received": count,
            "ended": {"type": ["string", "null"], "description": "Why it takes no connections any more."}
        },
        "required": ["forward", "kind", "listening", "targets", "open", "taken", "turned_away"]
    })
}

pub(super) fn definitions() -> Result<[ToolDef; 3], SchemaFault> {
    let open = ToolDef::new(
        "ssh_forward_open",
        "Open a port forward",
        "Makes a port lead elsewhere over SSH. local: a port of this machine to a target that the host reaches; remote: a port of the host to a target that this machine reaches; dynamic: a SOCKS 5 port of this machine to the listed targets, and to no others. It ends with the session, and where it is idle.",
        object(
            json!({
                "session_id": session(),
                "kind": {"enum": ["local", "remote", "dynamic"]},
                "listen_address": {"type": "string", "minLength": 1, "maxLength": 64, "default": "127.0.0.1", "description": "An IP address."},
                "listen_port": {"type": "integer", "minimum": 0, "maximum": 65535, "default": 0, "description": "0 takes a free one."},
                "targets": {"type": "array", "minItems": 1, "maxItems": TARGETS_MAX, "items": {"type": "string", "minLength": 3, "maxLength": 262}, "description": "HOST:PORT; one, or several where it is dynamic."}
            }),
            &["session_id", "kind", "targets"],
        ),
    )?
    .with_output(told())?;
    let list = ToolDef::new(
        "ssh_forward_list",
        "List port forwards",
        "Lists the port forwards of a session: where they listen, where they lead, and what goes over them.",
        object(json!({"session_id": session()}), &["session_id"]),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {"forwards": {"type": "array", "items": told()}, "count": {"type": "integer"}},
        "required": ["forwards", "count"]
    }))?;
    let named = json!({"type": "string", "minLength": 1, "maxLength": 64, "description": "What ssh_forward_open gave."});
    let close = ToolDef::new(
        "ssh_forward_close",
        "Close a port forward",
        "Ends a port forward with all its connections.",
        object(
            json!({"session_id": session(), "forward": named}),
            &["session_id", "forward"],
        ),
    )?
    .with_output(told())?;
    Ok([
        ToolDef {
            operation: Operation::Unknown,
            side_effects: &["network_egress", "network_ingress"],
            idempotent: false,
            open_world: true,
            varies: &[
                FactId::Host,
                FactId::Forward,
                FactId::ForwardListen,
                FactId::ForwardTargets,
            ],
            ..open
        },
        ToolDef {
            varies: &[FactId::Host],
            ..list
        },
        ToolDef {
            operation: Operation::Delete,
            varies: &[FactId::Host],
            ..close
        },
    ])
}
