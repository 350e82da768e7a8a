//! What is wrong before the first call: policies, environments, and what a server's log may do to a terminal.

use std::fs;
use std::process::Output;

use crate::support::approver;
use crate::support::guarded::{LATEST, Place, binary, call_works, end, eventually, wait_for_end};

/// Runs with this policy; the server must not be started and nothing be written.
#[track_caller]
fn refused_policy(place: &Place, policy: &str, says: &[&str]) {
    let Output {
        status,
        stdout,
        stderr,
    } = place.durward(&[
        "run",
        "--state-dir",
        "state",
        "--policy",
        policy,
        "--",
        "touch",
        "started",
    ]);
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(16), "{stderr}");
    assert!(stdout.is_empty(), "{stdout:?}");
    for part in says {
        assert!(stderr.contains(part), "{part:?} is not in {stderr}");
    }
    assert!(!place.path("started").exists(), "the server was started");
    assert!(place.segments().is_empty(), "a journal was begun");
}

/// A policy of one rule per line, from line 2 on.
fn refused_rules(rules: &[&str], says: &[&str]) {
    let place = Place::new();
    let rules = rules.join(",\n");
    place.write_policy(&format!(
        "{{\"version\":\"1\",\"default_action\":\"deny\",\"rules\":[\n{rules}]}}"
    ));
    refused_policy(
        &place,
        "policy.json",
        &[&["error: policy.json: "], says].concat(),
    );
}

#[test]
fn policy_with_an_unknown_key() {
    let place = Place::new();
    place.write_policy(r#"{"version":"1","default_acton":"deny","rules":[]}"#);
    let says = [
        "line 1, column 16: unknown key \"default_acton\"",
        "hint: did you mean \"default_action\"?",
    ];
    refused_policy(&place, "policy.json", &says);
}

#[test]
fn policy_with_an_unknown_condition() {
    refused_rules(
        &[r#"{"id":"a","effect":"allow","conditions":{"tool_nam":"*"}}"#],
        &[
            "line 2, column 42: unknown condition \"tool_nam\"",
            "hint: did you mean \"tool_name\"?",
        ],
    );
}

#[test]
fn policy_with_a_bad_glob() {
    refused_rules(
        &[
            r#"{"id":"a","effect":"allow","conditions":{"tool_name":"*"}}"#,
            r#"{"id":"b","effect":"deny","conditions":{"path_pattern":["/tmp/**","/tmp/[a"]}}"#,
        ],
        &["line 3, column ", "bad glob in path_pattern", "hint: "],
    );
}

#[test]
fn policy_with_a_duplicate_id() {
    refused_rules(
        &[
            r#"{"id":"a","effect":"allow","conditions":{"tool_name":"*"}}"#,
            r#"{"id":"a","effect":"deny","conditions":{"tool_name":"x"}}"#,
        ],
        &["line 3, column 7: rule id \"a\"", "rule 1", "hint: "],
    );
}

#[test]
fn policy_with_an_unknown_effect() {
    refused_rules(
        &[r#"{"id":"a","effect":"alow","conditions":{"tool_name":"*"}}"#],
        &[
            "line 2, column 20: unknown effect \"alow\"",
            "hint: did you mean \"allow\"?",
        ],
    );
}

#[test]
fn policy_that_is_no_json() {
    refused_rules(&[r#"{"id":"a","#], &["line 2, column "]);
}

#[test]
fn policy_with_a_key_twice() {
    let place = Place::new();
    place.write_policy(r#"{"version":"1","version":"1","default_action":"deny","rules":[]}"#);
    let says = ["line 1, column ", "\"version\" is given twice"];
    refused_policy(&place, "policy.json", &says);
}

#[test]
fn policy_that_cannot_be_read() {
    let place = Place::new();
    refused_policy(&place, "absent.json", &["error: absent.json: "]);
    refused_policy(&place, ".", &["error: .: "]);
    fs::write(place.path("policy.json"), b"{\"version\":\"\xff\"}").unwrap();
    refused_policy(&place, "policy.json", &["error: policy.json: "]);
    let huge = fs::File::create(place.path("huge.json")).unwrap();
    huge.set_len(9 << 20).unwrap();
    refused_policy(&place, "huge.json", &["longer than 8 MiB"]);
}

#[test]
fn the_starter_policy_is_announced_and_applies() {
    let place = Place::new();
    let args = ["run", "--state-dir", "state", "--"].map(str::to_owned);
    let args = [&args[..], &place.mock(&["echo"])].concat();
    let mut client = mcp::client::Client::spawn_with(binary(), args, &place.options()).unwrap();
    client.handshake(LATEST).unwrap();
    let _denier = approver::Denier::start(&place.runtime());
    let params = serde_json::json!({"name": "record", "arguments": {"text": "x"}});
    let reply = client.request("tools/call", params).unwrap();
    let data = reply.refusal().expect("a refusal");
    assert_eq!(data["decision"], "hitl", "{data}");
    assert_eq!(data["reason"], "approval_denied", "{data}");
    let ended = end(client);
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("the starter policy applies"),
        "{}",
        ended.stderr
    );
    assert_eq!(place.counted().len(), 0);
    assert_eq!(place.journal().decisions()[0]["decision"], "hitl");
}

/// The environment that a server got, by lines.
fn environment_seen(flags: &[&str]) -> Vec<String> {
    let place = Place::new();
    let mut options = place.options();
    for (name, value) in [
        ("API_TOKEN", "s3cret-value"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret-value"),
        ("DURWARD_STATE_DIR", "/nowhere"),
        ("LC_TEST", "kept"),
    ] {
        options.env.push((name.into(), value.into()));
    }
    let command = ["sh", "-c", "env > seen.part; mv seen.part seen; exec cat"];
    let client = place.guard_as(flags, &command, &options);
    let seen = place.path("seen");
    eventually("the server has started", || seen.exists());
    assert_eq!(end(client).code, Some(0));
    for segment in place.segments() {
        let journal = fs::read_to_string(segment).unwrap();
        assert!(
            !journal.contains("s3cret-value"),
            "a secret was written down"
        );
    }
    let text = fs::read_to_string(seen).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_secret_of_the_environment_does_not_reach_the_server() {
    let seen = environment_seen(&[]);
    assert!(
        seen.iter().any(|line| line.starts_with("PATH=")),
        "{seen:?}"
    );
    assert!(seen.iter().any(|line| line == "LC_TEST=kept"), "{seen:?}");
    assert!(!seen.iter().any(|line| line.contains("s3cret-value")));
    assert!(!seen.iter().any(|line| line.starts_with("DURWARD")));
}

#[test]
fn a_variable_that_is_asked_for_reaches_the_server() {
    let seen = environment_seen(&["--env", "API_TOKEN", "--env", "EXTRA=a=b"]);
    assert!(seen.iter().any(|line| line == "API_TOKEN=s3cret-value"));
    assert!(seen.iter().any(|line| line == "EXTRA=a=b"));
    assert!(!seen.iter().any(|line| line.starts_with("AWS_")));
}

#[test]
fn terminal_escapes_of_a_server_arrive_harmless() {
    let place = Place::new();
    let script = r#"printf '\033[31mred\033]0;title\007 \302\233m\r over\n' >&2; exec "$0" "$@""#;
    let mock = place.mock(&["echo"]);
    let mut command = vec!["sh", "-c", script];
    command.extend(mock.iter().map(String::as_str));
    let mut client = place.guard_command(&["-v"], &command);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "x");
    let ended = end(client);
    assert_eq!(ended.code, Some(0));
    let log = &ended.stderr;
    assert!(log.contains("red"), "{log:?}");
    assert!(log.contains(r"\u{1b}[31mred"), "{log:?}");
    let harmful = |c: char| c.is_control() && c != '\n';
    assert!(!log.contains(harmful), "{log:?}");
}

#[test]
fn a_command_line_that_cannot_be_meant() {
    let place = Place::new();
    for args in [
        &["run", "--name", "a__b", "--", "true"][..],
        &["run", "--env", "=x", "--", "true"],
        &["run", "--call-timeout", "0", "--", "true"],
        &["run", "--polcy", "x", "--", "true"],
    ] {
        let output = place.durward(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!output.stderr.is_empty());
    }
    assert!(place.segments().is_empty());
}

#[test]
fn a_command_line_without_a_server() {
    let place = Place::new();
    let output = place.durward(&["run"]);
    assert_eq!(output.status.code(), Some(16), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("no server was given\n  hint: give its command"),
        "{said}"
    );
}

#[test]
fn a_server_that_ends_at_once() {
    let place = Place::new();
    let client = place.guard_command(&[], &["sh", "-c", "echo no licence >&2; exit 7"]);
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("ended: exit code 7"), "{ended:?}");
    place.journal().assert_event("segment_closed");
}
