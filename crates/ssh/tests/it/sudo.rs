//! Commands by sudo: the password is nowhere but where sudo reads it.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::stopping::runs;
use crate::target::{Client, PASSWORD, Target, has, is_root, user};
use ssh::hosts::Hosts;

/// A client whose user runs commands by sudo as this line of its credential says.
fn client(target: &Target, line: &str) -> Client {
    fs::write(target.folder.join("sudo"), format!("{PASSWORD}\n")).unwrap();
    fs::write(target.folder.join("wrong"), "something-else").unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials: {{ me: {{ user: {}, key: user, {line} }} }}\nhosts: {{ web: {{ address: 127.0.0.1, port: {}, credential: me }} }}\n",
        user(),
        target.port
    );
    Client::keeping(Hosts::of(&text, &target.folder).unwrap(), &target.folder)
}

fn ready() -> bool {
    // Only root can give sshd its own list of users and its own sudoers.
    is_root() && has("sshd") && has("sudo")
}

/// Files of a target's processes that have this text: their words and their variables.
fn with_text(target: &Target, text: &str) -> Vec<String> {
    let has = |bytes: Vec<u8>| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    let below = target.below();
    assert!(below.len() > 3, "{below:?}");
    let files = below
        .into_iter()
        .flat_map(|pid| ["cmdline", "environ"].map(|name| format!("/proc/{pid}/{name}")));
    files.filter(|path| fs::read(path).is_ok_and(has)).collect()
}

#[tokio::test]
async fn sudo_gets_its_password_and_nobody_else_does() {
    if !ready() {
        return;
    }
    let target = Target::with_sudo(&format!("{} ALL=(ALL:ALL) ALL", user()));
    let client = client(&target, "sudo_password_file: sudo");
    let session = client.connect("web").await;
    let gate = target.folder.join("go");
    let script = format!(
        "id -u; while [ ! -e {} ]; do sleep 0.1; done; cat; echo oops >&2; exit 7",
        gate.display()
    );
    let command = format!("sudo {} 39361.1", target.script("script", &script));
    let call = json!({"session_id": session, "command": command, "stdin": "fed"});
    let looking = async {
        while !runs("39361.1") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let found = with_text(&target, PASSWORD);
        fs::write(&gate, "").unwrap();
        found
    };
    let (said, found) = tokio::join!(client.call("ssh_run", call), looking);
    let said = said.unwrap();
    let data = &said["structuredContent"];
    assert_eq!(
        (&data["stdout"], &data["stderr"], &data["exit_code"]),
        (&json!("0\nfed"), &json!("oops\n"), &json!(7)),
        "{said}"
    );
    assert_eq!(found, Vec::<String>::new());
    assert!(!said.to_string().contains(PASSWORD) && !target.log().contains(PASSWORD));
}

#[tokio::test]
async fn what_sudo_refuses_is_told_and_what_it_runs_is_killed() {
    if !ready() {
        return;
    }
    let target = Target::with_sudo(&format!("{} ALL=(ALL:ALL) ALL", user()));
    for (line, wrong) in [
        ("sudo_password_file: wrong", "sudo did not let it-bash in"),
        ("sudo_password_file: nowhere", "No such file"),
        ("sudo: passwordless", "a password is required"),
        ("password_from_caller: false", "web runs nothing by sudo"),
    ] {
        let client = client(&target, line);
        let session = client.connect("web").await;
        let said = client.run(&session, "sudo cat").await.unwrap().to_string();
        assert!(said.contains(wrong), "{line}: {said}");
        assert!(!said.contains("something-else"), "{said}");
    }
    let client = client(&target, "sudo_password_file: sudo");
    let session = client.connect("web").await;
    let command = "sudo sh -c 'trap \"\" TERM; sleep 39362.1; sleep 39362.2'";
    let call = json!({"session_id": session, "command": command, "timeout_ms": 2000});
    let said = client.call("ssh_run", call).await.unwrap();
    assert_eq!(
        said["_meta"]["durward/failure"]["code"], "timed_out",
        "{said}"
    );
    let began = std::time::Instant::now();
    while runs("39362.1") || runs("39362.2") {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for command in ["sudo", "sudo -u root id", "sudo A=1 id", "sudo sudo id"] {
        let said = client.run(&session, command).await;
        let said = said.map_or_else(|wrong| wrong, |said| said.to_string());
        assert!(
            said.contains("sudo takes no options here"),
            "{command}: {said}"
        );
    }
    let call = json!({"session_id": session, "command": "sudo id"});
    let said = client.call("ssh_job_start", call).await.unwrap();
    assert!(
        said.to_string().contains("jobs run nothing by sudo"),
        "{said}"
    );
}

#[tokio::test]
async fn sudo_without_a_password_and_one_that_remembers_nothing() {
    if !ready() {
        return;
    }
    let free = Target::with_sudo(&format!("{} ALL=(ALL:ALL) NOPASSWD: ALL", user()));
    for line in ["sudo: passwordless", "sudo_password_file: sudo"] {
        let client = client(&free, line);
        let session = client.connect("web").await;
        let call = json!({"session_id": session, "command": "sudo cat", "stdin": "only this"});
        let said = client.call("ssh_run", call).await.unwrap();
        // Where no password is asked for, the program does not get it either.
        assert_eq!(
            said["structuredContent"]["stdout"], "only this",
            "{line}: {said}"
        );
    }
    let line = format!(
        "Defaults:{0} timestamp_timeout=0\n{0} ALL=(ALL:ALL) ALL",
        user()
    );
    let target = Target::with_sudo(&line);
    let client = client(&target, "sudo_password_file: sudo");
    let session = client.connect("web").await;
    let said = client.run(&session, "sudo cat").await.unwrap().to_string();
    assert!(said.contains("timestamp_timeout=0"), "{said}");
}
