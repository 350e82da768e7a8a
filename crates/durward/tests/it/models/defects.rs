//! Defects that an attack on the model APIs has found, each with the name of what went wrong.

use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{ENDPOINTS, PAIRS, Upstream, code, place, read_until, request, serve};
use crate::support::guarded::{Place, most_resident_kib};
use crate::support::serving::{Answer, Served, read_head, write_request};
use crate::support::web::{Then, Web, reply};

/// A token that nobody was ever given.
const SECRET: &str = "ghp_aB3dE6gH9kaB3dE6gH9kaB3dE6gH9kaB3dE6";
const MASK: &str = "inspect: { keys: { secrets: all, on: results, action: mask } }";
const DENY: &str = "inspect: { keys: { secrets: all, on: results, action: deny } }";

fn ask(served: &Served, path: &str, model: &str, text: &str, streams: bool) -> Answer {
    let mut body = request(path, model, streams);
    match path {
        "/v1/responses" => body["input"] = json!(text),
        _ => body["messages"][0]["content"] = json!(text),
    }
    served.send("POST", path, &[], &body.to_string())
}

#[test]
fn a_further_target_was_asked_that_the_labels_of_the_session_rule_out() {
    let yaml = "
models:
  providers:
    own: { kind: mock, latency: 0ms }
    far: { kind: mock, latency: 0ms }
  aliases: { smart: { tiers: [own/fault-500, far/good] } }
inspect: { marks: { patterns: [confidential], on: requests, action: label, labels: [private] } }
";
    let deny = r#"{"id":"keep","effect":"deny","conditions":{"provider":"far","session_labels":"private"}}"#;
    let served = serve(yaml, &[deny]);
    let plain = ask(&served, ENDPOINTS[0], "smart", "hello", false);
    assert_eq!(plain.header("x-durward-target"), Some("far/good"));
    for streams in [false, true] {
        let answer = ask(&served, ENDPOINTS[0], "smart", "confidential", streams);
        assert_ne!(answer.status, 200, "{answer:?}");
        assert!(!answer.body.contains("MOCK"), "{answer:?}");
    }
}

#[test]
fn an_error_of_a_provider_was_not_looked_at() {
    for path in [ENDPOINTS[0], ENDPOINTS[1]] {
        let error = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": format!("no such thing: {SECRET}") } });
        let upstream = Upstream::before(move |_| {
            let kind = "application/json";
            Some(reply("400 Bad Request", "", kind, &error.to_string()))
        });
        let provider = upstream.configured("far", path);
        for (rules, told) in [(MASK, "[masked: keys]"), (DENY, "inspect:keys")] {
            let served = serve(
                &format!("models: {{ providers: {{ {provider} }} }}\n{rules}\n"),
                &[],
            );
            let answer = ask(&served, path, "far/m", "hi", false);
            assert!(answer.status >= 400, "{answer:?}");
            assert!(!answer.body.contains(SECRET), "{path} {answer:?}");
            assert!(answer.body.contains(told), "{path} {answer:?}");
        }
    }
}

#[test]
fn an_error_of_a_provider_that_repeats_its_key_was_passed_on() {
    const KEY: &str = "sk-a1b2c3d4e5f6";
    for (front, behind) in PAIRS {
        let upstream = Upstream::before(move |_| {
            let error = json!({ "type": "error", "error": { "type": "x", "message": format!("you sent {KEY}") } });
            let kind = "application/json";
            Some(reply("400 Bad Request", "", kind, &error.to_string()))
        });
        let provider = upstream.configured("far", behind);
        let provider = provider.replace("${HOME}", KEY);
        let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
        let answer = ask(&served, front, "far/m", "hi", false);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(upstream.count(), 1);
        assert!(!answer.body.contains(KEY), "{front} {behind} {answer:?}");
    }
}

#[test]
fn the_last_words_of_a_stream_in_another_dialect_were_not_looked_at() {
    // What a provider says when it gives up is said again in the words of the caller's dialect.
    for (front, behind) in PAIRS.into_iter().filter(|(front, behind)| front != behind) {
        let error = json!({ "type": "error", "error": { "type": "x", "message": format!("lost {SECRET}") } });
        let (parts, last) = match behind {
            "/v1/messages" => (
                vec![
                    json!({ "type": "message_start", "message": { "usage": { "input_tokens": 1 } } }),
                    json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "a" } }),
                ],
                event(&error),
            ),
            _ => (
                vec![json!({ "choices": [{ "index": 0, "delta": { "content": "a" } }] })],
                event(&error),
            ),
        };
        let first: String = parts.iter().map(event).collect();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let web = Web::start(move |_, wire| {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            wire.write_all(format!("{head}{first}").as_bytes())?;
            // The reply has begun before it fails: no other target is tried.
            let _ = released.lock().unwrap().recv();
            wire.write_all(last.as_bytes())?;
            Ok(Then::Close)
        });
        let upstream = Upstream {
            web,
            closed: Arc::default(),
        };
        let provider = upstream.configured("far", behind);
        let served = serve(
            &format!("models: {{ providers: {{ {provider} }} }}\n{MASK}\n"),
            &[],
        );
        let mut stream = served.connect();
        let body = request(front, "far/m", true).to_string();
        write_request(&mut stream, "POST", front, &[], &body);
        let mut reader = BufReader::new(stream);
        let head = read_head(&mut reader);
        assert_eq!(head.status, 200, "{head:?}");
        release.send(()).unwrap();
        let said = read_until(&mut reader, "0\r\n\r\n");
        assert!(!said.contains(SECRET), "{front} {said}");
        assert!(said.contains("lost [masked: keys]"), "{front} {said}");
    }
}

/// An event of a stream, named as the dialect that names them does.
fn event(data: &Value) -> String {
    let name = data["type"].as_str();
    let name = name
        .map(|name| format!("event: {name}\n"))
        .unwrap_or_default();
    format!("{name}data: {data}\n\n")
}

/// A request whose body stops before its end, as far as the server takes it.
fn stalled(served: &Served, path: &str, key: &str) -> TcpStream {
    const BODY_BYTES: usize = 16 * 1024 * 1024;
    let mut stream = served.connect();
    let wait = Some(Duration::from_millis(500));
    stream.set_write_timeout(wait).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: {key}\r\ncontent-length: {BODY_BYTES}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let blanks = vec![b' '; 1024 * 1024];
    for _ in 0..15 {
        // What finds no room is not read, and what is too long is refused.
        if stream.write_all(&blanks).is_err() {
            break;
        }
    }
    stream
}

fn key(place: &Place, more: &[&str]) -> String {
    let args = ["--no-config", "--state-dir", "state", "keys", "create"];
    let made = place.durward(&[&args[..], more].concat());
    assert!(made.status.success(), "{made:?}");
    format!("Bearer {}", String::from_utf8(made.stdout).unwrap().trim())
}

#[test]
fn j17_bodies_that_stalled_at_the_model_apis_and_before_registration_had_no_bound() {
    const STALLED: usize = 20;
    const WEIGHT_KIB_MAX: u64 = 80 * 1024;
    let yaml =
        "models: { providers: { a: { kind: mock, latency: 0ms } }, accounts: { register: open } }";
    let place = place(yaml, &[]);
    let (one, other) = (key(&place, &["one"]), key(&place, &["other"]));
    let served = Served::start_ruled(place);
    let stalls = [(ENDPOINTS[0], one.as_str()), ("/v1/auth/register", "none")];
    let streams: Vec<TcpStream> = std::thread::scope(|scope| {
        let writing: Vec<_> = stalls
            .iter()
            .flat_map(|stall| std::iter::repeat_n(stall, STALLED))
            .map(|(path, key)| {
                let served = &served;
                scope.spawn(move || stalled(served, path, key))
            })
            .collect();
        let done = writing.into_iter();
        done.map(|stream| stream.join().unwrap()).collect()
    });
    let weight = most_resident_kib(served.process.id());
    assert!(weight < WEIGHT_KIB_MAX, "{weight} KiB");
    // Another caller has room for a body of several pieces.
    let mut body = request(ENDPOINTS[0], "a/plain", false);
    body["messages"][0]["content"] = json!("x".repeat(300 * 1024));
    let headers = [("authorization", other.as_str())];
    let answer = served.send("POST", ENDPOINTS[0], &headers, &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    drop(streams);
}

#[test]
fn a_key_for_one_server_was_good_for_every_model() {
    let yaml = "
servers: { files: { command: sleep, args: [1000] } }
models: { providers: { a: { kind: mock, latency: 0ms, models: [plain] }, b: { kind: mock, latency: 0ms, models: [plain] } }, aliases: { both: { tiers: [a/plain, b/plain] } } }
";
    let place = place(yaml, &[]);
    let files = key(&place, &["files", "--scope", "files", "--unlisted"]);
    let b = key(&place, &["b", "--scope", "b", "--unlisted"]);
    let all = key(&place, &["all"]);
    let served = Served::start_ruled(place);
    let asked = |key: &str, model: &str| {
        let body = request(ENDPOINTS[0], model, false).to_string();
        let headers = [("authorization", key)];
        served.send("POST", ENDPOINTS[0], &headers, &body)
    };
    for model in ["a/plain", "b/plain", "both"] {
        let answer = asked(&files, model);
        assert_eq!(
            (answer.status, code(&answer.json())),
            (404, "model_not_found"),
            "{model}"
        );
        assert_eq!(asked(&all, model).status, 200, "{model}");
    }
    assert_eq!(asked(&b, "a/plain").status, 404);
    for model in ["b/plain", "both"] {
        let answer = asked(&b, model);
        assert_eq!(
            answer.header("x-durward-target"),
            Some("b/plain"),
            "{answer:?}"
        );
    }
    let listed = |key: &str| {
        let answer = served.send("GET", "/v1/models", &[("authorization", key)], "");
        let all: Value = answer.json();
        let rows = all["data"].as_array().unwrap().iter();
        let names: Vec<String> = rows
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect();
        names
    };
    assert!(listed(&files).is_empty());
    assert!(
        listed(&b)
            .iter()
            .all(|name| name == "both" || name.starts_with("b/"))
    );
}

/// Vertex takes several names for one model: what a rule says of one holds for all.
#[test]
fn a_model_of_vertex_that_is_denied_was_asked_by_another_of_its_names() {
    const NAMES: [&str; 3] = [
        "gemini-x",
        "google/gemini-x",
        "publishers/google/models/gemini-x",
    ];
    // Nobody listens there.
    let yaml = "models: { providers: { v: { kind: vertex, location: eu, project: p, api_key: k, base_url: \"http://127.0.0.1:9\" } } }";
    for denied in NAMES {
        let deny =
            format!(r#"{{"id":"no","effect":"deny","conditions":{{"model":"v/{denied}"}}}}"#);
        let served = serve(yaml, &[&deny]);
        for name in NAMES {
            let answer = ask(&served, ENDPOINTS[0], &format!("v/{name}"), "hello", false);
            assert_eq!(code(&answer.json()), "denied_by_rule", "{denied} {name}");
        }
        let other = ask(&served, ENDPOINTS[0], "v/gemini-y", "hello", false);
        assert_eq!(code(&other.json()), "provider_unreachable");
    }
}
