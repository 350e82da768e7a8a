//! What the rules of `inspect:` find in requests to models and in their replies, streamed or not.

use serde_json::{Value, json};

use super::support::{ENDPOINTS, Upstream, code, events, place, request, serve};
use crate::support::guarded::eventually;
use crate::support::inspecting::naming;
use crate::support::serving::{Answer, Served};
use crate::support::web::{Then, Web, send as wire_send};

/// A token that nobody was ever given.
const SECRET: &str = "ghp_aB3dE6gH9kaB3dE6gH9kaB3dE6gH9kaB3dE6";

fn yaml(rules: &str) -> String {
    format!(
        "models: {{ providers: {{ local: {{ kind: mock, latency: 0ms, models: [plain, echo, spell] }} }} }}\ninspect:\n  {rules}\n"
    )
}

/// A request whose last message is this text.
fn asking(path: &str, model: &str, text: &str, streams: bool) -> Value {
    let mut body = request(path, model, streams);
    if path == "/v1/responses" {
        body["input"] = json!(text);
    } else {
        body["messages"][0]["content"] = json!(text);
    }
    if path == "/v1/messages" {
        body["max_tokens"] = json!(10_000);
    }
    body
}

fn send(served: &Served, path: &str, body: &Value, id: &str) -> Answer {
    let headers = [("x-request-id", id)];
    served.send("POST", path, &headers, &body.to_string())
}

/// What a model said, whichever the dialect.
fn said(path: &str, answer: &Answer, streams: bool) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    if !streams {
        let reply: Value = serde_json::from_str(&answer.body).unwrap();
        let at = match path {
            "/v1/messages" => "/content/0/text",
            "/v1/responses" => "/output/0/content/0/text",
            _ => "/choices/0/message/content",
        };
        return reply.pointer(at).unwrap().as_str().unwrap().to_owned();
    }
    let at = match path {
        "/v1/messages" => "/delta/text",
        "/v1/responses" => "/delta",
        _ => "/choices/0/delta/content",
    };
    let parts = events(answer).into_iter().filter_map(|data| {
        let event: Value = serde_json::from_str(&data).ok()?;
        Some(event.pointer(at)?.as_str()?.to_owned())
    });
    parts.collect()
}

#[test]
fn a_secret_in_a_reply_is_masked_also_where_each_character_has_its_own_event() {
    let served = serve(
        &yaml("keys: { secrets: all, on: results, action: mask, labels: [private] }"),
        &[],
    );
    // Longer than what is held back, so that parts go on before the end.
    let filler = "word ".repeat(600);
    let text = format!("{filler}{SECRET} and {filler}");
    let expect = text.replace(SECRET, "[masked: keys]");
    for (number, path) in ENDPOINTS.iter().enumerate() {
        for (model, streams) in [("echo", false), ("echo", true), ("spell", true)] {
            let body = asking(path, &format!("local/{model}"), &text, streams);
            let answer = send(
                &served,
                path,
                &body,
                &format!("r-{number}-{model}-{streams}"),
            );
            assert_eq!(
                said(path, &answer, streams),
                expect,
                "{path} {model} {streams}"
            );
            // The dialect of responses says a text again, whole, at its end.
            assert!(!answer.body.contains(SECRET), "{path} {model} {streams}");
        }
    }
    let (_, place) = served.stop();
    let journal = place.journal();
    let operation = journal.operation("r-0-spell-true");
    assert_eq!(operation["inspected"], json!(["keys:1"]), "{operation}");
    assert_eq!(operation["status"], "Success", "{operation}");
}

#[test]
fn words_that_several_events_make_up_are_found_and_what_has_none_goes_on_as_it_came() {
    let rule = "words: { patterns: ['MOCK response for'], on: results, action: mask }";
    let served = serve(&yaml(rule), &[]);
    let plain = serve(
        &yaml("none: { patterns: ['no such words'], action: deny }"),
        &[],
    );
    for path in ENDPOINTS {
        let body = asking(path, "local/plain", "hi", true);
        let answer = send(&served, path, &body, "r");
        let text = said(path, &answer, true);
        assert_eq!(text, "This is a [masked: words] load testing.", "{path}");
        let untouched = send(&plain, path, &body, "r");
        let text = said(path, &untouched, true);
        assert_eq!(text, "This is a MOCK response for load testing.", "{path}");
        assert_eq!(events(&untouched).len(), events(&answer).len(), "{path}");
    }
}

#[test]
fn a_reply_that_a_rule_denies_reaches_nobody() {
    let rule = "words: { patterns: ['MOCK response for'], on: results, action: deny }";
    let served = serve(&yaml(rule), &[]);
    for (number, path) in ENDPOINTS.iter().enumerate() {
        let body = asking(path, "local/plain", "hi", false);
        let answer = send(&served, path, &body, &format!("whole-{number}"));
        assert_eq!(answer.status, 403, "{answer:?}");
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(code(&error), "reply_withheld", "{path}");
        assert!(answer.body.contains("inspect:words"), "{answer:?}");
        let body = asking(path, "local/plain", "hi", true);
        let answer = send(&served, path, &body, &format!("stream-{number}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.contains("reply_withheld"), "{answer:?}");
        assert!(!answer.body.contains("MOCK"), "{answer:?}");
    }
    let (_, place) = served.stop();
    let journal = place.journal();
    for id in [
        "whole-0", "whole-1", "whole-2", "stream-0", "stream-1", "stream-2",
    ] {
        let operation = journal.operation(id);
        assert_eq!(operation["status"], "Failure", "{operation}");
        assert_eq!(operation["reason"], "reply_withheld", "{operation}");
        let used = operation["usage"]["output_tokens"].as_u64();
        assert!(used.is_some_and(|used| used > 0), "{operation}");
    }
}

#[test]
fn a_secret_in_a_request_is_masked_before_it_is_judged_and_sent() {
    let upstream = Upstream::start();
    let (openai, anthropic) = (
        upstream.configured("far", ""),
        upstream.configured("other", "/v1/messages"),
    );
    let yaml = format!(
        "models:\n  providers:\n    {openai}\n    {anthropic}\ninspect:\n  keys: {{ secrets: all, on: requests, action: mask, servers: [far] }}\n"
    );
    let served = serve(&yaml, &[]);
    for (id, path) in [("c", "/v1/chat/completions"), ("r", "/v1/responses")] {
        let body = asking(path, "far/echo", &format!("my key is {SECRET}"), false);
        let answer = send(&served, path, &body, id);
        assert_eq!(said(path, &answer, false), "my key is [masked: keys]");
        let got = upstream.web.requests().pop().unwrap();
        let sent = String::from_utf8(got.body).unwrap();
        assert!(!sent.contains(SECRET), "{sent}");
        assert_eq!(
            got.headers
                .iter()
                .filter(|(name, _)| name == "x-request-id")
                .count(),
            1
        );
    }
    // The rule is for the other provider alone.
    let body = asking("/v1/messages", "other/echo", SECRET, false);
    let answer = send(&served, "/v1/messages", &body, "o");
    assert_eq!(said("/v1/messages", &answer, false), SECRET);
    let (_, place) = served.stop();
    let journal = place.journal();
    let decision = journal.decision("r");
    assert_eq!(decision["inspected"], json!(["keys:1"]), "{decision}");
    assert!(!format!("{journal:?}").contains(SECRET));
}

#[test]
fn a_request_that_a_rule_denies_is_refused_and_one_that_asks_waits_for_a_person() {
    let rules = "ids: { patterns: ['CASE-[0-9]{6}'], on: requests, action: deny }\n  pay: { patterns: [payroll], on: requests, action: ask }";
    let served = Served::start_ruled(place(&yaml(rules), &[]));
    for path in ENDPOINTS {
        let body = asking(path, "local/plain", "about CASE-123456", false);
        let answer = send(&served, path, &body, "denied");
        assert_eq!(answer.status, 403, "{answer:?}");
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(code(&error), "inspection_denied", "{path}");
    }
    let body = asking("/v1/messages", "local/plain", "the payroll", false);
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| send(&served, "/v1/messages", &body, "asked"));
        let mut id = String::new();
        eventually("a person is asked", || {
            let listed = served.place.durward(&["approvals", "list", "--json"]);
            let first = listed.stdout.split(|byte| *byte == b'\n').next();
            let waiting: Option<Value> = first.and_then(|line| serde_json::from_slice(line).ok());
            id = waiting.map_or_else(String::new, |one| one["id"].as_str().unwrap().to_owned());
            !id.is_empty()
        });
        let said = served.place.durward(&["approvals", "deny", &id]);
        assert!(said.status.success(), "{said:?}");
        asked.join().unwrap()
    });
    assert_eq!(answer.status, 403, "{answer:?}");
    let (_, place) = served.stop();
    let journal = place.journal();
    let decision = journal.decision("asked");
    assert_eq!(decision["final_rule"], "inspect:pay", "{decision}");
}

fn outside(url: &str, rest: &str) -> String {
    yaml(&format!(
        "people: {{ checker: {{ url: \"{url}\", secret: sixteen-bytes-and-more, deadline: 5s }}, {rest} }}"
    ))
}

#[test]
fn a_checker_sees_requests_and_whole_replies_streamed_or_not() {
    let (web, asked) = naming(&["Ada Lovelace"]);
    let served = serve(&outside(&web.url(), "action: mask, on: results"), &[]);
    // More than is held back where no checker looks.
    let filler = "word ".repeat(600);
    let text = format!("{filler}Ada Lovelace and {filler}");
    let expect = text.replace("Ada Lovelace", "[masked: people]");
    let mut count = 0;
    for (number, path) in ENDPOINTS.iter().enumerate() {
        for (model, streams) in [("echo", false), ("echo", true), ("spell", true)] {
            let body = asking(path, &format!("local/{model}"), &text, streams);
            let id = format!("r-{number}-{model}-{streams}");
            let answer = send(&served, path, &body, &id);
            let said = said(path, &answer, streams);
            assert_eq!(said, expect, "{path} {model} {streams}");
            // The dialect of responses says a text again, whole, at its end.
            assert!(
                !answer.body.contains("Lovelace"),
                "{path} {model} {streams}"
            );
            count += 1;
        }
    }
    {
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), count, "once for each reply");
        assert_eq!(asked[0]["server"], "local");
        assert_eq!(asked[0]["direction"], "result");
        assert_eq!(asked[0]["method"], "chat/completions");
    }
    let (_, place) = served.stop();
    let journal = place.journal();
    for operation in journal.operations() {
        let inspected = operation["inspected"][0].as_str().unwrap();
        assert!(inspected.starts_with("people:"), "{operation}");
    }

    let served = serve(&outside(&web.url(), "action: mask, on: requests"), &[]);
    let body = asking(ENDPOINTS[0], "local/echo", "by Ada Lovelace", false);
    let answer = send(&served, ENDPOINTS[0], &body, "masked");
    assert_eq!(said(ENDPOINTS[0], &answer, false), "by [masked: people]");
}

#[test]
fn a_reply_that_could_not_be_checked_goes_on_only_where_the_rule_says_so() {
    let web = Web::start(|_, wire| {
        let reply = b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n";
        wire_send(wire, reply, Then::Keep)
    });
    for (unchecked, passes) in [("deny", false), ("allow", true)] {
        let rules = outside(&web.url(), "action: mask, on: results");
        let rules = rules.replace("deadline: 5s", &format!("unchecked: {unchecked}"));
        let served = serve(&rules, &[]);
        for streams in [false, true] {
            let body = asking(ENDPOINTS[0], "local/echo", "Ada", streams);
            let answer = send(&served, ENDPOINTS[0], &body, &format!("r-{streams}"));
            assert_eq!(answer.body.contains("Ada"), passes, "{answer:?}");
            let status = if passes || streams { 200 } else { 503 };
            assert_eq!(answer.status, status, "{answer:?}");
        }
        let (_, place) = served.stop();
        for operation in place.journal().operations() {
            assert_eq!(operation["inspected"], json!(["people:unchecked"]));
        }
    }
}
