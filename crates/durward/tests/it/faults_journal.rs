//! What can happen to the journal while calls run: nothing more is forwarded, the caller is told, exit 10,
//! and the next run goes on.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::approver;
use crate::support::guarded::{
    LATEST, Place, binary, call_works, echo, end, eventually, wait_for_end,
};
use mcp::client::Client;
use rustix::process::{Signal, geteuid};
use serde_json::json;

/// Breaks the journal of a running session; the next call must be refused, unseen by the server.
/// Both happen while the session stands still, so that the call is always the next thing it meets.
fn broken_by(place: &Place, break_it: impl FnOnce(&Path)) {
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "before");
    // The answer goes out before its end is written; stopped between a look at the file and the write,
    // the session would write what no look can find any more.
    let segment = place.segments().pop().unwrap();
    eventually("the end of the call is in the journal", || {
        fs::read_to_string(&segment)
            .unwrap()
            .contains("\"kind\":\"operation\"")
    });
    client.process().signal(Signal::STOP).unwrap();
    break_it(&segment);
    let id = client.send_request("tools/call", echo("after")).unwrap();
    client.process().signal(Signal::CONT).unwrap();
    refused_and_over(place, client, &id, 1);
}

#[track_caller]
fn refused_and_over(place: &Place, mut client: Client, id: &str, counted: usize) {
    let reply = client.response(id).unwrap();
    let refusal = reply.refusal().expect("a refusal");
    assert_eq!(refusal["reason"], "journal_failed", "{refusal}");
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(10), "{ended:?}");
    assert!(ended.stderr.contains("error: "), "{ended:?}");
    assert!(ended.stderr.contains("journal"), "{ended:?}");
    assert_eq!(place.counted().len(), counted, "the server saw it");
}

/// A further run in the same place works and continues soundly.
fn next_run_works(place: &Place) {
    let before = place.counted().len();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "again");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), before + 1);
    let journal = place.records();
    let decisions = journal.decisions();
    assert_eq!(decisions.last().unwrap()["decision"], "allow");
}

/// The same after a segment was taken away or exchanged, which the head does not forget.
fn next_run_works_and_the_loss_is_found(place: &Place) {
    next_run_works(place);
    let output = place.durward(&["audit", "--state-dir", "state", "verify"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("finding: head.json: segment ") && text.contains(" is missing: "),
        "{text}"
    );
}

#[test]
fn journal_removed() {
    let place = Place::new();
    broken_by(&place, |segment| fs::remove_file(segment).unwrap());
    next_run_works_and_the_loss_is_found(&place);
}

#[test]
fn journal_folder_removed() {
    let place = Place::new();
    broken_by(&place, |segment| {
        fs::remove_dir_all(segment.parent().unwrap()).unwrap();
    });
    next_run_works_and_the_loss_is_found(&place);
}

#[test]
fn journal_replaced_by_a_copy() {
    let place = Place::new();
    broken_by(&place, |segment| {
        let copy = segment.with_extension("copy");
        fs::copy(segment, &copy).unwrap();
        fs::rename(copy, segment).unwrap();
    });
    next_run_works(&place);
}

#[test]
fn journal_replaced_by_a_link() {
    let place = Place::new();
    let elsewhere = place.path("elsewhere");
    broken_by(&place, |segment| {
        fs::copy(segment, &elsewhere).unwrap();
        fs::remove_file(segment).unwrap();
        std::os::unix::fs::symlink(&elsewhere, segment).unwrap();
    });
    fs::remove_file(&place.segments()[0]).unwrap();
    next_run_works_and_the_loss_is_found(&place);
}

#[test]
fn journal_truncated() {
    let place = Place::new();
    broken_by(&place, |segment| {
        let file = OpenOptions::new().write(true).open(segment).unwrap();
        // In the middle of the last line.
        file.set_len(file.metadata().unwrap().len() - 7).unwrap();
    });
    next_run_works(&place);
}

#[test]
fn journal_written_by_another() {
    let place = Place::new();
    broken_by(&place, |segment| {
        let mut file = OpenOptions::new().append(true).open(segment).unwrap();
        file.write_all(b"{}\n").unwrap();
    });
    // A foreign line is found by the audit, and nothing mends it.
    let output = place.durward(&["audit", "--state-dir", "state", "verify"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn journal_removed_while_nobody_calls() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    fs::remove_file(&place.segments()[0]).unwrap();
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(10), "{ended:?}");
    assert_eq!(place.counted().len(), 0);
    next_run_works_and_the_loss_is_found(&place);
}

/// Calls until the disk is full: then one refusal, exit 10, and the server has seen exactly what was
/// answered.
fn calls_until_full(place: &Place, mut client: Client) {
    const CALLS_MAX: usize = 100_000;
    client.handshake(LATEST).unwrap();
    let mut answered = 0;
    let refused = loop {
        assert!(answered < CALLS_MAX, "the disk is never full");
        let id = client.send_request("tools/call", echo("x")).unwrap();
        match client.response(&id) {
            Ok(reply) if reply.refusal().is_some() => break Some(reply),
            Ok(_) => answered += 1,
            // The outcome of the last call did not fit: over before the next decision.
            Err(_) => break None,
        }
    };
    if let Some(reply) = refused {
        assert_eq!(
            reply.refusal().unwrap()["reason"],
            "journal_failed",
            "{}",
            reply.line()
        );
    }
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(10), "{ended:?}");
    assert!(
        answered > 3,
        "only {answered} calls before the disk is full"
    );
    assert_eq!(place.counted().len(), answered);
    // What is on the full disk is whole: nothing half-written is left.
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), answered);
    let verified = place.verified();
    let notes = verified["notes"].as_array().unwrap();
    assert!(
        notes.iter().all(|note| note["note"] != "torn_tail"),
        "{notes:?}"
    );
}

#[test]
fn journal_at_its_file_size_limit() {
    let place = Place::new();
    let mock = place.mock(&["echo"]);
    let words: Vec<&str> = mock.iter().map(String::as_str).collect();
    let guarded = place.run_args(&[], &words);
    // Blocks of 512 bytes: 64 KiB, far more than the count or the keys need.
    let script = r#"ulimit -f 128; exec "$0" "$@""#;
    let args = [
        &["-c".to_owned(), script.to_owned(), binary().to_owned()][..],
        &guarded,
    ]
    .concat();
    let client = Client::spawn_with("sh", args, &place.options()).unwrap();
    calls_until_full(&place, client);
    next_run_works(&place);
}

/// Unmounts at the end of a test.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn journal_on_a_full_disk() {
    let place = Place::new();
    let state = place.path("state");
    fs::create_dir(&state).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=96k,mode=700", "none"])
        .arg(&state)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        assert!(!geteuid().is_root() || std::env::var_os("CI").is_none());
        eprintln!(
            "skipped: a file system cannot be mounted here; the file size limit is tested instead"
        );
        return;
    }
    let _mounted = Mounted(&state);
    let client = place.guard(&["echo"]);
    calls_until_full(&place, client);
    // Room again: the next run goes on.
    let grown = Command::new("mount")
        .args(["-o", "remount,size=1m"])
        .arg(&state)
        .status();
    assert!(grown.unwrap().success());
    next_run_works(&place);
}

/// A journal that cannot be begun: exit 10 with a reason, and the server is not started.
fn cannot_begin(place: &Place) {
    let started = place.path("started");
    let command = ["touch", started.to_str().unwrap()];
    let client = place.guard_command(&[], &command);
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(10), "{ended:?}");
    assert!(ended.stderr.contains("error: "), "{ended:?}");
    assert!(!started.exists(), "the server was started");
}

#[test]
fn journal_folder_is_a_file() {
    let place = Place::new();
    fs::create_dir(place.path("state")).unwrap();
    fs::write(place.journal_dir(), "in the way").unwrap();
    cannot_begin(&place);
}

/// A start that has to wait for another process says so, and gives up with the number of that process.
#[test]
fn journal_lock_held_by_another() {
    let place = Place::new();
    let journal = place.journal_dir();
    state::directory::create_private(&journal).unwrap();
    let held = state::DirectoryLock::acquire(&journal).unwrap();
    let ended = wait_for_end(place.guard(&["echo"]));
    assert_eq!(ended.code, Some(10), "{ended:?}");
    let holder = std::process::id();
    assert!(
        ended.stderr.contains(&format!(
            ".lock, which process {holder} holds; giving up after 10 s"
        )),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains(&format!("process {holder} has held the lock ")),
        "{ended:?}"
    );
    drop(held);
    next_run_works(&place);
}

/// Other commands say so as well, and go on when the lock is free.
#[test]
fn a_lock_that_a_command_waits_for_is_told_of() {
    let place = Place::new();
    let keys = place.path("state/keys");
    state::directory::create_private(&keys).unwrap();
    let held = state::DirectoryLock::acquire(&keys).unwrap();
    let mut command = Command::new(binary());
    command.args(["--no-config", "--state-dir"]);
    command
        .arg(place.path("state"))
        .args(["keys", "create", "ci"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(process.stderr.take().unwrap());
    stderr.read_line(&mut told).unwrap();
    let holder = std::process::id();
    let expect = format!(".lock, which process {holder} holds; giving up after 10 s");
    assert!(told.contains(&expect), "{told}");
    drop(held);
    assert!(process.wait().unwrap().success());
}

#[test]
fn folders_that_others_may_write_in_are_refused() {
    for folder in ["state", "state/journal", "state/keys"] {
        let place = Place::new();
        let path = place.path(folder);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let ended = wait_for_end(place.guard(&["echo"]));
        assert_eq!(ended.code, Some(10), "{folder}: {ended:?}");
        assert!(
            ended.stderr.contains("(mode 0777); run chmod 700 "),
            "{folder}: {ended:?}"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        next_run_works(&place);
    }
}

#[test]
fn journal_folder_unwritable() {
    let place = Place::new();
    let state = place.path("state");
    fs::create_dir(&state).unwrap();
    if !geteuid().is_root() {
        fs::set_permissions(&state, fs::Permissions::from_mode(0o500)).unwrap();
        cannot_begin(&place);
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        return;
    }
    // Permissions do not hold root back; a read-only file system does.
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "ro", "none"])
        .arg(&state)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a file system cannot be mounted here");
        return;
    }
    let _mounted = Mounted(&state);
    cannot_begin(&place);
}

#[test]
fn journal_of_two_runs_at_once() {
    let place = Place::new();
    let mut clients = [place.guard(&["echo"]), place.guard(&["echo"])];
    for client in &mut clients {
        client.handshake(LATEST).unwrap();
    }
    for round in 0..5 {
        for client in &mut clients {
            call_works(client, &format!("{round}"));
        }
    }
    for client in clients {
        assert_eq!(end(client).code, Some(0));
    }
    assert_eq!(place.segments().len(), 2);
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), 10);
    assert_eq!(place.counted().len(), 10);
    next_run_works(&place);
}

#[test]
fn a_hundred_calls_are_one_session() {
    let place = Place::new();
    let mock = place.mock(&["echo"]);
    let seen = place.path("seen");
    let script = r#"seen="$0"; tee "$seen" | "$@""#;
    let mut command = vec!["sh", "-c", script, seen.to_str().unwrap()];
    command.extend(mock.iter().map(String::as_str));
    let mut client = place.guard_command(&[], &command);
    client.handshake(LATEST).unwrap();
    for number in 0..100 {
        call_works(&mut client, &number.to_string());
    }
    assert_eq!(end(client).code, Some(0));
    let text = fs::read_to_string(seen).unwrap();
    let methods = |name: &str| {
        let lines = text
            .lines()
            .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
        lines.filter(|message| message["method"] == name).count()
    };
    assert_eq!(methods("initialize"), 1);
    assert_eq!(methods("notifications/initialized"), 1);
    assert_eq!(methods("tools/list"), 1, "the gate asks once for itself");
    assert_eq!(methods("tools/call"), 100);
    assert_eq!(text.lines().count(), 103);
    assert_eq!(place.counted().len(), 100);
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), 100);
    assert_eq!(journal.operations().len(), 100);
}

#[test]
fn denied_calls_never_arrive() {
    let place = Place::new();
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"no-echo","effect":"deny","conditions":{"tool_name":"echo"}},
            {"id":"ask","effect":"hitl","conditions":{"tool_name":"sized"}}]}"#,
    );
    let mut client = place.guard(&["echo"]);
    let _denier = approver::Denier::start(&place.runtime());
    client.handshake(LATEST).unwrap();
    for (tool, reason) in [
        ("echo", "denied_by_rule"),
        ("sized", "approval_denied"),
        ("delayed", "no_rule_allows"),
    ] {
        for _ in 0..10 {
            let reply = client.call_tool(tool, json!({"text": "x"})).unwrap();
            let refusal = reply.refusal().expect("a refusal");
            assert_eq!(refusal["reason"], reason, "{refusal}");
        }
    }
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 0);
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), 30);
    assert_eq!(journal.operations().len(), 0);
}
