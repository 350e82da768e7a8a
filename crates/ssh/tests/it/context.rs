//! The directory and the variables of a command: judged as paths and names, and exactly those at the host.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use ssh::command::Context;
use ssh::hosts::Hosts;

use crate::target::{Client, Target, has};

/// A name and a value that each login shell would read in its own way.
const ODD: &str = r#"it's \ "a" ! $HOME * é"#;

async fn run(client: &Client, session: &str, more: Value) -> Result<Value, String> {
    let mut arguments = json!({"session_id": session});
    let members = arguments.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    client.call("ssh_run_command", arguments).await
}

fn stdout(said: &Value) -> &str {
    let text = said["structuredContent"]["stdout"].as_str();
    text.unwrap_or_else(|| panic!("{said}"))
}

#[tokio::test]
async fn every_login_shell_gives_a_program_its_directory_and_its_variables() {
    for shell in ["bash", "dash", "zsh", "fish", "tcsh"] {
        if !has("sshd") || !has(shell) {
            return;
        }
        let target = Target::with_shell(shell);
        let folder = target.folder.join(ODD);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(folder.join("file"), "one\n").unwrap();
        let client = Client::new(
            target.hosts_as(
                "  web2: { address: 127.0.0.1, port: PORT, credential: me, env: [ODD, LC_*] }\n",
            ),
            None,
        );
        let session = client.connect("web2").await;
        let call = async |command: &str| {
            let more = json!({"command": command, "cwd": folder, "env": {"ODD": ODD, "LC_X": ""}});
            run(&client, &session, more).await.unwrap()
        };
        assert_eq!(
            stdout(&call("pwd").await),
            format!("{}\n", folder.display()),
            "{shell}"
        );
        assert_eq!(
            stdout(&call("printenv ODD LC_X").await),
            format!("{ODD}\n\n"),
            "{shell}"
        );
        assert_eq!(stdout(&call("cat file").await), "one\n", "{shell}");
        let said = call("false").await;
        assert_eq!(said["structuredContent"]["exit_code"], 1, "{shell}: {said}");
    }
}

#[tokio::test]
async fn a_directory_is_judged_where_it_leads_and_words_are_judged_below_it() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::new(target.hosts(""), Some(&ssh::rules::policy()));
    let session = client.connect("web").await;
    let at = |name: &str| target.folder.join(name).display().to_string();
    symlink("/etc", at("up")).unwrap();
    symlink("/srv", at("out")).unwrap();
    symlink("/etc/shadow", at("innocent")).unwrap();
    let call = async |cwd: &str, command: &str| {
        run(&client, &session, json!({"command": command, "cwd": cwd})).await
    };
    let name = fs::read_to_string("/etc/hostname").unwrap();
    let said = call(&at("up"), "cat hostname").await.unwrap();
    assert_eq!(stdout(&said), name);
    assert_eq!(
        said["structuredContent"]["opened"][at("up")],
        "/etc",
        "{said}"
    );
    for (cwd, command, rule) in [
        ("/etc", "cat shadow", "ssh-deny-secrets"),
        ("/etc", "cat ./x/../shadow", "ssh-deny-secrets"),
        ("/root", "ls", "ssh-deny-secrets"),
        ("/srv", "ls", "ssh-deny-other-roots"),
        (&at("up"), "cat shadow", "ssh-deny-secrets"),
        (&at("out"), "ls", "ssh-deny-other-roots"),
        (&at("."), "cat innocent", "ssh-deny-secrets"),
        ("/etc", "tool shadow", "ssh-deny-secrets"),
    ] {
        let wrong = call(cwd, command).await.unwrap_err();
        assert!(wrong.contains(rule), "{command} in {cwd}: {wrong}");
    }
    let open = target.client();
    let own = open.connect("web").await;
    for cwd in ["etc", "~", "", "/a\nb"] {
        let said = run(&open, &own, json!({"command": "pwd", "cwd": cwd})).await;
        let said = said.map_or_else(|wrong| wrong, |said| said.to_string());
        assert!(said.contains("cwd"), "{cwd:?}: {said}");
    }
    let said = call(&at("missing"), "pwd").await.unwrap();
    assert_eq!(said["structuredContent"]["exit_code"], 126, "{said}");
    let batch = json!({"session_id": session, "cwd": "/etc", "commands": ["cat hostname", "pwd"]});
    let said = client.call("ssh_batch_commands", batch).await.unwrap();
    assert_eq!(
        said["structuredContent"]["results"][0]["output"], name,
        "{said}"
    );
    let fan = json!({"hosts": ["web"], "cwd": "/etc", "command": "pwd"});
    let said = client.call("ssh_fan_out", fan).await.unwrap();
    assert!(said.to_string().contains("/etc"), "{said}");
}

#[test]
fn a_directory_that_was_swapped_since_it_was_judged_is_not_entered() {
    let folder = crate::target::folder();
    fs::create_dir(folder.join("real")).unwrap();
    symlink(folder.join("real"), folder.join("link")).unwrap();
    let run = |place: &Path, is_checked: bool| {
        let mut context = Context::of(place.to_str(), []).unwrap();
        context.is_checked = is_checked;
        let words = [context.before(), vec!["pwd".into()]].concat();
        let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let real = format!("{}\n", folder.join("real").display());
    assert_eq!(run(&folder.join("real"), true), (Some(0), real.clone()));
    let (code, said) = run(&folder.join("link"), true);
    assert!(code == Some(126) && said.contains("was replaced"), "{said}");
    assert_eq!(run(&folder.join("link"), false), (Some(0), real));
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn variables_are_those_that_the_operator_lists_and_the_rules_let_pass() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let hosts = || {
        target.hosts(
            "  any: { address: 127.0.0.1, port: PORT, credential: me }\nenv: [LANG, APP_*, TZ]\n",
        )
    };
    let client = Client::new(hosts(), Some(&ssh::rules::policy()));
    let session = client.connect("any").await;
    let call = async |env: Value| {
        run(
            &client,
            &session,
            json!({"command": "printenv LANG", "env": env}),
        )
        .await
    };
    let said = call(json!({"LANG": "C.UTF-8"})).await.unwrap();
    assert_eq!(stdout(&said), "C.UTF-8\n", "{said}");
    let wrong = call(json!({"APP_MODE": "x"})).await.unwrap_err();
    assert!(wrong.contains("a person has to be asked"), "{wrong}");
    let wrong = call(json!({"TZ": ":/etc/shadow"})).await.unwrap_err();
    assert!(wrong.contains("ssh-deny-secrets"), "{wrong}");
    let said = call(json!({"LC_ALL": "C"})).await.unwrap();
    assert!(
        said.to_string()
            .contains("takes LANG, APP_*, TZ, and not LC_ALL"),
        "{said}"
    );
    let open = Client::new(hosts(), None);
    let own = open.connect("any").await;
    for name in ["PATH", "LD_PRELOAD", "A B", "DURWARD_RUN"] {
        let env = json!({name: "x"});
        let said = run(&open, &own, json!({"command": "id", "env": env})).await;
        let said = said.map_or_else(|wrong| wrong, |said| said.to_string());
        assert!(said.contains("env"), "{name}: {said}");
    }
    for (text, wrong) in [
        ("env: [PATH]", "would change which program runs"),
        ("env: ['LD_*']", "would change which program runs"),
        ("env: ['*']", "is not a variable name"),
        ("env: [A-B]", "is not a variable name"),
    ] {
        let text = format!(
            "credentials: {{ me: {{ user: a, key: k }} }}\nhosts: {{ web: {{ credential: me }} }}\n{text}\n"
        );
        let fault = Hosts::of(&text, &target.folder).unwrap_err();
        assert!(fault.wrong.contains(wrong), "{text}: {fault}");
    }
    let sudo = json!({"command": "sudo id", "env": {"LANG": "C"}});
    let said = run(&open, &own, sudo).await.unwrap();
    assert_eq!(said["isError"], true, "{said}");
}
