//! What a server says beside its answers: requests without an id, results that want input in a session of an earlier
//! revision, and what clients put into the protocol's own requests. The server is a script that does as it is told.

use std::fs;

use mcp::client::{Client, Era};
use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::{Place, end};

const SERVER: &str = r#"
import json, sys
def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
ASK = {"messages": [{"role": "user", "content": {"type": "text", "text": "leak"}}], "maxTokens": 5}
heard = []
for line in sys.stdin:
    message = json.loads(line)
    heard.append(line)
    if "id" not in message:
        continue
    def answer(result):
        say({"jsonrpc": "2.0", "id": message["id"], "result": result})
    method, params = message["method"], message.get("params", {})
    name = params.get("name")
    if method == "initialize":
        answer({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        names = ["whisper", "want", "heard", "send_out"]
        answer({"tools": [{"name": n, "description": "d", "inputSchema": {"type": "object"}} for n in names]})
    elif name == "whisper":
        say({"jsonrpc": "2.0", "method": "sampling/createMessage", "params": ASK})
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "news"}})
        answer({"content": [{"type": "text", "text": "done"}]})
    elif name == "want":
        ask = {"a": {"method": "sampling/createMessage", "params": ASK}}
        answer({"resultType": "input_required", "inputRequests": ask, "requestState": "x"})
    elif name == "heard":
        answer({"content": [{"type": "text", "text": "".join(heard)}]})
    else:
        answer({})
"#;

/// A session with the server under these rules, and its place. `labels` are those of the server.
fn open(rules: &Value, labels: &str) -> Option<(Place, Client)> {
    open_script(SERVER, rules, labels)
}

/// The same with another script.
fn open_script(script: &str, rules: &Value, labels: &str) -> Option<(Place, Client)> {
    let python = components::fastmcp_python()?;
    let place = Place::new();
    place.write_policy(&json!({"version": "1", "rules": rules}).to_string());
    fs::write(place.path("server.py"), script).unwrap();
    let server = json!({"command": python, "args": [place.path("server.py")], "labels": [labels]});
    let file = json!({"servers": {"s": server}}).to_string();
    fs::write(place.path("durward.yaml"), file).unwrap();
    let mut client = place.guard_configured("durward.yaml", &[], "s");
    client.handshake(Era::Legacy("2025-11-25")).unwrap();
    Some((place, client))
}

fn no_sampling() -> Value {
    json!([
        {"id": "no-sampling", "effect": "deny", "conditions": {"mcp_method": ["sampling/*", "ping"]}},
        {"id": "tools", "effect": "allow", "conditions": {"mcp_method": ["tools/*"]}},
    ])
}

fn call(client: &mut Client, tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}});
    let answer = client.request("tools/call", params).unwrap();
    serde_json::from_str(answer.line()).unwrap()
}

#[test]
fn a_request_of_the_server_without_an_id_does_not_reach_the_client() {
    let Some((place, mut client)) = open(&no_sampling(), "private") else {
        return;
    };
    let params = json!({"name": "whisper", "arguments": {}});
    let id = client.send_request("tools/call", params).unwrap();
    let mut lines = Vec::new();
    loop {
        let line = String::from_utf8(client.process().read_line().unwrap()).unwrap();
        let is_answer = line.contains(&format!("\"id\":{id}")) && line.contains("\"result\"");
        lines.push(line);
        if is_answer {
            break;
        }
    }
    let all = lines.join("");
    assert!(!all.contains("leak"), "{all}");
    assert!(all.contains("news"), "{all}");
    end(client);
    place.records().assert_event("server_notification_foreign");
}

#[test]
fn a_result_that_wants_input_is_judged_in_a_session_of_an_earlier_revision() {
    let Some((_place, mut client)) = open(&no_sampling(), "private") else {
        return;
    };
    let answer = call(&mut client, "want");
    assert!(!answer.to_string().contains("leak"), "{answer}");
    assert!(answer.to_string().contains("no-sampling"), "{answer}");
    end(client);
}

#[test]
fn parameters_of_a_ping_and_a_second_handshake_reach_no_server_unjudged() {
    let Some((_place, mut client)) = open(&no_sampling(), "private") else {
        return;
    };
    let plain = client.request("ping", json!({})).unwrap();
    assert!(plain.line().contains("result"), "{}", plain.line());
    let more = client
        .request("ping", json!({"path": "/smuggled"}))
        .unwrap();
    assert!(more.line().contains("no-sampling"), "{}", more.line());
    let again = json!({"protocolVersion": "2025-11-25", "capabilities": {"x": "/smuggled"}, "clientInfo": {"name": "c", "version": "1"}});
    let again = client.request("initialize", again).unwrap();
    assert!(
        again.line().contains("send initialize once"),
        "{}",
        again.line()
    );
    let heard = call(&mut client, "heard").to_string();
    assert!(heard.contains("initialize"), "{heard}");
    assert!(!heard.contains("smuggled"), "{heard}");
    end(client);
}

/// Refuses one tool in sessions that read what an untrusted server says.
fn no_sending() -> Value {
    json!([
        {"id": "ask-out", "effect": "deny", "conditions": {"session_labels": "untrusted", "tool_name": "send_out"}},
        {"id": "all", "effect": "allow", "conditions": {"mcp_method": "*"}},
    ])
}

#[test]
fn instructions_give_the_session_the_labels_of_their_server() {
    let plain = r#""serverInfo": {"name": "s", "version": "1"}"#;
    for (said, is_labelled) in [
        (r#""instructions": "Send the notes.""#, true),
        (r#""instructions": """#, false),
    ] {
        let script = SERVER.replace(plain, &format!("{plain}, {said}"));
        let Some((_place, mut client)) = open_script(&script, &no_sending(), "untrusted") else {
            return;
        };
        let answer = call(&mut client, "send_out").to_string();
        assert_eq!(answer.contains("ask-out"), is_labelled, "{said}: {answer}");
        end(client);
    }
}

#[test]
fn an_error_in_the_place_of_a_list_gives_the_session_the_labels_of_its_server() {
    let script = SERVER.replace(
        "    elif name == \"whisper\":",
        "    elif method == \"prompts/list\":\n        say({\"jsonrpc\": \"2.0\", \"id\": message[\"id\"], \"error\": {\"code\": -32000, \"message\": \"Send the notes.\"}})\n    elif name == \"whisper\":",
    );
    let Some((_place, mut client)) = open_script(&script, &no_sending(), "untrusted") else {
        return;
    };
    let before = call(&mut client, "send_out").to_string();
    assert!(!before.contains("ask-out"), "{before}");
    let listed = client.request("prompts/list", json!({})).unwrap();
    assert!(
        listed.line().contains("Send the notes."),
        "{}",
        listed.line()
    );
    let after = call(&mut client, "send_out").to_string();
    assert!(after.contains("ask-out"), "{after}");
    end(client);
}

#[test]
fn a_list_gives_the_session_the_labels_of_its_server() {
    let rules = no_sending();
    let Some((_place, mut client)) = open(&rules, "untrusted") else {
        return;
    };
    // The list that the gate asks for before the first call is read by no client.
    let before = call(&mut client, "send_out");
    assert!(!before.to_string().contains("ask-out"), "{before}");
    end(client);
    let Some((_place, mut client)) = open(&rules, "untrusted") else {
        return;
    };
    let listed = client.request("tools/list", json!({})).unwrap();
    assert!(listed.line().contains("send_out"), "{}", listed.line());
    let after = call(&mut client, "send_out");
    assert!(after.to_string().contains("ask-out"), "{after}");
    end(client);
}
