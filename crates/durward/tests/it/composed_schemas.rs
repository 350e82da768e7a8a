//! Arguments that only a composed schema makes a path: an allow rule over paths counts them.

use std::fs;

use mcp::client::Era;
use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::{Place, end};

const SERVER: &str = r#"
import json, sys
tools = json.load(open(sys.argv[1]))
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": tools}
    else:
        result = {"content": [{"type": "text", "text": "ran"}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()
"#;

/// Schemas by the names of their tools, and whether `at` is a path in them.
fn schemas() -> Vec<(&'static str, Value, bool)> {
    let path = json!({"type": "string", "format": "path"});
    let own = |at: Value| json!({"type": "object", "properties": {"path": {}, "at": at}});
    vec![
        ("plain", own(json!({"type": "string"})), false),
        ("direct", own(path.clone()), true),
        (
            "optional",
            own(json!({"anyOf": [path, {"type": "null"}]})),
            true,
        ),
        (
            "referred",
            json!({"properties": {"at": {"$ref": "#/$defs/Place"}}, "$defs": {"Place": path}}),
            true,
        ),
        (
            "anchored",
            json!({"properties": {"at": {"$ref": "#place"}}, "$defs": {"x": {"$anchor": "place", "format": "path"}}}),
            true,
        ),
        (
            "patterned",
            json!({"properties": {"path": {}}, "patternProperties": {"^a": path}}),
            true,
        ),
        (
            "additional",
            json!({"properties": {"path": {}}, "additionalProperties": path}),
            true,
        ),
        (
            "conditional",
            json!({"if": {}, "then": {"properties": {"at": {"oneOf": [{"type": "integer"}, path]}}}}),
            true,
        ),
        (
            "elsewhere",
            own(json!({"$ref": "https://schemas.example/place.json"})),
            true,
        ),
    ]
}

#[test]
fn an_allow_rule_over_paths_counts_arguments_that_a_composed_schema_makes_paths() {
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let place = Place::new();
    let open = place.path("open");
    let rule = json!({"id": "open", "effect": "allow", "conditions": {"path_pattern": format!("{}/**", open.display())}});
    place.write_policy(&json!({"version": "1", "rules": [rule]}).to_string());
    let mut tools: Vec<Value> = schemas()
        .iter()
        .map(|(name, schema, _)| json!({"name": name, "inputSchema": schema}))
        .collect();
    // A server may go by either of two definitions.
    for at in [json!({"format": "path"}), json!({})] {
        tools.push(json!({"name": "twice", "inputSchema": {"properties": {"at": at}}}));
    }
    fs::write(place.path("tools.json"), json!(tools).to_string()).unwrap();
    fs::write(place.path("server.py"), SERVER).unwrap();
    let server =
        json!({"command": python, "args": [place.path("server.py"), place.path("tools.json")]});
    let file = json!({"servers": {"s": server}}).to_string();
    fs::write(place.path("durward.yaml"), file).unwrap();
    let mut client = place.guard_configured("durward.yaml", &[], "s");
    client.handshake(Era::Legacy("2025-11-25")).unwrap();
    let cases = schemas()
        .into_iter()
        .map(|(name, _, is_path)| (name, is_path));
    for (name, is_path) in cases.chain([("twice", true)]) {
        let arguments = json!({"path": open.join("x"), "at": "vault"});
        let params = json!({"name": name, "arguments": arguments});
        let answer = client.request("tools/call", params).unwrap();
        let ran = answer.line().contains("\"ran\"");
        assert_eq!(ran, !is_path, "{name}: {}", answer.line());
    }
    end(client);
}
