//! Files that the configuration names or runs, and those that these name: secrets among them cannot be read, and none can
//! be changed, neither by a call nor by a server itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::guarded::{LATEST, Place, end};
use mcp::client::Client;
use serde_json::{Value, json};

/// What may be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    /// Secrets, rules and records.
    Nothing,
    /// Programs and public keys.
    Read,
    /// Files that nothing names.
    Both,
}
use May::{Both, Nothing, Read};

/// Files by their names, and what may be done with them.
const FILES: [(&str, May); 21] = [
    ("durward.yaml", Nothing),
    ("policy.json", Nothing),
    ("other-policy.json", Nothing),
    ("hosts.yaml", Nothing),
    ("id_key", Nothing),
    ("id_unused", Nothing),
    ("sudo.password", Nothing),
    ("login.password", Nothing),
    ("phrase", Nothing),
    ("rec/session.cast", Nothing),
    ("client.key", Nothing),
    ("client.pem", Read),
    ("ca.pem", Read),
    ("known", Read),
    ("id_key-cert.pub", Read),
    ("tell", Read),
    ("tell.words", Read),
    ("bin/other", Read),
    ("script.py", Read),
    ("cursor.json", Read),
    ("data.db", Both),
];

const TEXT: &str = "as it was\n";

/// A place with all of them; `command` is that of its server `files`.
fn prepared(command: impl Fn(&Place) -> Vec<String>) -> Place {
    let place = Place::new();
    for folder in ["bin", "rec"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    for (name, _) in FILES {
        if name != "policy.json" {
            fs::write(place.path(name), TEXT).unwrap();
        }
    }
    for name in ["tell", "bin/other"] {
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o700)).unwrap();
    }
    let at = |name: &str| place.path(name).display().to_string();
    fs::write(
        place.path("cursor.json"),
        json!({"mcpServers": {"files": {"command": "npx", "args": ["x"]}}}).to_string(),
    )
    .unwrap();
    let wrapped = place.durward(&[
        "wrap",
        "cursor",
        "--yes",
        "--state-dir",
        &at("state"),
        "--file",
        &at("cursor.json"),
    ]);
    assert!(wrapped.status.success(), "{wrapped:?}");
    let hosts = json!({
        "known_hosts": ["known"],
        "recordings": "rec",
        "credentials": {
            "c": {"user": "ada", "key": "id_key", "certificate": "id_key-cert.pub", "passphrase_file": "phrase",
                "sudo_password_file": "sudo.password"},
            "d": {"user": "ada", "password_file": "login.password"},
            "unused": {"user": "ada", "ca_key": "id_unused"},
        },
        "hosts": {
            "one": {"address": "127.0.0.1", "credential": "c"},
            "two": {"address": "127.0.0.1", "credential": "d"},
        },
    });
    fs::write(place.path("hosts.yaml"), hosts.to_string()).unwrap();
    let command = command(&place);
    let (program, arguments) = command.split_first().unwrap();
    let config = json!({
        "approval": {"notify": {"command": [at("tell"), at("tell.words"), "plain"]}},
        "servers": {
            "files": {"command": program, "args": arguments},
            "other": {"command": "bin/other", "args": ["data.db"], "policy": "other-policy.json"},
            "script": {"command": "python3", "args": ["-u", at("script.py"), "data.db"]},
            "ssh": {"builtin": "ssh", "hosts": "hosts.yaml"},
            "web": {"url": "https://127.0.0.1:1/mcp", "client_cert": "client.pem", "client_key": "client.key",
                "ca": "ca.pem"},
        },
    });
    fs::write(place.path("durward.yaml"), config.to_string()).unwrap();
    place
}

/// Whether the call passed; refused, it is because of the file.
#[track_caller]
fn passes(client: &mut Client, tool: &str, arguments: Value) -> bool {
    let shown = format!("{tool} {arguments}");
    let reply = client.call_tool(tool, arguments).unwrap();
    match reply.refusal() {
        Some(refusal) => {
            assert_eq!(
                refusal["final_rule"], "built_in_protected_path",
                "{shown}: {refusal}"
            );
            false
        }
        None => {
            assert!(!reply.is_tool_error(), "{shown}: {}", reply.line());
            true
        }
    }
}

#[test]
fn calls_are_kept_off_the_files_that_the_configuration_names_and_runs() {
    let place = prepared(|place| place.mock(&["files", "--root", place.dir.to_str().unwrap()]));
    let mut client = place.guard_configured("durward.yaml", &["--confine", "off"], "files");
    client.handshake(LATEST).unwrap();
    for (name, may) in FILES {
        let path = place.path(name);
        if !path.exists() {
            continue;
        }
        let before = fs::read(&path).unwrap();
        let path = path.display().to_string();
        let reads = passes(&mut client, "read_file", json!({"path": path}));
        assert_eq!(reads, may != Nothing, "read_file {name}");
        let writes = passes(
            &mut client,
            "write_file",
            json!({"path": path, "content": "forged"}),
        );
        assert_eq!(writes, may == Both, "write_file {name}");
        let is_changed = fs::read(place.path(name)).unwrap() != before;
        assert_eq!(is_changed, may == Both, "{name}");
    }
    // What holds one of them cannot be taken away either; reading all of it is for the rules where no secret is below.
    let bin = place.path("bin").display().to_string();
    let moved = json!({"source_path": bin, "destination_path": format!("{bin}.old")});
    assert!(!passes(&mut client, "move_path", moved));
    assert!(!passes(
        &mut client,
        "delete_directory",
        json!({"path": bin})
    ));
    assert!(passes(&mut client, "list_files", json!({"path": bin})));
    end(client);
}

/// A server is a program: what it does is no call.
#[test]
fn a_server_cannot_read_secrets_that_are_named_nor_change_what_is_run() {
    for confine in ["auto", "require"] {
        let script = "for f in FILES; do cat $f >/dev/null 2>&1 && test -s $f && echo \"read $f\"; \
            (echo forged >> $f) 2>/dev/null && echo \"wrote $f\"; \
            mv $f $f.old 2>/dev/null && echo \"moved $f\"; rm -f $f 2>/dev/null && echo \"removed $f\"; \
            done > out; echo end >> out";
        let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        let script = script.replace("FILES", &names.join(" "));
        let place = prepared(|_| ["sh", "-c", &script].map(str::to_owned).into());
        let before: Vec<_> = names
            .iter()
            .map(|name| fs::read(place.path(name)).ok())
            .collect();
        let client = place.guard_configured("durward.yaml", &["--confine", confine], "files");
        let ended = end(client);
        let out = fs::read_to_string(place.path("out")).unwrap();
        assert!(out.ends_with("end\n"), "{out} {}", ended.stderr);
        for ((name, may), before) in FILES.iter().zip(before) {
            let has = |done: &str| out.lines().any(|line| line == format!("{done} {name}"));
            assert_eq!(
                has("read"),
                *may != Nothing,
                "{name}: {out} {}",
                ended.stderr
            );
            for done in ["wrote", "moved"] {
                assert_eq!(has(done), *may == Both, "{done} {name}: {out}");
            }
            if *may != Both {
                assert_eq!(fs::read(place.path(name)).ok(), before, "{name}: {out}");
            }
        }
    }
}

#[test]
fn files_of_the_command_line_are_guarded_like_those_of_a_configuration() {
    let place = Place::new();
    let at = |name: &str| place.path(name).display().to_string();
    let mock = place.mock(&["files", "--root", &at("")]);
    fs::write(
        place.path("tool"),
        format!("#!/bin/sh\nexec {}\n", mock.join(" ")),
    )
    .unwrap();
    fs::set_permissions(place.path("tool"), fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["client.pem", "client.key"] {
        fs::write(place.path(name), TEXT).unwrap();
    }
    let (certificate, key) = (at("client.pem"), at("client.key"));
    let flags = [
        "--confine",
        "off",
        "--client-cert",
        &certificate,
        "--client-key",
        &key,
    ];
    let mut client = place.guard_command(&flags, &["./tool"]);
    client.handshake(LATEST).unwrap();
    for (name, may) in [
        ("tool", Read),
        ("client.pem", Read),
        ("client.key", Nothing),
    ] {
        let reads = passes(&mut client, "read_file", json!({"path": at(name)}));
        assert_eq!(reads, may != Nothing, "{name}");
        let write = json!({"path": at(name), "content": "forged"});
        assert!(!passes(&mut client, "write_file", write), "{name}");
    }
    end(client);
}
