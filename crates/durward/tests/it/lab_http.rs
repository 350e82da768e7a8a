//! The lab measures Durward over HTTP: on both sides, and from a client over stdio.

use serde_json::Value;
use std::process::Command;

use crate::support::program::{binary, lab_binary, lab_command};

/// `lab overhead` of one rule before an echo server over HTTP.
fn overhead(protocol: &str, more: &[&str]) -> Value {
    let echo = format!("{} mock echo --http 127.0.0.1:0", lab_binary());
    let size = [
        "--launches",
        "2",
        "--runs",
        "40",
        "--warmup",
        "5",
        "--quiet",
        "--json",
    ];
    let output = lab_command()
        .args(["overhead", "--rules", "1", "--direct", &echo])
        .args(["--protocol", protocol])
        .args(more)
        .args(size)
        .env_remove("MCP_BENCHMARK_RESULT")
        .env_remove("MCP_BENCHMARK_BASELINE")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{more:?} {protocol}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Who was compared with whom.
fn compared(found: &Value) -> Vec<(&str, &str)> {
    let name = |value: &'_ Value| value.as_str().unwrap().to_owned().leak() as &str;
    let all = found["comparisons"].as_array().unwrap();
    all.iter()
        .map(|c| (name(&c["arm"]), name(&c["baseline"])))
        .collect()
}

#[test]
fn a_bridge_is_held_against_the_server_and_against_a_bare_one() {
    for protocol in ["2025-11-25", "2026-07-28"] {
        let found = overhead(protocol, &["--topology", "bridge"]);
        let expect = [
            ("bare bridge", "direct"),
            ("durward, 1 rule", "direct"),
            ("durward, 1 rule", "bare bridge"),
        ];
        assert_eq!(compared(&found), expect, "{protocol}");
        let transports: Vec<&Value> = (0..3).map(|at| &found["arms"][at]["transport"]).collect();
        assert_eq!(transports, ["http", "stdio", "stdio"], "{protocol}");
        assert!(
            found["arms"][2]["stages"].is_object(),
            "{protocol}: {found}"
        );
    }
}

#[test]
fn http_on_both_sides_has_its_stages() {
    for protocol in ["2025-11-25", "2026-07-28"] {
        let found = overhead(protocol, &["--transport", "http"]);
        assert_eq!(compared(&found), [("durward, 1 rule", "direct")]);
        assert!(
            found["arms"][1]["stages"].is_object(),
            "{protocol}: {found}"
        );
    }
}

#[test]
fn many_connections_to_serve_are_all_answered() {
    let found = overhead("2025-11-25", &["--transport", "http", "--concurrency", "8"]);
    assert_eq!(found["arms"][1]["calls"], 80);
}

/// A `durward serve` before an echo server, and where it is. Dropped, it is ended.
struct Serve(std::process::Child, String);

impl Serve {
    fn start(directory: &std::path::Path) -> Self {
        let address = format!("127.0.0.1:{}", mocks::ports::reserved().unwrap());
        let child = Command::new(binary())
            .args(["--no-config", "--state-dir"])
            .arg(directory)
            .args(["serve", "--listen", &address, "--server"])
            .arg(format!("mock={} mock echo", lab_binary()))
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let serve = Self(child, format!("http://{address}/mcp/mock"));
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(std::time::Instant::now() < until, "it does not listen");
        }
        serve
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn load_leaves_no_session_behind() {
    let name = format!("durward-lab-http-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let serve = Serve::start(&directory);
    // More sessions than a server may have processes, a few at a time.
    for round in 0..3 {
        let output = lab_command()
            .args(["load", "tool", "--list", "--target", &serve.1])
            .args(["--workers", "16", "--duration", "100ms", "--quiet"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "round {round}: {said}");
    }
    drop(serve);
    let _ = std::fs::remove_dir_all(directory);
}
