//! Lines that stall and trickle: no byte of an output is lost unless the answer says so, and every answer comes within
//! its time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mocks::{BadLine, LineState};
use serde_json::{Value, json};
use ssh::hosts::Hosts;

use crate::stopping::runs;
use crate::target::{Client, Target, end, has, user};

/// How long after its time an answer may come: the grace for a kill, and a little.
const GRACE: Duration = Duration::from_millis(2_250);
/// What a loaded machine adds; still far below what the line would take.
const SLACK: Duration = Duration::from_secs(5);

/// A target behind a line, and a client of it with these limits.
async fn behind(more: &str) -> (Target, BadLine, Client) {
    let target = Target::new("");
    let server = SocketAddr::from(([127, 0, 0, 1], target.port));
    let line = BadLine::to(server).await.unwrap();
    let port = line.address.port();
    let key = std::fs::read_to_string(target.folder.join("host.pub")).unwrap();
    let known = format!("[127.0.0.1]:{port} {key}");
    std::fs::write(target.folder.join("known_hosts"), known).unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {}, key: user }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {port}, credential: me }}\n{more}",
        user()
    );
    let client = Client::new(Hosts::of(&text, &target.folder).unwrap(), None);
    (target, line, client)
}

async fn timed(client: &Client, tool: &str, arguments: Value, ms: u64) -> Value {
    let asked = Instant::now();
    let said = client.call(tool, arguments).await.unwrap();
    let most = Duration::from_millis(ms) + GRACE + SLACK;
    assert!(asked.elapsed() < most, "{:?}: {said}", asked.elapsed());
    said
}

#[tokio::test]
async fn an_output_that_comes_long_after_the_exit_status_is_whole() {
    if !has("sshd") {
        return;
    }
    let (_target, line, client) = behind("").await;
    let session = client.connect("web").await;
    client.run(&session, "true").await.unwrap();
    line.set(LineState::Trickling {
        pieces: 4,
        rest: Duration::from_millis(700),
    });
    // Its process has ended while most of this is still on the way.
    let call = json!({"session_id": session, "command": "seq 40000", "timeout_ms": 300_000});
    let said = client.call("ssh_run", call).await.unwrap();
    let data = &said["structuredContent"];
    let expected: usize = (1..=40_000_u32).map(|n| n.to_string().len() + 1).sum();
    assert_eq!(
        (
            &data["exit_code"],
            &data["stdout_bytes"],
            &data["output_incomplete"]
        ),
        (&json!(0), &json!(expected), &json!(false)),
        "{}",
        data["output_incomplete_reason"]
    );
}

#[tokio::test]
async fn an_output_that_is_cut_by_the_time_says_so() {
    if !has("sshd") {
        return;
    }
    let (_target, line, client) = behind("").await;
    let session = client.connect("web").await;
    client.run(&session, "true").await.unwrap();
    line.set(LineState::Trickling {
        pieces: 1,
        rest: Duration::from_millis(500),
    });
    let call = json!({"session_id": session, "command": "seq 40000", "timeout_ms": 3_000});
    let said = timed(&client, "ssh_run", call, 3_000).await;
    let failure = &said["_meta"]["durward/failure"];
    let data = match said["isError"] == true {
        true => failure,
        false => &said["structuredContent"],
    };
    assert_eq!(data["output_incomplete"], true, "{said}");
    assert!(data["stdout_bytes"].as_u64() < Some(228_894), "{data}");
}

#[tokio::test]
async fn every_call_on_a_stalled_line_is_answered_within_its_time_and_the_next_gets_another_connection()
 {
    if !has("sshd") {
        return;
    }
    let (_target, line, client) =
        behind("limits: { connections_max: 1, channels_max: 3, connect_ms_max: 3000 }\n").await;
    let session = client.connect("web").await;
    client.run(&session, "true").await.unwrap();
    line.set(LineState::Stalled);
    // One channel is open already, one has to be opened, and then there is no connection at all.
    for round in 0..3 {
        let call = json!({"session_id": session, "command": "echo x", "timeout_ms": 3_000});
        let said = timed(&client, "ssh_run", call, 3_000).await;
        assert_eq!(said["isError"], true, "{round}: {said}");
        let failure = &said["_meta"]["durward/failure"];
        assert_ne!(failure["seen_dead"], true, "{round}: {said}");
    }
    // A file's path is asked about first.
    let call = json!({"session_id": session, "command": "cat /etc/hosts", "timeout_ms": 1_000});
    let said = timed(&client, "ssh_run", call, 1_000).await;
    assert_eq!(said["isError"], true, "{said}");
    let call = json!({"host": "web", "alone": true, "timeout_ms": 1_000});
    let said = timed(&client, "ssh_connect", call, 1_000).await;
    assert_eq!(said["isError"], true, "{said}");
    let said = timed(&client, "ssh_connect", json!({"host": "web"}), 3_000).await;
    assert_eq!(said["isError"], true, "{said}");
    line.set(LineState::Clear);
    let said = client.run(&session, "echo again").await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], "again\n", "{said}");
}

#[tokio::test]
async fn a_connection_that_stays_stalled_is_left_for_another_one() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let server = SocketAddr::from(([127, 0, 0, 1], target.port));
    // The first connection goes over a line that stalls for good, later ones over another.
    let (bad, good) = (
        BadLine::to(server).await.unwrap(),
        BadLine::to(server).await.unwrap(),
    );
    let near = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = near.local_addr().unwrap().port();
    let lines = [bad.address, good.address];
    tokio::spawn(async move {
        let mut lines = lines.into_iter();
        let mut next = lines.next().unwrap();
        while let Ok((mut client, _)) = near.accept().await {
            let line = next;
            next = lines.next().unwrap_or(next);
            tokio::spawn(async move {
                let mut server = tokio::net::TcpStream::connect(line).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    let key = std::fs::read_to_string(target.folder.join("host.pub")).unwrap();
    let known = format!("[127.0.0.1]:{port} {key}");
    std::fs::write(target.folder.join("known_hosts"), known).unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {}, key: user }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {port}, credential: me }}\nlimits: {{ connections_max: 1 }}\n",
        user()
    );
    let client = Client::new(Hosts::of(&text, &target.folder).unwrap(), None);
    let session = client.connect("web").await;
    client.run(&session, "true").await.unwrap();
    bad.set(LineState::Stalled);
    let call = json!({"session_id": session, "command": "echo lost", "timeout_ms": 2_000});
    let said = timed(&client, "ssh_run", call, 2_000).await;
    assert_eq!(said["isError"], true, "{said}");
    let call = json!({"session_id": session, "command": "echo found", "timeout_ms": 30_000});
    let said = client.call("ssh_run", call).await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], "found\n", "{said}");
}

#[tokio::test]
async fn a_command_whose_child_has_its_output_open_says_how_it_ended_and_that_more_may_come() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = target.client();
    let session = client.connect("web").await;
    let line = "sh -c 'sleep 39371.5 & echo left; exit 3'";
    let call = json!({"session_id": session, "command": line, "timeout_ms": 1_000});
    let said = timed(&client, "ssh_run", call, 1_000).await;
    let data = &said["structuredContent"];
    assert_eq!(
        (
            &data["stdout"],
            &data["exit_code"],
            &data["output_incomplete"],
            &data["output_incomplete_reason"]
        ),
        (
            &json!("left\n"),
            &json!(3),
            &json!(true),
            &json!("streams_open")
        ),
        "{said}"
    );
    // It is the host's to end.
    assert!(runs("39371.5"));
    end("39371.5");
    // What comes after the exit, and within the time, is a part of the output.
    let line = "sh -c '(sleep 1; echo late) & exit 4'";
    let said = client.run(&session, line).await.unwrap();
    let data = &said["structuredContent"];
    assert_eq!(
        (
            &data["stdout"],
            &data["exit_code"],
            &data["output_incomplete"]
        ),
        (&json!("late\n"), &json!(4), &json!(false)),
        "{said}"
    );
}
