//! J16: without keys `durward serve` answers the processes of its own user, and nobody else's.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::guarded::{PATIENCE, Place, eventually};
use crate::support::serving::{Served, call};

/// A user who has nothing to do with us.
const OTHER: u32 = 4_321;
/// Speaks HTTP for whoever runs it: address, port and request are its arguments, the answer is what it prints.
const CLIENT: &str = r#"exec 3<>"/dev/tcp/$0/$1"; printf %s "$2" >&3; cat <&3"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

fn request(authorization: &str) -> String {
    format!(
        "POST /mcp/echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{authorization}connection: close\r\ncontent-length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    )
}

/// What another user of this machine is answered.
fn as_other(host: &str, port: u16, text: &str) -> String {
    let user = OTHER.to_string();
    let output = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .args(["bash", "-c", CLIENT, host, &port.to_string(), text])
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether this process may run another as somebody else; else the test says that it is left out.
fn may_be_another() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("left out: only the superuser can run a client as another user");
    }
    is_root
}

#[test]
fn j16_without_keys_another_user_is_refused() {
    if !may_be_another() {
        return;
    }
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let served = Served::start_in(Place::new(), &["--listen", address]);
        let (host, port) = (served.address.ip().to_string(), served.address.port());
        let answer = as_other(&host, port, &request(""));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("processes of its own user"), "{answer}");
        // Nor does a key help, where there are none.
        let shown = request("authorization: Bearer dw_made_up\r\n");
        let answer = as_other(&host, port, &shown);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        // Our own are answered meanwhile.
        let session = served.open("2025-11-25");
        let own = served.post(Some(&session), &call("1", "mine"));
        assert_eq!(own.json()["result"]["content"][0]["text"], "mine");
        let (code, place) = served.stop();
        assert_eq!(code, Some(0));
        let journal = place.journal();
        let refused = |record: &&Value| record["event"] == "user_refused";
        let told: Vec<&Value> = journal.0.iter().filter(refused).collect();
        assert!(!told.is_empty(), "{journal:#?}");
        let count = told.iter().filter_map(|r| r["coalesced"].as_u64());
        assert_eq!(count.sum::<u64>(), 2);
        for record in told {
            assert_eq!(record["subject_id"], format!("uid:{OTHER}"), "{record}");
            assert_eq!(record["reason"], "other_user", "{record}");
        }
        assert_eq!(place.counted().len(), 1);
    }
}

#[test]
fn j16_another_user_with_a_key_is_answered() {
    if !may_be_another() {
        return;
    }
    let place = Place::new();
    let made = place.durward(&[
        "--no-config",
        "--state-dir",
        "state",
        "keys",
        "create",
        "other",
    ]);
    let key = String::from_utf8(made.stdout).unwrap();
    let served = Served::start_in(place, &[]);
    let port = served.address.port();
    let shown = request(&format!("authorization: Bearer {}\r\n", key.trim()));
    let answer = as_other("127.0.0.1", port, &shown);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = as_other("127.0.0.1", port, &request(""));
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[test]
fn j16_a_connection_keeps_its_user() {
    let served = Served::start_in(Place::new(), &[]);
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let kept = request("").replace("connection: close\r\n", "");
    for _ in 0..3 {
        stream.write_all(kept.as_bytes()).unwrap();
        let mut answer = String::new();
        eventually("it is answered", || {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).unwrap();
            answer.push_str(&String::from_utf8_lossy(&part[..read]));
            answer.contains("protocolVersion")
        });
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}
