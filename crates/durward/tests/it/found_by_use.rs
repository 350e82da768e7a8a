//! What real use found of help, journal and keys, each as a test of its own.

use std::process::Command;

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::components::{official_filesystem, repository};
use crate::support::guarded::{LATEST, Place, binary, echo, end, eventually, line};
use crate::support::program::{lab_binary, lab_command};
use crate::support::serving::Served;

/// The commands of the examples in a help text: what begins with `durward`, continuation lines joined.
fn examples(help: &str) -> Vec<String> {
    let joined = help.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    let commands = lines.filter(|line| line.starts_with("durward-lab overhead "));
    commands.map(str::to_owned).collect()
}

#[test]
fn p06_every_example_of_lab_overhead_measures() {
    let place = Place::new();
    let help = place.within(lab_command().args(["overhead", "--help"]));
    let examples = examples(&String::from_utf8(help.stdout).unwrap());
    assert_eq!(examples.len(), 4, "{examples:?}");
    let folder = |program| std::path::Path::new(program).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", folder(binary()), folder(lab_binary()));
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

#[test]
fn p03_a_person_has_less_time_to_answer_than_clients_wait() {
    // The TypeScript and Python SDKs give up after 60 s.
    const CLIENT_WAITS_S: u64 = 60;
    let place = Place::new();
    let help = place.durward(&["run", "--help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, of_flag) = help.split_once("--approval-timeout").unwrap();
    let (_, default) = of_flag.split_once("[default: ").unwrap();
    let default: u64 = default.split(']').next().unwrap().trim().parse().unwrap();
    assert!(default + 5 < CLIENT_WAITS_S, "{default}");
    let page = std::fs::read_to_string(repository().join("docs/clients.md")).unwrap();
    assert!(page.contains(&format!("waits {default} s for your answer")));
}

#[test]
fn p13_readme_says_how_to_get_the_program_and_reference_and_guides_are_linked() {
    let read = |name: &str| std::fs::read_to_string(repository().join(name)).unwrap();
    let readme = read("README.md");
    let at = |text: &str| {
        readme
            .find(text)
            .unwrap_or_else(|| panic!("README.md has no {text:?}"))
    };
    assert!(at("MCP proxy") < at("## Install"), "the first sentences");
    assert!(at("on your `PATH`") < at("durward wrap "));
    at("(docs/README.md)");
    let index = read("docs/README.md");
    for folder in ["docs/reference", "docs/guides"] {
        for entry in std::fs::read_dir(repository().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(repository().join("docs")).unwrap();
            let name = name.to_str().unwrap();
            assert!(
                !name.ends_with(".md")
                    || name == "README.md"
                    || index.contains(&format!("({name})")),
                "docs/README.md has no link to {name}"
            );
        }
    }
    for link in index
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap())
    {
        assert!(repository().join("docs").join(link).exists(), "{link}");
    }
    assert!(read("docs/clients.md").contains("\"Authorization\": \"Bearer YOUR-KEY\""));
}

#[test]
fn p16_help_has_each_option_under_its_heading() {
    let place = Place::new();
    for command in ["run", "serve"] {
        let help = String::from_utf8(place.durward(&[command, "--help"]).stdout).unwrap();
        let mut heading = "";
        let mut seen = 0;
        for line in help.lines() {
            let is_heading = !line.starts_with(' ') && line.ends_with(':');
            let option = line.trim_start();
            if is_heading {
                heading = line;
            } else if ["Limits:", "Global options:"].contains(&heading)
                && line.starts_with("      --")
            {
                let belongs = match heading {
                    "Limits:" => option.starts_with("--limit-"),
                    _ => ["--state-dir", "--config", "--no-config"]
                        .iter()
                        .any(|global| option.starts_with(global)),
                };
                assert!(belongs, "{command}: {option} under {heading}");
                seen += 1;
            }
        }
        assert_eq!(seen, 13, "{command}: {help}");
        let positional = help.find("[SERVER]\n").unwrap_or(0);
        assert!(positional < help.find("Limits:").unwrap(), "{command}");
    }
}

/// Its directory is not the one that Durward was started in.
#[test]
fn j08_a_relative_path_of_the_official_server_leads_where_its_own_directory_does() {
    let Some(program) = official_filesystem() else {
        return;
    };
    let place = Place::new();
    for folder in ["base/open", "base/secret"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
        std::fs::write(place.path(folder).join("x.pem"), format!("of {folder}")).unwrap();
    }
    let denied = format!("{}/secret/**", place.path("base").display());
    let policy = json!({"rules": [
        {"id": "all", "effect": "allow", "conditions": {"tool_name": "*"}},
        {"id": "no-secrets", "effect": "deny", "conditions": {"path_pattern": denied}}]});
    place.write_policy(&policy.to_string());
    let script = "cd base && exec \"$0\" .";
    let words = ["sh", "-c", script, program.to_str().unwrap()];
    let read = |client: &mut Client, path: &str| {
        client.handshake(LATEST).unwrap();
        let reply = client.call_tool("read_text_file", json!({ "path": path }));
        reply.unwrap().line().to_owned()
    };
    for path in ["secret/x.pem", "open/../secret/x.pem"] {
        let mut direct = Client::spawn_with(words[0], &words[1..], &place.options()).unwrap();
        assert!(read(&mut direct, path).contains("of base/secret"), "{path}");
        let mut client = place.guard_command(&[], &words);
        let told = read(&mut client, path);
        assert!(!told.contains("of base/secret"), "{told}");
        assert!(told.contains("no-secrets"), "{told}");
        assert_eq!(end(client).code, Some(0));
    }
    let mut client = place.guard_command(&[], &words);
    let told = read(&mut client, "open/x.pem");
    assert!(told.contains("of base/open"), "{told}");
    assert_eq!(end(client).code, Some(0));
}
