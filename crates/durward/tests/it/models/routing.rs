//! Where calls go: tiers, rotation, fallback, keys, breakers.

use serde_json::json;

use super::support::{ENDPOINTS, Upstream, ask, code, events, serve};
use crate::support::serving::Served;
use crate::support::web::reply;

const MOCKS: &str = "
models:
  providers:
    a: { kind: mock, latency: 0ms }
    b: { kind: mock, latency: 0ms }
  aliases:
    turns: { tiers: [[a/one, b/two, a/three]], rotate: round_robin }
    ladder: { tiers: [a/fault-500, [b/fault-429, b/fault-401], a/good] }
    cut: { tiers: [a/fault-cut, b/good] }
    inner: { tiers: [turns, a/last] }
    patient: { tiers: [a/fault-silent, b/good], deadline: 300ms }
";

fn target(served: &Served, path: &str, model: &str, streams: bool) -> String {
    let answer = ask(served, path, model, streams);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("x-durward-target").unwrap().to_owned()
}

#[test]
fn round_robin_goes_from_target_to_target() {
    let served = serve(MOCKS, &[]);
    let seen: Vec<String> = (0..6)
        .map(|at| target(&served, ENDPOINTS[at % 3], "turns", at % 2 == 0))
        .collect();
    let once = ["a/one", "b/two", "a/three"];
    assert_eq!(seen, [once, once].concat());
}

#[test]
fn a_call_falls_back_before_the_first_byte() {
    let served = serve(MOCKS, &[]);
    for path in ENDPOINTS {
        for streams in [false, true] {
            let answer = ask(&served, path, "ladder", streams);
            assert_eq!(answer.status, 200, "{path} {answer:?}");
            assert_eq!(answer.header("x-durward-target"), Some("a/good"), "{path}");
            let attempts: u32 = answer
                .header("x-durward-attempts")
                .unwrap()
                .parse()
                .unwrap();
            assert!((4..=5).contains(&attempts), "{attempts}");
        }
    }
}

#[test]
fn after_the_first_byte_nothing_is_repeated() {
    let served = serve(MOCKS, &[]);
    for path in ENDPOINTS {
        let answer = ask(&served, path, "cut", true);
        assert_eq!(
            answer.header("x-durward-target"),
            Some("a/fault-cut"),
            "{path}"
        );
        let last = events(&answer).pop().unwrap();
        assert!(last.contains("provider_cut"), "{path} {last}");
        assert_eq!(target(&served, path, "cut", false), "b/good", "{path}");
    }
}

#[test]
fn one_deadline_holds_over_all_attempts() {
    let served = serve(MOCKS, &[]);
    for path in ENDPOINTS {
        let answer = ask(&served, path, "patient", false);
        assert_eq!(answer.status, 504, "{path} {answer:?}");
        assert_eq!(code(&answer.json()), "provider_timeout", "{path}");
        assert_eq!(answer.header("x-durward-attempts"), Some("1"), "{path}");
    }
}

#[test]
fn a_target_that_the_rules_refuse_is_passed_over() {
    let deny = r#"{"id":"no-one","effect":"deny","conditions":{"model":["a/one","b/two"]}}"#;
    let served = serve(MOCKS, &[deny]);
    for path in ENDPOINTS {
        assert_eq!(target(&served, path, "turns", false), "a/three", "{path}");
        assert_eq!(target(&served, path, "inner", true), "a/three", "{path}");
    }
}

#[test]
fn keys_go_round_and_one_that_is_not_taken_is_left_out() {
    for path in ENDPOINTS {
        let upstream = Upstream::before(|request| {
            let shown = request
                .header("authorization")
                .or(request.header("x-api-key"));
            let json = |status, headers| reply(status, headers, "application/json", "{}");
            match shown.unwrap().trim_start_matches("Bearer ") {
                "k-retired" => Some(json("401 Unauthorized", "")),
                "k-tired" => Some(json("429 Too Many Requests", "Retry-After: 3600\r\n")),
                "k-good" => None,
                other => panic!("{other}"),
            }
        });
        let provider = upstream.configured("far", path);
        let keys = "api_keys: [k-retired, k-tired, k-good]";
        let provider = provider.replace("api_key: \"${HOME}\"", keys);
        let served = serve(&format!("models:\n  providers:\n    {provider}\n"), &[]);
        let first = ask(&served, path, "far/x", false);
        assert_eq!(first.status, 200, "{path} {first:?}");
        assert_eq!(first.header("x-durward-attempts"), Some("3"), "{path}");
        for streams in [false, true] {
            let answer = ask(&served, path, "far/x", streams);
            assert_eq!(answer.header("x-durward-attempts"), Some("1"), "{path}");
        }
        assert_eq!(upstream.count(), 5, "{path}");
    }
}

#[test]
fn a_failing_target_is_spared_and_the_next_one_serves() {
    let yaml = format!("{MOCKS}breaker: {{ failures: 2, open: 1h, open_max: 1h }}\n");
    let served = serve(&yaml, &[]);
    let path = ENDPOINTS[0];
    // What fails together does not count, so this goes on for a second.
    crate::support::guarded::eventually("the breaker opens", || {
        let answer = ask(&served, path, "ladder", false);
        assert_eq!(answer.header("x-durward-target"), Some("a/good"));
        answer.header("x-durward-spared").is_some()
    });
    let metrics = served.send("GET", "/metrics", &[], "").body;
    for line in [
        "durward_breaker_events_total{target=\"ladder a/fault-500\",event=\"opened\"} 1",
        "durward_model_attempts_total{provider=\"a\",outcome=\"circuit_open\"} 1",
        "durward_model_tokens_total{provider=\"a\",kind=\"output\"}",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    let alone = ask(&served, path, "a/fault-500", false);
    assert_eq!(
        code(&alone.json()),
        "provider_error",
        "another name has a breaker of its own"
    );
}

#[test]
fn an_endpoint_that_a_provider_does_not_speak_is_passed_over_or_told() {
    let upstream = Upstream::start();
    let far = upstream.configured("far", "/v1/messages");
    let yaml = format!(
        "models:\n  providers:\n    {far}\n    near: {{ kind: mock, latency: 0ms }}\n  aliases: {{ any: {{ tiers: [far/x, near/y] }} }}\n"
    );
    let served = serve(&yaml, &[]);
    for path in ENDPOINTS {
        assert_eq!(target(&served, path, "any", true), "far/x", "{path}");
    }
    let body = |model: &str| json!({ "model": model, "input": "x" }).to_string();
    let answer = served.send("POST", "/v1/embeddings", &[], &body("any"));
    assert_eq!(
        answer.header("x-durward-target"),
        Some("near/y"),
        "{answer:?}"
    );
    let answer = served.send("POST", "/v1/embeddings", &[], &body("far/x"));
    assert_eq!(answer.status, 404, "{answer:?}");
    assert_eq!(code(&answer.json()), "endpoint_not_spoken");
}

#[test]
fn tokens_are_estimated_where_no_target_counts_them_and_said_to_be() {
    let upstream = Upstream::start();
    let far = upstream.configured("far", ENDPOINTS[0]);
    let yaml = format!(
        "models:\n  providers:\n    {far}\n    near: {{ kind: mock, latency: 0ms }}\n  aliases: {{ any: {{ tiers: [far/x, near/y] }} }}\n"
    );
    let served = serve(&yaml, &[]);
    let count = |model: &str| {
        let body =
            json!({ "model": model, "messages": [{ "role": "user", "content": "how many?" }] });
        served.send("POST", "/v1/messages/count_tokens", &[], &body.to_string())
    };
    let answer = count("far/x");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.json()["input_tokens"].as_u64().unwrap() > 0);
    assert_eq!(answer.header("x-durward-estimated"), Some("input_tokens"));
    assert_eq!(upstream.count(), 0, "nobody is asked");
    // A target that counts is asked.
    let answer = count("any");
    assert_eq!(answer.header("x-durward-estimated"), None, "{answer:?}");
    assert_eq!(answer.header("x-durward-target"), Some("near/y"));
}

#[test]
fn what_is_too_long_goes_to_a_model_that_reads_more_and_nothing_else_does() {
    let yaml = "
models:
  providers: { a: { kind: mock, latency: 0ms } }
  aliases:
    long: { tiers: [a/fault-context, a/next], overflow: [a/fault-context, a/larger] }
    plain: { tiers: [a/fault-context, a/next] }
    full: { tiers: [a/fault-context], overflow: [a/fault-context] }
    broken: { tiers: [a/fault-500, a/fault-404], overflow: [a/larger] }
";
    let served = serve(yaml, &[]);
    for path in ENDPOINTS {
        for streams in [false, true] {
            assert_eq!(target(&served, path, "long", streams), "a/larger", "{path}");
            assert_eq!(target(&served, path, "plain", streams), "a/next", "{path}");
            let answer = ask(&served, path, "full", streams);
            assert_eq!(answer.status, 400, "{path} {answer:?}");
            assert!(answer.body.contains("prompt is too long"), "{answer:?}");
            let answer = ask(&served, path, "broken", streams);
            assert_eq!(answer.status, 404, "it is not too long: {answer:?}");
        }
    }
    let (_, place) = served.stop();
    let records = place.records();
    let attempts: Vec<_> = records.operations()[0]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["reason"].as_str())
        .collect();
    let long = Some("context_too_long");
    assert_eq!(attempts, [long, long, None]);
}

#[test]
fn a_larger_model_that_the_rules_refuse_is_not_asked() {
    let deny = r#"{"id":"no-large","effect":"deny","conditions":{"model":"a/larger"}}"#;
    let only = r#"{"id":"no-small","effect":"deny","conditions":{"model":"a/small"}}"#;
    let yaml = "
models:
  providers: { a: { kind: mock, latency: 0ms } }
  aliases:
    long: { tiers: [a/fault-context], overflow: [a/larger] }
    small: { tiers: [a/small], overflow: [a/other] }
";
    let served = serve(yaml, &[deny, only]);
    for path in ENDPOINTS {
        let answer = ask(&served, path, "long", false);
        assert_eq!(answer.status, 400, "{path} {answer:?}");
        let answer = ask(&served, path, "small", false);
        assert_eq!(code(&answer.json()), "denied_by_rule", "{path} {answer:?}");
    }
}
