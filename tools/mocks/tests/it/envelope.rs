//! What both eras share: ids, frames that are no requests, and how a process ends.

use crate::common::{mock, ready};
use mcp::client::{ClientError, Era, Message};
use serde_json::json;
use std::time::Duration;

/// Every spelling of an id that JSON-RPC admits, and some only JSON does.
const IDS: [&str; 14] = [
    "0",
    "1",
    "-7",
    "1.0",
    "1e3",
    "0.5",
    "9007199254740993",
    "123456789012345678901234567890",
    r#""""#,
    r#""a""#,
    r#""1""#,
    r#""\u0041\n\"""#,
    r#""naïve 😀""#,
    r#""\ud83d""#,
];

#[test]
fn ids_come_back_as_they_were_spelled() {
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let mut client = ready(&["echo"], era);
        for id in IDS {
            client
                .send_request_as(
                    id,
                    "tools/call",
                    json!({"name": "echo", "arguments": {"text": id}}),
                )
                .unwrap();
            assert_eq!(client.response(id).unwrap().text(), Some(id));
            client.send_request_as(id, "no/such", json!({})).unwrap();
            assert_eq!(client.response(id).unwrap().error_code(), Some(-32601));
        }
    }
}

#[test]
fn frames_that_are_no_requests_are_answered_with_a_null_id() {
    let mut client = ready(&["echo"], Era::Legacy("2025-11-25"));
    let cases: [(&[u8], i64); 12] = [
        (b"{", -32700),
        (b"no json", -32700),
        (b"1", -32700),
        (b"\xff\xfe", -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
            -32700,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
            -32600,
        ),
        (b"[]", -32600),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
        ),
        (b"{\"jsonrpc\":\"2.0\",\"method\":7,\"id\":1}", -32700),
    ];
    for (frame, code) in cases {
        client.process().send_line(frame).unwrap();
        let reply = client.response("null").unwrap();
        assert_eq!(
            reply.error_code(),
            Some(code),
            "{}",
            String::from_utf8_lossy(frame)
        );
    }
    client
        .process()
        .send_line(br#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#)
        .unwrap();
    assert_eq!(client.response("5").unwrap().error_code(), Some(-32600));
    client
        .process()
        .send_line(br#"{"jsonrpc":"2.0","id":6,"method":"ping","params":[1]}"#)
        .unwrap();
    assert_eq!(client.response("6").unwrap().error_code(), Some(-32602));
}

#[test]
fn notifications_responses_and_blank_lines_are_not_answered() {
    let mut client = ready(&["echo"], Era::Legacy("2025-06-18"));
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/whatever","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
        "",
        "  \t\r",
    ] {
        client.process().send_line(line.as_bytes()).unwrap();
    }
    client.request("ping", json!({})).unwrap().result().unwrap();
}

#[test]
fn a_carriage_return_before_the_newline_is_tolerated() {
    let mut client = ready(&["echo"], Era::Legacy("2025-06-18"));
    client
        .process()
        .send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\r\n")
        .unwrap();
    client.response("4").unwrap().result().unwrap();
}

#[test]
fn a_frame_beyond_the_bound_is_refused_and_the_next_is_served() {
    let mut client = ready(&["echo"], Era::Legacy("2025-11-25"));
    let long = vec![b' '; mocks::FRAME_BYTES_MAX + 1];
    client.process().send_line(&long).unwrap();
    assert_eq!(client.response("null").unwrap().error_code(), Some(-32600));
    assert_eq!(
        client
            .call_tool("echo", json!({"text": "still here"}))
            .unwrap()
            .text(),
        Some("still here")
    );
}

#[test]
fn many_requests_in_one_write_are_all_answered() {
    let mut client = ready(&["echo"], Era::Legacy("2025-11-25"));
    let frames: String = (0..2000)
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"))
        .collect();
    client.process().send_raw(frames.as_bytes()).unwrap();
    for id in 0..2000 {
        client.response(&id.to_string()).unwrap();
    }
}

#[test]
fn the_end_of_input_ends_every_server_with_code_0() {
    for args in [
        vec!["echo"],
        vec!["files"],
        vec!["hostile", "--behaviour", "twice"],
        vec!["relay", "--", "cat"],
    ] {
        let mut client = mock(&args);
        client.process().close_input();
        let status = client
            .process()
            .wait_within(Duration::from_secs(20))
            .unwrap()
            .expect("it ends");
        assert_eq!(status.code(), Some(0), "{args:?}");
        assert!(matches!(
            client.next_message(),
            Err(ClientError::Closed { .. })
        ));
    }
}

#[test]
fn a_pending_delay_does_not_hold_the_end_of_input() {
    let mut client = ready(&["echo"], Era::Legacy("2025-11-25"));
    client
        .send_request(
            "tools/call",
            json!({"name": "delayed", "arguments": {"text": "", "delay_us": 600_000_000}}),
        )
        .unwrap();
    client.process().close_input();
    assert!(
        client
            .process()
            .wait_within(Duration::from_secs(20))
            .unwrap()
            .is_some()
    );
}

#[test]
fn the_client_tells_messages_apart() {
    let mut client = mock(&["relay", "--", "cat"]);
    client.notify("notifications/x", &json!({"a": 1})).unwrap();
    client.send_request_as(r#""q""#, "ask", json!({})).unwrap();
    assert_eq!(
        client.next_message().unwrap(),
        Message::Notification {
            method: "notifications/x".into(),
            params: json!({"a": 1})
        }
    );
    assert_eq!(
        client.next_message().unwrap(),
        Message::Request {
            id: r#""q""#.into(),
            method: "ask".into(),
            params: json!({})
        }
    );
    client.respond("3", &json!({"ok": true})).unwrap();
    assert_eq!(
        client.response("3").unwrap().result().unwrap(),
        &json!({"ok": true})
    );
}
