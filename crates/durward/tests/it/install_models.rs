//! `durward install CLIENT --models URL`: clients that ask for models.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::world::World;

const URL: &str = "http://127.0.0.1:8765/v1/";

fn run(world: &World, args: &[&str]) -> (i32, String, String) {
    let output = world.durward(args);
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Each client with its file, a file that has something else, and what is there afterwards.
fn clients(world: &World) -> Vec<(&'static str, PathBuf, &'static str, Value)> {
    let home = world.home();
    let claude = json!({
        "model": "opus",
        "env": {
            "A": "b", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8765",
            "ANTHROPIC_MODEL": "smart", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "smart",
        },
    });
    let codex = json!({
        "model_provider": "durward", "model": "smart",
        "mcp_servers": { "x": { "command": "y" } },
        "model_providers": { "durward": {
            "name": "Durward", "base_url": "http://127.0.0.1:8765/v1", "env_key": "DURWARD_KEY", "wire_api": "responses",
        } },
    });
    let opencode = json!({
        "theme": "x", "model": "durward/smart",
        "provider": { "durward": {
            "npm": "@ai-sdk/openai-compatible", "name": "Durward",
            "options": { "baseURL": "http://127.0.0.1:8765/v1", "apiKey": "{env:DURWARD_KEY}" },
            "models": { "smart": { "name": "smart" } },
        } },
    });
    vec![
        (
            "claude-code",
            home.join(".claude/settings.json"),
            "{ \"model\": \"opus\", // mine\n  \"env\": { \"A\": \"b\" } }\n",
            claude,
        ),
        (
            "codex",
            home.join(".codex/config.toml"),
            "# mine\n[mcp_servers.x]\ncommand = \"y\"\n",
            codex,
        ),
        (
            "opencode",
            home.join(".config/opencode/opencode.json"),
            "{ \"theme\": \"x\" // mine\n}\n",
            opencode,
        ),
    ]
}

fn of(item: &toml_edit::Item) -> Value {
    match (item.as_str(), item.as_table_like()) {
        (Some(text), _) => json!(text),
        (None, Some(table)) => {
            let members = table.iter().map(|(name, item)| (name.to_owned(), of(item)));
            Value::Object(members.collect())
        }
        (None, None) => panic!("{item:?}"),
    }
}

fn parsed(client: &str, text: &str) -> Value {
    if client == "codex" {
        let document: toml_edit::DocumentMut = text.parse().unwrap();
        return of(document.as_item());
    }
    let plain: Vec<&str> = text
        .lines()
        .map(|line| line.split("// mine").next().unwrap())
        .collect();
    serde_json::from_str(&plain.join("\n")).unwrap()
}

#[test]
fn a_client_is_pointed_at_the_gateway_and_the_rest_of_its_file_stays() {
    let world = World::new(None);
    for (client, file, before, expect) in clients(&world) {
        let line = ["install", client, "--models", URL, "--model", "smart"];
        let (code, out, err) = run(&world, &line);
        assert_eq!(code, 0, "{client}: {err}");
        assert!(
            err.contains(file.to_str().unwrap()) && !file.exists(),
            "{err}"
        );
        assert!(err.contains("durward keys create"), "{err}");
        let printed = parsed(client, &out);
        let write = [&line[..], &["--write"]].concat();
        let (code, _, err) = run(&world, &write);
        assert!(
            code == 16 && err.contains("does not seem to be installed"),
            "{err}"
        );
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert_eq!(run(&world, &write).0, 0, "{client}: new");
        assert_eq!(parsed(client, &fs::read_to_string(&file).unwrap()), printed);
        fs::write(&file, before).unwrap();
        let (code, out, err) = run(&world, &write);
        assert_eq!(code, 0, "{client}: {err}");
        assert!(out.contains("backup of the file"), "{out}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("mine"), "{text}");
        assert_eq!(parsed(client, &text), expect, "{client}");
        let (code, out, _) = run(&world, &write);
        assert!(code == 0 && out.contains("nothing was changed"), "{out}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        let other = [
            "install", client, "--models", URL, "--model", "other", "--write",
        ];
        let (code, _, err) = run(&world, &other);
        assert!(code == 16 && err.contains("--force"), "{err}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert_eq!(run(&world, &[&other[..], &["--force"]].concat()).0, 0);
        assert!(fs::read_to_string(&file).unwrap().contains("other"));
    }
}

#[test]
fn what_cannot_be_written_says_what_to_do() {
    let world = World::new(None);
    for (line, told) in [
        (
            &["cursor", "--models", URL][..],
            "http://127.0.0.1:8765/v1 as its base URL",
        ),
        (
            &["zed", "--models", URL],
            "claude-code, codex and opencode are",
        ),
        (&["opencode", "--models", URL], "add --model NAME"),
        (
            &["codex", "--models", "127.0.0.1:8765"],
            "write it as http://127.0.0.1:8765",
        ),
        (
            &["codex", "--models", "http://"],
            "write it as http://127.0.0.1:8765",
        ),
    ] {
        let (code, out, err) = run(&world, &[&["install"], line].concat());
        assert!(code == 16 && out.is_empty(), "{line:?}: {code} {out}");
        assert!(err.contains(told), "{line:?}: {err}");
    }
    let (code, _, _) = run(&world, &["install", "codex", "--models", URL, "--", "cmd"]);
    assert_eq!(code, 2);
    let (code, _, err) = run(&world, &["install", "codex"]);
    assert!(
        code == 16 && err.contains("there is no server to install"),
        "{err}"
    );
}
