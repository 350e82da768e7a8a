//! What a client can send that is wrong: each fault is answered, written down, and the next call works.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::support::guarded::{
    LATEST, Place, binary, call_works, echo, end, eventually, line, pause,
};
use crate::support::refusals::is_passed;
use mcp::client::Era;
use serde_json::{Value, json};

/// Sends one frame that must be answered with an error and change nothing else.
#[track_caller]
fn refused_frame(frame: &[u8], id: Value, code: i64, reason: &str) {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    client.process().send_line(frame).unwrap();
    let answer = line(&mut client);
    assert_eq!(answer["id"], id, "{answer}");
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], reason, "{answer}");
    call_works(&mut client, "after");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    assert_eq!(place.counted().len(), 1, "only the good call arrives");
    let journal = place.journal();
    journal.assert_event(reason);
    assert_eq!(journal.decisions().len(), 1, "{journal:#?}");
    assert_eq!(journal.operations().len(), 1, "{journal:#?}");
}

fn call(id: &str, arguments: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    )
    .into_bytes()
}

#[test]
fn frame_truncated() {
    let whole = call("77", r#"{"text":"x"}"#);
    refused_frame(
        &whole[..whole.len() - 3],
        json!(77),
        -32700,
        "frame_not_json",
    );
}

#[test]
fn frame_truncated_by_the_end_of_the_stream() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "before");
    let whole = call("77", r#"{"text":"x"}"#);
    client
        .process()
        .send_raw(&whole[..whole.len() - 3])
        .unwrap();
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        ended.rest[0]["error"]["data"]["reason"], "frame_not_json",
        "{ended:?}"
    );
    assert_eq!(place.counted().len(), 1);
    let journal = place.journal();
    journal.assert_event("frame_not_json");
    assert_eq!(journal.decisions().len(), 1);
}

#[test]
fn frame_over_16_mib() {
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(16 << 20));
    refused_frame(&call("77", &long), json!(77), -32600, "frame_too_long");
}

#[test]
fn duplicate_key_at_top_level() {
    let frame = br#"{"jsonrpc":"2.0","id":77,"method":"ping","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#;
    refused_frame(frame, json!(77), -32600, "frame_duplicate_key");
}

#[test]
fn duplicate_key_deep() {
    let frame = call(
        "77",
        r#"{"text":"x","list":[{"a":{"path":"/a","path":"/b"}}]}"#,
    );
    refused_frame(&frame, json!(77), -32600, "frame_duplicate_key");
}

#[test]
fn duplicate_key_in_another_spelling() {
    let frame = call("77", r#"{"text":"x","t\u0065xt":"y"}"#);
    refused_frame(&frame, json!(77), -32600, "frame_duplicate_key");
}

#[test]
fn frame_ten_thousand_deep() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    refused_frame(&call("77", &deep), json!(77), -32600, "frame_too_deep");
}

#[test]
fn frame_not_utf8() {
    let frame = [
        &br#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"echo","arguments":{"text":""#[..],
        b"\xff\xfe",
        br#""}}}"#,
    ]
    .concat();
    refused_frame(&frame, json!(77), -32700, "frame_not_utf8");
}

#[test]
fn frame_with_a_lone_surrogate() {
    let frame = call("77", r#"{"text":"\ud800"}"#);
    refused_frame(&frame, json!(77), -32700, "frame_not_json");
}

#[test]
fn frame_of_another_protocol() {
    let frame =
        br#"{"id":77,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#;
    refused_frame(frame, json!(77), -32600, "frame_not_jsonrpc");
}

#[test]
fn id_null() {
    let frame = call("null", r#"{"text":"x"}"#);
    refused_frame(&frame, Value::Null, -32600, "frame_not_jsonrpc");
}

#[test]
fn id_of_wrong_type() {
    for id in ["{}", "[1]", "true", r#"{"id":1}"#] {
        let frame = call(id, r#"{"text":"x"}"#);
        refused_frame(&frame, Value::Null, -32600, "frame_not_jsonrpc");
    }
}

#[test]
fn id_reused_while_in_flight() {
    for again in ["7", "7.0", "70e-1"] {
        let place = Place::new();
        let mut client = place.guard(&["hostile", "--behaviour", "reorder"]);
        client.handshake(LATEST).unwrap();
        // Its answer is kept back until the next call arrives.
        client
            .send_request_as("7", "tools/call", echo("first"))
            .unwrap();
        client
            .send_request_as(again, "tools/call", echo("second"))
            .unwrap();
        let refused = line(&mut client);
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        client
            .send_request_as("8", "tools/call", echo("third"))
            .unwrap();
        let texts: Vec<(Value, Value)> = (0..2)
            .map(|_| line(&mut client))
            .map(|a| (a["id"].clone(), a["result"]["content"][0]["text"].clone()))
            .collect();
        assert_eq!(
            texts,
            [(json!(8), json!("third")), (json!(7), json!("first"))]
        );
        assert_eq!(end(client).code, Some(0));
        assert_eq!(place.counted().len(), 2, "the second never arrives");
        let journal = place.journal();
        journal.assert_event("client_id_in_use");
        journal.assert_ended("7", "Success", None);
        journal.assert_ended("8", "Success", None);
        assert_eq!(journal.decisions().len(), 2);
    }
}

#[test]
fn id_reused_after_its_end_is_a_new_call() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    for text in ["first", "second"] {
        client
            .send_request_as("\"same\"", "tools/call", echo(text))
            .unwrap();
        let reply = client.response("\"same\"").unwrap();
        assert_eq!(reply.text(), Some(text));
    }
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), 2);
    assert_eq!(journal.operations().len(), 2);
    assert_ne!(journal.decisions()[0]["op"], journal.decisions()[1]["op"]);
}

const BATCH: &str = r#"[{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"echo","arguments":{"text":"one"}}},{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"silent"}}},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"sized","arguments":{"bytes":3}}},{"jsonrpc":"2.0","id":73,"method":"ping"}]"#;

#[test]
fn batch_where_not_allowed() {
    for era in [
        Era::Legacy("2025-06-18"),
        Era::Legacy("2025-11-25"),
        Era::Modern,
    ] {
        let place = Place::new();
        let mut client = place.guard(&["echo"]);
        client.handshake(era).unwrap();
        client.process().send_line(BATCH.as_bytes()).unwrap();
        let answer = line(&mut client);
        assert_eq!(answer["error"]["data"]["reason"], "batch_not_allowed");
        assert_eq!(answer["id"], Value::Null);
        call_works(&mut client, "after");
        let ended = end(client);
        assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
        assert_eq!(place.counted().len(), 1, "{era:?}");
        let journal = place.journal();
        journal.assert_event("batch_not_allowed");
        assert_eq!(journal.decisions().len(), 1);
    }
}

#[test]
fn batch_before_any_revision_is_settled() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let modern = format!(
        r#"[{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"x"}},{meta}}}}}]"#
    );
    for batch in [BATCH, &modern] {
        let place = Place::new();
        let mut client = place.guard(&["echo"]);
        client.process().send_line(batch.as_bytes()).unwrap();
        let answer = line(&mut client);
        assert_eq!(
            answer["error"]["data"]["reason"], "batch_not_allowed",
            "{answer}"
        );
        assert_eq!(end(client).code, Some(0));
        assert_eq!(place.counted().len(), 0);
        assert_eq!(place.journal().decisions().len(), 0);
    }
}

#[test]
fn batch_where_allowed_is_answered_as_an_array_and_each_is_judged() {
    for era in [Era::Legacy("2024-11-05"), Era::Legacy("2025-03-26")] {
        let place = Place::new();
        place.write_policy(
            r#"{"version":"1","default_action":"deny","rules":[
                {"id":"echo-only","effect":"allow","conditions":{"tool_name":"echo"}}]}"#,
        );
        let mut client = place.guard(&["echo"]);
        client.handshake(era).unwrap();
        client.process().send_line(BATCH.as_bytes()).unwrap();
        let answer = line(&mut client);
        let parts = answer.as_array().expect("an array");
        let part = |id: Value| parts.iter().find(|part| part["id"] == id).unwrap();
        assert_eq!(parts.len(), 3, "{answer}");
        assert_eq!(part(json!(71))["result"]["content"][0]["text"], "one");
        assert_eq!(part(json!("b"))["result"]["isError"], true);
        assert!(is_passed(part(json!(73))));
        call_works(&mut client, "after");
        assert_eq!(end(client).code, Some(0));
        let counted = place.counted();
        assert_eq!(counted.len(), 2, "{counted:?}");
        assert_eq!(counted[0]["arguments"]["text"], "one");
        let journal = place.journal();
        journal.assert_ended("71", "Success", None);
        assert_eq!(journal.decision("\"b\"")["decision"], "deny");
        assert_eq!(journal.decision("\"b\"")["reason"], "no_rule_allows");
        journal.assert_event("client_notification_dropped");
        assert_eq!(journal.decisions().len(), 3);
    }
}

#[test]
fn batch_with_elements_that_are_no_messages() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(Era::Legacy("2025-03-26")).unwrap();
    let batch = r#"[1,{"jsonrpc":"2.0","id":71,"method":"ping"},{"id":72},{"jsonrpc":"2.0","id":73,"method":"initialize","params":{}}]"#;
    client.process().send_line(batch.as_bytes()).unwrap();
    let answer = line(&mut client);
    let parts = answer.as_array().expect("an array");
    let errors: Vec<_> = parts.iter().filter(|p| p["error"].is_object()).collect();
    assert_eq!((parts.len(), errors.len()), (4, 3), "{answer}");
    let handshake = parts.iter().find(|part| part["id"] == 73).unwrap();
    let reason = &handshake["error"]["data"]["reason"];
    assert_eq!(reason, "batch_not_allowed", "{answer}");
    client.process().send_line(b"[]").unwrap();
    assert_eq!(line(&mut client)["error"]["code"], -32600);
    call_works(&mut client, "after");
    assert_eq!(end(client).code, Some(0));
    place.journal().assert_event("frame_not_jsonrpc");
}

#[test]
fn call_without_an_id_never_reaches_the_server() {
    for era in [LATEST, Era::Modern] {
        let place = Place::new();
        let mut client = place.guard(&["echo"]);
        client.handshake(era).unwrap();
        client.notify("tools/call", &echo("silent")).unwrap();
        client
            .notify("resources/read", &json!({"uri": "mock://echo/motd"}))
            .unwrap();
        call_works(&mut client, "after");
        let ended = end(client);
        assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
        assert_eq!(place.counted().len(), 1);
        let journal = place.journal();
        journal.assert_event("client_notification_dropped");
        assert_eq!(journal.decisions().len(), 1);
    }
}

#[test]
fn call_without_a_tool_name_or_with_arguments_that_are_no_object() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    for params in [
        json!({"arguments": {"text": "x"}}),
        json!({"name": 3}),
        json!([1]),
        // No rule reads these, and a lenient server might.
        json!({"name": "echo", "arguments": "/etc/shadow"}),
        json!({"name": "echo", "arguments": ["/etc/shadow"]}),
    ] {
        let reply = client.request("tools/call", params).unwrap();
        assert_eq!(reply.error_code(), Some(-32602), "{}", reply.line());
    }
    call_works(&mut client, "after");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 1);
    place.journal().assert_event("client_params_unusable");
}

#[test]
fn answer_to_nothing() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    client.respond("99", &json!({})).unwrap();
    call_works(&mut client, "after");
    assert_eq!(end(client).code, Some(0));
    place.journal().assert_event("client_answer_unknown");
}

#[test]
fn client_closes_its_input_in_the_middle_of_a_call() {
    let place = Place::new();
    let mut client = place.guard(&["hostile", "--behaviour", "slow", "--delay-ms", "300"]);
    client.handshake(LATEST).unwrap();
    let id = client.send_request("tools/call", echo("late")).unwrap();
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.rest.len(), 1, "the answer still comes: {ended:?}");
    assert_eq!(ended.rest[0]["result"]["content"][0]["text"], "late");
    place.journal().assert_ended(&id, "Success", None);
}

#[test]
fn client_closes_its_output_in_the_middle_of_calls() {
    let place = Place::new();
    let mock = place.mock(&["hostile", "--behaviour", "never"]);
    let words: Vec<&str> = mock.iter().map(String::as_str).collect();
    let mut child = Command::new(binary())
        .args(place.run_args(&[], &words))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut send = |text: String| input.write_all(text.as_bytes());
    send(
        json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
        "capabilities":{},"clientInfo":{"name":"t","version":"1"}}})
        .to_string()
            + "\n",
    )
    .unwrap();
    let mut reply = String::new();
    output.read_line(&mut reply).unwrap();
    assert!(reply.contains("\"result\""), "{reply}");
    drop(output);
    // The first is never answered; the answer to a later one finds nobody. Not surely that to the
    // second: a process that another test starts at this moment holds the pipe until it has started.
    let mut sent = 0;
    let mut status = None;
    eventually("the end of the output is noticed", || {
        sent += 1;
        let text = String::from_utf8(call(&sent.to_string(), r#"{"text":"x"}"#)).unwrap();
        let _ = send(text + "\n");
        pause(10);
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
    assert!(place.counted().len() >= 2);
    let journal = place.journal();
    journal.assert_ended("1", "Cancelled", None);
    journal.assert_ended("2", "Success", None);
    journal.assert_event("session_ended");
}
