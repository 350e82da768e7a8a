//! Approval by the calling client's own person behind `durward serve`, where a rule's `approvers` says so: on the
//! call's stream in a Legacy session, by `input_required` in the Modern era; and nowhere else.

use crate::support::guarded::{Place, eventually};
use crate::support::refusals::told;
use crate::support::serving::{Answer, Events, Served, call, modern, modern_headers};
use serde_json::{Value, json};

fn served(approvers: &str, flags: &[&str]) -> Served {
    let place = Place::new();
    place.write_policy(&format!(
        r#"{{"rules":[{{"id":"ask","effect":"hitl","conditions":{{"tool_name":"*"}},"approvers":{approvers}}}]}}"#
    ));
    Served::start_in(place, flags)
}

/// A Legacy session whose client can show a form.
fn open(served: &Served) -> String {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}"#;
    let answer = served.send("POST", "/mcp/echo", &[], body);
    answer.header("mcp-session-id").unwrap().to_owned()
}

/// The question on a call's stream.
#[track_caller]
fn question(stream: &mut Events) -> Value {
    let question = stream.message();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("echo") && message.contains("rule: ask"),
        "{message}"
    );
    question
}

fn reply(served: &Served, session: &str, question: &Value, result: &Value) {
    let frame = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(served.post(Some(session), &frame.to_string()).status, 202);
}

fn accept(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

#[test]
fn a_legacy_client_is_asked_on_the_stream_of_its_call() {
    let served = served(r#"["client"]"#, &[]);
    let session = open(&served);
    let cases = [
        (accept("allow once"), None),
        (accept("deny"), Some("approval_denied")),
        (json!({"action": "decline"}), Some("approval_denied")),
        (json!({"action": "cancel"}), Some("approval_denied")),
        (accept("nonsense"), Some("approval_unfit")),
    ];
    for (id, (said, refused)) in cases.iter().enumerate() {
        let mut stream = served.stream("POST", &session, &[], &call(&id.to_string(), "x"));
        let question = question(&mut stream);
        assert_eq!(
            served.place.counted().len(),
            usize::from(id > 0),
            "nothing is sent before"
        );
        reply(&served, &session, &question, said);
        let answer = stream.message();
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(
            told(&answer)["reason"].as_str(),
            *refused,
            "{said} {answer}"
        );
        assert!(stream.next().is_none());
    }
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    assert_eq!(place.counted().len(), 1);
    let journal = place.journal();
    assert_eq!(journal.decision("0")["hitl_channel"], "client");
    assert_eq!(journal.operation("0")["status"], "Success");
}

#[test]
fn other_sessions_may_not_answer_and_an_answer_counts_once() {
    let served = served(r#"["client"]"#, &[]);
    let (session, other) = (open(&served), open(&served));
    let mut stream = served.stream("POST", &session, &[], &call("7", "x"));
    let question = question(&mut stream);
    reply(&served, &other, &question, &accept("allow once"));
    assert_eq!(served.place.counted().len(), 0);
    reply(&served, &session, &question, &accept("deny"));
    reply(&served, &session, &question, &accept("allow once"));
    let answer = stream.message();
    assert_eq!(told(&answer)["reason"], "approval_denied", "{answer}");
    assert_eq!(served.place.counted().len(), 0);
}

#[test]
fn a_client_that_lost_its_stream_finds_the_question_again() {
    let served = served(r#"["client"]"#, &[]);
    let session = open(&served);
    let mut stream = served.stream("POST", &session, &[], &call("7", "x"));
    // The first event only says where the stream begins; none of it has a message.
    let (id, _) = stream.next().unwrap();
    drop(stream);
    let before = id.replace("-2", "-1");
    let mut stream = served.stream("GET", &session, &[("last-event-id", &before)], "");
    let question = question(&mut stream);
    reply(&served, &session, &question, &accept("allow once"));
    assert_eq!(stream.message()["result"]["content"][0]["text"], "x");
}

#[test]
fn the_first_of_two_channels_wins_and_the_form_is_closed() {
    let served = served(r#"["cli", "client"]"#, &[]);
    let session = open(&served);
    let mut stream = served.stream("POST", &session, &[], &call("7", "x"));
    let question = question(&mut stream);
    let name = question["id"]
        .as_str()
        .unwrap()
        .trim_start_matches("durward-approval-");
    let output = served.place.durward(&["approvals", "once", name]);
    assert!(output.status.success(), "{output:?}");
    let closed = stream.message();
    assert_eq!(closed["method"], "notifications/cancelled", "{closed}");
    assert_eq!(closed["params"]["requestId"], question["id"]);
    assert_eq!(stream.message()["id"], 7);
    let (_, place) = served.stop();
    assert_eq!(place.journal().decision("7")["hitl_channel"], "cli");
}

#[test]
fn a_cancelled_call_closes_the_form() {
    let served = served(r#"["client"]"#, &[]);
    let session = open(&served);
    let mut stream = served.stream("POST", &session, &[], &call("7", "x"));
    let question = question(&mut stream);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(served.post(Some(&session), cancel).status, 202);
    let closed = stream.message();
    assert_eq!(closed["params"]["requestId"], question["id"], "{closed}");
    let (_, place) = served.stop();
    assert_eq!(place.journal().decision("7")["hitl_outcome"], "withdrawn");
    assert_eq!(place.counted().len(), 0);
}

#[test]
fn a_client_without_forms_is_refused_where_nobody_else_may_answer() {
    let served = served(r#"["client"]"#, &[]);
    let session = served.open("2025-11-25");
    let answer = served.post(Some(&session), &call("7", "x")).json();
    assert_eq!(told(&answer)["reason"], "approval_unreachable", "{answer}");
}

/// A Modern call by a client that can show a form, with these further members of `params`.
fn ask(served: &Served, id: &str, text: &str, more: &str) -> Answer {
    let params = format!(r#""name":"echo","arguments":{{"text":"{text}"}}{more}"#);
    let body = modern(id, "tools/call", &params).replace(
        r#"clientCapabilities":{}"#,
        r#"clientCapabilities":{"elicitation":{"form":{}}}"#,
    );
    served.send(
        "POST",
        "/mcp/echo",
        &modern_headers("tools/call", "echo"),
        &body,
    )
}

/// The state of a result that wants input.
#[track_caller]
fn state(answer: &Answer) -> String {
    let result = &answer.json()["result"];
    assert_eq!(result["resultType"], "input_required", "{answer:?}");
    let input = &result["inputRequests"]["durward_approval"];
    assert_eq!(input["method"], "elicitation/create", "{answer:?}");
    assert!(
        input["params"]["message"]
            .as_str()
            .unwrap()
            .contains("rule: ask")
    );
    result["requestState"].as_str().unwrap().to_owned()
}

/// What a client adds that comes back with this answer.
fn back(state: &str, result: &Value) -> String {
    format!(r#","requestState":"{state}","inputResponses":{{"durward_approval":{result}}}"#)
}

#[test]
fn a_modern_client_is_asked_by_a_result_and_comes_back() {
    let served = served(r#"["client"]"#, &[]);
    let first = state(&ask(&served, "1", "x", ""));
    let answer = ask(&served, "2", "x", &back(&first, &accept("allow once"))).json();
    assert_eq!(answer["id"], 2, "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
    // A state is good once.
    let again = ask(&served, "3", "x", &back(&first, &accept("allow once"))).json();
    assert_eq!(again["error"]["code"], -32602, "{again}");
    // For the same request only; what is wrong does not use it up.
    let second = state(&ask(&served, "4", "y", ""));
    let other = ask(&served, "5", "z", &back(&second, &accept("allow once"))).json();
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let denied = ask(&served, "6", "y", &back(&second, &accept("deny"))).json();
    assert_eq!(told(&denied)["reason"], "approval_denied", "{denied}");
    for unknown in ["durward-approval-00", "durward-approval-"] {
        let refused = ask(&served, "7", "y", &back(unknown, &accept("allow once"))).json();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // Without an answer there is none.
    let third = state(&ask(&served, "8", "x", ""));
    let none = ask(&served, "9", "x", &format!(r#","requestState":"{third}""#)).json();
    assert_eq!(told(&none)["reason"], "approval_unfit", "{none}");
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let arrived = place.counted();
    assert_eq!(arrived.len(), 1, "{arrived:?}");
    let journal = place.journal();
    assert_eq!(journal.decision("1")["hitl_channel"], "client");
    assert_eq!(journal.operation("1")["status"], "Success");
    assert_eq!(journal.decision("4")["reason"], "approval_denied");
}

#[test]
fn a_modern_client_that_never_comes_back_is_given_up() {
    let served = served(r#"["client"]"#, &["--approval-timeout", "5"]);
    let state = state(&ask(&served, "1", "x", ""));
    eventually("nobody waits any more", || {
        let late = ask(
            &served,
            "2",
            "x",
            &back(&state, &json!({"action": "nonsense"})),
        );
        late.json()["error"]["code"] == -32602
    });
    assert_eq!(served.place.counted().len(), 0);
}

#[test]
fn a_state_is_its_callers_own() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"},"approvers":["client"]}]}"#,
    );
    let key = |name: &str| {
        let output = place.durward(&[
            "--no-config",
            "--state-dir",
            "state",
            "keys",
            "create",
            name,
        ]);
        format!(
            "Bearer {}",
            String::from_utf8(output.stdout).unwrap().trim()
        )
    };
    let (one, other) = (key("one"), key("other"));
    let served = Served::start_in(place, &[]);
    let ask = |key: &str, more: &str| {
        let params = format!(r#""name":"echo","arguments":{{"text":"x"}}{more}"#);
        let body = modern("1", "tools/call", &params).replace(
            r#"clientCapabilities":{}"#,
            r#"clientCapabilities":{"elicitation":{}}"#,
        );
        let mut headers = modern_headers("tools/call", "echo");
        headers.push(("authorization", key));
        served.send("POST", "/mcp/echo", &headers, &body)
    };
    let state = state(&ask(&one, ""));
    let stolen = ask(&other, &back(&state, &accept("allow once"))).json();
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    let own = ask(&one, &back(&state, &accept("allow once"))).json();
    assert_eq!(own["result"]["content"][0]["text"], "x", "{own}");
}

/// Trying states costs as much as calling.
#[test]
fn states_that_are_none_count_against_the_limits() {
    let limits = ["--limit-requests", "1/m", "--limit-burst", "2"];
    let served = served(r#"["client"]"#, &limits);
    let try_one = |id: &str| {
        let more = back("durward-approval-00", &accept("allow once"));
        ask(&served, id, "x", &more).json()
    };
    for id in ["1", "2"] {
        let unknown = try_one(id);
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    let beyond = try_one("3");
    assert_eq!(told(&beyond)["reason"], "rate_limited", "{beyond}");
    served.stop();
}
