//! `durward.yaml` on the real binary: which file is read, what is refused, and what comes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::support::world::{World, binary};
use mcp::client::Client;
use serde_json::{Value, json};

const ALLOW_ALL: &str =
    r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#;

/// Exit code, standard output, standard error.
fn said(output: &Output) -> (i32, String, String) {
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

/// Writes the file where it is looked for by itself.
fn own_file(world: &World, text: &str) -> PathBuf {
    let file = world.config().join("durward.yaml");
    fs::write(&file, text).unwrap();
    file
}

/// `durward check --json`, which must find nothing wrong.
fn checked(world: &World, args: &[&str]) -> Value {
    let output = world.durward(&[&["check", "--json"], args].concat());
    let (code, out, err) = said(&output);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

/// Runs a server of the file and calls its `echo`.
fn guard(world: &World, args: &[&str], variables: &[(&str, &str)]) -> Client {
    let mut options = world.options();
    let more = variables.iter().map(|(k, v)| ((*k).into(), (*v).into()));
    options.env.extend(more);
    let mut client = Client::spawn_with(binary(), args, &options).unwrap();
    client.initialize("2025-11-25").unwrap();
    client
}

fn ends_well(mut client: Client) {
    client.process().close_input();
    let patience = std::time::Duration::from_secs(60);
    let status = client.process().wait_within(patience).unwrap().unwrap();
    assert!(status.success(), "{}", client.process().stderr());
}

/// A file with one mock and its policy beside it.
fn with_mock(world: &World, mock: &str) -> PathBuf {
    fs::write(world.config().join("rules.json"), ALLOW_ALL).unwrap();
    let server = format!("{{ command: {}, args: [lab, mock, {mock}] }}", binary());
    own_file(
        world,
        &format!("servers:\n  files: {server}\npolicy: rules.json\n"),
    )
}

#[test]
fn a_server_of_the_file_is_run_by_its_name_and_rules() {
    let world = World::new(None);
    with_mock(&world, "echo");
    let mut client = guard(&world, &["run", "files"], &[]);
    let reply = client.call_tool("echo", json!({"text": "hello"})).unwrap();
    assert_eq!(reply.text(), Some("hello"));
    ends_well(client);
    let (code, out, err) = said(&world.durward(&["audit", "show", "--json", "--kind", "decision"]));
    assert_eq!(code, 0, "{err}");
    let decision: Value = serde_json::from_str(out.trim()).unwrap();
    assert_eq!(decision["backend_id"], "files");
    assert_eq!(decision["final_rule"], "all");
}

#[test]
fn a_server_gets_its_variables_arguments_and_directory() {
    let world = World::new(None);
    // The folder of the configuration itself is out of reach for servers.
    let work = world.tmp.join("work");
    own_file(
        &world,
        &format!(
            "servers:\n  s:\n    command: sh\n    args: [-c, \"echo $SECRET $PLAIN ${{EXTRA}} > out; pwd >> out\"]\n    env: {{ SECRET: \"${{TOKEN}}\", PLAIN: a b }}\n    cwd: {}\n",
            work.display()
        ),
    );
    fs::create_dir_all(&work).unwrap();
    let status = Command::new(binary())
        .args(["run", "s"])
        .envs(world.environment())
        .envs([("TOKEN", "s3cret"), ("EXTRA", "extra")])
        .current_dir(&world.tmp)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let out = fs::read_to_string(work.join("out")).unwrap();
    assert_eq!(
        out,
        format!("s3cret a b extra\n{}\n", work.display()),
        "{status:?}"
    );
    // Nothing that was written down knows the secret.
    let (_, journal, _) = said(&world.durward(&["audit", "show", "--json"]));
    assert!(!journal.contains("s3cret"), "{journal}");
    let (_, out, err) = said(&status);
    assert!(!out.contains("s3cret") && !err.contains("s3cret"), "{err}");
}

#[test]
fn an_unknown_server_is_refused_with_the_nearest() {
    let world = World::new(None);
    let (code, _, err) = said(&world.durward(&["run", "files"]));
    assert_eq!(code, 16);
    assert!(
        err.contains("there is no server \"files\": no configuration was read"),
        "{err}"
    );
    assert!(err.contains("durward/durward.yaml"), "{err}");
    let file = with_mock(&world, "echo");
    let (code, _, err) = said(&world.durward(&["run", "fils"]));
    assert_eq!(code, 16);
    let expect = format!(
        "error: {}: no server is called \"fils\"\n  hint: did you mean \"files\"?\n",
        file.display()
    );
    assert_eq!(err, expect);
    // Without a name all servers of the file are guarded; this client has nothing to say.
    let (code, _, err) = said(&world.durward(&["run"]));
    assert_eq!(code, 0, "{err}");
}

#[test]
fn flag_outranks_variable_outranks_file_outranks_default() {
    let world = World::new(None);
    let from = |value: &Value| value["settings"]["policy"]["from"].clone();
    assert_eq!(from(&checked(&world, &[])), "default");
    let file = with_mock(&world, "echo");
    let found = checked(&world, &[]);
    assert_eq!(from(&found), "file");
    assert_eq!(found["settings"]["policy"]["line"], 3);
    assert_eq!(found["file"], file.to_str().unwrap());
    assert_eq!(found["policy"]["rules"], 1);
    assert_eq!(
        found["settings"]["state_dir"]["value"],
        world.state().to_str().unwrap()
    );

    fs::write(world.tmp.join("b.json"), ALLOW_ALL).unwrap();
    let output = Command::new(binary())
        .args(["check", "--json"])
        .envs(world.environment())
        .env("DURWARD_POLICY", "b.json")
        .current_dir(&world.tmp)
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(from(&found), "environment");
    let found = checked(&world, &["--policy", "b.json", "--state-dir", "here"]);
    assert_eq!(from(&found), "flag");
    assert_eq!(found["settings"]["state_dir"]["from"], "flag");
    assert_eq!(from(&checked(&world, &["--no-config"])), "default");
}

#[test]
fn a_file_in_the_current_directory_is_not_picked_up() {
    let world = World::new(None);
    fs::write(
        world.tmp.join("durward.yaml"),
        "servers: { evil: { command: touch, args: [evil] } }",
    )
    .unwrap();
    let (code, _, err) = said(&world.durward(&["run", "evil"]));
    assert_eq!(code, 16, "{err}");
    assert!(!world.tmp.join("evil").exists());
    // Named, it is read.
    let found = checked(&world, &["--config", "durward.yaml"]);
    assert_eq!(found["servers"][0]["name"], "evil");
}

#[test]
fn files_that_cannot_be_trusted_or_read_are_refused() {
    let world = World::new(None);
    let refuse = |file: &str, expect: &str| {
        let (code, out, err) = said(&world.durward(&["check", "--config", file]));
        assert_eq!(code, 16, "{file}: {out}");
        let path = world.tmp.join(file);
        assert_eq!(err, format!("error: {}: {expect}\n", path.display()));
    };
    refuse("none.yaml", "there is no such file");
    refuse(
        "dir",
        "this is a directory; name a file: `durward init` writes one, durward.yaml",
    );
    let inside = world.tmp.join("dir").join("durward.yaml");
    fs::write(&inside, "{}").unwrap();
    let named = format!(
        "this is a directory; name the file in it: --config {}",
        inside.display()
    );
    refuse("dir", &named);
    let status = Command::new("mkfifo")
        .arg(world.tmp.join("pipe"))
        .status()
        .unwrap();
    assert!(status.success());
    refuse("pipe", "this is not a regular file; name one");
    let write = |name: &str, bytes: &[u8]| fs::write(world.tmp.join(name), bytes).unwrap();
    write("open.yaml", b"");
    fs::set_permissions(
        world.tmp.join("open.yaml"),
        fs::Permissions::from_mode(0o666),
    )
    .unwrap();
    refuse(
        "open.yaml",
        "everybody may write to this file, and could make it start any program; run chmod o-w on it",
    );
    write("latin.yaml", b"policy: \xe9");
    refuse("latin.yaml", "byte 8 is not UTF-8; save the file as UTF-8");
    write("long.yaml", &vec![b'#'; 1024 * 1024 + 1]);
    refuse("long.yaml", "the file is longer than 1 MiB");
    write("full.yaml", &vec![b'#'; 1024 * 1024]);
    assert!(checked(&world, &["--config", "full.yaml"])["file"].is_string());
    write("key.yaml", b"servr: 1");
    refuse(
        "key.yaml",
        "line 1, column 1: unknown key \"servr\"\n  hint: did you mean \"servers\"?",
    );
}

#[test]
fn a_file_of_another_user_is_refused() {
    let world = World::new(None);
    let file = world.tmp.join("theirs.yaml");
    fs::write(&file, "").unwrap();
    if std::os::unix::fs::chown(&file, Some(65_534), None).is_err() {
        eprintln!("skipped: only root may give a file away");
        return;
    }
    let (code, _, err) = said(&world.durward(&["check", "--config", "theirs.yaml"]));
    assert_eq!(code, 16);
    assert!(err.contains("the file belongs to user 65534"), "{err}");
}

#[test]
fn every_command_that_looks_at_the_state_refuses_a_broken_file() {
    let world = World::new(None);
    own_file(&world, "journal: { snyc: every }");
    for args in [
        &["run", "--", "true"][..],
        &["check"],
        &["status"],
        &["audit", "verify"],
        &["policy", "show"],
    ] {
        let (code, _, err) = said(&world.durward(args));
        assert_eq!(code, 16, "{args:?}");
        assert!(
            err.contains("line 1, column 12: unknown key \"snyc\" in journal"),
            "{err}"
        );
    }
    assert!(!world.state().join("journal").exists());
    // What needs no configuration does not mind.
    assert_eq!(said(&world.durward(&["completions", "bash"])).0, 0);
}

#[test]
fn the_state_directory_of_the_file_is_used_by_every_command() {
    let world = World::new(None);
    let file = with_mock(&world, "echo");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + "state_dir: elsewhere\n").unwrap();
    ends_well(guard(&world, &["run", "files"], &[]));
    assert!(file.with_file_name("elsewhere/journal").is_dir());
    assert!(!world.state().join("journal").exists());
    let (code, out, _) = said(&world.durward(&["audit", "verify"]));
    assert_eq!(code, 0, "{out}");
    ends_well(guard(&world, &["--state-dir", "mine", "run", "files"], &[]));
    assert!(world.tmp.join("mine/journal").is_dir());
}

#[test]
fn no_call_may_touch_what_the_file_is_or_names() {
    let world = World::new(None);
    let folder = world.tmp.join("conf");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("rules.json"), ALLOW_ALL).unwrap();
    fs::write(folder.join("other.json"), ALLOW_ALL).unwrap();
    let text = format!(
        "servers:\n  files: {{ command: {}, args: [lab, mock, files, --any-root] }}\n  other: {{ command: x, policy: other.json }}\npolicy: rules.json\n",
        binary()
    );
    fs::write(folder.join("d.yaml"), text).unwrap();
    let mut client = guard(&world, &["run", "--config", "conf/d.yaml", "files"], &[]);
    for name in ["d.yaml", "rules.json", "other.json"] {
        let path = folder.join(name);
        let reply = client
            .call_tool("read_file", json!({ "path": path }))
            .unwrap();
        let refusal = reply.refusal().unwrap_or_else(|| panic!("{name} was read"));
        assert_eq!(refusal["reason"], "protected_path", "{name}");
    }
    let reply = client
        .call_tool("read_file", json!({ "path": world.tmp.join("a.txt") }))
        .unwrap();
    assert!(reply.refusal().is_none(), "{}", reply.line());
    ends_well(client);
}

#[test]
fn check_shows_warnings_and_no_secret() {
    let world = World::new(None);
    let text = "servers:\n  docs: { url: \"http://docs.example/mcp\", insecure_http: true, api_key: \"${XDG_RUNTIME_DIR}\" }\n  gone: { command: /no/such/program }\n";
    own_file(&world, text);
    let (code, out, err) = said(&world.durward(&["check"]));
    assert_eq!(code, 0, "{err}");
    let key = world.runtime();
    assert!(!out.contains(key.to_str().unwrap()), "{out}");
    assert!(out.contains("warnings  2"), "{out}");
    assert!(
        out.contains("line 2: the api key would be sent without encryption; use https"),
        "{out}"
    );
    assert!(
        out.contains("line 3: the program of \"gone\" does not exist: /no/such/program"),
        "{out}"
    );
    let (code, _, err) = said(&world.durward(&["check", "--strict"]));
    assert_eq!(
        (code, err.as_str()),
        (16, "error: 2 warnings, and --strict was given\n")
    );
    own_file(&world, "policy: gone.json");
    let (code, _, err) = said(&world.durward(&["check"]));
    assert_eq!(code, 16);
    assert!(err.contains("gone.json: "), "{err}");
}

#[test]
fn a_tools_own_time_of_the_file_ends_its_call() {
    let world = World::new(None);
    let server = format!(
        "{{ command: {}, args: [lab, mock, hostile, --behaviour, never] }}",
        binary()
    );
    let text = format!("servers:\n  never: {server}\ntool_timeout: {{ echo: 1s }}\n");
    let file = own_file(&world, &text);
    fs::write(
        world.config().join("a.json"),
        r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    )
    .unwrap();
    fs::write(&file, format!("{text}policy: a.json\n")).unwrap();
    let mut client = guard(&world, &["run", "never"], &[]);
    let reply = client.call_tool("echo", json!({"text": "x"})).unwrap();
    assert_eq!(reply.error().unwrap()["data"]["reason"], "upstream_timeout");
}
