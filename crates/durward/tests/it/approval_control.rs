//! The control socket from outside: directories that are not trusted, sockets of the dead, other users, requests
//! that are none, more connections than there may be.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::approver::{ask, sockets};
use crate::support::guarded::{LATEST, Place, call_works, end, eventually, wait_for_end};
use mcp::client::Client;
use serde_json::{Value, json};

const SETPRIV: &str = "/usr/bin/setpriv";
const PERL: &str = "/usr/bin/perl";

fn folder(place: &Place) -> PathBuf {
    place.runtime().join("durward")
}

fn make(folder: &Path, mode: u32) {
    fs::create_dir_all(folder).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Starts a guarded echo and expects it not to come up.
#[track_caller]
fn refuses_to_start(place: &Place, says: &[&str]) {
    let ended = wait_for_end(place.guard(&["echo"]));
    assert_eq!(ended.code, Some(16), "{ended:?}");
    for text in says {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
    assert_eq!(place.counted().len(), 0);
    place.verified();
}

fn started(place: &Place) -> (Client, PathBuf) {
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    let found = sockets(&folder(place));
    assert_eq!(found.len(), 1, "{found:?}");
    (client, found[0].clone())
}

#[test]
fn a_directory_that_others_may_read_stops_the_start() {
    let place = Place::new();
    make(&folder(&place), 0o755);
    refuses_to_start(
        &place,
        &["open to other users (mode 0755)", "hint: chmod 700"],
    );
    let listed = place.durward(&["approvals", "list"]);
    assert_eq!(listed.status.code(), Some(2), "{listed:?}");
    let said = String::from_utf8(listed.stderr).unwrap();
    assert!(said.contains("open to other users"), "{said}");
}

#[test]
fn a_directory_of_another_user_stops_the_start() {
    if !is_root() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    let place = Place::new();
    make(&folder(&place), 0o700);
    chown(folder(&place), Some(65_534), None).unwrap();
    refuses_to_start(&place, &["belongs to user 65534", "run chown"]);
}

#[test]
fn a_link_in_the_place_of_the_directory_stops_the_start() {
    let place = Place::new();
    make(&place.path("elsewhere"), 0o700);
    symlink(place.path("elsewhere"), folder(&place)).unwrap();
    refuses_to_start(&place, &["cannot open the runtime directory"]);
}

#[test]
fn sockets_of_the_dead_go_and_nothing_else_does() {
    let place = Place::new();
    make(&folder(&place), 0o700);
    drop(UnixListener::bind(folder(&place).join("gone-1.sock")).unwrap());
    fs::write(folder(&place).join("notes.sock"), "not a socket").unwrap();
    let listed = place.durward(&["approvals", "list"]);
    assert_eq!(listed.stdout, b"no instance of durward is running\n");
    let living = UnixListener::bind(folder(&place).join("alive-1.sock")).unwrap();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    let mut names: Vec<String> = sockets(&folder(&place))
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(
        [names[0].as_str(), names[2].as_str()],
        ["alive-1.sock", "notes.sock"]
    );
    assert!(names[1].starts_with("durward-"), "{names:?}");
    drop(living);
    assert_eq!(end(client).code, Some(0));
    assert!(
        !folder(&place).join(&names[1]).exists(),
        "its own goes with it"
    );
}

#[test]
fn a_killed_instance_leaves_a_socket_that_does_no_harm() {
    let place = Place::new();
    let (mut client, socket) = started(&place);
    client
        .process()
        .signal(rustix::process::Signal::KILL)
        .unwrap();
    drop(client);
    assert!(socket.exists());
    let listed = place.durward(&["approvals", "list"]);
    assert_eq!(listed.stdout, b"no instance of durward is running\n");
    let (client, own) = started(&place);
    assert_ne!(own, socket);
    assert!(!socket.exists());
    end(client);
}

#[test]
fn permissions_are_for_one_user_only() {
    let place = Place::new();
    let (client, socket) = started(&place);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder(&place)), 0o700);
    assert_eq!(mode(&socket), 0o600);
    end(client);
}

#[test]
fn another_user_is_refused_even_where_the_permissions_would_let_them_in() {
    if !is_root() || !Path::new(PERL).exists() || !Path::new(SETPRIV).exists() {
        eprintln!("skipped: needs root, setpriv and perl to become another user");
        return;
    }
    let place = Place::new();
    let (mut client, socket) = started(&place);
    for open in [&place.dir, &place.runtime(), &folder(&place), &socket] {
        fs::set_permissions(open, Permissions::from_mode(0o777)).unwrap();
    }
    // Who may not speak is told so before they say anything.
    let script = r#"$s = IO::Socket::UNIX->new(Peer => shift) or die "$!"; print scalar <$s>"#;
    let output = Command::new(SETPRIV)
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args([PERL, "-MIO::Socket::UNIX", "-e", script])
        .arg(&socket)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("another_user"), "{said} {output:?}");
    call_works(&mut client, "still serving");
    end(client);
}

#[test]
fn requests_that_are_none_are_told_so() {
    let place = Place::new();
    let (mut client, socket) = started(&place);
    let label = |request: &[u8]| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(request).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answer["error"]["label"].as_str().unwrap().to_owned()
    };
    let cases: [(&[u8], &str); 7] = [
        (b"hello\n", "bad_request"),
        (b"{\"do\":\"dance\"}\n", "bad_request"),
        (b"{\"do\":\"answer\"}\n", "bad_request"),
        (
            b"{\"do\":\"answer\",\"id\":\"x\",\"answer\":\"maybe\"}\n",
            "bad_request",
        ),
        (
            b"{\"do\":\"answer\",\"id\":\"x\",\"answer\":\"once\"}\n",
            "too_short",
        ),
        (
            b"{\"do\":\"answer\",\"id\":\"xyz\",\"answer\":\"once\"}\n",
            "unknown",
        ),
        (b"\xff\xfe\n", "bad_request"),
    ];
    for (request, expected) in cases {
        assert_eq!(label(request), expected, "{request:?}");
    }
    assert_eq!(label(&vec![b'x'; 64 * 1024 + 1]), "too_long");
    call_works(&mut client, "still serving");
    let status = ask(&socket, &json!({"do": "status"})).unwrap();
    assert_eq!(status["ok"]["approvals_waiting"], 0, "{status}");
    end(client);
}

#[test]
fn the_seventeenth_connection_is_told_to_come_back_and_an_idle_one_is_closed() {
    let place = Place::new();
    let (mut client, socket) = started(&place);
    let idle: Vec<UnixStream> = (0..16)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    eventually("the seats are taken", || {
        let answer = ask(&socket, &json!({"do": "status"}));
        answer.is_ok_and(|answer| answer["error"]["label"] == "busy")
    });
    call_works(&mut client, "still serving");
    // Nobody said anything for five seconds: their seats are free again.
    for mut stream in idle {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
    eventually("a seat is free", || {
        let answer = ask(&socket, &json!({"do": "status"}));
        answer.is_ok_and(|answer| answer["ok"]["healthy"] == true)
    });
    end(client);
}

#[test]
fn no_call_may_touch_the_runtime_directory() {
    let place = Place::new();
    let (client, socket) = started(&place);
    end(client);
    let root = place.dir.to_str().unwrap().to_owned();
    let mut client = place.guard(&["files", "--root", &root]);
    client.handshake(LATEST).unwrap();
    let target = socket.parent().unwrap().join("x.sock");
    let reply = client
        .call_tool("read_file", json!({"path": target}))
        .unwrap();
    let refusal = reply.refusal().expect("a refusal");
    assert_eq!(refusal["reason"], "protected_path", "{refusal}");
    end(client);
}
