//! `otel:`: spans and metrics reach a collector, and no call waits for one.

mod collector;
mod dashboard;

use std::fs;

use serde_json::{Value, json};

use crate::support::guarded::{LATEST, Place, call_works, end, eventually};
use crate::support::serving::{Served, call};
use collector::Collector;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const KEY: &str = "s3cret-of-the-collector";
const POLICY: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"echo-passes","effect":"allow","conditions":{"tool_name":"echo"}},
    {"id":"no-fail","effect":"deny","conditions":{"tool_name":"fail"}}]}"#;

/// A place with an echo server and these keys below `otel`.
fn place(otel: &str) -> Place {
    let place = Place::new();
    place.write_policy(POLICY);
    let command: Vec<String> = place.mock(&["echo"]);
    let (program, arguments) = command.split_first().unwrap();
    let config = format!(
        "servers: {{ echo: {{ command: {}, args: {} }} }}\notel: {{ {otel} }}\n",
        json!(program),
        json!(arguments)
    );
    fs::write(place.path("durward.yaml"), config).unwrap();
    place
}

fn endpoint(port: u16) -> String {
    format!("endpoint: \"http://127.0.0.1:{port}/base/\"")
}

fn metric(served: &Served, line: &str) -> u64 {
    let text = served.send("GET", "/metrics", &[], "").body;
    let value = text.lines().find_map(|found| found.strip_prefix(line));
    value.map_or(0, |value| value.trim().parse().unwrap())
}

fn calls(served: &Served, number: usize) {
    let session = served.open("2025-11-25");
    for at in 0..number {
        let answer = served.post(Some(&session), &call(&at.to_string(), "x"));
        assert_eq!(answer.json()["result"]["content"][0]["text"], "x");
    }
}

/// A call that the policy refuses.
fn refuse(served: &Served) {
    let session = served.open("2025-11-25");
    let refused = call("9", "x").replace("\"echo\"", "\"fail\"");
    served.post(Some(&session), &refused);
}

/// The spans of decoded requests.
fn spans(requests: &[Value]) -> Vec<&Value> {
    let resources = requests
        .iter()
        .flat_map(|request| list(&request["resourceSpans"]));
    let scopes = resources.flat_map(|resource| list(&resource["scopeSpans"]));
    scopes.flat_map(|scope| list(&scope["spans"])).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// An attribute's value: a text, or a number as text.
fn attribute<'v>(of: &'v Value, key: &str) -> Option<&'v str> {
    let found = list(&of["attributes"])
        .iter()
        .find(|pair| pair["key"] == key)?;
    let value = found["value"].as_object()?.values().next()?;
    value.as_str()
}

#[test]
fn spans_and_metrics_are_decoded_by_the_protocols_own_package() {
    let collector = Collector::start(Some(&["200 OK"]));
    let keys = format!(
        "{}, headers: {{ x-key: {KEY} }}, interval: 1s",
        endpoint(collector.port)
    );
    let served = Served::start_program(place(&keys), crate::support::guarded::binary().as_ref());
    let session = served.open("2025-11-25");
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("traceparent", PARENT),
        ("x-durward-run", "nightly-7"),
    ];
    let passed = served.send("POST", "/mcp/echo", &headers, &call("1", "private-text"));
    assert_eq!(
        passed.json()["result"]["content"][0]["text"],
        "private-text"
    );
    let refused = call("2", "private-text").replace("\"echo\"", "\"fail\"");
    served.post(Some(&session), &refused);
    let exported = "durward_otel_spans_total{result=\"exported\"}";
    eventually("the spans were taken", || metric(&served, exported) >= 2);
    // One may be under way that was written before.
    let sent = collector.number_of("metrics") + 2;
    eventually("the metrics were taken", || {
        collector.number_of("metrics") >= sent
    });
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));

    for kept in collector.kept() {
        assert!(
            kept.head
                .to_ascii_lowercase()
                .contains(&format!("x-key: {KEY}"))
        );
        let body = String::from_utf8_lossy(&kept.body);
        for secret in ["private-text", KEY, session.as_str()] {
            assert!(!body.contains(secret), "{secret}: {body}");
        }
    }
    let journal = place.journal();
    let operation = journal.operation("1");
    let Some(traces) = collector.decoded("traces", &place.dir) else {
        return;
    };
    let spans = spans(&traces);
    let span = |outcome: &str| {
        let is_so = |span: &&Value| attribute(span, "durward.outcome") == Some(outcome);
        let found = spans.iter().copied().find(is_so);
        found.unwrap_or_else(|| panic!("no {outcome}: {spans:?}"))
    };
    let passed = span("Success");
    assert_eq!(passed["name"], "tools/call echo");
    assert_eq!(passed["kind"], "SPAN_KIND_SERVER");
    // Of bytes the decoder makes base 64.
    assert_eq!(passed["traceId"], "S/kvNXezTaajzpKdDg5HNg==");
    assert_eq!(passed["parentSpanId"], "APBnqgupArc=");
    for (key, value) in [
        ("gen_ai.tool.name", "echo"),
        ("durward.server", "echo"),
        ("durward.rule", "echo-passes"),
        ("durward.run", "nightly-7"),
        ("durward.op", operation["op"].as_str().unwrap()),
    ] {
        assert_eq!(attribute(passed, key), Some(value), "{key}: {passed}");
    }
    let ns = |member: &str| passed[member].as_str().unwrap().parse::<u64>().unwrap();
    assert!(ns("startTimeUnixNano") < ns("endTimeUnixNano"));
    let refused = span("Refused");
    assert_eq!(
        attribute(refused, "durward.rule"),
        Some("no-fail"),
        "{refused}"
    );
    assert_eq!(attribute(refused, "error.type"), Some("denied_by_rule"));
    assert_eq!(refused["status"]["code"], "STATUS_CODE_ERROR");

    let metrics = collector.decoded("metrics", &place.dir).unwrap();
    let last = &metrics.last().unwrap()["resourceMetrics"][0];
    assert_eq!(
        attribute(&last["resource"], "service.name"),
        Some("durward")
    );
    let metrics = list(&last["scopeMetrics"][0]["metrics"]);
    let named = |name: &str| {
        metrics
            .iter()
            .find(|metric| metric["name"] == name)
            .unwrap()
    };
    let calls = named("durward_calls");
    assert_eq!(calls["sum"]["isMonotonic"], true);
    let points = list(&calls["sum"]["dataPoints"]);
    let of = |tool: &str, outcome: &str| {
        let point = points.iter().find(|point| {
            attribute(point, "tool") == Some(tool) && attribute(point, "outcome") == Some(outcome)
        });
        point.unwrap()["asDouble"].clone()
    };
    assert_eq!(
        (of("echo", "Success"), of("fail", "Refused")),
        (json!(1.0), json!(1.0))
    );
    let times = &named("durward_call_time_seconds")["histogram"]["dataPoints"][0];
    let bounds = list(&times["explicitBounds"]).len();
    assert_eq!(list(&times["bucketCounts"]).len(), bounds + 1);
    assert_eq!(times["count"], "1");
}

#[test]
fn a_collector_that_is_not_there_costs_no_call_anything() {
    // Nobody listens at this port: only root may, and no service does nowadays.
    let served = Served::start_program(
        place(&endpoint(1)),
        crate::support::guarded::binary().as_ref(),
    );
    calls(&served, 20);
    let tried = "durward_otel_requests_total{result=\"unreachable\"}";
    eventually("it was tried", || metric(&served, tried) > 0);
    calls(&served, 20);
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn what_a_collector_that_never_answers_does_not_take_is_dropped_and_counted() {
    let collector = Collector::start(None);
    let keys = format!("{}, queue: 64, timeout: 60s", endpoint(collector.port));
    let served = Served::start_program(place(&keys), crate::support::guarded::binary().as_ref());
    calls(&served, 10);
    eventually("it was asked", || !collector.kept().is_empty());
    calls(&served, 90);
    let dropped = "durward_otel_spans_total{result=\"dropped\"}";
    eventually("the rest was dropped", || metric(&served, dropped) >= 26);
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let collector = Collector::start(Some(&["503 Busy", "429 Busy", "200 OK", "500 Broken"]));
    let served = Served::start_program(
        place(&endpoint(collector.port)),
        crate::support::guarded::binary().as_ref(),
    );
    let spans = |result: &str| {
        metric(
            &served,
            &format!("durward_otel_spans_total{{result=\"{result}\"}}"),
        )
    };
    calls(&served, 1);
    eventually("it was taken", || spans("exported") == 1);
    calls(&served, 1);
    eventually("it was refused", || spans("failed") == 1);
    let requests = |result: &str| {
        metric(
            &served,
            &format!("durward_otel_requests_total{{result=\"{result}\"}}"),
        )
    };
    assert_eq!((requests("unavailable"), requests("refused")), (2, 1));
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_session_over_standard_streams_sends_its_spans_at_its_end() {
    let collector = Collector::start(Some(&["200 OK"]));
    let place = place(&endpoint(collector.port));
    let mut client = place.guard_configured("durward.yaml", &[], "echo");
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "private-text");
    let ended = end(client);
    assert_eq!(ended.code, Some(0));
    // On a machine that is too busy for the two seconds of the end, that is said.
    if ended.stderr.contains("did not accept the last spans") {
        return;
    }
    if let Some(traces) = collector.decoded("traces", &place.dir) {
        let spans = spans(&traces);
        assert_eq!(spans.len(), 1, "{spans:?}");
        assert_eq!(attribute(spans[0], "durward.transport"), Some("stdio"));
    }
}
