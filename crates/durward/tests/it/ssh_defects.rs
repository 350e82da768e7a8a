//! Mistakes that SSH tool servers before this one made, as a client over HTTP would meet them. Those of commands, hosts and
//! files have their tests in the crate `ssh`, those of the load generator in `lab`.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufReader;

use serde_json::{Value, json};

use crate::ssh_serve::{SERVE, call, opened, post};
use crate::ssh_server::{Sshd, has_sshd, target};
use crate::support::guarded::{Place, eventually};
use crate::support::serving::{Served, modern, modern_headers, read_answer, write_request};

/// The server with the shipped rules, and one that lets every command run.
fn served(everything: bool) -> (Served, Sshd) {
    let place = Place::new();
    let sshd = target(&place);
    let mut words = SERVE.to_vec();
    if everything {
        words.extend(["--policy", "policy.json"]);
    }
    words.extend(["--calls-per-minute", "1000000"]);
    (Served::spawn(place, &words), sshd)
}

/// A session at the host, by an MCP session.
fn connected(served: &Served, session: &str) -> Value {
    let said = call(served, session, "ssh_connect", json!({"host": "web"}));
    let id = said["result"]["structuredContent"]["session_id"].clone();
    assert!(id.is_string(), "{said}");
    id
}

#[test]
fn text_that_looks_like_a_number_or_like_nothing_stays_text_and_a_list_of_one_a_list() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served(true);
    let session = opened(&served, "/mcp");
    let id = connected(&served, &session);
    let listed = post(&served, "/mcp", Some(&session), "tools/list", &json!({})).json();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let schema = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let schema = serde_json::to_string(&tool["outputSchema"]).unwrap();
        assert!(schema.contains("object"), "{name}: {tool}");
        tool["outputSchema"]["required"].as_array().unwrap().clone()
    };
    for text in ["007", "1e3", "", "true", "null", "{}", "[1]"] {
        let arguments = json!({"session_id": id, "command": format!("printf '%s' '{text}'")});
        let said = call(&served, &session, "ssh_run_command", arguments);
        let result = &said["result"];
        assert_eq!(
            result["content"],
            json!([{"type": "text", "text": text}]),
            "{said}"
        );
        let data = &result["structuredContent"];
        assert_eq!(data["stdout"], json!(text), "{said}");
        for member in schema("ssh_run_command") {
            assert!(data.get(member.as_str().unwrap()).is_some(), "{member}");
        }
    }
    let batch = json!({"session_id": id, "commands": ["printf 007"]});
    let said = call(&served, &session, "ssh_batch_commands", batch);
    let data = &said["result"]["structuredContent"];
    let results = data["results"].as_array().unwrap();
    assert_eq!(
        (results.len(), &results[0]["output"], &data["total"]),
        (1, &json!("007"), &json!(1)),
        "{said}"
    );
    let said = call(&served, &session, "ssh_list_sessions", json!({}));
    let data = &said["result"]["structuredContent"];
    assert!(data["sessions"].is_array() && data["count"] == 1, "{said}");
}

#[test]
fn a_command_that_takes_long_delays_nobody() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served(true);
    let session = opened(&served, "/mcp");
    let id = connected(&served, &session);
    let (runs, go) = (served.place.path("runs"), served.place.path("go"));
    let text = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo late",
        runs.display(),
        go.display()
    );
    let script = served.place.path("script");
    fs::write(&script, text).unwrap();
    let line = format!("sh {}", script.display());
    std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            let arguments = json!({"session_id": id, "command": line, "timeout_ms": 600_000});
            call(&served, &session, "ssh_run_command", arguments)
        });
        eventually("it runs", || runs.exists());
        // The first that came is the last that ends: those behind it do not wait for it.
        let other = opened(&served, "/mcp");
        let id = connected(&served, &other);
        for number in 0..30 {
            let arguments = json!({"session_id": id, "command": format!("echo {number}")});
            let said = call(&served, &other, "ssh_run_command", arguments);
            let told = &said["result"]["structuredContent"]["stdout"];
            assert_eq!(*told, json!(format!("{number}\n")), "{said}");
        }
        assert!(!late.is_finished());
        fs::write(&go, "").unwrap();
        let said = late.join().unwrap();
        let told = &said["result"]["structuredContent"]["stdout"];
        assert_eq!(*told, "late\n", "{said}");
    });
}

#[test]
fn a_failure_is_told_with_its_code_and_counted_and_every_metric_says_what_it_is() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served(true);
    let session = opened(&served, "/mcp");
    let id = connected(&served, &session);
    let arguments = json!({"session_id": id, "command": "false"});
    let said = call(&served, &session, "ssh_run_command", arguments);
    let data = &said["result"]["structuredContent"];
    assert_eq!(
        (&data["exit_code"], &data["stdout"], &data["stderr"]),
        (&json!(1), &json!(""), &json!("")),
        "{said}"
    );
    let metrics = served.send("GET", "/metrics", &[], "").body;
    for line in [
        "mcp_ssh_commands_total{host=\"web\",status=\"error\",server=\"ssh\"} 1",
        "mcp_ssh_commands_total{host=\"web\",status=\"success\",server=\"ssh\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let (mut helped, mut typed) = (BTreeSet::new(), BTreeSet::new());
    for line in metrics.lines() {
        let name = |rest: &str| rest.split(' ').next().unwrap().to_owned();
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped.insert(name(rest));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            typed.insert(name(rest));
        } else if !line.starts_with('#') {
            let end = line.find(['{', ' ']).unwrap();
            let family = |all: &BTreeSet<String>| {
                all.iter()
                    .any(|known| line[..end].starts_with(known.as_str()))
            };
            assert!(family(&helped) && family(&typed), "{line}");
        }
    }
    assert!(typed.contains("mcp_ssh_commands"), "{typed:?}");
    // A name that would have to be escaped in a label is no name of a host.
    let hosts =
        "credentials: { me: { user: me, key: user } }\nhosts: { 'a\"b': { credential: me } }\n";
    fs::write(served.place.path("odd.yaml"), hosts).unwrap();
    let odd = served.place.durward(&["ssh", "hosts", "check", "odd.yaml"]);
    let told = String::from_utf8(odd.stderr).unwrap();
    assert!(
        odd.status.code() == Some(16) && told.contains("letters, digits and . _ - only"),
        "{told}"
    );
}

#[test]
fn a_session_that_is_unknown_or_missing_is_not_replaced_by_a_new_one() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served(false);
    let session = opened(&served, "/mcp");
    let before = served.send("GET", "/health", &[], "").json();
    let params = json!({"name": "ssh_list_sessions", "arguments": {}});
    for unknown in ["mcp_00000000", "no-such-session"] {
        let answer = post(&served, "/mcp", Some(unknown), "tools/call", &params);
        assert_eq!(answer.status, 404, "{answer:?}");
        assert_eq!(answer.header("mcp-session-id"), None);
    }
    let answer = post(&served, "/mcp", None, "tools/call", &params);
    assert_eq!(answer.status, 400, "{answer:?}");
    let after = served.send("GET", "/health", &[], "").json();
    assert_eq!(before["mcp_sessions"], after["mcp_sessions"]);
    let said = call(&served, &session, "ssh_list_sessions", json!({}));
    assert_eq!(said["result"]["structuredContent"]["count"], 0, "{said}");
}

#[test]
fn a_limit_holds_at_exactly_its_number_over_all_sessions_and_without_any() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    let words = ["--hosts", "ssh_hosts.yaml", "--policy", "policy.json"];
    let printed = place.durward(&[&["ssh", "serve", "--print"], &words[..]].concat());
    // A window that no slow machine outlasts.
    let printed = String::from_utf8(printed.stdout)
        .unwrap()
        .replace("window: 60s", "window: 1h");
    assert!(printed.contains("calls: 100, window: 1h"), "{printed}");
    fs::write(place.path("durward.yaml"), printed).unwrap();
    let words = ["--config", "durward.yaml", "--state-dir", "state", "serve"];
    let words = [&words[..], &["--listen", "127.0.0.1:0", "--root", "ssh"]].concat();
    let served = Served::spawn(place, &words);
    let (mut passed, mut refused) = (0, BTreeSet::new());
    let params = r#""name":"ssh_list_sessions","arguments":{}"#;
    for round in 0..60 {
        // A session of its own for each call, which a count by sessions would let pass.
        let session = opened(&served, "/mcp");
        let with = call(&served, &session, "ssh_list_sessions", json!({}));
        // Revision 2026-07-28 has no sessions.
        let headers = modern_headers("tools/call", "ssh_list_sessions");
        let body = modern(&round.to_string(), "tools/call", params);
        let without = served.send("POST", "/mcp", &headers, &body).json();
        for said in [with, without] {
            match said["result"]["structuredContent"]["count"] == 0 {
                true => passed += 1,
                false => drop(refused.insert(said["error"]["data"]["reason"].to_string())),
            }
        }
    }
    assert_eq!(passed, 100, "{refused:?}");
    assert_eq!(refused.len(), 1, "{refused:?}");
}

#[test]
fn a_page_of_another_origin_is_turned_away() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served(false);
    let session = opened(&served, "/mcp");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ssh_connect","arguments":{"host":"web"}}}"#;
    for foreign in [("origin", "https://evil.example"), ("host", "evil.example")] {
        let headers = [foreign, ("mcp-session-id", session.as_str())];
        for path in ["/", "/mcp"] {
            let answer = served.send("POST", path, &headers, body);
            assert_eq!(answer.status, 403, "{foreign:?} {path}: {answer:?}");
        }
    }
    let health = served.send("GET", "/health", &[], "").json();
    assert_eq!(health["sessions"], 0, "{health}");
}

#[test]
fn a_connection_is_kept_and_line_ends_in_a_body_stay_as_they_are() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served(true);
    let session = opened(&served, "/mcp");
    let id = connected(&served, &session);
    let mut stream = served.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let headers = [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", session.as_str()),
    ];
    for text in ["a\r\nb\r\n", "a\nb", "\r\r\n\n", "é\r\n\u{0}\u{7f}"] {
        let arguments = json!({"session_id": id, "command": "cat", "stdin": text});
        let params = json!({"name": "ssh_run_command", "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        // Line ends between its members belong to it, too.
        let body = serde_json::to_string_pretty(&body)
            .unwrap()
            .replace('\n', "\r\n");
        write_request(&mut stream, "POST", "/mcp", &headers, &body);
        let answer = read_answer(&mut reader);
        assert_ne!(answer.header("connection"), Some("close"));
        let said = answer.json();
        let data = &said["result"]["structuredContent"];
        let told = data["stdout"].as_str().unwrap();
        let bytes = match data["stdout_encoding"].as_str() {
            Some("base64") => {
                use base64::Engine as _;
                let engine = &base64::engine::general_purpose::STANDARD;
                engine.decode(told).unwrap()
            }
            _ => told.as_bytes().to_vec(),
        };
        assert_eq!(bytes, text.as_bytes(), "{said}");
    }
}
