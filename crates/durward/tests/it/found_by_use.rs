//! What real use found of help, journal and keys, each as a test of its own.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::guarded::{LATEST, Place, binary, echo, end, eventually, line};
use crate::support::serving::Served;

/// The commands of the examples in a help text: what begins with `durward`, continuation lines joined.
fn examples(help: &str) -> Vec<String> {
    let joined = help.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    let commands = lines.filter(|line| line.starts_with("durward lab overhead "));
    commands.map(str::to_owned).collect()
}

#[test]
fn p06_every_example_of_lab_overhead_measures() {
    let place = Place::new();
    let help = place.durward(&["lab", "overhead", "--help"]);
    let examples = examples(&String::from_utf8(help.stdout).unwrap());
    assert_eq!(examples.len(), 4, "{examples:?}");
    let folder = std::path::Path::new(binary()).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    for example in examples {
        // More calls of one tool than the usual limit lets pass at once.
        let done = Command::new("sh")
            .args([
                "-c",
                &format!("{example} --launches 1 --runs 40 --warmup 1"),
            ])
            .env("PATH", &path)
            .env("HOME", place.path("home"))
            .env("XDG_RUNTIME_DIR", place.runtime())
            .current_dir(&place.dir)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{example}: {said}");
    }
    assert!(
        !place.path("home").exists(),
        "an arm has written into the user's home"
    );
}

#[test]
fn p09_every_refusal_is_found_whoever_refused() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"echo"}},
            {"id":"never","effect":"deny","conditions":{"tool_name":"delayed"}}]}"#,
    );
    let call = |id: u64, tool: &str| {
        let mut params = echo("x");
        params["name"] = tool.into();
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let waiting = || {
        let listed = place.durward(&["approvals", "list", "--json"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        let first = listed.lines().next()?;
        let question: Value = serde_json::from_str(first).ok()?;
        question["id"].as_str().map(str::to_owned)
    };
    let mut client = place.guard_with(&["--name", "mock"], &["echo"]);
    client.handshake(LATEST).unwrap();
    // By a rule, by a person, and taken back by whoever asked.
    client
        .process()
        .send_line(call(11, "delayed").as_bytes())
        .unwrap();
    line(&mut client);
    client
        .process()
        .send_line(call(12, "echo").as_bytes())
        .unwrap();
    eventually("a person says no", || {
        waiting().is_some_and(|id| place.durward(&["approvals", "deny", &id]).status.success())
    });
    line(&mut client);
    client
        .process()
        .send_line(call(13, "echo").as_bytes())
        .unwrap();
    eventually("the call waits", || waiting().is_some());
    client
        .notify("notifications/cancelled", &json!({"requestId": 13}))
        .unwrap();
    eventually("it waits no longer", || waiting().is_none());
    end(client);
    // Nobody answers in time.
    let mut client = place.guard_with(&["--name", "mock", "--approval-timeout", "5"], &["echo"]);
    client.handshake(LATEST).unwrap();
    client
        .process()
        .send_line(call(14, "echo").as_bytes())
        .unwrap();
    line(&mut client);
    end(client);
    let shown = |flags: &[&str]| {
        let before = [
            "--no-config",
            "--state-dir",
            "state",
            "audit",
            "show",
            "--json",
        ];
        let output = place.durward(&[&before, flags].concat());
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    assert_eq!(shown(&["--decision", "deny"]), 1);
    assert_eq!(shown(&["--refused"]), 4);
}

#[test]
fn p10_a_refused_key_is_recorded_with_its_name_its_server_and_where_it_came_from() {
    let place = Place::new();
    let key = |args: &[&str]| {
        let all = [&["--no-config", "--state-dir", "state", "keys"], args].concat();
        let output = place.durward(&all);
        assert!(output.status.success(), "{output:?}");
        format!(
            "Bearer {}",
            String::from_utf8(output.stdout).unwrap().trim()
        )
    };
    let narrow = key(&["create", "narrow", "--scope", "other", "--unlisted"]);
    let gone = key(&["create", "gone"]);
    key(&["create", "stays"]);
    key(&["revoke", "gone"]);
    let served = Served::start_in(place, &[]);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let status = |key: &str| {
        served
            .send("POST", "/mcp/echo", &[("authorization", key)], body)
            .status
    };
    assert_eq!((status(&narrow), status(&gone)), (403, 401));
    let (_, place) = served.stop();
    let records = place.records();
    let refused = |subject: &str| {
        let mut found = records
            .0
            .iter()
            .filter(|record| record["event"] == "key_refused");
        found
            .find(|record| record["subject_id"] == subject)
            .unwrap_or_else(|| panic!("{records:?}"))
            .clone()
    };
    let expect = "for the server \"echo\", from 127.0.0.1";
    assert_eq!(refused("key:narrow")["reason"], "key_out_of_scope");
    assert_eq!(refused("key:narrow")["message"], expect);
    assert_eq!(refused("key:gone")["reason"], "key_revoked");
    assert_eq!(refused("key:gone")["message"], expect);
}
