//! Defects of the gateway that this one takes the place of: each has a test, here or where its part is tested.

use std::io::BufReader;
use std::process::{Command, Stdio};

use super::support::{ENDPOINTS, Upstream, ask, events, place, read_until, request, serve};
use crate::support::guarded::{binary, eventually};
use crate::support::serving::{Served, read_head, write_request};
use crate::support::web::reply;

const MOCK: &str = "models: { providers: { a: { kind: mock, latency: 1ms } } }";

#[test]
fn a_page_of_another_origin_gets_no_grant() {
    let served = serve(MOCK, &[]);
    for path in ENDPOINTS {
        let body = request(path, "a/plain", false).to_string();
        let foreign = [("origin", "https://elsewhere.test"), ("cookie", "a=b")];
        for method in ["POST", "OPTIONS"] {
            let answer = served.send(method, path, &foreign, &body);
            assert!(answer.status >= 400, "{method} {path} {answer:?}");
            let granted = answer.headers.iter().filter(|(name, _)| {
                name.starts_with("access-control-allow") && name != "access-control-allow-methods"
            });
            assert_eq!(granted.count(), 0, "{method} {path} {answer:?}");
        }
    }
}

#[test]
fn no_part_of_a_key_prompt_or_reply_is_logged() {
    let upstream = Upstream::before(|request| {
        let key = request.header("authorization").unwrap();
        let is_bad = key.contains("qzbad");
        is_bad.then(|| reply("401 Unauthorized", "", "application/json", "{}"))
    });
    let provider = upstream.configured("far", ENDPOINTS[0]);
    let keys = "api_keys: [qzbad-0123456789, qzgood-0123456789]";
    let provider = provider.replace("api_key: \"${HOME}\"", keys);
    let place = place(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
    let log = std::fs::File::create(place.path("log")).unwrap();
    let mut process = Command::new(binary())
        .args([
            "-vv",
            "--config",
            "durward.yaml",
            "--state-dir",
            "state",
            "serve",
        ])
        .args(["--listen", "127.0.0.1:0"])
        .current_dir(&place.dir)
        .env("XDG_RUNTIME_DIR", place.runtime())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let line = read_until(&mut stdout, "listening at http://");
    let port = read_until(&mut stdout, "\n");
    let address = port
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{line}{port}"));
    let served = Served {
        place,
        address,
        process,
    };
    for streams in [false, true] {
        for model in ["echo", "fault-cut", "fault-500"] {
            let mut body = request(ENDPOINTS[0], &format!("far/{model}"), streams);
            body["messages"][0]["content"] = "qzprompt".into();
            let shown = [("authorization", "Bearer qzcaller")];
            served.send("POST", ENDPOINTS[0], &shown, &body.to_string());
        }
    }
    let (_, place) = served.stop();
    let log = std::fs::read_to_string(place.path("log")).unwrap();
    assert!(!log.is_empty(), "something is logged at this level");
    assert!(!log.contains("qz"), "{log}");
}

#[test]
fn every_stream_says_why_it_stopped_and_ends_with_its_mark_also_where_the_provider_forgets_it() {
    let upstream = Upstream::before(|request| {
        let is_chat = request.path == ENDPOINTS[0];
        is_chat.then(|| {
            let text = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
            reply("200 OK", "", "text/event-stream", text)
        })
    });
    let far = upstream.configured("far", ENDPOINTS[0]);
    let served = serve(
        &format!("models: {{ providers: {{ {far}, a: {{ kind: mock, latency: 0ms }} }} }}"),
        &[],
    );
    for (path, model, reason, mark) in [
        (
            ENDPOINTS[0],
            "a/plain",
            "\"finish_reason\":\"stop\"",
            "[DONE]",
        ),
        (
            ENDPOINTS[0],
            "far/x",
            "\"finish_reason\":\"stop\"",
            "[DONE]",
        ),
        (
            ENDPOINTS[1],
            "a/plain",
            "\"stop_reason\":\"end_turn\"",
            "message_stop",
        ),
        (
            ENDPOINTS[1],
            "far/x",
            "\"stop_reason\":\"end_turn\"",
            "message_stop",
        ),
        (
            ENDPOINTS[2],
            "a/plain",
            "\"status\":\"completed\"",
            "response.completed",
        ),
    ] {
        let answer = ask(&served, path, model, true);
        assert!(answer.body.contains(reason), "{path} {answer:?}");
        assert!(
            events(&answer).pop().unwrap().contains(mark),
            "{path} {answer:?}"
        );
    }
}

#[test]
fn a_call_has_one_record_however_long_its_reply() {
    let served = serve(MOCK, &[]);
    for path in ENDPOINTS {
        assert_eq!(ask(&served, path, "a/plain", true).status, 200);
    }
    let (_, place) = served.stop();
    let records = place.records();
    assert_eq!(
        (records.decisions().len(), records.operations().len()),
        (3, 3)
    );
}

#[test]
fn a_target_that_is_well_again_is_asked_again() {
    let sick = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let own = std::sync::Arc::clone(&sick);
    let upstream = Upstream::before(move |_| {
        let is_sick = own.load(std::sync::atomic::Ordering::SeqCst);
        is_sick.then(|| reply("500 x", "", "application/json", "{}"))
    });
    let far = upstream.configured("far", ENDPOINTS[0]);
    let yaml = format!(
        "models: {{ providers: {{ {far}, a: {{ kind: mock, latency: 0ms }} }}, aliases: {{ any: {{ tiers: [far/x, a/plain] }} }} }}\nbreaker: {{ failures: 2, open: 1s, open_max: 1s }}\n"
    );
    let served = serve(&yaml, &[]);
    let path = ENDPOINTS[0];
    eventually("the breaker opens", || {
        ask(&served, path, "any", false)
            .header("x-durward-spared")
            .is_some()
    });
    sick.store(false, std::sync::atomic::Ordering::SeqCst);
    eventually("a probe finds it well", || {
        ask(&served, path, "any", true).header("x-durward-target") == Some("far/x")
    });
    for streams in [false, true] {
        let answer = ask(&served, path, "any", streams);
        assert_eq!(
            answer.header("x-durward-target"),
            Some("far/x"),
            "{answer:?}"
        );
    }
}

#[test]
fn streams_under_way_come_to_their_end_before_the_program_does() {
    let yaml = "models: { providers: { a: { kind: mock, latency: 100ms } } }";
    for path in ENDPOINTS {
        let served = serve(yaml, &[]);
        let mut stream = served.connect();
        let body = request(path, "a/plain", true).to_string();
        write_request(&mut stream, "POST", path, &[], &body);
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).status, 200);
        read_until(&mut reader, "This");
        served.terminate();
        let rest = read_until(&mut reader, "0\r\n\r\n");
        let marks = ["[DONE]", "message_stop", "response.completed"];
        assert!(
            marks.iter().any(|mark| rest.contains(mark)),
            "{path} {rest}"
        );
        let (code, _) = served.ended();
        assert_eq!(code, Some(0), "{path}");
    }
}

#[test]
fn a_credential_that_nobody_asks_for_is_no_wait_for_a_store() {
    let served = serve(MOCK, &[]);
    let begun = std::time::Instant::now();
    let credential = [("authorization", "Bearer sk-magic-0123456789abcdef")];
    for path in ENDPOINTS {
        for streams in [false, true] {
            let body = request(path, "a/plain", streams).to_string();
            let answer = served.send("POST", path, &credential, &body);
            assert_eq!(answer.status, 200, "{path} {answer:?}");
        }
    }
    // The original waited 30 s for each.
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
}

#[test]
fn a_thousand_aliases_are_found_as_one_is() {
    let aliases: Vec<String> = (0..1_000)
        .map(|at| format!("m{at}: {{ tiers: [a/plain] }}"))
        .collect();
    let yaml = format!(
        "models: {{ providers: {{ a: {{ kind: mock, latency: 0ms }} }}, aliases: {{ {} }} }}",
        aliases.join(", ")
    );
    let served = serve(&yaml, &[]);
    for at in [0, 500, 999] {
        let answer = ask(&served, ENDPOINTS[at % 3], &format!("m{at}"), false);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let listed = served.send_get("/v1/models");
    assert!(listed["data"].as_array().unwrap().len() >= 1_000);
}

#[test]
fn a_request_id_that_comes_twice_is_two_calls() {
    let served = serve(MOCK, &[]);
    for path in ENDPOINTS {
        let body = request(path, "a/plain", false).to_string();
        for _ in 0..2 {
            let answer = served.send("POST", path, &[("x-request-id", "same")], &body);
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.header("x-request-id"), Some("same"));
        }
    }
    let (_, place) = served.stop();
    let records = place.journal();
    let ops: std::collections::HashSet<String> = records
        .operations()
        .iter()
        .map(|own| own["op"].to_string())
        .collect();
    assert_eq!(ops.len(), 6, "{records:?}");
}
