//! What a client on a real SDK is shown of a list that two readers read in two ways.

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::place::{Place, binary};
use crate::servers;

/// Lists a tool, and another one under a name that Go's reader takes for the same, in either order.
const SERVER: &str = r#"while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case $line in
*'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id";;
*'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"good","inputSchema":{"type":"object"}}],"LIST":[{"name":"evil","inputSchema":{"type":"object"}}]}}\n' "$id";;
esac; done"#;

/// The tools that the client is shown of the server that these words start.
fn shown(place: &Place, client: &str, words: &[&str]) -> String {
    let mut command = place.command(client);
    let output = command.args(words).stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn j03_a_go_client_is_shown_no_tool_that_stands_in_a_list_that_only_it_reads() {
    let Some(client) = servers::lister() else {
        return;
    };
    let place = Place::new();
    let policy = json!({"version": "1", "default_action": "deny", "rules": [
        {"id": "good", "effect": "allow", "conditions": {"tool_name": "good"}}]});
    fs::write(place.dir.join("policy.json"), policy.to_string()).unwrap();
    let run = ["run", "--no-config", "--state-dir", "state"];
    let run = [&run[..], &["--policy", "policy.json", "--"]].concat();
    for (name, direct) in [
        ("Tools", "evil\n"),
        ("tool\u{17f}", "evil\n"),
        ("other", "good\n"),
    ] {
        fs::write(place.dir.join("server.sh"), SERVER.replace("LIST", name)).unwrap();
        let server = ["sh", "server.sh"];
        assert_eq!(shown(&place, &client, &server), direct, "{name}: directly");
        let through = [&[binary()][..], &run, &server].concat();
        let through = shown(&place, &client, &through);
        assert!(!through.contains("evil"), "{name}: {through}");
        if name == "other" {
            assert_eq!(through, "good\n");
        }
    }
}
