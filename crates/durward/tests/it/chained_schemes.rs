//! Strings of many schemes, one before another. Reading them once called itself for each of them.

use serde_json::json;

use crate::support::guarded::{LATEST, Place, call_works, end};

const POLICY: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"no-etc","effect":"deny","conditions":{"path_pattern":"/etc/**"}},
    {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;
const SCHEMES: usize = 20_000;

#[test]
fn a_string_of_many_schemes_ends_no_process() {
    let place = Place::new();
    place.write_policy(POLICY);
    let arguments = json!({"text": "x", "path": "a:".repeat(SCHEMES)});
    let text = arguments.to_string();
    let output = place.durward(&[
        "policy",
        "explain",
        "--policy",
        "policy.json",
        "--tool",
        "echo",
        "--args",
        &text,
    ]);
    assert!(
        output.status.code().is_some(),
        "a signal has ended the program: {}",
        output.status
    );
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    let call = json!({"name": "echo", "arguments": arguments});
    let answer = client.request("tools/call", call).unwrap();
    let line = answer.line();
    assert!(line.contains("built_in_unread_arguments"), "{line}");
    call_works(&mut client, "next");
    assert_eq!(end(client).code, Some(0));
    let records = place.records();
    assert_eq!(records.decisions()[0]["decision"], "deny");
}
