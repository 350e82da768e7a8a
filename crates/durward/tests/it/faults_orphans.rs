//! No orphans: whatever ends Durward, nothing of what it started is left.

use crate::support::guarded::{
    LATEST, Place, call_works, echo, end, eventually, marked, wait_for_end,
};
use mcp::client::Client;
use rustix::process::Signal;

/// How Durward's end comes about.
#[derive(Debug, Clone, Copy)]
enum End {
    Killed,
    Terminated,
    InputClosed,
    Dropped,
}

const ENDS: [End; 4] = [End::Killed, End::Terminated, End::InputClosed, End::Dropped];

const MARK: &str = "DURWARD_TEST_MARK";

/// Guards a command whose whole tree carries a mark in its environment.
fn guard_marked(place: &Place, command: &[&str]) -> (Client, String) {
    let value = place.dir.file_name().unwrap().to_str().unwrap().to_owned();
    let pair = format!("{MARK}={value}");
    (place.guard_command(&["--env", &pair], command), value)
}

fn bring_about(end_by: End, mut client: Client) {
    match end_by {
        End::Killed => client.process().signal(Signal::KILL).unwrap(),
        End::Terminated => client.process().signal(Signal::TERM).unwrap(),
        End::InputClosed => {
            end(client);
            return;
        }
        // As a client that crashes: both pipes go at once, and a kill.
        End::Dropped => {
            drop(client);
            return;
        }
    }
    wait_for_end(client);
}

#[track_caller]
fn nothing_is_left(mark: &str, how: &str) {
    let mut left = Vec::new();
    eventually(&format!("nothing is left {how}"), || {
        left = marked(MARK, mark);
        left.is_empty()
    });
}

/// Starts a mock, lets it do its deed, ends Durward, and looks for what is left.
fn tree_ends(words: &[&str], processes_min: usize) {
    for end_by in ENDS {
        let place = Place::new();
        let mock = place.mock(words);
        let command: Vec<&str> = mock.iter().map(String::as_str).collect();
        let (mut client, mark) = guard_marked(&place, &command);
        client.handshake(LATEST).unwrap();
        client.request("tools/call", echo("deed")).unwrap();
        let before = marked(MARK, &mark);
        assert!(before.len() >= processes_min, "{before:?}");
        bring_about(end_by, client);
        nothing_is_left(&mark, &format!("after {end_by:?}: {words:?}"));
        place.verified();
    }
}

#[test]
fn grandchildren_daemons_and_sessions_of_their_own() {
    // The watcher, the mock, and four sleepers (two of them behind shells that may have gone).
    tree_ends(&["hostile", "--behaviour", "spawn-grandchildren"], 6);
}

#[test]
fn a_server_that_ignores_the_signal_to_end() {
    tree_ends(&["hostile", "--behaviour", "ignore-term"], 2);
}

#[test]
fn a_chain_of_starters() {
    // As package runners do it: a shell that starts a shell that starts the server, none of them `exec`.
    let place = Place::new();
    for end_by in ENDS {
        let mock = place.mock(&["echo"]);
        let script = r#"sh -c '"$0" "$@"; true' "$@"; true"#;
        let mut command = vec!["sh", "-c", script, "runner"];
        command.extend(mock.iter().map(String::as_str));
        let (mut client, mark) = guard_marked(&place, &command);
        client.handshake(LATEST).unwrap();
        call_works(&mut client, "x");
        assert!(marked(MARK, &mark).len() >= 4);
        bring_about(end_by, client);
        nothing_is_left(&mark, &format!("after {end_by:?}"));
    }
    place.verified();
}

#[test]
fn a_server_started_by_npx() {
    let npm = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/npm");
    if !npm.join("node_modules/.bin/mcp-server-filesystem").exists() {
        assert!(std::env::var_os("CI").is_none(), "run scripts/setup-tests");
        eprintln!("skipped: the official server is missing: run scripts/setup-tests");
        return;
    }
    for end_by in [End::Killed, End::InputClosed] {
        let place = Place::new();
        let mut options = place.options();
        options.cwd = Some(npm.clone());
        let value = place.dir.file_name().unwrap().to_str().unwrap().to_owned();
        let pair = format!("{MARK}={value}");
        let dir = place.dir.to_str().unwrap();
        let command = ["npx", "--no-install", "mcp-server-filesystem", dir];
        let mut client = place.guard_as(&["--env", &pair], &command, &options);
        client.initialize("2025-06-18").unwrap();
        assert!(marked(MARK, &value).len() >= 3, "the watcher, npx, node");
        bring_about(end_by, client);
        nothing_is_left(&value, &format!("after {end_by:?}"));
    }
}

#[test]
fn the_watcher_itself_is_killed() {
    let place = Place::new();
    let mock = place.mock(&["echo"]);
    let command: Vec<&str> = mock.iter().map(String::as_str).collect();
    let (mut client, mark) = guard_marked(&place, &command);
    client.handshake(LATEST).unwrap();
    let watcher = marked(MARK, &mark)
        .into_iter()
        .find(|(_, command)| command.contains(" __child "))
        .expect("a watcher")
        .0;
    let pid = rustix::process::Pid::from_raw(i32::try_from(watcher).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    nothing_is_left(&mark, "after the watcher");
    place.verified();
}
