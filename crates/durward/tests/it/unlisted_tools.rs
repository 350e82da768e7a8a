//! A call of a tool that the client has not listed: the gate lists for itself first, and lets no rule pass what
//! the server does not list.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp::client::{Client, Era};
use serde_json::{Value, json};

use crate::support::guarded::{self, LATEST, Place, call_works, echo, end, eventually, line};
use crate::support::refusals::{is_passed, told};
use crate::support::serving::{Served, call};
use crate::support::web::{Request, Then, Web, Wire, behave, behave_modern, json_reply, send};

/// A schema that says of `subject`, which neither is named like a path nor looks like one, that it is one.
fn reader() -> Value {
    json!({"name": "open_note", "inputSchema": {"type": "object", "properties": {
        "path": {"type": "string"}, "subject": {"type": "string", "format": "path"}}}})
}

fn page(request: &Request, tools: &[Value], next: Option<&str>) -> Vec<u8> {
    let mut result = json!({"tools": tools});
    if let Some(next) = next {
        result["nextCursor"] = next.into();
    }
    json_reply(&json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}))
}

/// A server that lists as told, and answers everything else well.
fn listing(
    list: impl Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync + 'static,
) -> Web {
    Web::start(move |request, wire| match request.rpc_method().as_str() {
        "tools/list" => list(request, wire),
        _ => behave_modern(request, wire),
    })
}

/// A server that takes its time to list.
fn late(wait_ms: u64) -> Web {
    listing(move |request, wire| {
        guarded::pause(wait_ms);
        behave(request, wire)
    })
}

fn reached(place: &Place, web: &Web, era: Era) -> Client {
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(era).unwrap();
    client
}

fn called(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let reply = client.request("tools/call", params).unwrap();
    serde_json::from_slice(reply.line().as_bytes()).unwrap()
}

#[track_caller]
fn refused(answer: &Value, reason: &str) {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(told(answer)["reason"], reason, "{answer}");
    assert_eq!(told(answer)["retryable"], false, "{answer}");
}

#[test]
fn j07_what_a_schema_says_of_an_argument_is_known_at_the_first_call() {
    for era in [LATEST, Era::Modern] {
        let place = Place::new();
        place.write_policy(
            r#"{"version":"1","default_action":"deny","rules":[{"id":"open","effect":"allow",
                "conditions":{"tool_name":"open_note","path_pattern":"/srv/open/**"}}]}"#,
        );
        let web =
            listing(|request, wire| send(wire, &page(request, &[reader()], None), Then::Keep));
        let mut client = reached(&place, &web, era);
        let secret = json!({"path": "/srv/open/a", "subject": "secret"});
        refused(&called(&mut client, "open_note", secret), "no_rule_allows");
        let open = json!({"path": "/srv/open/a", "subject": "/srv/open/b"});
        let answer = called(&mut client, "open_note", open);
        assert!(is_passed(&answer), "{answer}");
        assert_eq!(end(client).code, Some(0));
        assert_eq!(web.of_method("tools/list").len(), 1, "it is asked once");
        assert_eq!(web.of_method("tools/call").len(), 1);
    }
}

#[test]
fn two_names_that_fold_together_pass_where_the_schema_declares_both() {
    let place = Place::new();
    let web = listing(|request, wire| {
        let both = json!({"properties": {"oldText": {}, "old_text": {}}});
        let tool = json!({"name": "edit", "inputSchema": both});
        send(wire, &page(request, &[tool], None), Then::Keep)
    });
    let mut client = reached(&place, &web, LATEST);
    let arguments = json!({"oldText": "a", "old_text": "b"});
    let answer = called(&mut client, "edit", arguments);
    assert!(is_passed(&answer), "{answer}");
    let folds = called(&mut client, "edit", json!({"OldText": "a"}));
    assert!(folds["error"].is_object(), "{folds}");
}

#[test]
fn what_is_not_listed_is_listed_once_more_and_then_refused_whatever_the_policy_allows() {
    for era in [LATEST, Era::Modern] {
        let place = Place::new();
        let web = listing(behave);
        let mut client = reached(&place, &web, era);
        for _ in 0..2 {
            refused(&called(&mut client, "ghost", json!({})), "unknown_tool");
        }
        call_works(&mut client, "known");
        assert_eq!(end(client).code, Some(0));
        assert_eq!(web.of_method("tools/list").len(), 2);
        assert_eq!(web.texts(), ["known"]);
        let journal = place.journal();
        let decisions = journal.decisions();
        assert_eq!(decisions.len(), 3);
        for decision in &decisions[..2] {
            assert_eq!(decision["decision"], "deny", "{decision}");
            assert_eq!(decision["reason"], "unknown_tool", "{decision}");
            assert_eq!(
                decision["matched_rules"][0]["id"], "allow-all",
                "{decision}"
            );
        }
    }
}

#[test]
fn p15_no_person_is_asked_about_a_tool_that_is_not_listed() {
    for era in [LATEST, Era::Modern] {
        let place = Place::new();
        place.write_policy(
            r#"{"version":"1","default_action":"deny","rules":[
                {"id":"ask","effect":"hitl","conditions":{"tool_name":"*"}}]}"#,
        );
        let web = listing(behave);
        let mut client = reached(&place, &web, era);
        // Were a person asked, nobody would answer, and the reason would be another.
        refused(&called(&mut client, "ghost", json!({})), "unknown_tool");
        assert_eq!(end(client).code, Some(0));
        assert_eq!(web.texts(), [] as [&str; 0]);
        let journal = place.journal();
        let decision = journal.decisions()[0].clone();
        assert_eq!(decision["decision"], "deny", "{decision}");
        assert_eq!(decision["hitl_outcome"], Value::Null, "{decision}");
        assert_eq!(decision["matched_rules"][0]["id"], "ask", "{decision}");
    }
}

#[test]
fn no_list_is_asked_for_where_no_rule_could_let_the_call_pass() {
    let place = Place::new();
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"no","effect":"deny","conditions":{"tool_name":"echo"}},
            {"id":"other","effect":"allow","conditions":{"tool_name":"other"}}]}"#,
    );
    let web = listing(behave);
    let mut client = reached(&place, &web, LATEST);
    refused(&called(&mut client, "echo", json!({})), "denied_by_rule");
    refused(&called(&mut client, "ghost", json!({})), "no_rule_allows");
    assert_eq!(web.of_method("tools/list").len(), 0);
}

#[test]
fn a_list_in_pages_is_read_to_its_end_within_a_bound() {
    const PAGES_MAX: usize = 64;
    let place = Place::new();
    let pages = AtomicUsize::new(0);
    let web = listing(move |request, wire| {
        let number = pages.fetch_add(1, Ordering::SeqCst);
        let cursor = request.json()["params"]["cursor"].clone();
        let expected = match number {
            0 => Value::Null,
            _ => format!("p\"{number}").into(),
        };
        assert_eq!(cursor, expected);
        let tool = json!({"name": format!("t{number}"), "inputSchema": {"type": "object"}});
        let next = format!("p\"{}", number + 1);
        send(wire, &page(request, &[tool], Some(&next)), Then::Keep)
    });
    let mut client = reached(&place, &web, LATEST);
    let last = format!("t{}", PAGES_MAX - 1);
    let answer = called(&mut client, &last, json!({}));
    assert!(is_passed(&answer), "{answer}");
    assert_eq!(web.of_method("tools/list").len(), PAGES_MAX);
}

#[test]
fn a_server_that_lists_nothing_has_no_tools() {
    let error = |request: &Request| {
        json!({"jsonrpc": "2.0", "id": request.json()["id"],
            "error": {"code": -32601, "message": "no such method"}})
    };
    let odd = |request: &Request| json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": {"tools": "none"}});
    for answer in [error, odd] {
        let place = Place::new();
        let web =
            listing(move |request, wire| send(wire, &json_reply(&answer(request)), Then::Keep));
        let mut client = reached(&place, &web, LATEST);
        refused(
            &called(&mut client, "echo", json!({"text": "x"})),
            "unknown_tool",
        );
        assert_eq!(end(client).code, Some(0));
        assert_eq!(web.texts(), [] as [&str; 0]);
    }
}

#[test]
fn a_server_that_never_lists_holds_its_calls_up_for_ten_seconds_at_most() {
    let place = Place::new();
    let web = late(60_000);
    let mut client = reached(&place, &web, LATEST);
    let began = Instant::now();
    let ids: Vec<String> = (0..3)
        .map(|_| client.send_request("tools/call", echo("x")).unwrap())
        .collect();
    for id in &ids {
        let answer = line(&mut client);
        assert_eq!(answer["id"].to_string(), *id);
        refused(&answer, "unknown_tool");
    }
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "one wait for all"
    );
    assert_eq!(web.of_method("tools/list").len(), 1);
    assert_eq!(web.texts(), [] as [&str; 0]);
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn calls_that_wait_for_one_list_keep_their_order_and_outlast_the_end_of_the_input() {
    const CALLS: usize = 20;
    let place = Place::new();
    let mock = place.mock(&["echo"]);
    let seen = place.path("seen");
    let script = r#"seen="$0"; tee "$seen" | "$@""#;
    let mut command = vec!["sh", "-c", script, seen.to_str().unwrap()];
    command.extend(mock.iter().map(String::as_str));
    let mut client = place.guard_command(&[], &command);
    client.handshake(LATEST).unwrap();
    let mut expected = Vec::new();
    for number in 0..CALLS {
        let id = client.send_request("tools/call", echo(&number.to_string()));
        expected.push(id.unwrap());
    }
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answered: Vec<String> = ended
        .rest
        .iter()
        .map(|answer| answer["id"].to_string())
        .collect();
    assert_eq!(answered, expected, "{ended:?}");
    let passed = |answer: &Value| is_passed(answer);
    assert!(ended.rest.iter().all(passed), "{:?}", ended.rest);
    let text = std::fs::read_to_string(seen).unwrap();
    let frames: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let of = |method: &'static str| {
        let said = move |frame: &&Value| frame["method"] == method;
        let ids = frames
            .iter()
            .filter(said)
            .map(|frame| frame["id"].to_string());
        ids.collect::<Vec<String>>()
    };
    let ids = of("tools/call");
    assert_eq!(of("tools/list").len(), 1);
    assert_eq!(ids, expected, "in the order in which they came");
}

#[test]
fn a_call_that_is_taken_back_while_it_waits_is_never_sent() {
    let place = Place::new();
    let web = late(1_000);
    let mut client = reached(&place, &web, LATEST);
    let id = client
        .send_request("tools/call", echo("taken back"))
        .unwrap();
    eventually("the server is asked for its tools", || {
        web.of_method("tools/list").len() == 1
    });
    let id_value: Value = serde_json::from_str(&id).unwrap();
    client
        .notify("notifications/cancelled", &json!({"requestId": id_value}))
        .unwrap();
    call_works(&mut client, "after");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(web.texts(), ["after"]);
    // What its tool is was not known by then.
    let journal = place.journal();
    assert_eq!(journal.decision(&id)["reason"], "unknown_tool");
    assert_eq!(journal.operations().len(), 1);
}

#[test]
fn the_end_of_serving_waits_for_calls_that_wait_for_a_list() {
    let web = late(1_500);
    let url = format!("echo={}", web.url());
    let served = Served::start_server(Place::new(), &url, &[]);
    let session = served.open("2025-11-25");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| served.post(Some(&session), &call("1", "x")).json());
        eventually("the server is asked for its tools", || {
            web.of_method("tools/list").len() == 1
        });
        served.terminate();
        let answer = waiting.join().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
    });
    let (code, place) = served.ended();
    assert_eq!(code, Some(0));
    place.journal().assert_ended("1", "Success", None);
}

#[test]
fn asking_for_what_is_not_there_counts_as_listing() {
    let place = Place::new();
    let web = listing(behave);
    let url = web.url();
    let flags = [
        "--url",
        &url,
        "--limit-requests",
        "1/m",
        "--limit-burst",
        "4",
    ];
    let mut client = place.guard_reached(&flags);
    client.handshake(LATEST).unwrap();
    // The first list is the gate's own; then each call is one, and the list before it another.
    let reasons: Vec<String> = (0..4)
        .map(|_| told(&called(&mut client, "ghost", json!({})))["reason"].to_string())
        .collect();
    assert_eq!(reasons[..2], [r#""unknown_tool""#; 2], "{reasons:?}");
    assert_eq!(reasons[3], r#""rate_limited""#, "{reasons:?}");
    assert!(web.of_method("tools/list").len() <= 3);
}
