//! How many sessions there may be, how long messages, and what a record tells of a caller.

use std::io::{BufReader, Write as _};

use serde_json::Value;

use super::Need;
use crate::support::guarded::Place;
use crate::support::refusals::is_passed;
use crate::support::serving::{Answer, Served, call, read_answer, write_request};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// Clients that never say goodbye: each session has a server of its own, of which there are 32 at most.
pub(super) fn w3_sessions_that_were_left_behind_make_room_for_new_ones() -> Need {
    let served = Served::start(&[]);
    let mut first = None;
    for number in 1..=33 {
        let answer = served.send("POST", "/mcp/echo", &[], INITIALIZE);
        if answer.status != 200 || answer.json()["result"].is_null() {
            return Err(format!("session {number} is refused: {answer:?}"));
        }
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let answer = served.post(Some(&session), &call("7", "x"));
        if answer.status != 200 || answer.json()["result"].is_null() {
            return Err(format!("session {number} cannot call: {answer:?}"));
        }
        first.get_or_insert(session);
    }
    // The one that was idle for the longest time had to give way; it is there again when it calls.
    let answer = served.post(first.as_deref(), &call("8", "y"));
    if answer.json()["result"].is_null() {
        return Err(format!("the first session cannot call again: {answer:?}"));
    }
    Ok(())
}

/// The number of processes is a key.
#[test]
fn w3_as_many_servers_run_as_are_configured() {
    let place = Place::new();
    let mock = place.mock(&["echo"]);
    let server = serde_json::json!({
        "command": mock[0], "args": mock[1..], "processes_max": 2,
    });
    let text = serde_json::json!({ "servers": { "echo": server }, "policy": "policy.json" });
    std::fs::write(place.path("durward.yaml"), text.to_string()).unwrap();
    let served = Served::start_configured(place);
    for number in 1..=4 {
        let session = served.open("2025-11-25");
        let answer = served.post(Some(&session), &call("7", "x"));
        assert!(is_passed(&answer.json()), "{number}: {answer:?}");
    }
    let metrics = served.send("GET", "/metrics", &[], "").body;
    assert!(metrics.contains("durward_servers 2\n"), "{metrics}");
}

/// A server may send its text twice, as FastMCP does: 16 MiB are not for ever enough.
pub(super) fn w4_a_reply_beyond_sixteen_mib_passes_where_the_limit_is_raised() -> Need {
    const BYTES: usize = 17 << 20;
    let place = Place::new();
    let mut client = place.guard_with(
        &[
            "--limit-requests",
            "1000000/s",
            "--limit-response-bytes",
            "64MiB",
        ],
        &["echo"],
    );
    if let Err(error) = client.handshake(crate::support::guarded::LATEST) {
        return Err(format!(
            "it did not start: {error} {}",
            client.process().stderr()
        ));
    }
    let reply = client
        .call_tool("sized", serde_json::json!({ "bytes": BYTES }))
        .map_err(|error| format!("no answer: {error}"))?;
    match reply.text().map(str::len) {
        Some(BYTES) => Ok(()),
        _ => Err(format!("another answer: {:?}", reply.error())),
    }
}

/// A client that is still writing must be able to read why it is refused.
pub(super) fn w4_a_body_that_is_too_long_is_read_before_the_connection_is_closed() -> Need {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    let long = call("7", &"x".repeat(17 << 20));
    let mut stream = served.connect();
    let mut head = Vec::new();
    write!(
        head,
        "POST /mcp/echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
        long.len()
    )
    .unwrap();
    let written = stream
        .write_all(&head)
        .and_then(|()| stream.write_all(long.as_bytes()));
    if let Err(error) = written {
        return Err(format!(
            "the body is cut off under the client's hands: {error}"
        ));
    }
    let answer = read_answer(&mut BufReader::new(stream));
    match answer.status {
        413 => Ok(()),
        _ => Err(format!("another answer: {answer:?}")),
    }
}

/// H5: who a caller is takes time, and a record of its call says how much.
pub(super) fn h5_the_time_that_a_key_takes_is_recorded() -> Need {
    let place = Place::new();
    let args = [
        "--no-config",
        "--state-dir",
        "state",
        "keys",
        "create",
        "one",
    ];
    let created = place.durward(&args);
    let key = format!(
        "Bearer {}",
        String::from_utf8(created.stdout).unwrap().trim()
    );
    let served = Served::start_in(place, &[]);
    let own = ("authorization", key.as_str());
    let send = |headers: &[(&str, &str)], body: &str| -> Answer {
        let mut stream = served.connect();
        write_request(&mut stream, "POST", "/mcp/echo", headers, body);
        read_answer(&mut BufReader::new(stream))
    };
    let opened = send(&[own], INITIALIZE);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let answer = send(&[own, ("mcp-session-id", &session)], &call("7", "x"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let (_, place) = served.stop();
    let journal = place.journal();
    let operation: &Value = journal.operation("7");
    match operation["identity_us"].as_f64() {
        Some(time_us) if time_us > 0.0 => Ok(()),
        _ => Err(format!("identity_us is {}", operation["identity_us"])),
    }
}
