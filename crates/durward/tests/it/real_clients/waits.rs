//! Calls that take their time: what a proxy between us and the client needs to see of them.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Need;
use crate::support::guarded::{Place, end, line};
use crate::support::refusals::{refusal_text, told};
use crate::support::serving::{
    Served, call, modern_call, modern_headers, read_head, write_request,
};

/// The head is due after about a second; this is far below what proxies wait.
const HEAD_WAIT: Duration = Duration::from_secs(8);
/// A comment is due every fifteen seconds.
const COMMENT_WAIT: Duration = Duration::from_secs(25);

const ASK: &str = r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"}}]}"#;

/// A server that never answers its first call.
fn quiet() -> Served {
    let place = Place::new();
    let mock = place.mock(&["hostile", "--behaviour", "never"]).join(" ");
    Served::start_server(place, &format!("echo={mock}"), &[])
}

/// The head of the answer to a Legacy call, which must come long before the answer.
fn head_of_a_call(served: &Served) -> Result<BufReader<TcpStream>, String> {
    let session = served.open("2025-11-25");
    let headers = [("mcp-session-id", session.as_str())];
    head(served, &headers, &call("7", "x"))
}

fn head(
    served: &Served,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<BufReader<TcpStream>, String> {
    let mut stream = served.connect();
    stream.set_read_timeout(Some(HEAD_WAIT)).unwrap();
    write_request(&mut stream, "POST", "/mcp/echo", headers, body);
    let mut reader = BufReader::new(stream);
    if reader.fill_buf().is_err() {
        return Err(format!("no head within {HEAD_WAIT:?}"));
    }
    let answer = read_head(&mut reader);
    match (answer.status, answer.header("content-type")) {
        (200, Some("text/event-stream")) => Ok(reader),
        _ => Err(format!("an answer that is not stream: {answer:?}")),
    }
}

pub(super) fn w1_a_quiet_call_is_answered_with_headers_at_once() -> Need {
    let served = quiet();
    let mut reader = head_of_a_call(&served)?;
    // The priming event: it has an id, by which the stream can be resumed.
    let primed = read_until(&mut reader, HEAD_WAIT, |line| line.starts_with("id:"));
    primed.then_some(()).ok_or("no priming event".to_owned())
}

pub(super) fn w1_a_call_that_waits_for_a_person_is_answered_with_headers_at_once() -> Need {
    let place = Place::new();
    place.write_policy(ASK);
    let served = Served::start_in(place, &[]);
    let headers = modern_headers("tools/call", "echo");
    head(&served, &headers, &modern_call("7", "x"))?;
    head_of_a_call(&served).map(drop)
}

pub(super) fn w1_a_quiet_stream_carries_a_comment_every_fifteen_seconds() -> Need {
    let served = quiet();
    let mut reader = head_of_a_call(&served)?;
    for number in 1..=2 {
        if !read_until(&mut reader, COMMENT_WAIT, |line| line.starts_with(':')) {
            return Err(format!("no comment {number} within {COMMENT_WAIT:?}"));
        }
    }
    Ok(())
}

/// Whether a line of this kind comes in time. Chunk sizes are lines like any other.
fn read_until(
    reader: &mut BufReader<TcpStream>,
    longest: Duration,
    is_it: impl Fn(&str) -> bool,
) -> bool {
    let deadline = Instant::now() + longest;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        reader.get_ref().set_read_timeout(Some(left)).unwrap();
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return false,
            Ok(_) if is_it(&line) => return true,
            Ok(_) => {}
        }
    }
}

/// W7: the client was asked and answered something else than it was offered.
pub(super) fn w7_an_unfit_answer_of_a_person_is_told_as_such() -> Need {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"},"approvers":["client"]}]}"#,
    );
    let mut client = place.guard(&["echo"]);
    client.handshake(crate::support::guarded::LATEST).unwrap();
    let id = client
        .send_request("tools/call", crate::support::guarded::echo("x"))
        .unwrap();
    let question = line(&mut client);
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let unfit = json!({"action": "accept", "content": {"answer": "nonsense"}});
    client.respond(&question["id"].to_string(), &unfit).unwrap();
    let answer: Value = line(&mut client);
    assert_eq!(answer["id"].to_string(), id, "{answer}");
    end(client);
    let reason = told(&answer)["reason"].as_str();
    if reason != Some("approval_unfit") {
        return Err(format!("another reason: {answer}"));
    }
    let message = refusal_text(&answer);
    if message.contains("declared") {
        return Err(format!(
            "the client is said to have not declared it: {message}"
        ));
    }
    Ok(())
}
