//! Requests of revision 2026-07-28 in front of several servers: no session, and each server in the revision that it
//! speaks.

mod alike;
mod asked;
mod bounds;
mod down;
mod search;
mod streams;
mod subscriptions;

use std::io::BufReader;

use serde_json::{Value, json};

use super::configured;
use super::kept::recording;
use crate::support::guarded::Place;
use crate::support::serving::{
    self, Answer, Events, modern, modern_headers, read_head, write_request,
};

const RULES: &str = r#"{"version":"1","rules":[
    {"id":"hidden","effect":"deny","conditions":{"tool_name":"delayed"}},
    {"id":"no-secret","effect":"deny","conditions":{"path_pattern":"/secret/**"}},
    {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

const ANYTHING: &str =
    r#"{"rules":[{"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

/// Servers of each kind: `both` and `full` speak all revisions, `old` the earlier ones, `new` the last, `own` is built in.
fn servers(place: &Place) -> Value {
    place.write_policy(RULES);
    json!({
        "both": recording(place, "heard-both", &["echo"]),
        "old": recording(place, "heard-old", &["echo", "--eras", "legacy"]),
        "new": recording(place, "heard-new", &["echo", "--eras", "modern"]),
        "full": recording(place, "heard-full", &["conformance"]),
        "own": {"builtin": "echo"},
    })
}

/// The request's parts: headers that repeat what it says.
fn send(served: &serving::Served, method: &str, name: &str, params: &str) -> Answer {
    let body = modern("\"q\"", method, params);
    served.send("POST", "/mcp", &modern_headers(method, name), &body)
}

/// What was carried out for this caller, and what the journal says of it.
fn is_recorded(place: &Place) {
    let records = place.journal();
    let mut allowed: Vec<String> = records
        .decisions()
        .into_iter()
        .filter(|decision| decision["mcp_method"] == "tools/call")
        .filter(|decision| decision["decision"] == "allow" && decision["backend_id"] != "own")
        .map(|decision| decision["tool_name"].as_str().unwrap().to_owned())
        .collect();
    let executed = place.counted().into_iter();
    let mut executed: Vec<String> = executed
        .map(|call| call["name"].as_str().unwrap().to_owned())
        .collect();
    allowed.sort();
    executed.sort();
    assert_eq!(executed, allowed);
    for decision in records.decisions() {
        let named = decision["tool_name"].as_str().unwrap_or_default();
        assert!(!named.contains("__"), "{decision}");
    }
}

/// Two servers that speak all revisions, and one of the earlier ones.
fn served(policy: &str) -> serving::Served {
    let place = Place::new();
    place.write_policy(policy);
    let configuration = json!({"servers": {
        "one": recording(&place, "heard-one", &["conformance"]),
        "two": recording(&place, "heard-two", &["conformance"]),
        "old": recording(&place, "heard-old", &["echo", "--eras", "legacy"]),
        "slow": recording(&place, "heard-slow", &["echo"]),
    }, "policy": place.path("policy.json")});
    configured(&place, &configuration);
    serving::Served::start_ruled(place)
}

/// A request that is answered with a stream.
#[track_caller]
fn stream(served: &serving::Served, method: &str, name: &str, body: &str) -> Events {
    let mut stream = served.connect();
    write_request(
        &mut stream,
        "POST",
        "/mcp",
        &modern_headers(method, name),
        body,
    );
    let mut reader = BufReader::new(stream);
    let answer = read_head(&mut reader);
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/event-stream"), "{answer:?}");
    Events::over(reader)
}
