//! `durward tools`, `durward call` and `durward check --start`.

use std::fs;

use crate::support::guarded::Place;
use serde_json::{Value, json};

const RULES: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"echo-passes","effect":"allow","conditions":{"tool_name":"echo"}},
    {"id":"no-delay","effect":"deny","conditions":{"tool_name":"delayed"}}]}"#;

/// Exit code, standard output, standard error.
fn run(place: &Place, words: &[&str]) -> (i32, String, String) {
    let words = [words, &["--config", "durward.yaml", "--state-dir", "state"]].concat();
    let output = place.durward(&words);
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A place whose configuration has one counted mock, and a server that is not there.
fn place() -> Place {
    let place = Place::new();
    place.write_policy(RULES);
    let command = place.mock(&["echo"]);
    let config = format!(
        "servers:\n  echo: {{ command: {}, args: {} }}\npolicy: policy.json\n",
        json!(command[0]),
        json!(command[1..])
    );
    fs::write(place.path("durward.yaml"), config).unwrap();
    place
}

#[test]
fn a_tool_is_called_through_the_gate() {
    let place = place();
    let (code, out, err) = run(&place, &["call", "echo", "echo", r#"{"text":"hello"}"#]);
    assert_eq!(code, 0, "{err}");
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["content"][0]["text"], "hello");
    let (code, out, _) = run(
        &place,
        &["call", "echo", "echo", r#"{"text":"hello"}"#, "--text"],
    );
    assert_eq!((code, out.as_str()), (0, "hello\n"));
    assert_eq!(place.counted().len(), 2);
    let (code, out, err) = run(&place, &["call", "echo", "delayed", "{}"]);
    assert_eq!(code, 3, "{out} {err}");
    assert!(
        err.contains("error: refused: ") && err.contains("no-delay"),
        "{err}"
    );
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["isError"], true);
    assert_eq!(place.counted().len(), 2);
    place.verified();
}

#[test]
fn calls_that_cannot_be_made_say_why() {
    let place = place();
    for (words, expect, said) in [
        (&["call", "ecko", "echo"][..], 16, "did you mean \"echo\"?"),
        (
            &["call", "echo", "echo", "{"],
            16,
            "the arguments are not JSON",
        ),
        (&["call", "echo", "echo", "[1]"], 16, "not a JSON object"),
        (&["tools", "ecko"], 16, "did you mean \"echo\"?"),
    ] {
        let (code, _, err) = run(&place, words);
        assert_eq!(code, expect, "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
    }
    fs::write(
        place.path("durward.yaml"),
        "servers: { gone: { command: nosuchcmd } }\npolicy: policy.json\n",
    )
    .unwrap();
    let (code, _, err) = run(&place, &["call", "gone", "echo"]);
    assert_eq!(code, 4, "{err}");
    assert!(
        err.contains("no command \"nosuchcmd\" on the PATH"),
        "{err}"
    );
    let (code, _, err) = run(&place, &["check", "--start"]);
    assert_eq!(code, 16, "{err}");
    assert!(
        err.contains("no command \"nosuchcmd\" on the PATH"),
        "{err}"
    );
}

#[test]
fn a_program_that_is_no_mcp_server_is_said_to_be_none() {
    let place = place();
    let servers = json!({
        "repeats": {"command": "/bin/cat"},
        "ends": {"command": "/bin/echo", "args": ["hello"]},
    });
    let configuration = json!({"servers": servers, "policy": "policy.json"});
    fs::write(place.path("durward.yaml"), configuration.to_string()).unwrap();
    for (words, code, said) in [
        (
            &["tools", "repeats"][..],
            1,
            "repeats did not open a session",
        ),
        (
            &["call", "repeats", "echo"],
            4,
            "repeats did not open a session",
        ),
        (&["tools", "ends"], 1, "ends ended before it answered"),
    ] {
        let (found, _, err) = run(&place, words);
        assert_eq!(found, code, "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
        assert!(err.contains("is it an MCP server?"), "{words:?}: {err}");
        assert!(!err.contains("jsonrpc"), "{words:?}: {err}");
    }
}

#[test]
fn a_server_that_is_not_started_for_want_of_keys_is_not_blamed() {
    let place = place();
    fs::create_dir_all(place.path("broken")).unwrap();
    fs::write(place.path("broken/keys"), "a file").unwrap();
    let words = ["--config", "durward.yaml", "--state-dir", "broken"];
    let output = place.durward(&[&words[..], &["call", "echo", "echo"]].concat());
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(err.contains("/broken/keys"), "{err}");
    assert!(
        err.contains("echo was not started; the reason is above"),
        "{err}"
    );
    assert!(!err.contains("MCP server"), "{err}");
}

#[test]
fn a_file_where_the_state_directory_should_be_is_named() {
    let place = place();
    let file = place.path("file");
    fs::write(&file, "").unwrap();
    for state in ["file", "file/below"] {
        for words in [&["keys", "list"][..], &["tools"], &["audit", "verify"]] {
            let words = [&["--no-config", "--state-dir", state], words].concat();
            let output = place.durward(&words);
            let err = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(16), "{words:?}: {err}");
            let named = format!("{} is a file", file.display());
            assert!(err.contains(&named), "{words:?}: {err}");
            assert!(err.contains("--state-dir DIR"), "{words:?}: {err}");
        }
    }
}

#[test]
fn tools_are_listed_with_their_verdicts() {
    let place = place();
    let (code, out, err) = run(&place, &["tools"]);
    assert_eq!(code, 0, "{err}");
    let line = out
        .lines()
        .find(|line| line.starts_with("  echo "))
        .unwrap();
    assert!(
        line.contains("passes") && line.contains("echo-passes"),
        "{out}"
    );
    assert!(!out.contains("delayed"), "{out}");
    let (code, out, _) = run(&place, &["tools", "echo", "--json"]);
    assert_eq!(code, 0);
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(listed["tools"][0]["policy"]["verdict"], "passes");
    assert!(listed["tools"][0]["inputSchema"].is_object(), "{listed}");
}

#[test]
fn check_starts_every_server_and_shows_what_is_hidden() {
    let place = place();
    let before = fs::read_dir(place.path("state"))
        .map(Iterator::count)
        .unwrap_or(0);
    let (code, out, err) = run(&place, &["check", "--start"]);
    assert_eq!(code, 0, "{err}");
    let tools = out.split_once("\ntools\n").unwrap().1;
    let row = |tool: &str| {
        let found = tools
            .lines()
            .find(|line| line.starts_with(&format!("  {tool} ")));
        found.unwrap_or_else(|| panic!("{tool}: {out}")).to_owned()
    };
    assert!(row("delayed").contains("hidden  no-delay"), "{out}");
    assert!(row("echo").contains("passes"), "{out}");
    // Nothing of that is left in the state directory.
    let after = fs::read_dir(place.path("state"))
        .map(Iterator::count)
        .unwrap_or(0);
    assert_eq!(before, after);
    assert!(place.counted().is_empty());
    let (code, out, _) = run(&place, &["check", "--start", "--json"]);
    assert_eq!(code, 0);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["tools"][0]["server"], "echo");
}
