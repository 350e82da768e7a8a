//! A checker of `inspect:`: a program that is asked over HTTP about what is sent and answered. The one of
//! `docs/examples/checker` is a real process in another language; what goes wrong is told by a server of the tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp::client::Era;
use serde_json::{Value, json};

use crate::support::approver::Denier;
use crate::support::guarded::{LATEST, Place, call_works, echo, end, eventually, line, pause};
use crate::support::inspecting::{self, called, guarded, guarded_in, saying, text};
use crate::support::refusals::told;
use crate::support::serving::{Served, call, modern_call, modern_headers};
use crate::support::web::{Then, Web, send};

const SECRET: &str = "a secret of sixteen bytes and more";

/// The checker of the examples, which finds these words.
struct Example {
    child: Child,
    url: String,
}

impl Example {
    fn start(place: &Place, words: &[&str]) -> Self {
        let file = place.path("words.txt");
        fs::write(&file, words.join("\n")).unwrap();
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/examples/checker/checker.py"
        );
        let mut child = Command::new("python3")
            .args([script, "--port", "0", "--words"])
            .arg(&file)
            .env("CHECKER_SECRET", SECRET)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut said).unwrap();
        let url = said
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
        Self { child, url }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server.
type Starts = fn() -> Web;

fn write(place: &Place, url: &str, rest: &str) {
    let checker = format!("{{ url: \"{url}\", secret: \"{SECRET}\", deadline: 5s }}");
    inspecting::write(place, &format!("people: {{ checker: {checker}, {rest} }}"));
}

#[test]
fn what_the_example_finds_in_calls_reaches_neither_server_nor_journal() {
    for era in [LATEST, Era::Modern] {
        let place = Place::new();
        let example = Example::start(&place, &["Ada Lovelace", "project x"]);
        write(&place, &example.url, "action: mask, on: requests");
        let mut client = guarded_in(&place, era);
        let answer = called(&mut client, "tell ada lovelace of Project X");
        let masked = "tell [masked: people] of [masked: people]";
        assert_eq!(text(&answer), masked);
        assert_eq!(text(&called(&mut client, "nobody")), "nobody");
        assert_eq!(end(client).code, Some(0));
        let reached = fs::read_to_string(place.path("count")).unwrap();
        assert!(!reached.contains("lovelace"), "{reached}");
        let journal = place.journal();
        let decisions = journal.decisions();
        assert_eq!(decisions[0]["inspected"], json!(["people:2"]));
        assert_eq!(decisions[1]["inspected"], Value::Null);
        let digests: Vec<&Value> = decisions.iter().map(|d| &d["arguments_digest"]).collect();
        assert_ne!(digests[0], digests[1]);
    }
}

#[test]
fn what_the_example_finds_in_answers_is_masked_or_withheld() {
    let place = Place::new();
    let example = Example::start(&place, &["grace hopper"]);
    write(&place, &example.url, "action: mask, on: results");
    let mut client = guarded(&place);
    let answer = called(&mut client, "by Grace Hopper, herself");
    assert_eq!(text(&answer), "by [masked: people], herself");
    write(&place, &example.url, "action: deny, on: results");
    assert_eq!(end(client).code, Some(0));
    let mut client = guarded(&place);
    let answer = called(&mut client, "by Grace Hopper");
    assert_eq!(told(&answer)["reason"], "inspection_denied", "{answer}");
    assert_eq!(told(&answer)["final_rule"], "inspect:people", "{answer}");
    assert!(!answer.to_string().contains("Hopper"), "{answer}");
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let found: Vec<&Value> = journal
        .operations()
        .iter()
        .map(|o| &o["inspected"])
        .collect();
    assert_eq!(found, [&json!(["people:1"]), &json!(["people:1"])]);
}

/// Whether it names the texts or means the message as a whole.
#[test]
fn what_a_checker_denies_is_in_no_record_and_no_answer() {
    for texts in [json!(["Ada"]), json!([])] {
        let place = Place::new();
        let (web, _) = saying(move |question| {
            let found = question["content"].to_string().contains("Ada");
            json!({ "found": found, "texts": if found { texts.clone() } else { json!([]) } })
        });
        write(&place, &web.url(), "action: deny, on: requests");
        let mut client = guarded(&place);
        for (method, params) in [
            ("resources/read", json!({ "uri": "mock://echo/Ada" })),
            (
                "tools/call",
                json!({ "name": "echo", "arguments": { "text": "x", "path": "/srv/Ada/x" } }),
            ),
        ] {
            let reply = client.request(method, params).unwrap();
            assert!(!reply.line().contains("Ada"), "{}", reply.line());
        }
        assert_eq!(end(client).code, Some(0));
        let journal = place.journal();
        let decisions = journal.decisions();
        assert_eq!(decisions.len(), 2);
        for decision in decisions {
            assert!(!decision.to_string().contains("Ada"), "{decision}");
            assert!(
                decision.to_string().contains("[masked: people]"),
                "{decision}"
            );
        }
    }
}

#[test]
fn a_question_names_the_call() {
    let place = Place::new();
    let (web, asked) = saying(|_| json!({"found": false}));
    write(&place, &web.url(), "action: deny");
    let mut client = guarded(&place);
    call_works(&mut client, "hello");
    assert_eq!(end(client).code, Some(0));
    let asked = asked.lock().unwrap();
    let ways: Vec<&Value> = asked
        .iter()
        .map(|question| &question["direction"])
        .collect();
    assert_eq!(ways, ["request", "result"]);
    for question in asked.iter() {
        assert_eq!(question["version"], 1);
        assert_eq!(question["rule"], "people");
        assert_eq!(question["server"], "echo");
        assert_eq!(question["method"], "tools/call");
        assert_eq!(question["name"], "echo");
        assert!(question["caller"].is_string(), "{question}");
    }
    assert_eq!(asked[0]["content"]["arguments"]["text"], "hello");
    assert_eq!(asked[1]["content"]["content"][0]["text"], "hello");
}

#[test]
fn a_checker_that_knows_another_secret_is_not_believed_to_have_looked() {
    let place = Place::new();
    let example = Example::start(&place, &["ada"]);
    write(&place, &example.url, "action: deny, on: requests");
    let file = place.path("durward.yaml");
    let text_of = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text_of.replace(SECRET, "another secret of sixteen bytes"),
    )
    .unwrap();
    let mut client = guarded(&place);
    let answer = called(&mut client, "nobody");
    assert_eq!(
        told(&answer)["reason"],
        "inspection_unavailable",
        "{answer}"
    );
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted(), Vec::<Value>::new());
}

#[test]
fn a_person_is_asked_about_what_a_checker_found() {
    let place = Place::new();
    let (web, _) = saying(|question| {
        let text = question["content"]["arguments"]["text"].as_str();
        json!({"found": text == Some("send it")})
    });
    write(&place, &web.url(), "action: ask, on: requests");
    let mut client = guarded(&place);
    call_works(&mut client, "nothing");
    let _denier = Denier::start(&place.runtime());
    let answer = called(&mut client, "send it");
    assert_eq!(told(&answer)["reason"], "approval_denied", "{answer}");
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let decisions = journal.decisions();
    assert_eq!(decisions[0]["hitl_outcome"], Value::Null);
    assert_eq!(decisions[1]["final_rule"], "inspect:people");
    assert_eq!(decisions[1]["hitl_outcome"], "user_denied");
}

#[test]
fn a_message_that_could_not_be_checked_is_refused_unless_the_rule_lets_it_pass() {
    // Each is another way not to answer.
    let wrong: [(&str, Starts); 4] = [
        ("status", || {
            Web::start(|_, wire| {
                let reply = b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n";
                send(wire, reply, Then::Keep)
            })
        }),
        ("no JSON", || saying(|_| json!("found")).0),
        ("no verdict", || saying(|_| json!({"texts": []})).0),
        ("silence", || {
            Web::start(|_, _| {
                pause(60_000);
                Ok(Then::Close)
            })
        }),
    ];
    for (what, web) in wrong {
        let web = web();
        for (unchecked, passes) in [("deny", false), ("allow", true)] {
            let place = Place::new();
            write(&place, &web.url(), "action: mask, on: requests");
            let file = place.path("durward.yaml");
            let deadline = if what == "silence" { "200ms" } else { "20s" };
            let text_of = fs::read_to_string(&file).unwrap();
            let said = format!("deadline: {deadline}, unchecked: {unchecked}");
            fs::write(&file, text_of.replace("deadline: 5s", &said)).unwrap();
            let mut client = guarded(&place);
            let answer = called(&mut client, "x");
            if passes {
                assert_eq!(text(&answer), "x", "{what}");
            } else {
                let data = told(&answer);
                assert_eq!(data["reason"], "inspection_unavailable", "{what}: {answer}");
                assert_eq!(data["retryable"], true, "{what}: {answer}");
            }
            assert_eq!(end(client).code, Some(0), "{what}");
            let journal = place.journal();
            let decision = journal.decisions()[0].clone();
            assert_eq!(decision["inspected"], json!(["people:unchecked"]), "{what}");
        }
    }
}

#[test]
fn calls_that_a_checker_is_asked_about_do_not_wait_for_one_another() {
    let place = Place::new();
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let (web, asked) = saying(move |question| {
        while question["content"]["arguments"]["text"] == "slow" && !gate.load(Ordering::SeqCst) {
            pause(5);
        }
        json!({"found": false})
    });
    write(&place, &web.url(), "action: deny, on: requests");
    let mut client = guarded(&place);
    let slow = client.send_request("tools/call", echo("slow")).unwrap();
    let quick = client.send_request("tools/call", echo("quick")).unwrap();
    assert_eq!(line(&mut client)["id"].to_string(), quick);
    is_open.store(true, Ordering::SeqCst);
    assert_eq!(line(&mut client)["id"].to_string(), slow);
    assert_eq!(end(client).code, Some(0));
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[test]
fn a_call_that_is_taken_back_while_it_is_checked_is_never_sent() {
    let place = Place::new();
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let (web, asked) = saying(move |question| {
        while question["content"]["arguments"]["text"] == "taken" && !gate.load(Ordering::SeqCst) {
            pause(5);
        }
        json!({"found": false})
    });
    write(&place, &web.url(), "action: deny, on: requests");
    let mut client = guarded(&place);
    let id = client.send_request("tools/call", echo("taken")).unwrap();
    eventually("the checker is asked", || !asked.lock().unwrap().is_empty());
    let id: Value = serde_json::from_str(&id).unwrap();
    let cancelled = json!({"requestId": id});
    client
        .notify("notifications/cancelled", &cancelled)
        .unwrap();
    call_works(&mut client, "after");
    is_open.store(true, Ordering::SeqCst);
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 1);
}

#[test]
fn over_http_in_both_generations_and_in_batches() {
    let place = Place::new();
    let example = Example::start(&place, &["Ada"]);
    write(&place, &example.url, "action: mask");
    let served = Served::start_configured(place);
    let session = served.open("2025-03-26");
    let answer = served.post(Some(&session), &call("1", "to Ada")).json();
    assert_eq!(text(&answer), "to [masked: people]");
    let batch = format!("[{},{}]", call("2", "Ada"), call("3", "Eve"));
    let answers = served.post(Some(&session), &batch).json();
    assert!(!answers.to_string().contains("Ada"), "{answers}");
    let headers = modern_headers("tools/call", "echo");
    let modern = served.send("POST", "/mcp/echo", &headers, &modern_call("4", "by Ada"));
    assert_eq!(text(&modern.json()), "by [masked: people]");
}
