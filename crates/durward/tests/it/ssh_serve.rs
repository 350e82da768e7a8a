//! `durward ssh serve`: the paths, the flags and the metrics that a client of SSH tools finds.

use serde_json::{Value, json};

use crate::ssh_server::{has_sshd, output, target};
use crate::support::guarded::Place;
use crate::support::serving::{Answer, Served};

/// The words before the flags.
pub const SERVE: [&str; 8] = [
    "--state-dir",
    "state",
    "ssh",
    "serve",
    "--port",
    "0",
    "--hosts",
    "ssh_hosts.yaml",
];

pub fn post(
    served: &Served,
    path: &str,
    session: Option<&str>,
    method: &str,
    params: &Value,
) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut headers = vec![("mcp-protocol-version", "2025-11-25")];
    headers.extend(session.map(|id| ("mcp-session-id", id)));
    served.send("POST", path, &headers, &body.to_string())
}

pub fn opened(served: &Served, path: &str) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = post(served, path, None, "initialize", &params);
    answer.header("mcp-session-id").unwrap().to_owned()
}

/// Calls a tool at this path.
pub fn call_at(served: &Served, path: &str, session: &str, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    post(served, path, Some(session), "tools/call", &params).json()
}

pub fn call(served: &Served, session: &str, tool: &str, arguments: Value) -> Value {
    call_at(served, "/mcp", session, tool, arguments)
}

#[test]
fn the_tools_are_at_the_root_and_at_mcp_and_are_counted() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    let served = Served::spawn(place, &SERVE);
    for path in ["/", "/mcp", "/mcp/", "/mcp/ssh"] {
        let session = opened(&served, path);
        let listed = post(&served, path, Some(&session), "tools/list", &json!({})).json();
        let tools = listed["result"]["tools"].as_array().unwrap().len();
        assert!(tools >= 15, "{path}: {listed}");
    }
    let session = opened(&served, "/");
    let said = call(&served, &session, "ssh_connect", json!({"host": "web"}));
    let id = &said["result"]["structuredContent"]["session_id"];
    let said = call(&served, &session, "ssh_hostname", json!({"session_id": id}));
    assert_eq!(
        said["result"]["structuredContent"]["hostname"],
        output("hostname", &[]),
        "{said}"
    );
    let said = call(
        &served,
        &session,
        "ssh_run_command",
        json!({"session_id": id, "command": "cat /etc/shadow"}),
    );
    assert!(said.to_string().contains("ssh-deny-secrets"), "{said}");
    let health = served.send("GET", "/health", &[], "");
    assert_eq!(health.header("content-type"), Some("application/json"));
    let health = health.json();
    assert_eq!(
        (
            &health["status"],
            &health["sessions"],
            &health["mcp_sessions"]
        ),
        (&json!("healthy"), &json!(1), &json!(5)),
        "{health}"
    );
    let metrics = served.send("GET", "/metrics", &[], "").body;
    for line in [
        "mcp_ssh_sessions_active{host=\"web\",server=\"ssh\"} 1",
        "mcp_ssh_sessions_total{host=\"web\",status=\"success\",server=\"ssh\"} 1",
        "mcp_ssh_commands_total{host=\"web\",status=\"success\",server=\"ssh\"} 1",
        "mcp_ssh_command_duration_seconds_count{host=\"web\",server=\"ssh\"} 1",
        "mcp_pool_creates_total{server=\"ssh\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(served.send("GET", "/nothing", &[], "").status, 404);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let ruled = place.journal();
    assert!(
        ruled
            .decisions()
            .iter()
            .any(|r| r["final_rule"] == "ssh-allow-host")
    );
}

#[test]
fn a_profile_bounds_calls_and_a_call_beyond_it_is_refused() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    let served = Served::spawn(place, &SERVE);
    let session = opened(&served, "/mcp");
    let mut passed = 0;
    for _ in 0..110 {
        let said = call(&served, &session, "ssh_list_sessions", json!({}));
        passed += usize::from(said["result"]["structuredContent"]["count"] == 0);
    }
    // A bucket of a hundred fills again by one in 0.6 s; the window of the tool does not.
    assert_eq!(passed, 100);
}

#[test]
fn what_it_would_serve_can_be_printed_and_what_is_wrong_is_said() {
    let place = Place::new();
    let printed = place.durward(&[
        "ssh",
        "serve",
        "--print",
        "--profile",
        "loadtest",
        "--hosts",
        "h.yaml",
    ]);
    assert_eq!(printed.status.code(), Some(0));
    let printed = String::from_utf8(printed.stdout).unwrap();
    for part in [
        "listen: \"127.0.0.1:3000\"\n",
        "builtin: ssh\n",
        "h.yaml\"\n",
        "rate: 500/m",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!place.path("state").exists());
    for (flags, code, wrong) in [
        (&["--hosts", "nowhere.yaml"][..], 16, "the hosts file "),
        (&["--workers", "0"], 2, "0 is not in 1..=64"),
        (&["--workers", "65"], 2, "65 is not in 1..=64"),
        (&["--session-timeout", "59"], 2, "59 is not in 60..="),
        (&["--debug", "LOUD"], 2, "invalid value 'LOUD'"),
        (&["--port", "65536"], 2, "65536 is not in 0..=65535"),
        (&["--bind", "somewhere"], 2, "invalid value 'somewhere'"),
    ] {
        let output = place.durward(&[&["ssh", "serve"], flags].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {told}");
        assert!(told.contains(wrong), "{flags:?}: {told}");
    }
    for level in ["ERROR", "WARN", "INFO", "DEBUG"] {
        let output = place.durward(&["ssh", "serve", "--print", "--debug", level]);
        assert_eq!(output.status.code(), Some(0), "{level}");
    }
}

#[test]
fn clients_that_write_json_without_types_are_served_if_lenient() {
    if !has_sshd() {
        return;
    }
    let initialize = r#"{"jsonrpc":2.0,"id":1,"method":"initialize","params":{"capabilities":{},"clientInfo":{"name":"t","version":1.0}}}"#;
    for is_lenient in [false, true] {
        let place = Place::new();
        let _sshd = target(&place);
        let flags: &[&str] = if is_lenient { &["--lenient"] } else { &[] };
        let served = Served::spawn(place, &[&SERVE[..], flags].concat());
        let answer = served.send("POST", "/", &[], initialize);
        assert_eq!(answer.status == 200, is_lenient, "{}", answer.body);
        if is_lenient {
            let answer_json = answer.json();
            assert_eq!(answer_json["result"]["protocolVersion"], "2024-11-05");
            let session = answer.header("mcp-session-id").unwrap();
            let list = r#"{"jsonrpc":2.0,"id":2,"method":"tools/list"}"#;
            let listed = served.send("POST", "/", &[("mcp-session-id", session)], list);
            assert!(
                listed.json()["result"]["tools"].as_array().unwrap().len() > 15,
                "{}",
                listed.body
            );
        }
        assert_eq!(served.stop().0, Some(0));
    }
}
