//! Bounds of one guarded session, each crossed by one: what is over is refused by name, what is within goes on.

use std::time::Duration;

use crate::support::guarded::{LATEST, Place, call_works, echo, end, eventually, line};
use mcp::client::{Era, Message};
use rustix::process::Signal;
use serde_json::{Value, json};

const BATCH_MAX: usize = 256;
const IN_FLIGHT_MAX: usize = 1_024;
const SERVER_REQUESTS_MAX: usize = 256;
const MEMBERS_MAX: usize = 65_536;

#[test]
fn batch_of_one_message_too_many() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(Era::Legacy("2025-03-26")).unwrap();
    let batch = |size: usize| {
        let pings: Vec<String> = (0..size)
            .map(|at| format!(r#"{{"jsonrpc":"2.0","id":"p{at}","method":"ping"}}"#))
            .collect();
        format!("[{}]", pings.join(","))
    };
    client
        .process()
        .send_line(batch(BATCH_MAX + 1).as_bytes())
        .unwrap();
    let refused = line(&mut client);
    assert_eq!(refused["id"], Value::Null, "{refused}");
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    client
        .process()
        .send_line(batch(BATCH_MAX).as_bytes())
        .unwrap();
    assert_eq!(line(&mut client).as_array().unwrap().len(), BATCH_MAX);
    call_works(&mut client, "after");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn one_call_too_many_under_way() {
    let place = Place::new();
    let arrived = place.path("arrived");
    // It lists its tool, writes down the calls and answers none.
    let script = format!(
        r#"read list; echo '{{"jsonrpc":"2.0","id":"durward-list-0","result":{{"tools":[{{"name":"echo","inputSchema":{{}}}}]}}}}'; cat >{}; :"#,
        arrived.display()
    );
    // A call waits for the list: what comes before it is there is decided on later.
    let calls_arrive = |count: usize| {
        eventually("the calls are with the server", || {
            let told = std::fs::read_to_string(&arrived).unwrap_or_default();
            told.matches("tools/call").count() == count
        });
    };
    let mut client = place.guard_command(&[], &["sh", "-c", &script]);
    for at in 0..=IN_FLIGHT_MAX {
        client
            .send_request_as(&at.to_string(), "tools/call", echo("x"))
            .unwrap();
    }
    let refused = line(&mut client);
    assert_eq!(refused["id"], json!(IN_FLIGHT_MAX), "{refused}");
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    calls_arrive(IN_FLIGHT_MAX);
    // One that ends makes room for one.
    client
        .notify("notifications/cancelled", &json!({"requestId": 7}))
        .unwrap();
    client
        .send_request_as("\"fits\"", "tools/call", echo("x"))
        .unwrap();
    client
        .send_request_as("\"over\"", "tools/call", echo("x"))
        .unwrap();
    let refused = line(&mut client);
    assert_eq!(refused["id"], "over", "{refused}");
    calls_arrive(IN_FLIGHT_MAX + 1);
    // Twice: the first asks for the end, the second does not wait for calls under way.
    eventually("the calls under way are given up", || {
        let _ = client.process().signal(Signal::TERM);
        client
            .process()
            .wait_within(Duration::from_millis(50))
            .unwrap()
            .is_some()
    });
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), IN_FLIGHT_MAX + 1);
    assert_eq!(journal.operations().len(), IN_FLIGHT_MAX + 1);
}

#[test]
fn one_request_of_the_server_too_many() {
    let place = Place::new();
    let answers = place.path("answers");
    let script = format!(
        r#"read first; i=0; while [ $i -le {SERVER_REQUESTS_MAX} ]; do
        echo "{{\"jsonrpc\":\"2.0\",\"id\":$i,\"method\":\"ping\"}}"; i=$((i+1)); done; cat >{}; :"#,
        answers.display()
    );
    let mut client = place.guard_command(&[], &["sh", "-c", &script]);
    client.send_request("ping", json!({})).unwrap();
    for at in 0..SERVER_REQUESTS_MAX {
        let Message::Request { id, .. } = client.next_message().unwrap() else {
            panic!("a ping of the server was expected");
        };
        assert_eq!(id, at.to_string());
    }
    eventually("the server is told that it was one too many", || {
        let told = std::fs::read_to_string(&answers).unwrap_or_default();
        told.lines().any(|line| {
            let told: Value = serde_json::from_str(line).unwrap_or_default();
            told["id"] == json!(SERVER_REQUESTS_MAX) && told["error"]["code"] == -32600
        })
    });
}

#[test]
fn one_member_too_many_in_a_frame() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    let members: Vec<String> = (0..=MEMBERS_MAX).map(|at| format!("\"m{at}\":0")).collect();
    let frame = format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"echo","arguments":{{{}}}}}}}"#,
        members.join(",")
    );
    client.process().send_line(frame.as_bytes()).unwrap();
    let refused = line(&mut client);
    assert_eq!(refused["id"], 77, "{refused}");
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    call_works(&mut client, "after");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 1, "only the good call arrives");
}
