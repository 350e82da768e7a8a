//! Commands that are stopped are dead at the other end, and it is said whether that was seen.

use std::time::{Duration, Instant};

use serde_json::json;

use ssh::hosts::Hosts;

use crate::target::{Client, Target, end, has, is_root};

/// Whether a process with this word on its command line runs here.
pub fn runs(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        // The words of a program end in NUL; a shell that has them in one word does not count.
        line.split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes())
    })
}

async fn gone(word: &str) -> bool {
    let began = Instant::now();
    while runs(word) {
        if began.elapsed() > Duration::from_secs(10) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = target.client();
    let session = client.connect("web").await;
    // One that ends at TERM, and one that only KILL ends.
    for (number, line) in [
        ("39321.1", "sleep 39321.1"),
        (
            "39321.2",
            "sh -c 'trap \"\" TERM; sleep 39321.2; sleep 39321.2'",
        ),
    ] {
        let call = json!({"session_id": session, "command": line, "timeout_ms": 300});
        let said = client.call("ssh_run", call).await.unwrap();
        assert_eq!(said["isError"], true, "{said}");
        let failure = &said["_meta"]["durward/failure"];
        assert_eq!(failure["code"], "timed_out", "{said}");
        assert!(failure["seen_dead"] != true || !runs(number), "{said}");
        assert!(gone(number).await, "{line}");
    }
    // The next call gets its own output, and nothing of those before.
    let said = client.run(&session, "echo next").await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], "next\n");
}

#[tokio::test]
async fn a_command_whose_caller_cancels_is_killed_and_its_place_is_free() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("MaxSessions 2\n");
    let client = target.client();
    let session = client.connect("web").await;
    for round in 0..4 {
        let number = format!("39322.{round}");
        let line = format!("sleep {number}");
        tokio::select! {
            _ = client.run(&session, &line) => panic!("it ended"),
            () = async { while !runs(&number) { tokio::time::sleep(Duration::from_millis(10)).await } } => {}
        }
        // The call was dropped, as when its client is gone.
        assert!(gone(&number).await);
    }
    let said = client.run(&session, "echo free").await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], "free\n");
}

#[tokio::test]
async fn what_a_command_leaves_behind_holds_up_nobody() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = target.client();
    let session = client.connect("web").await;
    // It leaves its own output to itself.
    let line = "sh -c 'sleep 39323.5 >&- 2>&- & echo left; exit 3'";
    let said = client.run(&session, line).await.unwrap();
    assert_eq!(
        (
            &said["structuredContent"]["stdout"],
            &said["structuredContent"]["exit_code"],
            &said["structuredContent"]["output_incomplete"]
        ),
        (&json!("left\n"), &json!(3), &json!(false)),
        "{said}"
    );
    assert!(runs("39323.5"));
    let said = client.run(&session, "pkill -f 39323.5").await.unwrap();
    assert_eq!(said["structuredContent"]["stderr"], "");
}

#[tokio::test]
async fn what_root_runs_is_killed_though_sshd_passes_no_signal_on() {
    if !has("sshd") || !is_root() {
        return;
    }
    // Where sshd takes variables it sets the one by which a command is found; else a program does.
    for (accepted, variable) in [("", "DURWARD_RUN"), ("AcceptEnv LC_*\n", "LC_DURWARD_RUN")] {
        let target = Target::new(accepted);
        let text = format!(
            "known_hosts: [known_hosts]\ncredentials: {{ me: {{ user: root, key: user }} }}\nhosts: {{ web: {{ address: 127.0.0.1, port: {}, credential: me }} }}\n",
            target.port
        );
        let client = Client::new(Hosts::of(&text, &target.folder).unwrap(), None);
        let session = client.connect("web").await;
        let said = client.run(&session, "env").await.unwrap();
        let told = said["structuredContent"]["stdout"].as_str().unwrap();
        let names: Vec<&str> = told
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, _)| name)
            .filter(|name| name.ends_with("DURWARD_RUN"))
            .collect();
        assert_eq!(names, [variable], "{accepted}");
        let line = "sh -c 'trap \"\" TERM; setsid sleep 39324.1 & sleep 39324.2; sleep 39324.3'";
        let call = json!({"session_id": session, "command": line, "timeout_ms": 300});
        let said = client.call("ssh_run", call).await.unwrap();
        let is_dead = said["_meta"]["durward/failure"]["seen_dead"] == true;
        for word in ["39324.1", "39324.2", "39324.3"] {
            assert!(!is_dead || !runs(word), "{accepted}: {word}: {said}");
        }
        for word in ["39324.1", "39324.2", "39324.3"] {
            assert!(gone(word).await, "{accepted}: {word}");
        }
    }
}

/// The processes that have this word.
fn pids(word: &str) -> Vec<u64> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pid = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_it = line
            .split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes());
        is_it.then_some(pid)
    };
    entries.filter_map(pid).collect()
}

#[tokio::test]
async fn an_end_is_never_claimed_of_a_command_that_has_left_something() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let mut users = vec!["web"];
    let client = if is_root() {
        users.push("root");
        let text = format!(
            "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {}, key: user }}\n  root: {{ user: root, key: user }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {p}, credential: me }}\n  root: {{ address: 127.0.0.1, port: {p}, credential: root }}\n",
            crate::target::user(),
            p = target.port
        );
        Client::new(Hosts::of(&text, &target.folder).unwrap(), None)
    } else {
        target.client()
    };
    for (at, user) in users.into_iter().enumerate() {
        let session = client.connect(user).await;
        for (number, line) in [
            "setsid -w sleep WORD",
            "sh -c 'setsid sleep WORD & wait'",
            "sh -c 'env -i setsid sleep WORD & wait'",
            "env -i sleep WORD",
            "env -i setsid -w sleep WORD",
            "setsid -w sh -c 'trap : TERM; sleep WORD'",
        ]
        .iter()
        .enumerate()
        {
            let word = format!("3938{at}.{number}");
            let line = line.replace("WORD", &word);
            let call = json!({"session_id": session, "command": line, "timeout_ms": 500});
            let said = client.call("ssh_run", call).await.unwrap();
            let failure = &said["_meta"]["durward/failure"];
            assert_eq!(failure["code"], "timed_out", "{said}");
            let left = pids(&word);
            assert!(
                failure["seen_dead"].is_null() || left.is_empty(),
                "{user}: {line}: {left:?}: {said}"
            );
            // Where processes are named, what is left is among them.
            let named = failure["pids"].as_array().unwrap();
            for pid in left.iter().filter(|_| !named.is_empty()) {
                assert!(
                    named.contains(&json!(pid)),
                    "{user}: {line}: {left:?}: {said}"
                );
            }
            end(&word);
        }
    }
}

#[tokio::test]
async fn the_end_of_a_command_that_only_looks_is_seen() {
    if !has("sshd") || !is_root() {
        return;
    }
    let target = Target::quiet();
    let web = "  web: { address: 127.0.0.1, port: PORT, credential: me }\n";
    let client = Client::new(target.hosts_as(web), None);
    let session = client.connect("web").await;
    let mut told = Vec::new();
    // A loaded machine may not answer in time.
    for _ in 0..20 {
        let call =
            json!({"session_id": session, "command": "tail -f /etc/hostname", "timeout_ms": 300});
        let said = client.call("ssh_run", call).await.unwrap();
        if said["_meta"]["durward/failure"]["seen_dead"] == true {
            return;
        }
        told.push(said.to_string());
    }
    panic!("{told:#?}");
}

#[tokio::test]
async fn a_connection_that_is_lost_says_that_the_command_may_have_run_and_the_next_one_gets_another()
 {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = target.client();
    let session = client.connect("web").await;
    let lost = async {
        while !runs("39325.1") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        target.cut();
    };
    let (said, ()) = tokio::join!(client.run(&session, "sleep 39325.1"), lost);
    let said = said.unwrap();
    assert_eq!(
        (
            &said["isError"],
            &said["_meta"]["durward/failure"]["may_have_run"]
        ),
        (&json!(true), &json!(true)),
        "{said}"
    );
    let said = client.run(&session, "echo again").await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], "again\n");
    // What the lost connection left running is this test's to end.
    end("39325.1");
    assert!(gone("39325.1").await);
}
