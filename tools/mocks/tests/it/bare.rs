//! What only moves bytes or frames over HTTP, and the least of a server.

use crate::common::{mock, mock_path, ready};
use mcp::client::{Client, Era, HttpClient, HttpOptions};
use serde_json::json;
use std::process::{Command, Stdio};

/// A mock that prints where it serves, and a client of it.
fn site(args: &[&str]) -> (Client, String) {
    let mut process = mock(args);
    let url = process.process().read_line().unwrap();
    (process, String::from_utf8(url).unwrap())
}

fn client(url: &str, era: Era) -> HttpClient {
    let mut client = HttpClient::new(url, HttpOptions::default()).unwrap();
    client.handshake(era).unwrap();
    client
}

fn echo(client: &mut HttpClient, text: &str) -> Option<String> {
    let reply = client.call_tool("echo", json!({"text": text})).unwrap();
    reply.text().map(str::to_owned)
}

#[test]
fn a_bare_server_and_both_relays_carry_every_era() {
    let path = mock_path();
    let path = path.to_str().unwrap();
    let (_bare, bare) = site(&["echo", "--http", "127.0.0.1:0", "--bare"]);
    let (_stdio, to_stdio) = site(&["relay", "--http", "127.0.0.1:0", "--", path, "echo"]);
    let (_http, to_http) = site(&["relay", "--http", "127.0.0.1:0", "--url", &bare]);
    let big = "y".repeat(3_000_000);
    for url in [&bare, &to_stdio, &to_http] {
        for era in Era::ALL {
            // Two connections at once, each with answers of its own.
            let (mut one, mut two) = (client(url, era), client(url, era));
            assert_eq!(echo(&mut one, "a").as_deref(), Some("a"), "{url} {era:?}");
            assert_eq!(echo(&mut two, &big).as_deref(), Some(big.as_str()), "{url}");
            assert_eq!(echo(&mut one, "b").as_deref(), Some("b"), "{url} {era:?}");
        }
    }
}

#[test]
fn a_bridge_carries_every_era_and_every_form_of_answer() {
    for form in [&["--bare"][..], &[], &["--replies", "events"]] {
        let (_echo, url) = site(&[&["echo", "--http", "127.0.0.1:0"], form].concat());
        for era in Era::ALL {
            let mut client = ready(&["bridge", "--url", &url], era);
            for text in ["a", "b"] {
                let reply = client.call_tool("echo", json!({"text": text})).unwrap();
                assert_eq!(reply.text(), Some(text), "{form:?} {era:?}");
            }
        }
    }
}

#[test]
fn what_a_bare_front_does_not_do_it_refuses() {
    let (_bare, url) = site(&["echo", "--http", "127.0.0.1:0", "--bare"]);
    let mut client = HttpClient::new(&url, HttpOptions::default()).unwrap();
    let mut check = |request: &str, status: u16| {
        let answer = client.send_raw(request.as_bytes()).unwrap();
        assert_eq!(answer.status, status, "{request}");
    };
    check("GET /mcp HTTP/1.1\r\nhost: x\r\n\r\n", 405);
    check(
        "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello",
        400,
    );
    for request in [
        "POST /mcp HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST /mcp HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ] {
        // It hangs up, and goes on for others.
        assert!(client.send_raw(request.as_bytes()).is_err(), "{request}");
    }
    client.handshake(Era::Modern).unwrap();
}

#[test]
fn a_bridge_to_nowhere_ends_with_a_message() {
    for (url, part) in [
        ("ftp://h/", "not a URL of the form"),
        ("http://127.0.0.1:9/mcp", "refused"),
    ] {
        let output = Command::new(mock_path())
            .args(["bridge", "--url", url])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(part),
            "{url}: {said}"
        );
    }
}
