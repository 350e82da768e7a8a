//! How many processes of a server run, and what opening sessions logs.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use serde_json::json;

use crate::support::components;
use crate::support::guarded::{Place, eventually};
use crate::support::program::lab_binary;
use crate::support::serving::{Answer, Served, call};

const ALLOW_ALL: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;
const SERVERS: [&str; 3] = ["first", "second", "third"];
const CLIENTS: usize = 45;

/// Returns how many processes of the server of this name run; each has a file of the place among its arguments.
fn processes(served: &Served, name: &str) -> usize {
    let file = served.place.path(name).display().to_string();
    let has_file = |entry: &fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        // What watches over a process bears its arguments behind a program of its own.
        words.next() == Some(lab_binary().as_bytes()) && words.any(|word| word == file.as_bytes())
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter(has_file).count()
}

fn served() -> Served {
    let place = Place::new();
    place.write_policy(ALLOW_ALL);
    let servers = SERVERS.map(|name| {
        let args = json!(["mock", "echo", "--count", place.path(name)]);
        (name, json!({"command": lab_binary(), "args": args}))
    });
    let servers: HashMap<_, _> = servers.into();
    let configuration = json!({"servers": servers, "policy": "policy.json"});
    fs::write(place.path("durward.yaml"), configuration.to_string()).unwrap();
    Served::start_configured(place)
}

/// Opens a session at this path as the client of this number; returns its id.
fn open(served: &Served, path: &str, client: usize) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": format!("client-{client}"), "version": "1"}}});
    let answer = served.send("POST", path, &[], &body.to_string());
    assert_eq!(
        answer.json()["result"]["protocolVersion"],
        "2025-11-25",
        "{answer:?}"
    );
    let session = answer.header("mcp-session-id").unwrap().to_owned();
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(send(served, path, &session, ready).status, 202);
    session
}

fn send(served: &Served, path: &str, session: &str, body: &str) -> Answer {
    let headers = [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", session),
    ];
    served.send("POST", path, &headers, body)
}

#[track_caller]
fn echoes(served: &Served, path: &str, session: &str, text: &str) {
    let answer = send(served, path, session, &call("7", text)).json();
    assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
}

#[test]
fn sessions_that_only_open_start_one_process_of_each_server() {
    let served = served();
    // One after another, and then many at the same time.
    let mut sessions = vec![open(&served, "/mcp", 0), open(&served, "/mcp", 1)];
    let opened: Vec<String> = std::thread::scope(|scope| {
        let served = &served;
        let clients: Vec<_> = (2..CLIENTS)
            .map(|client| scope.spawn(move || open(served, "/mcp", client)))
            .collect();
        clients.into_iter().map(|c| c.join().unwrap()).collect()
    });
    sessions.extend(opened);
    let running = SERVERS.map(|name| processes(&served, name));
    assert_eq!(running, [1, 1, 1], "{} sessions", sessions.len());
}

#[test]
fn many_sessions_of_one_server_start_together_with_one_process() {
    let served = served();
    let path = "/mcp/first";
    let sessions: Vec<String> = std::thread::scope(|scope| {
        let served = &served;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || open(served, path, client)))
            .collect();
        clients.into_iter().map(|c| c.join().unwrap()).collect()
    });
    assert_eq!(processes(&served, "first"), 1);
    // Each session has its own process from its first call on.
    for (number, session) in sessions.iter().rev().take(3).enumerate() {
        echoes(&served, path, session, &format!("x{number}"));
    }
    let running = processes(&served, "first");
    assert!((3..=4).contains(&running), "{running}");
    // None of them was started again.
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    let restarted = |record: &&serde_json::Value| record["event"] == "server_restarted";
    assert_eq!(journal.0.iter().filter(restarted).count(), 0);
}

#[test]
fn a_session_starts_a_process_when_the_one_that_answered_has_ended() {
    let served = served();
    let path = "/mcp/first";
    let first = open(&served, path, 0);
    let headers = [("mcp-session-id", first.as_str())];
    assert_eq!(served.send("DELETE", path, &headers, "").status, 204);
    eventually("its process ends", || processes(&served, "first") == 0);
    let second = open(&served, path, 1);
    assert_eq!(processes(&served, "first"), 1);
    echoes(&served, path, &second, "x");
}

/// A client of FastMCP 4 offers its newest revision first; the official server of files speaks earlier ones only.
#[test]
fn a_client_that_falls_back_to_an_earlier_revision_is_no_warning() {
    let Some((python, files)) = components::fastmcp_python().zip(components::official_filesystem())
    else {
        return;
    };
    let place = Place::new();
    place.write_policy(ALLOW_ALL);
    let servers = json!({"files": {"command": files, "args": [place.dir]}});
    let configuration = json!({"servers": servers, "policy": "policy.json"});
    fs::write(place.path("durward.yaml"), configuration.to_string()).unwrap();
    let log = place.path("log");
    let args = [
        "--config",
        "durward.yaml",
        "--state-dir",
        "state",
        "serve",
        "--listen",
        "127.0.0.1:0",
    ];
    let served = Served::spawn_logging(place, &args, &log);
    const CLIENT: &str = "import asyncio, sys\nfrom fastmcp import Client\nasync def main():\n    async with Client(sys.argv[1]) as client:\n        await client.call_tool('list_allowed_directories', {})\nasyncio.run(main())\n";
    for path in ["/mcp/files", "/mcp"] {
        let url = format!("http://{}{path}", served.address);
        let ran = Command::new(&python)
            .args(["-c", CLIENT, &url])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{path}: {ran:?}");
    }
    let logged = fs::read_to_string(&log).unwrap();
    assert!(logged.contains("server=files"), "{logged}");
    assert!(!logged.contains("WARN"), "{logged}");
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    // It is in the journal, as what belongs to normal operation.
    let journal = place.journal();
    let fallbacks = journal.0.iter();
    let fallbacks: Vec<_> = fallbacks.filter(|r| r["event"] == "era_mismatch").collect();
    assert!(!fallbacks.is_empty());
    assert!(
        fallbacks.iter().all(|r| r["level"] == "info"),
        "{fallbacks:?}"
    );
}
