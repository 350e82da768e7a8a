//! `durward servers` as a person calls it: the configuration is edited in place.

use std::fs;

use crate::support::world::World;
use serde_json::Value;

const TEXT: &str = "\
# Ours.
call_timeout: 60s   # enough

servers:
  # Notes of the team.
  notes:
    command: notes-server   # from npm
    args: [\"--dir\", notes]

  fetch:
    url: https://example.org/mcp
";

fn world() -> World {
    let world = World::new(None);
    fs::create_dir_all(world.config()).unwrap();
    fs::write(file(&world), TEXT).unwrap();
    world
}

fn file(world: &World) -> std::path::PathBuf {
    world.config().join("durward.yaml")
}

/// Exit code and both streams.
fn servers(world: &World, words: &[&str]) -> (i32, String) {
    let output = world.durward(&[&["servers"], words].concat());
    let mut said = String::from_utf8(output.stdout).unwrap();
    said.push_str(&String::from_utf8(output.stderr).unwrap());
    (output.status.code().unwrap(), said)
}

fn text(world: &World) -> String {
    fs::read_to_string(file(world)).unwrap()
}

#[test]
fn an_archived_server_is_listed_and_comes_back_byte_by_byte() {
    let world = world();
    let (code, said) = servers(&world, &["archive", "notes"]);
    assert_eq!(code, 0, "{said}");
    assert!(!text(&world).contains("notes"), "{}", text(&world));
    assert!(text(&world).contains("call_timeout: 60s   # enough"));
    let (_, said) = servers(&world, &["list"]);
    assert!(
        said.contains("fetch") && !said.contains("notes-server"),
        "{said}"
    );
    let (_, said) = servers(&world, &["list", "--archived", "--json"]);
    let archived: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(archived["name"], "notes");
    assert_eq!(servers(&world, &["archive", "notes"]).0, 1);
    let (code, said) = servers(&world, &["restore", "notes"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(text(&world), TEXT);
    assert_eq!(servers(&world, &["restore", "notes"]).0, 1);
}

#[test]
fn a_server_is_added_behind_the_others_and_shown() {
    let world = world();
    let add = [
        "add",
        "files",
        "--env",
        "TOKEN=${TOKEN_OF_FILES}",
        "--",
        "npx",
        "-y",
        "files",
    ];
    let (code, said) = servers(&world, &add);
    // The variable is not set: the configuration could not be used.
    assert_eq!(code, 16, "{said}");
    assert!(said.contains("TOKEN_OF_FILES"), "{said}");
    assert_eq!(text(&world), TEXT);
    let (code, said) = servers(&world, &["add", "files", "--", "npx", "-y", "files"]);
    assert_eq!(code, 0, "{said}");
    assert!(text(&world).starts_with(TEXT), "{}", text(&world));
    let (code, said) = servers(&world, &["show", "files", "--json"]);
    assert_eq!(code, 0, "{said}");
    let shown: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(shown["target"], "npx -y files");
    assert_eq!(shown["instances"], Value::Array(Vec::new()));
    let (code, said) = servers(&world, &["add", "files", "--url", "https://example.org"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("already"), "{said}");
    assert_eq!(servers(&world, &["show", "none"]).0, 1);
}

#[test]
fn the_first_server_makes_the_configuration() {
    let world = World::new(None);
    assert!(!file(&world).exists());
    fs::create_dir_all(world.config()).unwrap();
    let (code, said) = servers(&world, &["add", "docs", "--url", "https://example.org/mcp"]);
    assert_eq!(code, 0, "{said}");
    let (_, said) = servers(&world, &["list", "--json"]);
    let listed: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(listed["transport"], "http", "{listed}");
}
