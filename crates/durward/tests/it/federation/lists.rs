//! Lists of several servers: prefixes, servers that are not there, changes.

use std::fs;

use mcp::client::Message;
use serde_json::json;

use super::{Asks, configured, echo_mock, run_all, text_of};
use crate::support::guarded::{LATEST, Place, end, eventually};
use crate::support::served::{Served, ready, stdio_mock};

#[test]
fn one_server_keeps_its_names_unless_prefixes_are_asked_for() {
    let place = Place::new();
    let policy = place.path("policy.json");
    configured(
        &place,
        &json!({"servers": {"one": echo_mock(&place)}, "policy": policy}),
    );
    for (flags, name) in [
        (&[][..], "echo"),
        (&["--prefix", "always"][..], "one__echo"),
    ] {
        let mut client = run_all(&place, flags);
        client.handshake(LATEST).unwrap();
        let (names, _) = client.tools();
        assert!(names.iter().any(|known| known == name), "{names:?}");
        assert_eq!(text_of(&client.call(name, json!({"text": "x"}))), "x");
        assert_eq!(end(client).code, Some(0));
    }
    configured(
        &place,
        &json!({"servers": {"one": echo_mock(&place)}, "policy": policy, "prefix": "always"}),
    );
    let mut client = run_all(&place, &[]);
    client.handshake(LATEST).unwrap();
    assert!(
        client
            .tools()
            .0
            .iter()
            .all(|name| name.starts_with("one__"))
    );
}

#[test]
fn a_server_that_cannot_be_started_takes_nothing_from_the_others() {
    let place = Place::new();
    let policy = place.path("policy.json");
    let servers = json!({"good": echo_mock(&place), "dead": {"command": "/bin/false"}, "own": {"builtin": "echo"}});
    configured(&place, &json!({"servers": servers, "policy": policy}));
    let mut client = run_all(&place, &[]);
    let opened = client.handshake(LATEST).unwrap();
    let result = opened.result().unwrap();
    assert_eq!(
        result["_meta"]["durward/missing"][0]["server"], "dead",
        "{result}"
    );
    assert_eq!(
        result["_meta"]["durward/missing"][0]["reason"], "upstream_died",
        "{result}"
    );
    let said = result["instructions"].as_str().unwrap();
    assert!(said.contains("# own\n\nSays back"), "{said}");
    assert!(
        said.ends_with("Not available at the moment: dead."),
        "{said}"
    );
    let (names, missing) = client.tools();
    assert_eq!(missing, ["dead"]);
    assert!(names.iter().any(|name| name == "good__echo"), "{names:?}");
    let absent = client.call("dead__x", json!({}));
    let message = absent["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("\"dead\" is not available"), "{absent}");
    let unknown = client.call("nobody__x", json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(
        text_of(&client.call("good__echo", json!({"text": "x"}))),
        "x"
    );
}

#[test]
fn a_cursor_of_nobody_is_refused_and_a_batch_is_answered_as_one() {
    let place = Place::new();
    let policy = place.path("policy.json");
    let servers = json!({"a": echo_mock(&place), "b": echo_mock(&place)});
    configured(&place, &json!({"servers": servers, "policy": policy}));
    let mut client = run_all(&place, &[]);
    client
        .handshake(mcp::client::Era::Legacy("2025-03-26"))
        .unwrap();
    for cursor in ["2", "durward.e30", ""] {
        let refused = client.ask("tools/list", json!({ "cursor": cursor }));
        assert_eq!(refused.error_code(), Some(-32602), "{}", refused.line());
    }
    let batch = r#"[{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"a__echo","arguments":{"text":"x"}}},
        {"jsonrpc":"2.0","id":72,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]"#;
    let batch = batch.replace('\n', "");
    client.process().send_line(batch.as_bytes()).unwrap();
    let line = client.process().read_line().unwrap();
    let answers: Vec<serde_json::Value> = serde_json::from_slice(&line).unwrap();
    let mut ids: Vec<_> = answers
        .iter()
        .map(|answer| answer["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [71, 72]);
    for broken in [
        "{",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":7}}"#,
    ] {
        client.process().send_line(broken.as_bytes()).unwrap();
        let line = String::from_utf8(client.process().read_line().unwrap()).unwrap();
        assert!(line.contains("\"error\""), "{broken} {line}");
    }
}

#[test]
fn a_second_handshake_reaches_no_server() {
    let place = Place::new();
    let policy = place.path("policy.json");
    // One server, whose names stand bare: all that is not known otherwise goes to it.
    let servers = json!({"a": echo_mock(&place)});
    configured(&place, &json!({"servers": servers, "policy": policy}));
    let mut client = run_all(&place, &[]);
    client
        .handshake(mcp::client::Era::Legacy("2025-03-26"))
        .unwrap();
    let again = r#"{"jsonrpc":"2.0","id":73,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    for sent in [again.to_owned(), format!("[{again}]")] {
        client.process().send_line(sent.as_bytes()).unwrap();
        let line = String::from_utf8(client.process().read_line().unwrap()).unwrap();
        assert!(line.contains("send initialize once"), "{sent} {line}");
        assert!(line.contains("\"id\":73"), "{line}");
    }
}

#[test]
fn the_client_of_all_servers_is_told_when_the_rules_of_one_change() {
    let place = Place::new();
    let (mine, policy) = (place.path("a.json"), place.path("policy.json"));
    let only = |tool: &str| json!({"rules": [{"id": "x", "effect": "allow", "conditions": {"tool_name": tool}}]});
    fs::write(&mine, only("read_file").to_string()).unwrap();
    let root = place.path("").to_str().unwrap().to_owned();
    let words = place.mock(&["files", "--root", &root, "--announce-changes"]);
    let (command, args) = words.split_first().unwrap();
    let servers =
        json!({"a": {"command": command, "args": args, "policy": mine}, "b": echo_mock(&place)});
    configured(&place, &json!({"servers": servers, "policy": policy}));
    let mut client = run_all(&place, &[]);
    client.handshake(LATEST).unwrap();
    let of_a = |client: &mut mcp::client::Client| {
        let names = client.tools().0;
        names
            .into_iter()
            .filter(|name| name.starts_with("a__"))
            .collect::<Vec<_>>()
    };
    assert_eq!(of_a(&mut client), ["a__read_file"]);
    fs::write(&mine, only("write_file").to_string()).unwrap();
    loop {
        match client.next_message().unwrap() {
            Message::Notification { method, .. } if method.ends_with("tools/list_changed") => break,
            _ => {}
        }
    }
    eventually("the other rules are in force", || {
        of_a(&mut client) == ["a__write_file"]
    });
}

#[test]
fn many_servers_are_one_list() {
    let place = Place::new();
    let servers = (0..100).map(|n| (format!("s{n:02}"), json!({"builtin": "echo"})));
    let served = Served::start(&place, &serde_json::Value::Object(servers.collect()));
    let mut client = ready(&format!("{}/mcp", served.address), LATEST);
    let (names, missing) = client.tools();
    assert_eq!((names.len(), missing.len()), (300, 0));
    let last = client.call("s99__echo", json!({"text": "x"}));
    assert_eq!(text_of(&last), "x");
}

#[test]
fn a_server_that_joins_by_a_reload_is_listed_and_one_that_leaves_is_not() {
    let place = Place::new();
    let both = json!({"a": stdio_mock(&place, "echo"), "b": {"builtin": "echo"}});
    let served = Served::start(&place, &both);
    let mut client = ready(&format!("{}/mcp", served.address), LATEST);
    let servers_of = |names: Vec<String>| {
        let mut servers: Vec<String> = names
            .iter()
            .map(|name| name.split_once("__").unwrap().0.to_owned())
            .collect();
        servers.dedup();
        servers
    };
    assert_eq!(servers_of(client.tools().0), ["a", "b"]);
    let text = fs::read_to_string(place.path("durward.yaml")).unwrap();
    let mut configuration: serde_json::Value = serde_json::from_str(&text).unwrap();
    let servers = configuration["servers"].as_object_mut().unwrap();
    servers.remove("a");
    servers.insert("c".into(), json!({"builtin": "echo"}));
    configured(&place, &configuration);
    eventually("the servers are those of the new configuration", || {
        servers_of(client.tools().0) == ["b", "c"]
    });
    assert_eq!(text_of(&client.call("c__echo", json!({"text": "x"}))), "x");
}
