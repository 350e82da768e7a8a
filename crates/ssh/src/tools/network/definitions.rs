//! The schemas of the tools that look at a network.

use gate::facts::Operation;
use serde_json::{Value, json};
use toolkit::schema::SchemaFault;
use toolkit::server::ToolDef;

use super::super::definitions::{object, session};

fn tool(
    (name, title, description): (&'static str, &'static str, &'static str),
    mut properties: Value,
    required: &[&str],
    (output, always): (Value, &[&str]),
) -> Result<ToolDef, SchemaFault> {
    if let Some(members) = properties.as_object_mut() {
        members.insert("session_id".into(), session());
    }
    let output = json!({"type": "object", "properties": output, "required": always});
    let tool = ToolDef::new(name, title, description, object(properties, required))?
        .with_output(output)?;
    Ok(ToolDef {
        operation: Operation::Read,
        open_world: true,
        ..tool
    })
}

fn name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 64})
}

fn flag() -> Value {
    json!({"type": "boolean", "default": false})
}

fn text() -> Value {
    json!({"type": "string"})
}

/// The tools, in the order in which they are listed.
pub(in crate::tools) fn definitions() -> Result<Vec<ToolDef>, SchemaFault> {
    let all = [interfaces, routes, firewall, qdisc, connectivity, compare];
    all.into_iter().map(|tool| tool()).collect()
}

fn interfaces() -> Result<ToolDef, SchemaFault> {
    tool(
        (
            "ssh_network_interfaces",
            "Network interfaces",
            "The interfaces of a host with their addresses, and with include_stats their counters.",
        ),
        json!({"interface": name(), "include_stats": flag()}),
        &["session_id"],
        (
            json!({"format": text(), "interfaces": {}, "stats": {}}),
            &["format", "interfaces"],
        ),
    )
}

fn routes() -> Result<ToolDef, SchemaFault> {
    tool(
        (
            "ssh_network_routes",
            "Routes",
            "The routes of a host, of one table and family.",
        ),
        json!({"table": {"type": "string", "minLength": 1, "maxLength": 64, "default": "main"}, "family": {"enum": ["inet", "inet6", "all"], "default": "all"}}),
        &["session_id"],
        (
            json!({"routes": {"type": "object"}, "table": text(), "format": text()}),
            &["routes", "table", "format"],
        ),
    )
}

fn firewall() -> Result<ToolDef, SchemaFault> {
    tool(
        (
            "ssh_network_firewall",
            "Packet filter",
            "The rules of nftables or iptables; auto takes nftables where it has a table.",
        ),
        json!({"format": {"enum": ["nft", "iptables", "auto"], "default": "auto"}, "table": name(), "summary": flag()}),
        &["session_id"],
        (
            json!({"format": text(), "table": {}, "summary": {"type": "object"}}),
            &["format", "table", "summary"],
        ),
    )
}

fn qdisc() -> Result<ToolDef, SchemaFault> {
    tool(
        (
            "ssh_network_qdisc",
            "Queueing disciplines",
            "The queueing disciplines of a host, and with include_stats their counters.",
        ),
        json!({"interface": name(), "include_stats": flag()}),
        &["session_id"],
        (
            json!({"format": text(), "qdiscs": {}}),
            &["format", "qdiscs"],
        ),
    )
}

fn connectivity() -> Result<ToolDef, SchemaFault> {
    tool(
        (
            "ssh_network_connectivity",
            "Reach a target",
            "Whether a host reaches a target: pings, names, the way.",
        ),
        json!({
            "target": {"type": "string", "minLength": 1, "maxLength": 253, "description": "A name, an IPv4 or an IPv6 address."},
            "tests": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"enum": ["ping", "dns", "traceroute"]}, "default": ["ping", "dns"]},
            "ping_count": {"type": "integer", "minimum": 1, "maximum": 5, "default": 3},
            "traceroute_hops": {"type": "integer", "minimum": 1, "maximum": 15, "default": 10}
        }),
        &["session_id", "target"],
        (
            json!({"results": {"type": "object"}, "target": text()}),
            &["results", "target"],
        ),
    )
}

fn compare() -> Result<ToolDef, SchemaFault> {
    tool(
        (
            "ssh_network_compare",
            "Changes of the network",
            "What has changed of a host's network since the baseline: the first call of a scope, or the last one with save_baseline.",
        ),
        json!({"scope": {"enum": ["interfaces", "routes", "all"], "default": "all"}, "save_baseline": flag()}),
        &["session_id"],
        (
            json!({"baseline_saved": {"type": "boolean"}, "changes_detected": {"type": "boolean"}}),
            &["baseline_saved", "changes_detected"],
        ),
    )
}
