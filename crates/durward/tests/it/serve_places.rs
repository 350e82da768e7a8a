//! Calls that find no process of their server free, where the answer cannot be a 503 of its own: in a batch, and
//! after a person's yes.

use std::fs;
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};

use crate::support::guarded::Place;
use crate::support::serving::{Events, Served, call, read_head, write_request};

const ALL: &str =
    r#"{"rules":[{"id":"all","effect":"EFFECT","conditions":{"tool_name":"*"}MORE}]}"#;

/// One server of which there may be one process; it never answers a call.
fn served(effect: &str, more: &str) -> Served {
    let place = Place::new();
    place.write_policy(&ALL.replace("EFFECT", effect).replace("MORE", more));
    let mock = place.mock(&["hostile", "--behaviour", "never"]);
    let servers = json!({"echo": {"command": mock[0], "args": mock[1..], "processes_max": 1}});
    fs::write(
        place.path("durward.yaml"),
        format!("servers: {servers}\npolicy: policy.json\n"),
    )
    .unwrap();
    Served::start_configured(place)
}

/// A session of a revision whose client can show a form.
fn open(served: &Served, revision: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"}}});
    let answer = served.send("POST", "/mcp/echo", &[], &body.to_string());
    answer.header("mcp-session-id").unwrap().to_owned()
}

#[track_caller]
fn is_full(answer: &Value) {
    let data = &answer["error"]["data"];
    assert_eq!(data["reason"], "too_many_servers", "{answer}");
    assert_eq!(data["retryable"], true, "{answer}");
    assert_eq!(data["retry_after_ms"], 5_000, "{answer}");
}

/// A call that is under way until its stream is dropped.
fn busy(served: &Served, session: &str) -> TcpStream {
    let mut stream = served.connect();
    let headers = [("mcp-session-id", session)];
    write_request(&mut stream, "POST", "/mcp/echo", &headers, &call("9", "x"));
    let head = read_head(&mut std::io::BufReader::new(stream.try_clone().unwrap()));
    assert_eq!(head.status, 200);
    stream
}

#[test]
fn each_call_of_a_batch_is_told_for_itself_and_a_single_one_by_its_status() {
    let served = served("allow", "");
    let first = open(&served, "2025-03-26");
    // It had nothing to do: its process is given up for the second one.
    let second = open(&served, "2025-11-25");
    let _busy = busy(&served, &second);
    thread::scope(|scope| {
        let single = scope.spawn(|| served.post(Some(&first), &call("1", "x")));
        let batch = format!("[{},{}]", call("2", "x"), call("3", "x"));
        let answer = served.post(Some(&first), &batch);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("retry-after"), None);
        let mut answers: Vec<Value> = serde_json::from_str(&answer.body).unwrap();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        assert_eq!(
            (&answers[0]["id"], &answers[1]["id"]),
            (&json!(2), &json!(3))
        );
        answers.iter().for_each(is_full);
        let single = single.join().unwrap();
        assert_eq!(single.status, 503, "{single:?}");
        assert_eq!(single.header("retry-after"), Some("5"));
        is_full(&single.json());
    });
    assert_eq!(served.stop().0, Some(0));
}

/// Allows what is asked on a stream.
fn allowed(served: &Served, session: &str, stream: &mut Events) {
    let question = stream.message();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let yes = json!({"jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"answer": "allow once"}}});
    assert_eq!(served.post(Some(session), &yes.to_string()).status, 202);
}

#[test]
fn a_call_that_finds_no_process_after_a_persons_yes_is_told_on_its_stream() {
    let served = served("hitl", r#","approvers":["client"]"#);
    let first = open(&served, "2025-11-25");
    let second = open(&served, "2025-11-25");
    let mut busy = served.stream("POST", &second, &[], &call("9", "x"));
    allowed(&served, &second, &mut busy);
    let mut stream = served.stream("POST", &first, &[], &call("1", "x"));
    allowed(&served, &first, &mut stream);
    let answer = stream.message();
    assert_eq!(answer["id"], 1, "{answer}");
    is_full(&answer);
    drop(busy);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    // The yes is in the journal, and that the call was not sent.
    let journal = place.journal();
    assert_eq!(journal.decision("1")["hitl_outcome"], "user_allowed");
    assert_eq!(journal.operation("1")["status"], "Aborted");
}
