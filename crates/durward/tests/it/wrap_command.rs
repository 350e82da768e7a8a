//! `durward wrap` and `unwrap` as a person calls them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::program::lab_binary;
use crate::support::world::{World, binary};
use mcp::client::{Client, Era};
use serde_json::{Value, json};

/// Exit code, standard output, standard error.
fn run(world: &World, args: &[&str]) -> (i32, String, String) {
    let output = world.durward(args);
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A client's file with these bytes, below the home.
fn file(world: &World, name: &str, text: &str) -> PathBuf {
    let path = world.home().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn text(path: &PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

const VSCODE: &str = r#"// my servers
{
	"inputs": [],
	"servers": {
		/* files of the project */
		"files": { "type": "stdio", "command": "npx", "args": ["-y", "@x/server-files", "/tmp"], "env": { "TOKEN": "secret-token" } },
		"docs": { "type": "http", "url": "https://docs.example/mcp", "headers": { "Authorization": "Bearer secret-bearer" } },
		"old": { "type": "sse", "url": "https://old.example/sse" },
	},
}
"#;

const CODEX: &str = "model = \"x\" # mine\n\n[mcp_servers.files]\ncommand = \"npx\"\nargs = [\n  \"-y\", # yes\n  \"@x/server-files\",\n]\n\n[mcp_servers.files.env]\nTOKEN = \"secret-token\"\n";

const GOOSE: &str = "# goose\nextensions:\n  developer:\n    type: builtin\n    enabled: true\n  files:\n    type: stdio\n    cmd: npx\n    args:\n    - -y\n    - '@x/server-files'  # latest\n    envs: {}\n    enabled: true\nGOOSE_MODEL: x\n";

const OPENCODE: &str = "{\n  \"mcp\": {\n    \"files\": {\n      \"type\": \"local\",\n      \"command\": [\"npx\", \"-y\", \"@x/server-files\"]\n    }\n  }\n}\n";

const CLAUDE_CODE: &str = "{\n  \"numStartups\": 7,\n  \"projects\": {\n    \"/home/me/p\": {\n      \"mcpServers\": {\n        \"files\": { \"type\": \"stdio\", \"command\": \"my-server\" }\n      }\n    }\n  }\n}";

fn clients() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("vscode", ".config/Code/User/mcp.json", VSCODE),
        ("codex", ".codex/config.toml", CODEX),
        ("goose", ".config/goose/config.yaml", GOOSE),
        ("opencode", ".config/opencode/opencode.jsonc", OPENCODE),
        ("claude-code", ".claude.json", CLAUDE_CODE),
    ]
}

#[test]
fn each_client_is_wrapped_and_restored_byte_for_byte() {
    let world = World::new(None);
    for (client, name, before) in clients() {
        let path = file(&world, name, before);
        let (code, out, err) = run(&world, &["wrap", client, "--yes"]);
        assert_eq!(code, 0, "{client}: {err}");
        assert!(out.contains("wrapped") && out.contains("backup"), "{out}");
        assert!(!out.contains("secret-"), "{out}");
        let wrapped = text(&path);
        assert!(
            wrapped.contains(binary()) && wrapped.contains("--name"),
            "{wrapped}"
        );
        // Once more, there is nothing left to wrap.
        let (code, out, _) = run(&world, &["wrap", client, "--yes"]);
        assert_eq!(code, 0);
        assert!(
            out.contains("wrapped already") && out.contains("nothing to change"),
            "{out}"
        );
        assert_eq!(text(&path), wrapped);
        let (code, out, err) = run(&world, &["unwrap", client, "--yes"]);
        assert_eq!(code, 0, "{client}: {err}");
        assert!(out.contains("byte for byte"), "{out}");
        assert_eq!(text(&path), before);
        let left = fs::read_dir(path.parent().unwrap()).unwrap();
        let left: Vec<_> = left
            .filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                name.to_string_lossy().contains(".bak-")
            })
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let (code, out, _) = run(&world, &["unwrap", client, "--yes"]);
        assert_eq!(
            (code, out.contains("nothing to change")),
            (0, true),
            "{out}"
        );
    }
}

#[test]
fn comments_stay_and_what_cannot_be_wrapped_says_why() {
    let world = World::new(None);
    let path = file(&world, ".config/Code/User/mcp.json", VSCODE);
    let (code, out, err) = run(&world, &["wrap", "vscode", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("old: not changed: its type is sse"), "{out}");
    let after = text(&path);
    for kept in [
        "// my servers",
        "/* files of the project */",
        "\"old\": { \"type\": \"sse\"",
    ] {
        assert!(after.contains(kept), "{after}");
    }
    assert!(
        after.contains("\"--env\", \"TOKEN\", \"--\", \"npx\""),
        "{after}"
    );
    assert!(
        after.contains("\"--api-key-env\", \"DURWARD_SERVER_TOKEN\""),
        "{after}"
    );
    assert!(
        after.contains("\"DURWARD_SERVER_TOKEN\": \"secret-bearer\""),
        "{after}"
    );
    let (code, _, err) = run(&world, &["wrap", "vscode", "--server", "old", "--yes"]);
    assert_eq!(code, 16);
    assert!(
        err.contains("\"old\" cannot be wrapped: its type is sse"),
        "{err}"
    );
    let (code, _, err) = run(&world, &["wrap", "vscode", "--server", "filse"]);
    assert_eq!(code, 16);
    assert!(
        err.contains("no server is called \"filse\"; the file has: docs, files, old"),
        "{err}"
    );
}

#[test]
fn later_changes_stay_when_a_file_is_unwrapped_entry_by_entry() {
    let world = World::new(None);
    for (client, name, before) in clients() {
        let path = file(&world, name, before);
        assert_eq!(run(&world, &["wrap", client, "--yes"]).0, 0);
        let edited = format!("{}\n", text(&path));
        fs::write(&path, edited).unwrap();
        let (code, out, err) = run(&world, &["unwrap", client, "--yes"]);
        assert_eq!(code, 0, "{client}: {err}");
        assert!(!out.contains("byte for byte"), "{out}");
        let after = text(&path);
        assert!(!after.contains(binary()), "{after}");
        match client {
            // An entry over HTTP is spelled anew, and one that had no arguments is laid out anew.
            "vscode" => {}
            "claude-code" => {
                let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                assert_eq!(value(&after), value(before));
            }
            _ => assert_eq!(after, format!("{before}\n")),
        }
    }
}

#[test]
fn one_server_is_wrapped_then_another_and_all_are_restored() {
    let world = World::new(None);
    let path = file(&world, ".config/Code/User/mcp.json", VSCODE);
    assert_eq!(
        run(&world, &["wrap", "vscode", "--server", "files", "--yes"]).0,
        0
    );
    assert!(text(&path).contains("\"url\": \"https://docs.example/mcp\""));
    assert_eq!(run(&world, &["wrap", "vscode", "--yes"]).0, 0);
    assert!(!text(&path).contains("\"url\": \"https://docs.example/mcp\""));
    assert_eq!(
        run(&world, &["unwrap", "vscode", "--server", "docs", "--yes"]).0,
        0
    );
    assert!(text(&path).contains("\"url\": \"https://docs.example/mcp\""));
    let (code, out, _) = run(&world, &["unwrap", "vscode", "--yes"]);
    assert_eq!(code, 0);
    assert!(out.contains("byte for byte"), "{out}");
    assert_eq!(text(&path), VSCODE);
}

#[test]
fn nothing_is_written_unasked() {
    let world = World::new(None);
    let path = file(&world, ".codex/config.toml", CODEX);
    let (code, out, _) = run(&world, &["wrap", "codex", "--dry-run"]);
    assert_eq!(code, 0);
    assert!(
        out.contains("-command = \"npx\"") || out.contains("- command = \"npx\""),
        "{out}"
    );
    assert!(out.contains("nothing was written (--dry-run)"), "{out}");
    let (code, _, err) = run(&world, &["wrap", "codex"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("standard input is not a terminal") && err.contains("--yes"),
        "{err}"
    );
    assert_eq!(text(&path), CODEX);
}

/// Each changed line once, in the order of the file, also where entries are wrapped in another order.
#[test]
fn all_changes_are_shown_as_one_difference() {
    let world = World::new(None);
    let before = r#"{ "mcpServers": {
    "files": { "command": "npx", "args": ["a"] },
    "docs": { "command": "uvx", "args": ["b"] },
    "alpha": { "command": "bun", "args": ["c"] } } }
"#;
    file(&world, ".cursor/mcp.json", before);
    let (code, out, err) = run(&world, &["wrap", "cursor", "--dry-run"]);
    assert_eq!(code, 0, "{err}");
    let signs = out.lines().filter(|line| line.starts_with(['+', '-']));
    let marked: Vec<(char, &str)> = signs
        .map(|line| {
            let name = line.split('"').nth(1).unwrap();
            (line.chars().next().unwrap(), name)
        })
        .collect();
    assert_eq!(
        marked,
        [
            ('-', "files"),
            ('-', "docs"),
            ('-', "alpha"),
            ('+', "files"),
            ('+', "docs"),
            ('+', "alpha")
        ],
        "{out}"
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let world = World::new(None);
    let (code, _, err) = run(&world, &["wrap", "cursor"]);
    assert_eq!(code, 16);
    assert!(err.contains(".cursor/mcp.json does not exist"), "{err}");
    assert!(err.contains("durward install"), "{err}");
    let (code, _, err) = run(&world, &["unwrap", "cursor"]);
    assert_eq!(code, 16);
    assert!(err.contains("there is nothing to unwrap"), "{err}");
    assert!(!err.contains("durward install"), "{err}");
    for (client, name, before, part) in [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\": {\"a\": }}",
            "not valid JSON",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\": []}",
            "\"mcpServers\" is not an object",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers\n",
            "not valid TOML: line 1",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions: [\n",
            "not valid YAML",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "{extensions: {a: {type: stdio, cmd: x}}}\n",
            "layout of this file",
        ),
    ] {
        let path = file(&world, name, before);
        let (code, _, err) = run(&world, &["wrap", client, "--yes"]);
        assert_eq!(code, 16, "{before}");
        assert!(
            err.contains(part) && err.contains(path.file_name().unwrap().to_str().unwrap()),
            "{err}"
        );
        assert_eq!(text(&path), before);
    }
}

/// What a client would start from a wrapped file is its own server, guarded.
#[test]
fn a_wrapped_entry_starts_its_server() {
    let world = World::new(None);
    let entry = json!({ "mcpServers": { "my files": {
        "command": lab_binary(), "args": ["mock", "files", "--root", world.tmp.to_str().unwrap()] } } });
    let path = file(&world, ".cursor/mcp.json", &entry.to_string());
    let state = world.tmp.join("own-state");
    let flags = ["--state-dir", state.to_str().unwrap()];
    // An unwrapped entry may run this program for other things than `run`.
    assert_eq!(
        run(&world, &[&flags[..], &["wrap", "cursor", "--yes"]].concat()).0,
        0
    );
    let wrapped: Value = serde_json::from_str(&text(&path)).unwrap();
    let wrapped = &wrapped["mcpServers"]["my files"];
    let args: Vec<String> = serde_json::from_value(wrapped["args"].clone()).unwrap();
    assert_eq!(
        args[..5],
        ["run", "--name", "my-files", "--state-dir", flags[1]]
    );
    let command = wrapped["command"].as_str().unwrap();
    let mut client = Client::spawn_with(command, &args, &world.options()).unwrap();
    client.handshake(Era::ALL[1]).unwrap();
    let path = world.tmp.join("a.txt");
    let reply = client
        .call_tool("read_file", json!({ "path": path.to_str().unwrap() }))
        .unwrap();
    assert!(reply.result().is_ok() && reply.refusal().is_none());
    client.process().close_input();
    client
        .process()
        .wait_within(Duration::from_secs(30))
        .unwrap();
}

const LOGINS: &str = r#"{"mcpServers": {
  "remote": { "url": "https://mcp.example/mcp" },
  "keyed": { "url": "https://keyed.example/mcp", "headers": { "Authorization": "Bearer key-of-keyed" } },
  "here": { "url": "http://127.0.0.1:3000/mcp" }
}}"#;

#[test]
fn a_server_that_may_ask_for_a_login_is_left_alone_and_said_to_be() {
    let world = World::new(None);
    let path = file(&world, ".cursor/mcp.json", LOGINS);
    let (code, out, err) = run(&world, &["wrap", "cursor", "--yes"]);
    assert_eq!(code, 0, "{err}");
    let says = out
        .lines()
        .find(|line| line.starts_with("remote: not changed: "));
    assert!(says.is_some_and(|line| line.contains("OAuth")), "{out}");
    let after: Value = serde_json::from_str(&text(&path)).unwrap();
    assert_eq!(
        after["mcpServers"]["remote"]["url"],
        "https://mcp.example/mcp"
    );
    for wrapped in ["keyed", "here"] {
        assert!(
            after["mcpServers"][wrapped]["command"].is_string(),
            "{after}"
        );
    }
    // Who knows that it needs no login says so, and is told what would be lost.
    let named = ["wrap", "cursor", "--yes", "--server", "remote"];
    let (code, out, err) = run(&world, &named);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("remote: note: it has no token"), "{out}");
    let after: Value = serde_json::from_str(&text(&path)).unwrap();
    assert!(
        after["mcpServers"]["remote"]["command"].is_string(),
        "{after}"
    );
}

#[test]
fn variables_of_a_file_are_passed_on_or_named() {
    let world = World::new(None);
    let far = r#"{"servers": { "far": { "type": "stdio", "command": "npx", "args": ["x"], "envFile": "${workspaceFolder}/far.env" },
        "near": { "type": "stdio", "command": "npx", "args": ["x"], "envFile": "HOME/near.env" } }}"#;
    let home = world.home();
    fs::create_dir_all(&home).unwrap();
    fs::write(
        home.join("near.env"),
        "# mine\nexport FIRST=1\nSECOND = two\n\nno line\n",
    )
    .unwrap();
    let servers = far.replace("HOME", home.to_str().unwrap());
    let path = file(&world, ".config/Code/User/mcp.json", &servers);
    let (code, out, err) = run(&world, &["wrap", "vscode", "--yes"]);
    assert_eq!(code, 0, "{err}");
    let after: Value = serde_json::from_str(&text(&path)).unwrap();
    let words = after["servers"]["near"]["args"].to_string();
    assert!(
        words.contains(r#""--env","FIRST","--env","SECOND""#),
        "{words}"
    );
    let says = out
        .lines()
        .find(|line| line.starts_with("far: not changed: "));
    assert!(
        says.is_some_and(|line| line.contains("far.env") && line.contains("--env")),
        "{out}"
    );
    assert_eq!(after["servers"]["far"]["command"], "npx");
    let named = [
        "wrap", "vscode", "--yes", "--server", "far", "--env", "TOKEN",
    ];
    let (code, out, err) = run(&world, &named);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("far: note: of the variables in "), "{out}");
}

#[test]
fn a_preview_masks_secrets_by_name_and_by_look_and_nothing_else() {
    let world = World::new(None);
    let servers = r#"{"mcpServers": { "z": {
  "command": "npx",
  "args": ["mcp-remote", "https://x.example/y?api_key=in-url", "--header", "Authorization: Bearer s3cret", "--api-key", "of-flag", "--password=pw", "-e", "abc-not-a-secret"],
  "env": { "TOKEN": "abc", "MODE": "prod", "LEVEL": "production", "PLAIN": "ghp_0123456789abcdefghijABCDEFGHIJ012345" }
}}}"#;
    file(&world, ".cursor/mcp.json", servers);
    let (code, out, err) = run(&world, &["wrap", "cursor", "--dry-run"]);
    assert_eq!(code, 0, "{err}");
    for secret in [
        "s3cret",
        "in-url",
        "of-flag",
        "\"abc\"",
        "password=pw",
        "ghp_0123",
    ] {
        assert!(!out.contains(secret), "{secret}: {out}");
    }
    for shown in [
        "\"prod\"",
        "\"production\"",
        "abc-not-a-secret",
        "mcp-remote",
        "TOKEN",
    ] {
        assert!(out.contains(shown), "{shown}: {out}");
    }
}
