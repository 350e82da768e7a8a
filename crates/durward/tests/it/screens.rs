//! What commands print at a terminal that is narrow or wide: no line is cut by its edge, and columns that matter are there.

use crate::support::guarded::{LATEST, Place, binary, call_works, echo, end};
use serde_json::Value;

/// The widths of a narrow and of a wide terminal.
const WIDTHS: [usize; 2] = [60, 120];

/// Words that are longer than a line are left whole: paths, digests, signatures.
fn fits(line: &str, width: usize) -> bool {
    line.chars().count() <= width || !line.trim().contains(' ')
}

/// What a command prints on lines of this width, standard error behind standard output.
fn printed(place: &Place, width: usize, args: &[&str]) -> String {
    let mut command = place.command(args);
    let output = command
        .env("DURWARD_COLUMNS", width.to_string())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    text(output.stdout) + &text(output.stderr)
}

/// A configured server, with an allowed call and a refused one.
fn place() -> Place {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"echo-is-allowed-to-everybody","effect":"allow","conditions":{"tool_name":"echo"}},
            {"id":"no-secrets-of-anybody-are-read-by-any-tool-of-this-server","effect":"deny",
             "conditions":{"extension":[".pem",".key",".env",".p12",".pfx",".jks",".keystore"]}}]}"#,
    );
    let config = format!(
        "servers: {{ mock: {{ command: \"{}\", args: [lab, mock, echo] }} }}\npolicy: policy.json\n",
        binary()
    );
    std::fs::write(place.path("durward.yaml"), config).unwrap();
    let mut client = place.guard_with(&["--name", "mock"], &["echo"]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "a");
    let mut other = echo("d");
    other["name"] = Value::from("delayed");
    client.request("tools/call", other).unwrap();
    end(client);
    place
}

#[test]
fn every_line_of_the_everyday_commands_fits_the_terminal() {
    let place = place();
    let configured = ["--config", "durward.yaml", "--state-dir", "state"];
    for (command, expected) in [
        (&["logs"][..], "no_rule_"),
        (&["logs", "--refused"], "delayed"),
        (&["logs", "list"], "policy-history"),
        (&["logs", "--type", "operations"], "Success"),
        (&["logs", "--type", "system"], "session_started"),
        (&["audit", "show"], "segment_closed"),
        (&["audit", "verify"], "sound"),
        (&["check"], "allowed_origins"),
        (&["check", "--start"], "depends"),
        (&["tools"], "echo"),
        (&["policy", "show"], "no-secrets"),
        (&["policy", "check", "policy.json"], "rules"),
        (&["policy", "explain", "--tool", "echo"], "ALLOW"),
        (&["status"], "segment"),
        (&["keys", "list"], "durward keys create"),
        (&["approvals", "list"], "no instance"),
        (&["pins", "list"], "tools"),
        (&["--help"], "wrap"),
        (&["models", "explain", "smart"], "no model provider"),
        (&["call", "nosuch", "x"], "nosuch"),
    ] {
        for width in WIDTHS {
            let text = printed(&place, width, &[&configured[..], command].concat());
            assert!(text.contains(expected), "{command:?}, {width}: {text}");
            for line in text.lines() {
                assert!(fits(line, width), "{command:?}, {width}: {line}\n{text}");
            }
        }
    }
}

#[test]
fn json_is_not_folded() {
    let place = place();
    for command in [
        &["logs", "--json"][..],
        &["audit", "show", "--json"],
        &["check", "--json"],
        &["policy", "show", "policy.json", "--json"],
        &["policy", "check", "policy.json", "--json"],
        &["status", "--json"],
    ] {
        let args = [&["--no-config", "--state-dir", "state"], command].concat();
        let mut narrow = place.command(&args);
        let narrow = narrow.env("DURWARD_COLUMNS", "40").output().unwrap();
        let text = String::from_utf8(narrow.stdout).unwrap();
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(values.map(Result::unwrap).count() > 0, "{command:?}");
        assert!(
            longest.is_some_and(|longest| longest > 40),
            "{command:?}: {text}"
        );
    }
}
