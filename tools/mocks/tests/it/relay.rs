use crate::common::{mock, mock_path, ready};
use mcp::client::{Client, Era};
use serde_json::json;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

fn relayed(args: &[&str], era: Era) -> Client {
    let path = mock_path();
    let all = [&["relay", "--", path.to_str().unwrap()], args].concat();
    ready(&all, era)
}

#[test]
fn the_relay_carries_every_era() {
    for era in Era::ALL {
        let mut client = relayed(&["echo"], era);
        assert_eq!(
            client
                .call_tool("echo", json!({"text": "through"}))
                .unwrap()
                .text(),
            Some("through"),
            "{era:?}"
        );
    }
}

#[test]
fn the_relay_carries_big_frames_both_ways() {
    let mut client = relayed(&["echo"], Era::Modern);
    let big = "y".repeat(5_000_000);
    assert_eq!(
        client
            .call_tool("echo", json!({"text": big}))
            .unwrap()
            .text(),
        Some(big.as_str())
    );
}

#[test]
fn the_relay_returns_the_code_of_its_child() {
    for (line, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let mut client = mock(&["relay", "--", "sh", "-c", line]);
        let status = client
            .process()
            .wait_within(Duration::from_secs(20))
            .unwrap()
            .expect("it ends");
        assert_eq!(status.code(), Some(code), "{line}");
    }
    let mut client = mock(&["relay", "--", "/nope/nope"]);
    let status = client
        .process()
        .wait_within(Duration::from_secs(20))
        .unwrap()
        .expect("it ends");
    assert_eq!(status.code(), Some(2));
}

#[test]
fn the_relay_works_on_plain_files_and_sockets() {
    let directory = crate::common::Directory::new();
    let (input, output) = (directory.join("in"), directory.join("out"));
    std::fs::write(&input, "from a file\n").unwrap();
    let status = Command::new(mock_path())
        .args(["relay", "--", "cat"])
        .stdin(File::open(&input).unwrap())
        .stdout(File::create(&output).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "from a file\n");

    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let theirs: OwnedFd = theirs.into();
    let mut child = Command::new(mock_path())
        .args(["relay", "--", "cat"])
        .stdin(Stdio::from(theirs.try_clone().unwrap()))
        .stdout(Stdio::from(theirs))
        .spawn()
        .unwrap();
    ours.write_all(b"over a socket").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = String::new();
    ours.read_to_string(&mut back).unwrap();
    assert_eq!(back, "over a socket");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_caller_that_hangs_up_ends_the_relay_and_its_child() {
    let mut child = Command::new(mock_path())
        .args(["relay", "--", "yes"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    // Killed by the relay, or by its own write to the relay that was about to kill it.
    let code = child.wait().unwrap().code().unwrap();
    assert!([137, 141].contains(&code), "{code}");
}
