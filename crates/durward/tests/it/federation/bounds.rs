//! What the one URL does not let through.

use serde_json::{Value, json};

use super::{configured, echo_mock};
use crate::support::guarded::Place;
use crate::support::served::Served;
use crate::support::serving::{self, modern, modern_call, modern_headers};

fn initialize(version: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": version,
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    .to_string()
}

/// Serves two built-in servers, with a key for one of them where `keyed`.
fn two(place: &Place) {
    let servers = json!({"a": {"builtin": "echo"}, "b": {"builtin": "echo"}});
    configured(
        place,
        &json!({"servers": servers, "policy": place.path("policy.json")}),
    );
}

fn keys(place: &Place, args: &[&str]) -> String {
    let all = [
        &["--no-config", "--state-dir", "state", "keys", "create"],
        args,
    ]
    .concat();
    let output = place.durward(&all);
    assert!(output.status.success(), "{output:?}");
    format!(
        "Bearer {}",
        String::from_utf8(output.stdout).unwrap().trim()
    )
}

#[test]
fn a_key_for_one_server_shows_and_reaches_no_other_at_the_one_url() {
    let place = Place::new();
    two(&place);
    let only = keys(&place, &["only", "--scope", "a", "--unlisted"]);
    let all = keys(&place, &["all"]);
    let served = serving::Served::start_ruled(place);
    let servers_of = |key: &str| {
        let own = [("authorization", key)];
        let opened = served.send("POST", "/mcp", &own, &initialize("2025-11-25"));
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let headers = [("authorization", key), ("mcp-session-id", session.as_str())];
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        let listed = served.send("POST", "/mcp", &headers, list).json();
        let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b__echo","arguments":{"text":"x"}}}"#;
        let called = served.send("POST", "/mcp", &headers, call).json();
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let has = |server: &str| {
            tools
                .iter()
                .any(|tool| tool["name"] == format!("{server}__echo"))
        };
        // A session is its caller's alone.
        let other = if key == only { &all } else { &only };
        let stolen = [
            ("authorization", other.as_str()),
            ("mcp-session-id", session.as_str()),
        ];
        assert_eq!(served.send("POST", "/mcp", &stolen, list).status, 404);
        (has("a"), has("b"), called)
    };
    let (a, b, called) = servers_of(&only);
    assert_eq!((a, b), (true, false));
    assert_eq!(
        called["error"]["data"]["reason"], "server_unknown",
        "{called}"
    );
    assert!(!called.to_string().contains("\"b\\\""), "{called}");
    let (a, b, called) = servers_of(&all);
    assert_eq!((a, b), (true, true));
    assert_eq!(called["result"]["content"][0]["text"], "x", "{called}");
    let nobody = served.send("POST", "/mcp", &[], &initialize("2025-11-25"));
    assert_eq!(nobody.status, 401);
}

#[test]
fn a_key_for_no_server_is_told_what_to_do() {
    let place = Place::new();
    two(&place);
    let none = keys(&place, &["none", "--scope", "gone", "--unlisted"]);
    let served = serving::Served::start_ruled(place);
    let own = [("authorization", none.as_str())];
    let told = served.send("POST", "/mcp", &own, &initialize("2025-11-25"));
    assert_eq!(told.status, 403, "{told:?}");
    let error = &told.json()["error"];
    assert_eq!(error["data"]["reason"], "key_reaches_no_server");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("durward keys create NAME --scope SERVER"),
        "{message}"
    );
    // Names of servers are not for everybody.
    assert!(!message.contains("\"a\""), "{message}");
    let headers = [&modern_headers("tools/list", "")[..], &own].concat();
    let told = served.send("POST", "/mcp", &headers, &modern("9", "tools/list", ""));
    assert_eq!(
        told.json()["error"]["data"]["reason"],
        "key_reaches_no_server"
    );
}

#[test]
fn a_session_ends_with_delete() {
    let place = Place::new();
    two(&place);
    let served = serving::Served::start_ruled(place);
    let opened = served.send("POST", "/mcp", &[], &initialize("2025-06-18"));
    assert_eq!(opened.json()["result"]["protocolVersion"], "2025-06-18");
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("mcp-session-id", session.as_str())];
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert_eq!(served.send("POST", "/mcp", &headers, list).status, 200);
    // It is no session of a single server.
    assert_eq!(served.send("POST", "/mcp/a", &headers, list).status, 404);
    assert_eq!(served.send("POST", "/mcp", &[], list).status, 400);
    let batch = format!("[{list}]");
    assert_eq!(served.send("POST", "/mcp", &headers, &batch).status, 400);
    assert_eq!(served.send("DELETE", "/mcp", &headers, "").status, 204);
    assert_eq!(served.send("POST", "/mcp", &headers, list).status, 404);
}

#[test]
fn one_server_is_asked_without_a_session_whatever_its_names() {
    for (prefix, name) in [("auto", "echo"), ("always", "a__echo")] {
        let place = Place::new();
        let servers = json!({"a": echo_mock(&place)});
        let policy = place.path("policy.json");
        configured(
            &place,
            &json!({"servers": servers, "policy": policy, "prefix": prefix}),
        );
        let other = keys(&place, &["other", "--scope", "b", "--unlisted"]);
        let own = keys(&place, &["own", "--scope", "a", "--unlisted"]);
        let served = serving::Served::start_ruled(place);
        let mut headers = modern_headers("tools/call", name);
        let refused = [&headers[..], &[("authorization", other.as_str())]].concat();
        let body = modern_call("9", "x").replace("\"echo\"", &format!("\"{name}\""));
        assert_eq!(served.send("POST", "/mcp", &refused, &body).status, 403);
        headers.push(("authorization", &own));
        let answer = served.send("POST", "/mcp", &headers, &body);
        assert_eq!(answer.status, 200, "{prefix}: {answer:?}");
        let text = &answer.json()["result"]["content"][0]["text"];
        assert_eq!(text, "x", "{answer:?}");
    }
}

#[test]
fn the_token_of_an_account_reaches_its_servers_at_the_one_url() {
    let place = Place::new();
    let servers = json!({"a": {"builtin": "echo"}, "b": {"builtin": "echo"}});
    let models = json!({"providers": {"m": {"kind": "mock", "latency": "0ms"}},
        "accounts": {"register": "open", "servers": ["a"]}});
    let policy = place.path("policy.json");
    configured(
        &place,
        &json!({"servers": servers, "policy": policy, "models": models}),
    );
    let served = serving::Served::start_ruled(place);
    let user = json!({"username": "ann"}).to_string();
    let made = served.send("POST", "/v1/auth/register", &[], &user).json();
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let own = [("authorization", bearer.as_str())];
    let opened = |path: &str| served.send("POST", path, &own, &initialize("2025-11-25"));
    let session = opened("/mcp").header("mcp-session-id").unwrap().to_owned();
    let headers = [own[0], ("mcp-session-id", session.as_str())];
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let listed = served.send("POST", "/mcp", &headers, list).json();
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"a__echo"), "{names:?}");
    assert!(
        names.iter().all(|name| name.starts_with("a__")),
        "{names:?}"
    );
    let call = |name: &str| {
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": name, "arguments": {"text": "x"}}});
        served
            .send("POST", "/mcp", &headers, &call.to_string())
            .json()
    };
    let answer = call("a__echo");
    assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
    let answer = call("b__echo");
    assert_eq!(
        answer["error"]["data"]["reason"], "server_unknown",
        "{answer}"
    );
    // The session is the user's alone.
    let user = json!({"username": "bob"}).to_string();
    let made = served.send("POST", "/v1/auth/register", &[], &user).json();
    let other = format!("Bearer {}", made["token"].as_str().unwrap());
    let stolen = [("authorization", other.as_str()), headers[1]];
    assert_eq!(served.send("POST", "/mcp", &stolen, list).status, 404);
    assert_eq!(opened("/mcp/a").status, 200);
    assert_eq!(opened("/mcp/b").status, 403);
}

#[test]
fn a_revoked_token_of_an_account_reaches_nothing_at_the_one_url() {
    let place = Place::new();
    let servers = json!({"a": {"builtin": "echo"}, "b": {"builtin": "echo"}});
    let models = json!({"providers": {"m": {"kind": "mock", "latency": "0ms"}},
        "accounts": {"register": "open", "servers": ["a"]}});
    let policy = place.path("policy.json");
    configured(
        &place,
        &json!({"servers": servers, "policy": policy, "models": models}),
    );
    let served = serving::Served::start_ruled(place);
    let user = json!({"username": "ann"}).to_string();
    let made = served.send("POST", "/v1/auth/register", &[], &user).json();
    let first = format!("Bearer {}", made["token"].as_str().unwrap());
    let own = [("authorization", first.as_str())];
    let body = json!({"name": "second"}).to_string();
    let second = served.send("POST", "/v1/user/tokens", &own, &body).json();
    let text = second["token"]
        .as_str()
        .unwrap_or_else(|| panic!("{second}"));
    let bearer = format!("Bearer {text}");
    let of_second = [("authorization", bearer.as_str())];
    let opened = served.send("POST", "/mcp", &of_second, &initialize("2025-11-25"));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let id = second["id"].as_str().unwrap_or_else(|| panic!("{second}"));
    let path = format!("/v1/user/tokens/{id}");
    let gone = served.send("DELETE", &path, &own, "");
    assert!(gone.status < 300, "{gone:?}");
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let headers = [of_second[0], ("mcp-session-id", session.as_str())];
    assert_eq!(served.send("POST", "/mcp", &headers, list).status, 401);
    // What was opened with it ended with it, for the user's other token as well.
    let headers = [own[0], ("mcp-session-id", session.as_str())];
    assert_eq!(served.send("POST", "/mcp", &headers, list).status, 404);
}

#[test]
fn what_cannot_be_one_is_refused_by_check_and_by_run() {
    let place = Place::new();
    let says = |configuration: &Value, args: &[&str]| {
        configured(&place, configuration);
        let output =
            place.durward(&[&["--config", "durward.yaml", "--state-dir", "state"], args].concat());
        assert_eq!(output.status.code(), Some(16), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let clash = json!({"servers": {"a_b": {"builtin": "echo"}, "A-b": {"builtin": "echo"}}});
    for args in [&["check"][..], &["run"]] {
        let said = says(&clash, args);
        assert!(
            said.contains("would have the same URIs (a-b+...)"),
            "{said}"
        );
    }
    let one = json!({"servers": {"a": echo_mock(&place)}});
    let said = says(&one, &["run", "--env", "X=1"]);
    assert!(said.contains("--env is for one server"), "{said}");
    let said = says(
        &json!({"servers": {"a": {"builtin": "echo"}}, "prefix": "never"}),
        &["check"],
    );
    assert!(
        said.contains("prefix: \"never\" is not one of auto, always"),
        "{said}"
    );
    let said = says(&json!({}), &["run"]);
    assert!(said.contains("no server was given"), "{said}");
}

#[test]
fn with_a_root_the_one_url_is_that_servers() {
    let place = Place::new();
    let served = Served::start(
        &place,
        &json!({"a": {"builtin": "echo"}, "b": {"builtin": "echo"}}),
    );
    drop(served);
    two(&place);
    let text = std::fs::read_to_string(place.path("durward.yaml")).unwrap();
    let mut configuration: Value = serde_json::from_str(&text).unwrap();
    configuration["root"] = "a".into();
    configured(&place, &configuration);
    let served = serving::Served::start_ruled(place);
    let opened = served.send("POST", "/mcp", &[], &initialize("2025-11-25"));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("mcp-session-id", session.as_str())];
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let listed = served.send("POST", "/mcp", &headers, list).json();
    assert_eq!(listed["result"]["tools"][0]["name"], "echo", "{listed}");
}
