//! What a call does is known from sources that count: neither from a name that begins well nor from annotations that
//! no person approved.

use std::fs;

use crate::support::world::World;
use serde_json::{Value, json};

/// Reads below a folder pass; changes are refused.
const READS: &str = r#"{"version":"1","rules":[
    {"id":"read-work","effect":"allow","conditions":{"operations":["read"],"path_pattern":"/home/me/work/**"}},
    {"id":"no-change","effect":"deny","conditions":{"operations":["write","delete"]}}]}"#;

/// Names of tools that mislead: most begin with a verb that reads.
const MISLEADING: &str = include_str!("../../../gate/tests/it/misleading_names.txt");

/// Has `durward policy test` judge calls.
fn judged(world: &World, cases: &[Value]) {
    let file = world.far.join("cases.json");
    fs::write(&file, json!(cases).to_string()).unwrap();
    let mut args = vec!["policy", "test", file.to_str().unwrap()];
    if let Some(policy) = &world.policy {
        args.extend(["--policy", policy.to_str().unwrap()]);
    }
    let output = world.durward(&args);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn tools_whose_names_begin_like_reads_do_not_pass_as_reads() {
    let world = World::new(Some(READS));
    let case = |tool: &str| json!({"tool": tool, "args": {"path": "/home/me/work/x", "replace": "y"}, "expect": "deny"});
    let mut cases: Vec<Value> = MISLEADING.lines().map(case).collect();
    cases.push(json!({"tool": "read_file", "path": "/home/me/work/x", "expect": "allow"}));
    judged(&world, &cases);
}

#[test]
fn the_starter_policy_asks_about_tools_that_nothing_is_known_of() {
    let world = World::new(None);
    let asks = |tool: &str| json!({"tool": tool, "args": {}, "expect": "hitl"});
    let mut cases: Vec<Value> = MISLEADING.lines().map(asks).collect();
    for name in [
        "output_file",
        "output",
        "destination",
        "save_to",
        "outputPath",
    ] {
        let args = json!({"path": "/tmp/x", name: "/home/me/.bashrc"});
        cases.push(json!({"tool": "read_file", "args": args, "expect": "hitl"}));
    }
    for (tool, name) in [
        ("git_diff", "target"),
        ("git_log", "branch"),
        ("git_show", "revision"),
    ] {
        let args = json!({"repo_path": "/tmp", name: "--output=/home/me/.bashrc"});
        cases.push(json!({"tool": tool, "args": args, "expect": "hitl"}));
        let args = json!({"repo_path": "/tmp", name: "HEAD~1"});
        cases.push(json!({"tool": tool, "args": args, "expect": "allow"}));
    }
    let args = json!({"path": "/tmp", "pattern": "x", "args": ["--pre=/bin/sh"]});
    cases.push(json!({"tool": "search_files", "args": args, "expect": "hitl"}));
    let args = json!({"path": "http://169.254.169.254/latest/meta-data/"});
    cases.push(json!({"tool": "read_file", "args": args, "expect": "hitl"}));
    judged(&world, &cases);
}

#[test]
fn the_starter_policy_asks_before_a_secret_is_read() {
    let world = World::new(None);
    let case = |path: &str, expect: &str| json!({"tool": "read_text_file", "path": path, "expect": expect});
    let cases = [
        case("/tmp/c1/.ssh/id_ed25519", "hitl"),
        case("/tmp/c1/.env", "hitl"),
        case("/tmp/c1/.aws/credentials", "hitl"),
        case("/etc/shadow", "hitl"),
        case("/tmp/c1/notes.txt", "allow"),
    ];
    judged(&world, &cases);
}

#[test]
fn tools_of_unknown_effects_do_not_move_the_parent_of_the_state_unasked() {
    let world = World::new(Some(
        r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    ));
    let parent = world.state().parent().unwrap().to_str().unwrap().to_owned();
    let (refused, asked) = (
        ("deny", "built_in_protected_path"),
        ("hitl", "built_in_protected_ancestor"),
    );
    let cases: Vec<Value> = [
        ("relocate", refused),
        ("swap", refused),
        ("rotate", refused),
        ("replace_folder", asked),
        ("import_profile", asked),
        ("checkout", asked),
        ("run_shell", asked),
    ]
    .into_iter()
    .map(|(tool, (expect, rule))| {
        let args = json!({"from": parent, "to": "/tmp/elsewhere"});
        json!({"tool": tool, "args": args, "expect": expect, "rule": rule})
    })
    .collect();
    judged(&world, &cases);
}

#[test]
fn a_person_is_asked_about_a_tool_of_unknown_effects_that_gets_the_home_directory() {
    let world = World::new(Some(
        r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    ));
    let home = world.home().to_str().unwrap().to_owned();
    let case = |tool: &str, path: &str, expect: &str| json!({"tool": tool, "args": {"path": path}, "expect": expect});
    let elsewhere = format!("{home}/notes");
    judged(
        &world,
        &[
            case("summarize_project", &home, "hitl"),
            case("summarize_project", &elsewhere, "allow"),
            case("list_directory", &home, "allow"),
            case("move_file", &home, "deny"),
        ],
    );
    let refuses = World::new(Some(r#"{"rules":[]}"#));
    let home = refuses.home().to_str().unwrap().to_owned();
    judged(&refuses, &[case("summarize_project", &home, "deny")]);
}

#[test]
fn a_search_that_may_find_secrets_is_asked_about() {
    let world = World::new(None);
    let case = |tool: &str, pattern: &str, expect: &str| json!({"tool": tool, "args": {"path": "/tmp/c1", "pattern": pattern}, "expect": expect});
    let cases = [
        case("search_files", "*", "hitl"),
        case("search_files", "id_*", "hitl"),
        case("search_files", ".env*", "hitl"),
        case("search_files", "*.key", "hitl"),
    ];
    judged(&world, &cases);
}

#[test]
fn a_reader_lists_the_directory_that_holds_the_state() {
    let world = World::new(None);
    let home = world.home().to_str().unwrap().to_owned();
    let case =
        |tool: &str, expect: &str| json!({"tool": tool, "args": {"path": home}, "expect": expect});
    let cases = [
        case("list_directory", "allow"),
        case("get_file_info", "allow"),
        case("directory_tree", "deny"),
    ];
    judged(&world, &cases);
}
