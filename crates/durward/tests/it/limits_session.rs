//! Limits over stdio: as many calls as there are pass, no more; what is refused never reaches the server.

use crate::support::guarded::{
    LATEST, Place, call_works, echo, end, line, most_resident_kib, pause,
};
use crate::support::refusals::{is_passed, told};
use mcp::client::{Client, Era};
use serde_json::{Value, json};

/// Calls under way in the tests that count them.
const IN_FLIGHT: usize = 64;
/// Calls that wait for a person, fewer than may wait at once.
const ASKED: usize = 10;
/// Longer than any test waits, in microseconds.
const FOR_EVER_US: u64 = 600_000_000;

/// Other limits that none of these tests meets; each test sets its own beside them.
fn limits<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut flags = Vec::new();
    for (flag, value) in [
        ("--limit-requests", "1000000/s"),
        ("--limit-burst", "1000000"),
        ("--limit-tool-calls", "1000000"),
        ("--limit-concurrency", "1024"),
    ] {
        if !more.contains(&flag) {
            flags.extend([flag, value]);
        }
    }
    flags.extend(more);
    flags
}

fn start(place: &Place, more: &[&str]) -> Client {
    let mut client = place.guard_with(&limits(more), &["echo"]);
    client.handshake(LATEST).unwrap();
    client
}

/// Sends many calls at once; gives their ids.
fn send(client: &mut Client, calls: usize, params: &Value) -> Vec<String> {
    (0..calls)
        .map(|_| client.send_request("tools/call", params.clone()).unwrap())
        .collect()
}

fn answers(client: &mut Client, count: usize) -> Vec<Value> {
    (0..count).map(|_| line(client)).collect()
}

/// How many answers are those of the server.
fn passed(answers: &[Value]) -> usize {
    answers.iter().filter(|a| is_passed(a)).count()
}

/// Every other answer is this refusal.
#[track_caller]
fn rest_is(answers: &[Value], decision: &str, reason: &str) {
    for answer in answers.iter().filter(|a| !is_passed(a)) {
        let data = told(answer);
        assert_eq!(data["reason"], reason, "{answer}");
        assert_eq!(data["decision"], decision, "{answer}");
    }
}

/// Every call has a decision: its own record, or one that counts it.
#[track_caller]
fn all_in_journal(place: &Place, calls: usize) {
    let journal = place.journal();
    let stands_for = |record: &&Value| record["refusals"].as_u64().unwrap_or(1);
    let decided: u64 = journal.decisions().iter().map(stands_for).sum();
    assert_eq!(decided, calls as u64, "{journal:#?}");
}

#[test]
fn in_flight_exactly_the_burst_passes() {
    let place = Place::new();
    let mut client = start(&place, &["--limit-requests", "1/m", "--limit-burst", "50"]);
    let slow = json!({"name": "delayed", "arguments": {"text": "x", "delay_us": 200_000}});
    send(&mut client, IN_FLIGHT, &slow);
    let answers = answers(&mut client, IN_FLIGHT);
    assert_eq!(passed(&answers), 50);
    rest_is(&answers, "deny", "rate_limited");
    for refused in answers.iter().filter(|a| !is_passed(a)) {
        let data = told(refused);
        let wait_ms = data["retry_after_ms"].as_u64().unwrap();
        assert!((1..=60_000).contains(&wait_ms), "{refused}");
        assert_eq!(data["retryable"], true);
    }
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 50);
    all_in_journal(&place, IN_FLIGHT);
}

#[test]
fn who_waits_as_told_passes() {
    let place = Place::new();
    let mut client = start(&place, &["--limit-requests", "5/s", "--limit-burst", "1"]);
    call_works(&mut client, "first");
    let reply = client.request("tools/call", echo("second")).unwrap();
    // A slow machine may have earned the next call already.
    if let Some(refusal) = reply.refusal() {
        let wait_ms = refusal["retry_after_ms"].as_u64().unwrap();
        assert!((1..=200).contains(&wait_ms), "{refusal}");
        pause(wait_ms);
        call_works(&mut client, "third");
    }
}

#[test]
fn in_flight_exactly_the_window_passes_and_the_rest_is_refused() {
    let place = Place::new();
    let mut client = start(
        &place,
        &[
            "--limit-tool-calls",
            "30",
            "--limit-tool-window",
            "600",
            "--limit-then",
            "refuse",
        ],
    );
    send(&mut client, IN_FLIGHT, &echo("x"));
    let answers = answers(&mut client, IN_FLIGHT);
    assert_eq!(passed(&answers), 30);
    rest_is(&answers, "deny", "tool_rate_limited");
    let another = json!({"name": "delayed", "arguments": {"text": "other", "delay_us": 0}});
    let reply = client.request("tools/call", another).unwrap();
    assert_eq!(reply.text(), Some("other"));
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 31);
    all_in_journal(&place, IN_FLIGHT + 1);
}

#[test]
fn beyond_the_window_a_person_is_asked() {
    let place = Place::new();
    let mut client = start(
        &place,
        &["--limit-tool-calls", "30", "--approval-timeout", "5"],
    );
    send(&mut client, 30 + ASKED, &echo("x"));
    let answers = answers(&mut client, 30 + ASKED);
    assert_eq!(passed(&answers), 30);
    rest_is(&answers, "hitl", "approval_timeout");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 30);
    let journal = place.journal();
    let asked: Vec<_> = journal
        .decisions()
        .into_iter()
        .filter(|d| d["final_rule"] == "rate_limit_breach")
        .collect();
    assert_eq!(asked.len(), ASKED);
    assert_eq!(asked[0]["decision"], "hitl");
    assert_eq!(
        asked[0]["matched_rules"],
        json!([{"id": "allow-all", "effect": "allow"}, {"id": "rate_limit_breach", "effect": "hitl"}])
    );
}

#[test]
fn a_flood_does_not_make_what_is_denied_askable() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"effect":"allow","conditions":{"tool_name":"echo"}},
            {"id":"no","effect":"deny","conditions":{"tool_name":"sized"}}]}"#,
    );
    let mut client = start(&place, &["--limit-tool-calls", "2"]);
    for (tool, reason) in [("sized", "denied_by_rule"), ("delayed", "no_rule_allows")] {
        send(&mut client, 5, &json!({"name": tool, "arguments": {}}));
        let answers = answers(&mut client, 5);
        assert_eq!(passed(&answers), 0);
        rest_is(&answers, "deny", reason);
    }
    assert_eq!(end(client).code, Some(0));
    assert!(place.counted().is_empty());
}

#[test]
fn calls_under_way_are_bounded_and_a_cancelled_one_makes_room() {
    let place = Place::new();
    let mut client = start(&place, &["--limit-concurrency", "8"]);
    let endless = json!({"name": "delayed", "arguments": {"text": "x", "delay_us": FOR_EVER_US}});
    let ids = send(&mut client, IN_FLIGHT, &endless);
    let refused = answers(&mut client, IN_FLIGHT - 8);
    assert_eq!(passed(&refused), 0);
    rest_is(&refused, "deny", "too_many_under_way");
    let reply = client.request("tools/call", echo("x")).unwrap();
    assert_eq!(reply.refusal().unwrap()["reason"], "too_many_under_way");
    for id in &ids[..8] {
        let id: Value = serde_json::from_str(id).unwrap();
        let params = json!({ "requestId": id });
        client.notify("notifications/cancelled", &params).unwrap();
    }
    call_works(&mut client, "there is room again");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 9);
    all_in_journal(&place, IN_FLIGHT + 2);
}

#[test]
fn calls_of_one_tool_under_way_are_bounded() {
    let place = Place::new();
    let mut client = start(&place, &["--limit-tool-concurrency", "2"]);
    let endless = json!({"name": "delayed", "arguments": {"text": "x", "delay_us": FOR_EVER_US}});
    let ids = send(&mut client, 3, &endless);
    rest_is(&answers(&mut client, 1), "deny", "too_many_under_way");
    call_works(&mut client, "another tool");
    for id in &ids {
        let id: Value = serde_json::from_str(id).unwrap();
        let params = json!({ "requestId": id });
        client.notify("notifications/cancelled", &params).unwrap();
    }
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 3);
}

#[test]
fn a_reply_beyond_its_bound_is_replaced() {
    const LIMIT: u64 = 4_096;
    let place = Place::new();
    let mut client = start(&place, &["--limit-response-bytes", "4KiB"]);
    let sized = |bytes: u64| json!({"name": "sized", "arguments": {"bytes": bytes}});
    let small = client.request("tools/call", sized(100)).unwrap();
    // Everything in the reply's line that is not the text; the next ids have as many digits.
    let around = u64::try_from(small.line().trim_end().len()).unwrap() - 100;
    let fits = client.request("tools/call", sized(LIMIT - around)).unwrap();
    assert_eq!(fits.text().unwrap().len() as u64, LIMIT - around);
    let id = client
        .send_request("tools/call", sized(LIMIT - around + 1))
        .unwrap();
    let answer = line(&mut client);
    assert_eq!(answer["id"].to_string(), id);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let data = told(&answer);
    assert_eq!(data["reason"], "response_too_large", "{answer}");
    assert_eq!(data["detail"], "4097 bytes; at most 4096 are passed on");
    let fails = client.request("tools/call", sized(10_000_000)).unwrap();
    assert_eq!(
        fails.error().unwrap()["data"]["reason"],
        "response_too_large"
    );
    call_works(&mut client, "after");
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    journal.assert_ended(&id, "Failure", Some("response_too_large"));
    let summary = &journal.operation(&id)["response_summary"];
    assert_eq!(summary["size_bytes"], LIMIT + 1);
    journal.assert_event("response_too_large");
}

#[test]
fn a_list_beyond_the_bound_of_replies_is_replaced() {
    let place = Place::new();
    let mut client = start(&place, &["--limit-response-bytes", "1KiB"]);
    let reply = client.request("tools/list", json!({})).unwrap();
    assert_eq!(
        reply.error().unwrap()["data"]["reason"],
        "response_too_large"
    );
    call_works(&mut client, "after");
}

#[test]
fn lists_count_and_a_ping_is_still_answered() {
    let place = Place::new();
    let mut client = start(&place, &["--limit-requests", "1/m", "--limit-burst", "5"]);
    for _ in 0..20 {
        client.send_request("tools/list", json!({})).unwrap();
    }
    let lists = answers(&mut client, 20);
    assert_eq!(passed(&lists), 5);
    rest_is(&lists, "deny", "rate_limited");
    assert!(client.request("ping", json!({})).unwrap().error().is_none());
    for _ in 0..20 {
        client.send_request("ping", json!({})).unwrap();
    }
    let pings = answers(&mut client, 20);
    assert_eq!(passed(&pings), 4);
    rest_is(&pings, "deny", "rate_limited");
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let refused: u64 = journal
        .decisions()
        .iter()
        .map(|d| d["refusals"].as_u64().unwrap_or(1))
        .sum();
    assert_eq!(refused, 15 + 16);
}

#[test]
fn each_call_of_a_batch_counts() {
    let place = Place::new();
    let flags = limits(&["--limit-requests", "1/m", "--limit-burst", "4"]);
    let mut client = place.guard_with(&flags, &["echo"]);
    client.handshake(Era::Legacy("2025-03-26")).unwrap();
    let calls: Vec<Value> = (100..110)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": echo("x")}))
        .collect();
    let batch = Value::from(calls).to_string();
    client.process().send_line(batch.as_bytes()).unwrap();
    let answer = line(&mut client);
    let answers = answer.as_array().unwrap();
    assert_eq!((answers.len(), passed(answers)), (10, 4));
    rest_is(answers, "deny", "rate_limited");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 4);
}

#[test]
fn a_flood_of_10_000_calls_costs_neither_memory_nor_journal() {
    const CALLS: usize = 10_000;
    let place = Place::new();
    let mut client = start(&place, &["--limit-requests", "1/m", "--limit-burst", "50"]);
    let mut through = 0;
    for round in 0..CALLS / 100 {
        for call in 0..100 {
            // Names that nobody has heard of cost no memory either.
            let name = format!("{}-{round}-{call}", "x".repeat(2_000));
            let tool = if round == 0 { "echo" } else { name.as_str() };
            let params = json!({"name": tool, "arguments": {"text": "x"}});
            client.send_request("tools/call", params).unwrap();
        }
        through += passed(&answers(&mut client, 100));
    }
    assert_eq!(through, 50);
    let resident = most_resident_kib(client.process().pid());
    assert!(resident < 48 * 1_024, "{resident} KiB");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 50);
    all_in_journal(&place, CALLS);
    let size: u64 = place
        .segments()
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    // Fifty calls take about 100 KiB; ten thousand records would take megabytes.
    assert!(size < 1_024 * 1_024, "{size} bytes");
}

#[test]
fn limits_that_cannot_be_meant() {
    let place = Place::new();
    let cases = [
        (
            ["--limit-requests", "0"],
            2,
            "lets nothing through; write at least 1/h",
        ),
        (
            ["--limit-requests", "ten/s"],
            2,
            "is not a rate; write 10/s, 600/m or 5000/h",
        ),
        (["--limit-requests", "10/d"], 2, "is not a rate"),
        (
            ["--limit-requests", "1000001/s"],
            2,
            "write at most 1000000/s",
        ),
        (["--limit-then", "maybe"], 2, "write hitl or refuse"),
        (
            ["--limit-response-bytes", "1MB"],
            2,
            "is not a size; write 4096 (bytes), 64KiB, 1MiB or 2GiB",
        ),
        (
            ["--limit-burst", "0"],
            16,
            "--limit-burst is out of bounds; it can be 1 to 1000000",
        ),
        (
            ["--limit-tool-window", "86401"],
            16,
            "--limit-tool-window is out of bounds; it can be 1 to 86400",
        ),
        (
            ["--limit-response-bytes", "12"],
            16,
            "--limit-response-bytes is out of bounds; it can be 1024 to 268435456",
        ),
        (
            ["--limit-request-bytes", "129MiB"],
            16,
            "--limit-request-bytes is out of bounds; it can be 65536 to 134217728",
        ),
    ];
    for (flags, code, says) in cases {
        let args = place.run_args(&flags, &["true"]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = place.durward(&args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {stderr}");
        assert!(stderr.contains(says), "{flags:?}: {stderr}");
    }
    assert!(place.segments().is_empty());
}
