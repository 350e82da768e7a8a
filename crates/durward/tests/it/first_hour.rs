//! What a new user met in the first hour, each as a test of its own.

use std::process::{Command, Stdio};

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::guarded::{LATEST, Place, binary, echo, end, line, wait_for_end};
use crate::support::refusals::{is_passed, refusal_text};

/// A client behind `durward run` with the limits that hold where nobody says anything of them.
fn usual(place: &Place, flags: &[&str]) -> Client {
    let words = [
        "run",
        "--no-config",
        "--state-dir",
        "state",
        "--policy",
        "policy.json",
    ];
    let args: Vec<String> = words
        .iter()
        .chain(flags)
        .map(|word| (*word).to_owned())
        .collect();
    let args = [args, vec!["--".to_owned()], place.mock(&["echo"])].concat();
    let mut client = Client::spawn_with(binary(), args, &place.options()).unwrap();
    client.handshake(LATEST).unwrap();
    client
}

#[test]
fn p05_an_ordinary_agent_meets_no_limit() {
    const CALLS: usize = 100;
    const LISTS: usize = 80;
    let place = Place::new();
    let mut client = usual(&place, &[]);
    for _ in 0..LISTS {
        client.send_request("tools/list", json!({})).unwrap();
    }
    for number in 0..LISTS {
        let answer: Value = line(&mut client);
        assert!(is_passed(&answer), "list {number}: {answer}");
    }
    for number in 0..CALLS {
        let reply = client.request("tools/call", echo("x")).unwrap();
        assert!(reply.refusal().is_none(), "call {number}: {}", reply.line());
    }
    end(client);
    assert_eq!(place.counted().len(), CALLS);
}

#[test]
fn p05_a_refusal_by_a_limit_names_the_limit() {
    let cases: [(&[&str], &str); 2] = [
        (
            &["--limit-requests", "1/h", "--limit-burst", "2"],
            "limits.requests",
        ),
        (
            &["--limit-tool-calls", "1", "--limit-then", "refuse"],
            "limits.per_tool",
        ),
    ];
    for (flags, name) in cases {
        let place = Place::new();
        let mut client = usual(&place, flags);
        let refused = (0..4)
            .map(|_| {
                client.send_request("tools/call", echo("x")).unwrap();
                line(&mut client)
            })
            .find(|answer| !is_passed(answer))
            .expect("one of four is refused");
        assert!(refusal_text(&refused).contains(name), "{refused}");
        end(client);
    }
}

#[test]
fn p12_without_a_home_nothing_is_kept_in_the_current_directory() {
    let place = Place::new();
    for words in [
        &["run", "--", "true"][..],
        &["init", "--yes"],
        &["audit", "show"],
        &["keys", "list"],
    ] {
        let output = Command::new(binary())
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(&place.dir)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(16), "{words:?}: {said}");
        assert!(said.contains("HOME is not set"), "{words:?}: {said}");
        assert!(!place.path(".durward").exists(), "{words:?}");
    }
}

#[test]
fn p15_a_mistyped_command_is_named_to_client_and_person() {
    let place = Place::new();
    let mut client = place.guard_command(&[], &["nosuchcmd"]);
    client
        .send_request("initialize", json!({"protocolVersion": "2025-11-25"}))
        .unwrap();
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(16), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("no command \"nosuchcmd\" on the PATH"),
        "{ended:?}"
    );
    let told = ended.rest[0]["error"]["message"].as_str().unwrap();
    assert!(told.contains("\"nosuchcmd\""), "{told}");
}

#[test]
fn p15_a_mistyped_command_is_an_error_also_where_nobody_calls() {
    let place = Place::new();
    let args = place.run_args(&[], &["nosuchcmd"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // Its standard input is empty.
    let output = place.durward(&args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(16), "{said}");
    assert!(
        said.contains("no command \"nosuchcmd\" on the PATH"),
        "{said}"
    );
}

#[test]
fn p16_a_key_for_a_server_that_is_not_there_is_refused() {
    let place = Place::new();
    let command = place.mock(&["echo"]);
    let config = format!(
        "servers: {{ files: {{ command: {} }} }}\n",
        json!(command[0])
    );
    std::fs::write(place.path("durward.yaml"), config).unwrap();
    let keys = |words: &[&str]| {
        let flags = ["--config", "durward.yaml", "--state-dir", "state", "keys"];
        let output = place.durward(&[&flags, words].concat());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, _, err) = keys(&["create", "ci", "--scope", "nosuch"]);
    assert_eq!(code, Some(16), "{err}");
    assert!(
        err.contains("no server \"nosuch\"") && err.contains("scopes are: files"),
        "{err}"
    );
    assert_eq!(keys(&["create", "ci", "--scope", "files"]).0, Some(0));
    assert_eq!(
        keys(&["create", "adhoc", "--scope", "nosuch", "--unlisted"]).0,
        Some(0)
    );
    let (_, out, _) = keys(&["list"]);
    for row in [
        "NAME   STATE  SCOPE   GROUPS",
        "adhoc  good   nosuch  -",
        "ci     good   files   -",
    ] {
        assert!(
            out.lines().any(|line| line.starts_with(row)),
            "{row}: {out}"
        );
    }
}
