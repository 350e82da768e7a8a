//! Servers that refuse, break off, start anew and say a lot: each a real OpenSSH.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ssh::hosts::Hosts;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::access::refused;
use crate::stopping::runs;
use crate::target::{Client, PASSWORD, Target, end, has, is_root, user};

/// Bytes of the long output: 1 GiB and a little.
const LONG: u64 = 1024 * 1024 * 1024 + 7;

/// A host with a key and one with a password, at the same server.
fn both(target: &Target) -> Hosts {
    fs::write(target.folder.join("password"), PASSWORD).unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  key: {{ user: {u}, key: user }}\n  password: {{ user: {u}, password_file: password }}\nhosts:\n  by-key: {{ address: 127.0.0.1, port: {p}, credential: key }}\n  by-password: {{ address: 127.0.0.1, port: {p}, credential: password }}\n",
        u = user(),
        p = target.port
    );
    Hosts::of(&text, &target.folder).unwrap()
}

#[tokio::test]
async fn a_server_that_takes_keys_only_lets_no_password_in() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("PasswordAuthentication no\n");
    let client = Client::new(both(&target), None);
    let told = refused(&client, "by-password").await;
    assert!(told.contains("refused the password of"), "{told}");
    drop(client.connect("by-key").await);
    // As root the password is the right one, so that it is the server's own setting that refuses it.
    if is_root() {
        let open = Target::new("PasswordAuthentication yes\n");
        drop(Client::new(both(&open), None).connect("by-password").await);
    }
}

#[tokio::test]
async fn a_server_that_lets_nobody_in_refuses_every_proof_and_runs_nothing() {
    if !has("sshd") {
        return;
    }
    for config in [
        "PubkeyAuthentication no\nPasswordAuthentication no\n".to_owned(),
        // Right proofs of a user who may not come in.
        format!("DenyUsers {}\nPasswordAuthentication yes\n", user()),
    ] {
        let target = Target::new(&config);
        let client = Client::new(both(&target), None);
        for (host, proof) in [("by-key", "key"), ("by-password", "password")] {
            let told = refused(&client, host).await;
            let wanted = format!("refused the {proof} of");
            assert!(told.contains(&wanted), "{config}: {told}");
        }
        assert!(!target.log().contains("Accepted"), "{}", target.log());
        let said = client.call("ssh_list_sessions", json!({})).await.unwrap();
        assert_eq!(said["structuredContent"]["count"], 0);
    }
}

#[tokio::test]
async fn a_server_that_asks_question_by_question_gets_the_password() {
    if !has("sshd") || !is_root() || !std::path::Path::new("/etc/pam.d/sshd").exists() {
        return;
    }
    let target = Target::new("UsePAM yes\nKbdInteractiveAuthentication yes\n");
    let client = Client::new(both(&target), None);
    let session = client.connect("by-password").await;
    let said = client.run(&session, "whoami").await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], format!("{}\n", user()));
    let log = target.log();
    assert!(log.contains("Accepted keyboard-interactive"), "{log}");
}

/// Passes on what is said to a port, until it is told to break all connections off with a reset.
async fn breakable(to: u16) -> (u16, Arc<Notify>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let broken = Arc::new(Notify::new());
    let told = Arc::clone(&broken);
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let told = Arc::clone(&told);
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut from, &mut server) => {}
                    () = told.notified() => {
                        for side in [from, server] {
                            side.set_zero_linger().unwrap();
                        }
                    }
                }
            });
        }
    });
    (port, broken)
}

#[tokio::test]
async fn a_connection_that_is_reset_in_the_middle_of_a_command_says_that_it_may_have_run() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let (port, broken) = breakable(target.port).await;
    let key = fs::read_to_string(target.folder.join("host.pub")).unwrap();
    let known = format!("[127.0.0.1]:{port} {key}");
    fs::write(target.folder.join("known_hosts"), known).unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {}, key: user }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {port}, credential: me }}\n",
        user()
    );
    let client = Client::new(Hosts::of(&text, &target.folder).unwrap(), None);
    let session = client.connect("web").await;
    let count = target.open_file("count");
    let line = target.script(
        "script",
        &format!(
            "echo ran >>{}; echo partly; exec sleep 39351.1",
            count.display()
        ),
    );
    let reset = async {
        while !runs("39351.1") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        broken.notify_waiters();
    };
    let began = Instant::now();
    let (said, ()) = tokio::join!(client.run(&session, &line), reset);
    let said = said.unwrap();
    assert_eq!(
        (
            &said["isError"],
            &said["_meta"]["durward/failure"]["may_have_run"]
        ),
        (&json!(true), &json!(true)),
        "{said}"
    );
    // It was noticed at once, and not by the command's time.
    assert!(began.elapsed() < Duration::from_secs(25));
    let said = client.run(&session, "echo again").await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], "again\n");
    assert_eq!(fs::read_to_string(count).unwrap(), "ran\n", "it ran once");
    end("39351.1");
}

/// Runs a command that leaves its number in a file; whether it was answered as it ran.
async fn numbered(client: &Client, line: &str, number: usize) -> Result<(), (bool, Value)> {
    let connected = client.call("ssh_connect", json!({"host": "web"})).await;
    let connected = connected.unwrap();
    let Some(session) = connected["structuredContent"]["session_id"].as_str() else {
        return Err((false, connected));
    };
    let said = client.run(session, &format!("{line} {number}")).await;
    let said = said.unwrap();
    let ended = json!({"session_id": session});
    client.call("ssh_disconnect", ended).await.unwrap();
    if said["isError"] == true {
        let may_have_run = said["_meta"]["durward/failure"]["may_have_run"] == true;
        return Err((may_have_run, said));
    }
    assert_eq!(
        said["structuredContent"]["stdout"],
        format!("did {number}\n"),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn a_server_that_starts_anew_every_five_seconds_runs_each_command_once_or_says_that_it_may_not_have()
 {
    if !has("sshd") {
        return;
    }
    let mut target = Target::new("");
    let count = target.open_file("count");
    let hold = target.folder.join("hold");
    let text = format!(
        "echo $1 >>{}; while [ -e {} ]; do sleep 0.05; done; echo did $1",
        count.display(),
        hold.display()
    );
    let line = target.script("script", &text);
    let client = target.client();
    let (mut well, mut unsure, mut untried) = (Vec::new(), Vec::new(), Vec::new());
    let (mut number, mut restarts, mut after) = (0, 0, 0);
    let mut next = Instant::now() + Duration::from_secs(5);
    while restarts < 3 || after < 20 {
        let is_due = Instant::now() >= next && restarts < 3;
        let one = numbered(&client, &line, number);
        let told = if is_due {
            // In the middle of a command, which waits for it.
            fs::write(&hold, "").unwrap();
            let runs = async {
                let has = |text: String| text.lines().any(|line| line == number.to_string());
                while !has(fs::read_to_string(&count).unwrap()) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::pin!(one);
            tokio::select! {
                told = &mut one => told,
                () = runs => {
                    target.restart();
                    fs::remove_file(&hold).unwrap();
                    (restarts, after) = (restarts + 1, 0);
                    next += Duration::from_secs(5);
                    one.await
                }
            }
        } else {
            one.await
        };
        match told {
            Ok(()) => {
                well.push(number);
                after += 1;
            }
            Err((true, _)) => unsure.push(number),
            Err((false, _)) => untried.push(number),
        }
        number += 1;
        assert!(unsure.len() + untried.len() < 100, "it does not come back");
    }
    let ran: Vec<usize> = fs::read_to_string(&count)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let times = |number: &usize| ran.iter().filter(|ran| *ran == number).count();
    let about = format!("unsure {unsure:?}, untried {untried:?}");
    assert!(well.iter().all(|number| times(number) == 1), "{about}");
    assert!(unsure.iter().all(|number| times(number) <= 1), "{about}");
    assert!(untried.iter().all(|number| times(number) == 0), "{about}");
    assert_eq!(unsure.len(), restarts, "{about}");
}

/// The most memory that this process has had, in bytes.
fn memory_peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    words[1].parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_gigabyte_of_output_is_counted_and_kept_and_not_held_in_memory() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::keeping(target.hosts(""), &target.folder);
    let session = client.connect("web").await;
    let line = target.script(
        "script",
        &format!("head -c {} /dev/zero; printf end", LONG - 3),
    );
    let call = json!({"session_id": session, "command": line, "timeout_ms": 900_000});
    let said = client.call("ssh_run", call).await.unwrap();
    let data = &said["structuredContent"];
    assert_eq!(
        (
            &data["exit_code"],
            &data["truncated"],
            &data["stdout_bytes"]
        ),
        (&json!(0), &json!(true), &json!(LONG)),
        "{}",
        said["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .len()
    );
    assert!(said.to_string().len() < 2 * 1024 * 1024);
    // What does not fit on the disk's bound is counted, too.
    let kept = 1024 * 1024 * 1024;
    assert_eq!(
        data["whole"]["dropped_bytes"],
        LONG - kept,
        "{}",
        data["whole"]
    );
    let output = data["whole"]["output"].as_str().unwrap();
    let part = json!({"output": output, "at": kept - 10, "bytes": 100});
    let said = client.call("ssh_read_output", part).await.unwrap();
    let part = &said["structuredContent"];
    assert_eq!(
        (&part["bytes"], &part["length"], &part["next"]),
        (&json!(10), &json!(kept), &Value::Null),
        "{said}"
    );
    assert!(memory_peak() < 700 * 1024 * 1024, "{}", memory_peak());
}

#[tokio::test]
async fn binary_output_comes_byte_for_byte_on_both_streams() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::keeping(target.hosts(""), &target.folder);
    let session = client.connect("web").await;
    // Every byte, in no order that a text would have.
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let file = target.folder.join("binary");
    fs::write(&file, &bytes).unwrap();
    let text = format!("cat {0}; cat {0} >&2", file.display());
    let said = client
        .run(&session, &target.script("script", &text))
        .await
        .unwrap();
    let output = said["structuredContent"]["whole"]["output"].clone();
    for stream in ["stdout", "stderr"] {
        let (mut read, mut at) = (Vec::new(), json!(0));
        while !at.is_null() {
            let part = json!({"output": output, "stream": stream, "at": at, "bytes": 200_000});
            let said = client.call("ssh_read_output", part).await.unwrap();
            let part = &said["structuredContent"];
            assert_eq!(part["encoding"], "base64", "{stream}");
            use base64::Engine as _;
            let engine = &base64::engine::general_purpose::STANDARD;
            read.extend(engine.decode(part["content"].as_str().unwrap()).unwrap());
            at = part["next"].clone();
        }
        assert!(read == bytes, "{stream}: {} of {}", read.len(), bytes.len());
    }
}

#[tokio::test]
async fn two_ports_with_one_user_are_never_crossed() {
    if !has("sshd") {
        return;
    }
    let (one, other) = (Target::new(""), Target::new(""));
    let known: String = [&one, &other]
        .map(|target| fs::read_to_string(target.folder.join("known_hosts")).unwrap())
        .concat();
    fs::write(one.folder.join("known_hosts"), known).unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  a: {{ user: {u}, key: user }}\n  b: {{ user: {u}, key: {b}/user }}\nhosts:\n  one: {{ address: 127.0.0.1, port: {pa}, credential: a }}\n  other: {{ address: 127.0.0.1, port: {pb}, credential: b }}\n  wrong: {{ address: 127.0.0.1, port: {pa}, credential: b }}\n",
        u = user(),
        b = other.folder.display(),
        pa = one.port,
        pb = other.port
    );
    let client = Client::new(Hosts::of(&text, &one.folder).unwrap(), None);
    let sessions = [client.connect("one").await, client.connect("other").await];
    // A caller that adds a port gets the listed host there, if there is exactly one.
    let connect = |name: &str, port: u16| {
        client.call(
            "ssh_connect",
            json!({"host": name, "port": port, "user": user()}),
        )
    };
    let by_port = connect("one", other.port).await.unwrap();
    let id = by_port["structuredContent"]["session_id"].clone();
    let listed = client.call("ssh_list_sessions", json!({})).await.unwrap();
    let listed = listed["structuredContent"]["sessions"].as_array().unwrap();
    let session = listed.iter().find(|session| session["session_id"] == id);
    assert_eq!(session.unwrap()["host"], "other", "{listed:?}");
    // Two hosts are listed at that port.
    let wrong = connect("other", one.port).await.unwrap();
    assert!(wrong.to_string().contains("there are several"), "{wrong}");
    // The connection that is open for one key is not used for another.
    let told = refused(&client, "wrong").await;
    assert!(told.contains("refused the key of"), "{told}");
    let ports = [one.port, other.port];
    for _ in 0..20 {
        let (a, b) = tokio::join!(
            client.run(&sessions[0], "printenv SSH_CONNECTION"),
            client.run(&sessions[1], "printenv SSH_CONNECTION")
        );
        for (said, port) in [a, b].into_iter().zip(ports) {
            let said = said.unwrap();
            let told = said["structuredContent"]["stdout"].as_str().unwrap();
            assert!(told.trim_end().ends_with(&format!(" {port}")), "{told}");
        }
    }
}

#[tokio::test]
async fn what_a_shell_would_expand_is_an_operand_as_it_is_written() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = target.client();
    let session = client.connect("web").await;
    let folder = target.folder.join("names");
    fs::create_dir(&folder).unwrap();
    for name in ["*", "$HOME", "~", "{a,b}", "plain"] {
        fs::write(folder.join(name), format!("this is {name}\n")).unwrap();
    }
    for name in ["*", "$HOME", "~", "{a,b}"] {
        let call = json!({"session_id": session, "command": format!("cat {name}"), "cwd": folder});
        let said = client.call("ssh_run", call).await.unwrap();
        assert_eq!(
            said["structuredContent"]["stdout"],
            format!("this is {name}\n"),
            "{said}"
        );
    }
    let said = client.run(&session, "echo * $HOME {a,b}").await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], "* $HOME {a,b}\n");
}
