//! Arms over HTTP: measured beside each other, and refused where they are not what they should be.

use crate::support::{lab_path, measured, mock, refused};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

fn overhead(args: &[&str]) -> Output {
    let size = [
        "--launches",
        "2",
        "--runs",
        "60",
        "--warmup",
        "5",
        "--quiet",
        "--json",
    ];
    Command::new(lab_path())
        .arg("overhead")
        .args(args)
        .args(size)
        .output()
        .unwrap()
}

/// A server that gives every connection these bytes for whatever it asks, and closes.
fn server(reply: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let reply = reply.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 8192];
            if stream.read(&mut request).unwrap_or(0) > 0 {
                let _ = stream.write_all(reply.as_bytes());
            }
        }
    });
    url
}

#[test]
fn every_way_to_name_an_arm_is_measured_in_both_revisions() {
    let echo = mock("echo --http 127.0.0.1:0");
    let bare = format!("bare={}", mock("echo --http 127.0.0.1:{port} --bare"));
    let placed = format!(
        "placed=http://localhost:{{port}}/mcp -- {}",
        mock("echo --http 127.0.0.1:{port}")
    );
    let relayed = format!(
        "relayed={}",
        mock(&format!("relay --http 127.0.0.1:0 -- {}", mock("echo")))
    );
    let tunnel = format!("tunnel={}", mock("relay --http 127.0.0.1:0 --url {direct}"));
    for protocol in ["2025-11-25", "2026-07-28"] {
        let mut args = vec![
            "--transport",
            "http",
            "--protocol",
            protocol,
            "--direct",
            &echo,
        ];
        for arm in [&bare, &placed, &relayed, &tunnel] {
            args.extend(["--arm", arm]);
        }
        let found = measured(&overhead(&args));
        let arms = found["arms"].as_array().unwrap();
        assert_eq!(arms.len(), 5, "{protocol}");
        for arm in arms {
            assert_eq!(
                (&arm["calls"], &arm["transport"]),
                (&120.into(), &"http".into())
            );
            assert!(arm["processes"].as_array().is_some_and(|p| !p.is_empty()));
        }
        assert_eq!(found["comparisons"].as_array().unwrap().len(), 4);
    }
}

#[test]
fn many_connections_at_once_are_all_answered() {
    let echo = mock("echo --http 127.0.0.1:0");
    let tunnel = mock("relay --http 127.0.0.1:0 --url {direct}");
    let args = [
        "--transport",
        "http",
        "--concurrency",
        "8",
        "--direct",
        &echo,
        "--proxied",
        &tunnel,
    ];
    let found = measured(&overhead(&args));
    for arm in found["arms"].as_array().unwrap() {
        assert_eq!(arm["calls"], 120);
    }
}

#[test]
fn wrong_usage_is_two() {
    let echo = mock("echo --http 127.0.0.1:0");
    let check = |args: &[&str], part: &str| refused(&overhead(args), 2, part);
    let http = |direct: &str, part: &str| {
        check(
            &[
                "--transport",
                "http",
                "--direct",
                direct,
                "--proxied",
                &echo,
            ],
            part,
        );
    };
    http("http://", "cannot be called");
    http("https://localhost/", "http:// only");
    http("http://h:{port}/", "no command");
    http("http://h:{port}/ -- 'x", "quote");
    http(
        &mock("relay --http 127.0.0.1:0 --url {direct}"),
        "before itself",
    );
    check(
        &["--direct", "http://h/", "--proxied", &echo],
        "--transport http",
    );
    check(
        &["--topology", "bridge", "--direct", &echo],
        "--proxied or --rules",
    );
    check(
        &["--topology", "bridge", "--arm", "a=x", "--arm", "b=y"],
        "--direct",
    );
}

#[test]
fn an_arm_that_does_not_come_up_is_named() {
    let echo = mock("echo --http 127.0.0.1:0");
    let check = |direct: &str, part: &str| {
        let args = [
            "--transport",
            "http",
            "--timeout-ms",
            "400",
            "--direct",
            direct,
            "--proxied",
            &echo,
        ];
        refused(&overhead(&args), 1, part);
    };
    check("/nope/nope", "cannot start /nope/nope");
    check("sh -c 'echo it broke >&2; exit 3' {port}", "it broke");
    check("sleep 30 {port}", "nobody listens");
    check(
        "sh -c 'sleep 30'",
        "no answer to the address that it prints first",
    );
    check("echo hello", "not an http:// address: hello");
    check("true", "ended");
    check("http://127.0.0.1:9/", "cannot connect to 127.0.0.1:9");
}

#[test]
fn what_is_no_answer_is_never_fast() {
    let echo = mock("echo --http 127.0.0.1:0");
    let check = |reply: &str, part: &str| {
        let url = server(reply);
        let args = [
            "--transport",
            "http",
            "--timeout-ms",
            "400",
            "--direct",
            &url,
            "--proxied",
            &echo,
        ];
        refused(&overhead(&args), 1, part);
    };
    check(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n",
        "status 429",
    );
    check(
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
        "status 401",
    );
    check(
        "HTTP/1.1 302 Found\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n",
        "status 302",
    );
    check(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>",
        "not a JSON-RPC message",
    );
    check(
        "HTTP/1.1 200 OK\r\ncontent-length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}",
        "not the one to id 1",
    );
    check(
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{",
        "initialize",
    );
    check("SSH-2.0-x\r\n\r\n", "not an HTTP/1.1 answer");
    check("", "initialize");
}

#[test]
fn answers_that_differ_are_invalid() {
    let text = mock("echo --http 127.0.0.1:0");
    let other = format!(
        "http://127.0.0.1:{{port}}/mcp -- {}",
        mock("files --root / --http 127.0.0.1:{port}")
    );
    let args = [
        "--transport",
        "http",
        "--op",
        "list",
        "--direct",
        &text,
        "--proxied",
        &other,
    ];
    refused(&overhead(&args), 1, "is not the baseline's");
}

#[test]
fn a_server_that_misbehaves_in_a_call_is_named() {
    let hostile = |behaviour: &str| {
        mock(&format!(
            "hostile --http 127.0.0.1:0 --at 4 --behaviour {behaviour}"
        ))
    };
    let calm = mock("hostile --http 127.0.0.1:0 --at 100000 --behaviour never");
    for (behaviour, part) in [
        ("die", "variant proxied"),
        ("never", "no answer to tools/call within 400 ms"),
    ] {
        let proxied = hostile(behaviour);
        let args = [
            "--transport",
            "http",
            "--timeout-ms",
            "400",
            "--direct",
            &calm,
            "--proxied",
            &proxied,
        ];
        refused(&overhead(&args), 1, part);
    }
}
