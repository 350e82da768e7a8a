//! What a server can do wrong: the client gets one answer, the journal one outcome, and the session goes
//! on where it can.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::guarded::{
    Ended, Journal, LATEST, PATIENCE, Place, binary, call_works, echo, end, eventually, line,
    most_resident_kib, pause, wait_for_end,
};
use crate::support::refusals::REFUSED_CODE;
use mcp::client::{Client, Era, Message, Options};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A guarded hostile server, ready.
fn hostile(place: &Place, flags: &[&str], behaviour: &str, more: &[&str]) -> Client {
    let words = [&["hostile", "--behaviour", behaviour], more].concat();
    let mut client = place.guard_with(flags, &words);
    client.handshake(LATEST).unwrap();
    client
}

/// The faulty call is the first; it must be answered with this error, and the next one works.
#[track_caller]
fn faulty_call(flags: &[&str], behaviour: &str, more: &[&str], reason: &str) -> Journal {
    let place = Place::new();
    let mut client = hostile(&place, flags, behaviour, more);
    let id = client.send_request("tools/call", echo("faulty")).unwrap();
    let answer = line(&mut client);
    assert_eq!(answer["id"].to_string(), id);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], reason, "{answer}");
    call_works(&mut client, "after");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    assert_eq!(place.counted().len(), 2);
    let journal = place.journal();
    journal.assert_ended(&id, "Failure", Some(reason));
    assert_eq!(journal.operation(&id)["error_code"], -32603);
    assert_eq!(journal.decisions().len(), 2);
    journal
}

/// The faulty call is answered all the same.
#[track_caller]
fn borne(flags: &[&str], behaviour: &str, more: &[&str]) -> Journal {
    let place = Place::new();
    let mut client = hostile(&place, flags, behaviour, more);
    call_works(&mut client, "faulty");
    call_works(&mut client, "after");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), 2);
    for operation in journal.operations() {
        assert_eq!(operation["status"], "Success");
    }
    journal
}

#[test]
fn server_answers_twice() {
    borne(&[], "twice", &[]).assert_event("server_answered_again");
}

#[test]
fn server_never_answers() {
    faulty_call(&["--call-timeout", "1"], "never", &[], "upstream_timeout");
}

#[test]
fn server_answers_after_the_timeout() {
    let place = Place::new();
    let flags = ["--call-timeout", "1"];
    let mut client = hostile(&place, &flags, "slow", &["--delay-ms", "3000"]);
    let id = client.send_request("tools/call", echo("late")).unwrap();
    let reason = line(&mut client)["error"]["data"]["reason"].clone();
    assert_eq!(reason, "upstream_timeout");
    call_works(&mut client, "after");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    let journal = place.journal();
    journal.assert_ended(&id, "Failure", Some("upstream_timeout"));
}

#[test]
fn server_answers_out_of_order() {
    let place = Place::new();
    let mut client = hostile(&place, &[], "reorder", &[]);
    let first = client.send_request("tools/call", echo("one")).unwrap();
    let second = client.send_request("tools/call", echo("two")).unwrap();
    assert_eq!(client.response(&second).unwrap().text(), Some("two"));
    assert_eq!(client.response(&first).unwrap().text(), Some("one"));
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    journal.assert_ended(&first, "Success", None);
    journal.assert_ended(&second, "Success", None);
}

#[test]
fn server_sends_garbage_then_the_answer() {
    borne(&[], "garbage", &[]).assert_event("server_garbage");
}

#[test]
fn server_sends_garbage_only() {
    let flags = ["--call-timeout", "1"];
    faulty_call(&flags, "garbage-only", &[], "upstream_timeout").assert_event("server_garbage");
}

#[test]
fn server_answers_under_a_wrong_id() {
    let flags = ["--call-timeout", "1"];
    faulty_call(&flags, "wrong-id", &[], "upstream_timeout").assert_event("server_answer_unknown");
}

#[test]
fn server_answers_without_an_id() {
    let flags = ["--call-timeout", "1"];
    faulty_call(&flags, "no-id", &[], "upstream_timeout").assert_event("server_garbage");
}

#[test]
fn server_answers_with_more_than_16_mib() {
    faulty_call(&[], "oversized", &[], "upstream_oversize").assert_event("server_frame_too_long");
}

#[test]
fn server_answers_10_000_deep() {
    faulty_call(&[], "deep", &[], "upstream_garbage").assert_event("server_garbage");
}

#[test]
fn server_answers_in_another_encoding() {
    faulty_call(&[], "not-utf8", &[], "upstream_garbage").assert_event("server_garbage");
}

#[test]
fn server_answers_with_duplicate_keys_in_the_envelope() {
    let place = ["--place", "envelope"];
    faulty_call(&[], "duplicate-keys", &place, "upstream_garbage").assert_event("server_garbage");
}

#[test]
fn server_answers_with_duplicate_keys_inside_the_result() {
    // The result is the server's own business: it passes as it came.
    borne(&[], "duplicate-keys", &["--place", "deep"]);
}

#[test]
fn server_answers_with_a_batch_where_there_is_none() {
    faulty_call(&[], "batch", &[], "upstream_garbage").assert_event("server_garbage");
}

#[test]
fn server_answers_with_a_batch_where_there_is_one() {
    let place = Place::new();
    let mut client = place.guard(&["hostile", "--behaviour", "batch"]);
    client.handshake(Era::Legacy("2025-03-26")).unwrap();
    call_works(&mut client, "in a batch");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.journal().operations()[0]["status"], "Success");
}

/// A server that ends in the middle of a call: exit code 1, and the call is answered.
#[track_caller]
fn dies(behaviour: &str) {
    let place = Place::new();
    let mut client = hostile(&place, &[], behaviour, &["--at", "2"]);
    call_works(&mut client, "before");
    let id = client.send_request("tools/call", echo("faulty")).unwrap();
    let Ended { code, stderr, rest } = wait_for_end(client);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("ended: exit code 3"), "{stderr}");
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["id"].to_string(), id);
    assert_eq!(rest[0]["error"]["data"]["reason"], "upstream_died");
    let journal = place.journal();
    journal.assert_ended(&id, "Failure", Some("upstream_died"));
    journal.assert_event("segment_closed");
}

#[test]
fn server_dies_mid_call() {
    dies("die");
}

#[test]
fn server_dies_in_the_middle_of_its_answer() {
    dies("die-half");
}

#[test]
fn server_closes_its_input_and_stays() {
    let place = Place::new();
    let command = ["sh", "-c", "exec <&-; exec sleep 600"];
    let mut client = place.guard_command(&[], &command);
    // The first may still fit into the pipe before it is closed.
    for id in 0..50 {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        if client.process().send_line(request.as_bytes()).is_err() {
            break;
        }
        pause(20);
    }
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let answer = ended.rest.last().unwrap();
    assert_eq!(answer["error"]["data"]["reason"], "upstream_died");
    place.journal().assert_event("session_ended");
}

#[test]
fn server_command_unknown() {
    let place = Place::new();
    let mut client = place.guard_command(&[], &["/no/such/program", "--x"]);
    client
        .send_request("initialize", json!({"protocolVersion": "2025-11-25"}))
        .unwrap();
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(16), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("there is no command \"/no/such/program\""),
        "{}",
        ended.stderr
    );
    assert_eq!(
        ended.rest[0]["error"]["data"]["reason"], "upstream_died",
        "{ended:?}"
    );
    let journal = place.journal();
    journal.assert_event("session_ended");
    assert_eq!(journal.decisions().len(), 0);
}

#[test]
fn server_floods_standard_error() {
    borne(&[], "stderr-flood", &[]);
    borne(&["-v"], "stderr-flood", &["--bytes", "2000000"]);
}

#[test]
fn server_floods_standard_error_and_nobody_reads_it() {
    let place = Place::new();
    let words = ["hostile", "--behaviour", "stderr-flood"];
    let mock = place.mock(&words);
    let mock: Vec<&str> = mock.iter().map(String::as_str).collect();
    let options = Options {
        drain_stderr: false,
        ..place.options()
    };
    let mut client = place.guard_as(&["-v"], &mock, &options);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "faulty");
    call_works(&mut client, "after");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.journal().operations().len(), 2);
}

#[test]
fn server_floods_notifications_to_a_client_that_does_not_read() {
    const NOTIFICATIONS: &str = "300000";
    let place = Place::new();
    let more = ["--notifications", NOTIFICATIONS];
    let mut client = hostile(&place, &[], "notify-flood", &more);
    let pid = client.process().pid();
    let before_kib = most_resident_kib(pid);
    let id = client.send_request("tools/call", echo("after")).unwrap();
    // Time for whoever would hoard; nothing is asserted about it.
    pause(1_500);
    let mut bytes = 0;
    let answer: Value = loop {
        let frame = client.process().read_line().unwrap();
        bytes += frame.len();
        if !frame.windows(14).any(|part| part == b"\"progressToken") {
            break serde_json::from_slice(&frame).unwrap();
        }
    };
    assert_eq!(answer["id"].to_string(), id);
    assert_eq!(answer["result"]["content"][0]["text"], "after");
    let grown_kib = most_resident_kib(pid) - before_kib;
    assert!(bytes > 4 << 20, "a flood: {bytes} bytes");
    assert!(grown_kib < 16 << 10, "{grown_kib} KiB more than before");
    call_works(&mut client, "next");
    assert_eq!(end(client).code, Some(0));
    place.journal().assert_ended(&id, "Success", None);
}

const NEWS: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;

#[test]
fn endless_notifications_do_not_keep_the_client_from_its_server() {
    let place = Place::new();
    let server = r#"yes "$0" & exec cat > came"#;
    let guarded = place.run_args(&[], &["sh", "-c", server, NEWS]);
    // Read as fast as it can be, so that only fairness decides.
    let mut child = Command::new("sh")
        .args(["-c", r#""$0" "$@" | cat > /dev/null"#, binary()])
        .args(guarded)
        .current_dir(&place.dir)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut ping = |number: u32| {
        let ping = json!({"jsonrpc": "2.0", "id": number, "method": "ping"});
        writeln!(input, "{ping}").unwrap();
    };
    ping(1);
    let came = place.path("came");
    let has = |id: &str| std::fs::read_to_string(&came).is_ok_and(|text| text.contains(id));
    eventually("the first ping arrives", || has(r#""id":1,"#));
    ping(2);
    eventually("the second, under flood", || has(r#""id":2,"#));
    drop(input);
    assert!(child.wait().unwrap().success());
    place.journal().assert_event("session_ended");
}

#[test]
fn endless_notifications_end_with_a_signal() {
    let place = Place::new();
    let mut client = place.guard_command(&[], &["yes", NEWS]);
    for _ in 0..10_000 {
        client.process().read_line().unwrap();
    }
    client.process().signal(Signal::TERM).unwrap();
    while client.process().read_line().is_ok() {}
    let status = client.process().wait_within(PATIENCE).unwrap();
    assert_eq!(status.expect("it ends").code(), Some(0));
    place.journal().assert_event("session_ended");
}

#[test]
fn endless_notifications_end_with_a_client_that_never_read() {
    let place = Place::new();
    let mut client = place.guard_command(&[], &["yes", NEWS]);
    pause(300);
    client.process().close_input();
    let status = client.process().wait_within(PATIENCE).unwrap();
    assert_eq!(status.expect("it ends").code(), Some(0));
    place.journal().assert_event("session_ended");
}

#[test]
fn server_ignores_sigterm_and_the_end_of_input() {
    let place = Place::new();
    let mut client = hostile(&place, &[], "ignore-term", &[]);
    call_works(&mut client, "before");
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.journal().assert_event("segment_closed");
}

/// What the server learns of its own request, and the decision about it.
#[track_caller]
fn server_asks(ask: &str, policy: &str, answer: Option<Value>) -> (String, Value) {
    let place = Place::new();
    place.write_policy(policy);
    let mut client = hostile(&place, &[], "server-request", &["--ask", ask]);
    let id = client.send_request("tools/call", echo("asks")).unwrap();
    if let Some(answer) = answer {
        let Message::Request { id, method, .. } = client.next_message().unwrap() else {
            panic!("the server's request was expected");
        };
        assert_eq!(id, "\"mock-ask-1\"");
        assert!(method.contains('/'), "{method}");
        client.respond(&id, &answer).unwrap();
    }
    let reply = client.response(&id).unwrap();
    let learned = reply.text().unwrap().to_owned();
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    let journal = place.journal();
    let decision = journal.decision("\"mock-ask-1\"").clone();
    assert_eq!(decision["direction"], "to_client", "{decision}");
    assert_eq!(journal.decision(&id)["direction"], "to_server");
    if decision["decision"] == "allow" {
        journal.assert_ended("\"mock-ask-1\"", "Success", None);
    }
    (learned, decision)
}

const ASKS: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
    {"id":"questions","effect":"allow","conditions":{"mcp_method":["elicitation/create","roots/list"]}},
    {"id":"no-model","effect":"deny","conditions":{"mcp_method":"sampling/createMessage"}}]}"#;

#[test]
fn server_request_allowed_elicitation() {
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let (learned, decision) = server_asks("elicitation", ASKS, Some(answer));
    assert!(learned.contains("Ada"), "{learned}");
    assert_eq!(decision["decision"], "allow");
    assert_eq!(decision["final_rule"], "questions");
    assert_eq!(decision["mcp_method"], "elicitation/create");
}

#[test]
fn server_request_allowed_roots() {
    let answer = json!({"roots": [{"uri": "file:///tmp"}]});
    let (learned, decision) = server_asks("roots", ASKS, Some(answer));
    assert!(learned.contains("file:///tmp"), "{learned}");
    assert_eq!(decision["mcp_method"], "roots/list");
}

#[test]
fn server_request_denied_sampling() {
    let (learned, decision) = server_asks("sampling", ASKS, None);
    assert!(learned.contains(&REFUSED_CODE.to_string()), "{learned}");
    assert!(learned.contains("no-model"), "{learned}");
    assert_eq!(decision["decision"], "deny");
    assert_eq!(decision["final_rule"], "no-model");
    assert_eq!(decision["reason"], "denied_by_rule");
}

#[test]
fn server_request_that_no_rule_allows() {
    let policy = r#"{"version":"1","default_action":"deny","rules":[
        {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
    for ask in ["elicitation", "roots", "sampling"] {
        let (learned, decision) = server_asks(ask, policy, None);
        assert!(learned.contains(&REFUSED_CODE.to_string()), "{learned}");
        assert_eq!(decision["decision"], "deny", "{ask}");
        assert_eq!(decision["reason"], "no_rule_allows", "{ask}");
    }
}
