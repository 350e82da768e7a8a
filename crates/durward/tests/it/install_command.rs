//! `durward install`, `status`, `completions` and `man` as a person calls them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::decisions::Table;
use crate::support::program::lab_binary;
use crate::support::world::{World, binary};
use mcp::client::{Client, Era};
use serde_json::{Value, json};

/// Exit code, standard output, standard error.
fn run(world: &World, args: &[&str]) -> (i32, String, String) {
    let args: Vec<String> = args.iter().map(|arg| world.fill(arg)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = world.durward(&args);
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn backups(file: &Path) -> Vec<PathBuf> {
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let other = path.file_name().unwrap().to_str().unwrap();
            other.starts_with(&format!("{name}.bak-"))
        })
        .collect()
}

/// Each client with its file below the home, and the section in it.
fn clients(world: &World) -> Vec<(&'static str, PathBuf, &'static str)> {
    let (home, config) = (world.home(), world.home().join(".config"));
    vec![
        (
            "claude-desktop",
            config.join("Claude/claude_desktop_config.json"),
            "mcpServers",
        ),
        ("claude-code", home.join(".claude.json"), "mcpServers"),
        ("cursor", home.join(".cursor/mcp.json"), "mcpServers"),
        ("vscode", config.join("Code/User/mcp.json"), "servers"),
        (
            "windsurf",
            home.join(".codeium/windsurf/mcp_config.json"),
            "mcpServers",
        ),
        ("zed", config.join("zed/settings.json"), "context_servers"),
        ("gemini", home.join(".gemini/settings.json"), "mcpServers"),
    ]
}

#[test]
fn without_write_the_entry_is_printed_and_nothing_written() {
    let world = World::new(Table::policy("4-rule").as_deref());
    for (client, file, section) in clients(&world) {
        let line = [
            "install",
            client,
            "--policy",
            "{POLICY}",
            "--",
            "npx",
            "-y",
            "@x/server-files",
            "/tmp",
        ];
        let (code, out, err) = run(&world, &line);
        assert_eq!(code, 0, "{err}");
        let snippet: Value = serde_json::from_str(&out).unwrap();
        let entry = &snippet[section]["server-files"];
        assert_eq!(entry["command"], binary());
        let policy = world.fill("{POLICY}");
        let args = json!([
            "run",
            "--name",
            "server-files",
            "--policy",
            policy,
            "--",
            "npx",
            "-y",
            "@x/server-files",
            "/tmp"
        ]);
        assert_eq!(entry["args"], args);
        assert!(err.contains(file.to_str().unwrap()), "{err}");
        assert!(!file.exists());
    }
}

#[test]
fn write_keeps_a_copy_and_every_other_server() {
    let world = World::new(None);
    for (client, file, section) in clients(&world) {
        let line = [
            "install",
            client,
            "--name",
            "files",
            "--write",
            "--",
            "my-server",
            "/tmp",
        ];
        if client != "claude-code" {
            // Its folder is not there: the client is not installed.
            let (code, _, err) = run(&world, &line);
            assert_eq!(code, 16);
            assert!(err.contains("not seem to be installed"), "{err}");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
        }
        assert_eq!(run(&world, &line).0, 0, "{client}: new");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(backups(&file).is_empty());
        let before = format!(
            "{{\n    \"zeta\": [1,  2],\n    \"{section}\": {{\n        \"other\": {{ \"command\": \"x\", \"env\": {{\"K\": \"v\"}} }}\n    }},\n    \"alpha\": true\n}}\n"
        );
        fs::write(&file, &before).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(run(&world, &line).0, 0, "{client}: beside another");
        let text = fs::read_to_string(&file).unwrap();
        let after = read(&file);
        assert_eq!(
            after[section]["other"],
            json!({ "command": "x", "env": { "K": "v" } })
        );
        assert_eq!(after[section]["files"]["args"][5], "/tmp");
        let (zeta, alpha) = (text.find("zeta").unwrap(), text.find("alpha").unwrap());
        assert!(zeta < alpha && text.contains("[1,  2]"), "{text}");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let copies = backups(&file);
        assert_eq!(copies.len(), 1);
        assert_eq!(fs::read_to_string(&copies[0]).unwrap(), before);
        // The same again changes nothing; another command only with --force.
        assert!(run(&world, &line).1.contains("nothing was changed"));
        let other = [
            "install", client, "--name", "files", "--write", "--", "another",
        ];
        let (code, _, err) = run(&world, &other);
        assert_eq!(code, 16);
        assert!(err.contains("--force"), "{err}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        let forced = [&other[..5], &["--force"], &other[5..]].concat();
        let (code, out, _) = run(&world, &forced);
        assert_eq!(code, 0);
        assert!(out.contains("\"files\" replaced"), "{out}");
        assert_eq!(read(&file)[section]["files"]["args"][4], "another");
        assert_eq!(read(&file)[section]["other"]["command"], "x");
        assert_eq!(backups(&file).len(), 2);
    }
}

#[test]
fn p08_the_entry_keeps_state_and_configuration() {
    let world = World::new(None);
    let config = world.tmp.join("durward.yaml");
    fs::write(&config, "pin: off\n").unwrap();
    let kept = |flags: &[&str]| {
        let line = [flags, &["install", "cursor", "--", "my-server"]].concat();
        let (code, out, err) = run(&world, &line);
        assert_eq!(code, 0, "{err}");
        let snippet: Value = serde_json::from_str(&out).unwrap();
        snippet["mcpServers"]["my-server"]["args"].clone()
    };
    let (state, file) = (world.tmp.join("own-state"), config.to_str().unwrap());
    let state = state.to_str().unwrap();
    let flags = ["--state-dir", state, "--config", file];
    let name = ["run", "--name", "my-server"];
    let all = [&name[..], &flags, &["--", "my-server"]].concat();
    assert_eq!(kept(&flags), json!(all));
    let none = [&name[..], &["--no-config", "--", "my-server"]].concat();
    assert_eq!(kept(&["--no-config"]), json!(none));
    let plain = [&name[..], &["--", "my-server"]].concat();
    assert_eq!(kept(&[]), json!(plain));
}

/// A configuration with two servers.
fn two_servers(world: &World) -> String {
    let file = world.tmp.join("durward.yaml");
    let echo = json!({"command": lab_binary(), "args": ["mock", "echo"]});
    let text = json!({"servers": {"one": echo, "two": echo}}).to_string();
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_server_of_the_configuration_is_installed_by_its_name() {
    let world = World::new(None);
    let config = two_servers(&world);
    let installed = |words: &[&str]| {
        let line = [&["--config", &config, "install", "claude-code"], words].concat();
        let (code, out, err) = run(&world, &line);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str::<Value>(&out).unwrap()["mcpServers"].clone()
    };
    let one = &installed(&["one"])["one"];
    assert_eq!(one["args"], json!(["run", "--config", config, "one"]));
    let all = &installed(&[])["durward"];
    assert_eq!(all["args"], json!(["run", "--config", config]));
    let named = installed(&["two", "--name", "second"]);
    assert_eq!(named["second"]["args"][3], "two");
    // What the client would start has the tools of both.
    let args: Vec<String> = serde_json::from_value(all["args"].clone()).unwrap();
    let mut client =
        Client::spawn_with(all["command"].as_str().unwrap(), &args, &world.options()).unwrap();
    client.handshake(Era::ALL[1]).unwrap();
    let listed = client.request("tools/list", json!({})).unwrap();
    let listed = listed.line().to_owned();
    assert!(
        listed.contains("one__echo") && listed.contains("two__echo"),
        "{listed}"
    );
    for (words, part) in [
        (&["tow"][..], "did you mean \"two\"?"),
        (
            &["one", "--env", "A=b"],
            "--env is for a server's own command",
        ),
    ] {
        let line = [&["--config", &config, "install", "cursor"], words].concat();
        let (code, _, err) = run(&world, &line);
        assert_eq!(code, 16, "{err}");
        assert!(err.contains(part), "{err}");
    }
    let (code, _, err) = run(&world, &["--no-config", "install", "cursor"]);
    assert_eq!(code, 16, "{err}");
    assert!(err.contains("there is no server to install"), "{err}");
}

#[test]
fn a_url_is_installed_with_its_key_as_each_client_spells_it() {
    let world = World::new(None);
    let url = "http://127.0.0.1:8765/mcp/files";
    let with = |client: &str, key: Option<&str>, words: &[&str]| {
        let line = ["install", client, "--url", url];
        let mut command = std::process::Command::new(binary());
        command.args([&line[..], words].concat());
        command.env("HOME", world.home()).env_remove("DURWARD_KEY");
        command.envs(key.map(|key| ("DURWARD_KEY", key)));
        let output = command.current_dir(&world.tmp).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        (output.status.code(), out, err)
    };
    let key_env = ["--key-env", "DURWARD_KEY"];
    for (client, section, of_url, of_type) in [
        ("claude-code", "mcpServers", "url", json!("http")),
        ("cursor", "mcpServers", "url", Value::Null),
        ("vscode", "servers", "url", json!("http")),
        ("windsurf", "mcpServers", "serverUrl", Value::Null),
        ("gemini", "mcpServers", "httpUrl", Value::Null),
        ("zed", "context_servers", "url", Value::Null),
        ("opencode", "mcp", "url", json!("remote")),
    ] {
        let (code, out, err) = with(client, Some("k1"), &key_env);
        assert_eq!(code, Some(0), "{client}: {err}");
        let entry = &serde_json::from_str::<Value>(&out).unwrap()[section]["files"];
        assert_eq!(entry[of_url], url, "{client}");
        assert_eq!(entry["type"], of_type, "{client}");
        assert_eq!(entry["headers"]["Authorization"], "Bearer k1", "{client}");
    }
    let (_, codex, _) = with("codex", Some("k1"), &key_env);
    assert!(
        codex.contains("bearer_token_env_var = \"DURWARD_KEY\"") && !codex.contains("k1"),
        "{codex}"
    );
    let (_, goose, _) = with("goose", Some("k1"), &key_env);
    assert!(
        goose.contains("type: streamable_http") && goose.contains("Bearer k1"),
        "{goose}"
    );
    let (_, open, _) = with("cursor", None, &[]);
    assert!(!open.contains("headers"), "{open}");
    let (code, _, err) = with("cursor", None, &key_env);
    assert_eq!(code, Some(16));
    assert!(err.contains("the variable DURWARD_KEY is not set"), "{err}");
    let (code, _, err) = with("claude-desktop", None, &[]);
    assert_eq!(code, Some(16));
    assert!(err.contains("reads no URL"), "{err}");
    let far = ["install", "cursor", "--url", "http://example.org/mcp"];
    assert_eq!(run(&world, &far).0, 16, "a key in the clear");
}

#[test]
fn a_broken_configuration_is_refused_where_it_breaks() {
    let world = World::new(None);
    let file = world.home().join(".claude.json");
    let line = ["install", "claude-code", "--write", "--", "my-server"];
    for (text, part) in [
        ("{\n  \"mcpServers\": {},,\n}", "line 2"),
        ("{\"mcpServers\": []}", "\"mcpServers\" is not an object"),
        ("[]", "the file does not hold an object"),
    ] {
        fs::write(&file, text).unwrap();
        let (code, _, err) = run(&world, &line);
        assert_eq!(code, 16);
        assert!(err.contains(part) && err.contains(".claude.json"), "{err}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert!(backups(&file).is_empty());
    }
}

#[test]
fn a_policy_that_cannot_be_used_is_not_installed() {
    let world = World::new(Some("{\"rules\": 1}"));
    let line = [
        "install",
        "claude-code",
        "--policy",
        "{POLICY}",
        "--write",
        "--",
        "my-server",
    ];
    let (code, _, err) = run(&world, &line);
    assert_eq!(code, 16);
    assert!(err.contains("line 1, column"), "{err}");
    assert!(!world.home().join(".claude.json").exists());
}

#[test]
fn a_project_has_its_own_file_and_variables_stay_out_of_the_command() {
    let world = World::new(None);
    let line = [
        "install",
        "vscode",
        "--project",
        "--write",
        "--env",
        "TOKEN=secret",
        "--env",
        "LANG",
        "--",
        "./bin/server",
    ];
    assert_eq!(run(&world, &line).0, 0);
    let entry = &read(&world.tmp.join(".vscode/mcp.json"))["servers"]["server"];
    assert_eq!(entry["type"], "stdio");
    assert_eq!(entry["env"], json!({ "TOKEN": "secret" }));
    let started = world.tmp.join("./bin/server");
    let args = json!([
        "run",
        "--name",
        "server",
        "--env",
        "TOKEN",
        "--env",
        "LANG",
        "--",
        started.to_str().unwrap()
    ]);
    assert_eq!(entry["args"], args);
    let (code, _, err) = run(
        &world,
        &["install", "claude-desktop", "--project", "--", "x"],
    );
    assert_eq!(code, 16);
    assert!(err.contains("leave --project out"), "{err}");
}

/// What a client would start from its configuration is a guarded server that answers.
#[test]
fn an_installed_entry_starts_and_status_sees_it() {
    let world = World::new(None);
    let (code, out, _) = run(&world, &["status"]);
    assert_eq!(code, 0);
    assert!(
        out.contains("running  0 instances") && out.contains("no records yet"),
        "{out}"
    );
    let line = [
        "install",
        "claude-code",
        "--name",
        "files",
        "--write",
        "--",
        lab_binary(),
        "mock",
        "files",
        "--root",
        "{TMP}",
    ];
    assert_eq!(run(&world, &line).0, 0);
    let entry = read(&world.home().join(".claude.json"))["mcpServers"]["files"].clone();
    let args: Vec<String> = serde_json::from_value(entry["args"].clone()).unwrap();
    let mut client =
        Client::spawn_with(entry["command"].as_str().unwrap(), &args, &world.options()).unwrap();
    client.handshake(Era::ALL[1]).unwrap();
    let reply = client
        .call_tool("read_file", json!({ "path": world.fill("{TMP}/a.txt") }))
        .unwrap();
    assert!(reply.result().is_ok() && reply.refusal().is_none());
    let status =
        || -> Value { serde_json::from_str(&run(&world, &["status", "--json"]).1).unwrap() };
    let now = status();
    assert_eq!(now["running"], 1);
    assert_eq!(now["open_segments"][0]["server"], "files");
    assert_eq!(now["journal"]["segments"], 1);
    assert!(now["journal"]["size_bytes"].as_u64().unwrap() > 1_000);
    assert!(
        run(&world, &["status"])
            .1
            .contains("running  1 instance\n  files  since 20")
    );
    client.process().close_input();
    client
        .process()
        .wait_within(Duration::from_secs(30))
        .unwrap();
    let then = status();
    assert_eq!(then["running"], 0);
    assert_eq!(then["journal"]["last_record"]["event"], "segment_closed");
}

#[test]
fn a_segment_that_nobody_writes_is_not_running() {
    let world = World::new(None);
    let journal = world.state().join("journal");
    fs::create_dir_all(&journal).unwrap();
    let file = journal.join(format!("20261121T033809123Z-{}.jsonl", "ab".repeat(16)));
    fs::write(&file, "no record\n").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(3_600);
    let open = fs::File::options().append(true).open(&file).unwrap();
    open.set_modified(old).unwrap();
    let status: Value = serde_json::from_str(&run(&world, &["status", "--json"]).1).unwrap();
    assert_eq!(status["running"], 0);
    assert_eq!(status["open_segments"][0]["running"], false);
    assert!(run(&world, &["status"]).1.contains("ended    1 instance"));
    // With the lock that a writer holds, it is.
    open.lock().unwrap();
    let status: Value = serde_json::from_str(&run(&world, &["status", "--json"]).1).unwrap();
    assert_eq!(status["running"], 1);
}

#[test]
fn shells_and_man_know_every_command() {
    let world = World::new(None);
    let (_, help, _) = run(&world, &["--help"]);
    let commands: Vec<&str> = help
        .lines()
        .take_while(|line| !line.starts_with("Options:"))
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(
        commands.contains(&"policy") && commands.contains(&"install"),
        "{commands:?}"
    );
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = run(&world, &["completions", shell]);
        assert_eq!(code, 0);
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
        // Nobody types what the program calls itself by; `durward help` has pages as well.
        assert!(
            !script.contains("__docs") && !script.contains("__demo-files"),
            "{shell}"
        );
        // The generator for fish writes no values of arguments without a name.
        assert!(shell == "fish" || script.contains("cookbook"), "{shell}");
        // The shell itself reads it, where it is here.
        let file = world.tmp.join("completions");
        fs::write(&file, &script).unwrap();
        if let Ok(checked) = std::process::Command::new(shell)
            .arg("-n")
            .arg(&file)
            .output()
        {
            let said = String::from_utf8_lossy(&checked.stderr).into_owned();
            assert!(checked.status.success(), "{shell}: {said}");
        }
    }
    let pages = world.tmp.join("man1");
    assert_eq!(run(&world, &["man", "--dir", pages.to_str().unwrap()]).0, 0);
    for command in &commands {
        assert!(
            pages.join(format!("durward-{command}.1")).is_file(),
            "{command}"
        );
    }
    assert!(
        fs::read_to_string(pages.join("durward-policy-replay.1"))
            .unwrap()
            .contains(".TH")
    );
    let (code, page, _) = run(&world, &["man"]);
    assert_eq!(code, 0);
    assert!(page.contains(".TH durward 1"));
    assert_eq!(run(&world, &["completions", "powershell"]).0, 2);
}
