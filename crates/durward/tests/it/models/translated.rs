//! Callers of one dialect before a provider that speaks the other.

use serde_json::{Value, json};

use super::support::{Upstream, ask, code, events, request, serve};
use crate::support::serving::Served;
use crate::support::web::reply;

/// Each endpoint that can be asked, and the path of a provider that speaks another dialect.
const PAIRS: [(&str, &str); 3] = [
    ("/v1/chat/completions", "/v1/messages"),
    ("/v1/messages", "/v1/chat/completions"),
    ("/v1/responses", "/v1/messages"),
];

const SENTENCE: &str = "This is a MOCK response for load testing.";

fn before(upstream: &Upstream, path: &str) -> Served {
    let provider = upstream.configured("far", path);
    serve(
        &format!("models: {{ providers: {{ {provider} }}, stall: 2s }}"),
        &[],
    )
}

/// What a whole reply says.
fn said(reply: &Value) -> &str {
    let chat = reply.pointer("/choices/0/message/content");
    let messages = || reply.pointer("/content/0/text");
    let text = chat.or_else(messages);
    let text = text.or_else(|| reply.pointer("/output/0/content/0/text"));
    text.and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn a_provider_of_another_dialect_answers_whole_and_streamed() {
    for (path, spoken) in PAIRS {
        let upstream = Upstream::start();
        let served = before(&upstream, spoken);
        let answer = ask(&served, path, "far/plain", false);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(said(&answer.json()), SENTENCE, "{answer:?}");
        let body = request(path, "far/plain", true).to_string();
        let own = [("openai-beta", "x"), ("anthropic-beta", "y")];
        let answer = served.send("POST", path, &own, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let events = events(&answer);
        let text: String = events
            .iter()
            .filter_map(|data| {
                let data: Value = serde_json::from_str(data).ok()?;
                let chat = data.pointer("/choices/0/delta/content");
                let messages = chat.or_else(|| data.pointer("/delta/text"));
                let text = messages.or_else(|| data.get("delta"))?;
                text.as_str().map(str::to_owned)
            })
            .collect();
        assert_eq!(text, SENTENCE, "{answer:?}");
        let last = events.last().unwrap();
        let ends = ["[DONE]", "message_stop", "response.completed"];
        assert!(ends.iter().any(|end| last.contains(end)), "{last}");
        assert!(!answer.body.contains("\"usage\"") || path != PAIRS[0].0);
        let (_, place) = served.stop();
        let records = place.records();
        let operations = records.operations();
        let used = operations
            .iter()
            .map(|record| &record["usage"]["output_tokens"]);
        assert_eq!(used.collect::<Vec<_>>(), [&json!(8), &json!(8)]);
        for sent in upstream.web.requests() {
            assert_eq!(sent.path, spoken);
            assert_eq!(sent.header("openai-beta"), None);
        }
    }
}

#[test]
fn what_cannot_be_said_is_refused_by_its_name_and_goes_to_a_provider_that_understands_it() {
    for (path, spoken, name, value) in [
        (PAIRS[0].0, PAIRS[0].1, "n", json!(7)),
        (PAIRS[1].0, PAIRS[1].1, "mcp_servers", json!([{}])),
        (PAIRS[2].0, PAIRS[2].1, "conversation", json!("c")),
    ] {
        let upstream = Upstream::start();
        let far = upstream.configured("far", spoken);
        let near = upstream.configured("near", path);
        let yaml = format!(
            "models: {{ providers: {{ {far}, {near} }}, aliases: {{ both: {{ tiers: [far/plain, near/plain] }} }} }}"
        );
        let served = serve(&yaml, &[]);
        let mut body = request(path, "far/plain", false);
        body[name] = value;
        let answer = served.send("POST", path, &[], &body.to_string());
        assert_eq!(answer.status, 400, "{answer:?}");
        let error = answer.json();
        assert_eq!(code(&error), "not_expressible");
        let message = error.pointer("/error/message").and_then(Value::as_str);
        assert!(message.unwrap().starts_with(name), "{error}");
        assert_eq!(upstream.count(), 0, "nothing was sent");
        body["model"] = json!("both");
        let answer = served.send("POST", path, &[], &body.to_string());
        assert_eq!(answer.header("x-durward-target"), Some("near/plain"));
        assert_eq!(said(&answer.json()), SENTENCE, "{answer:?}");
    }
}

#[test]
fn hints_that_were_left_out_are_named() {
    let upstream = Upstream::start();
    let served = before(&upstream, "/v1/messages");
    let mut body = request("/v1/chat/completions", "far/plain", false);
    body["prompt_cache_key"] = json!("k");
    for streams in [false, true] {
        body["stream"] = json!(streams);
        let answer = served.send("POST", "/v1/chat/completions", &[], &body.to_string());
        assert_eq!(
            answer.header("x-durward-left-out"),
            Some("prompt_cache_key"),
            "{answer:?}"
        );
    }
}

#[test]
fn faults_of_a_provider_are_told_in_the_dialect_of_the_caller() {
    for (path, spoken) in PAIRS {
        let upstream = Upstream::before(|request| {
            let is_odd = request.body.windows(4).any(|part| part == b"odd!");
            is_odd.then(|| {
                let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"that is odd"}}"#;
                format!(
                    "HTTP/1.1 400 x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )
                .into_bytes()
            })
        });
        let served = before(&upstream, spoken);
        for (model, expect) in [
            ("far/fault-429", "provider_rate_limited"),
            ("far/fault-500", "provider_error"),
            ("far/odd!", "provider_refused"),
        ] {
            for streams in [false, true] {
                let answer = ask(&served, path, model, streams);
                assert_eq!(code(&answer.json()), expect, "{model}: {answer:?}");
            }
        }
        let answer = ask(&served, path, "far/odd!", false);
        assert_eq!(answer.status, 400);
        assert!(answer.body.contains("that is odd"), "{answer:?}");
    }
}

#[test]
fn a_stream_of_another_dialect_that_is_cut_stalls_or_is_garbled_says_so() {
    for (path, spoken) in PAIRS {
        let upstream = Upstream::start();
        let served = before(&upstream, spoken);
        for (model, expect) in [
            ("far/fault-cut", "provider_cut"),
            ("far/fault-stall", "provider_stalled"),
            ("far/fault-garbled", "provider_malformed"),
        ] {
            let answer = ask(&served, path, model, true);
            let last = events(&answer).pop().unwrap();
            let error: Value = serde_json::from_str(&last).unwrap();
            assert_eq!(code(&error), expect, "{model}: {answer:?}");
            let ends = ["[DONE]", "message_stop", "response.completed"];
            assert!(!ends.iter().any(|end| answer.body.contains(end)));
        }
        let (_, place) = served.stop();
        for record in place.records().operations() {
            assert_eq!(record["usage"]["output_tokens"], 1, "{record}");
        }
    }
}

#[test]
fn a_whole_reply_that_is_none_is_no_success() {
    for (path, spoken) in PAIRS {
        let upstream = Upstream::before(|_| {
            let body = r#"{"stop_reason":"end_turn","choices":[]}"#;
            Some(
                format!(
                    "HTTP/1.1 200 x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )
                .into_bytes(),
            )
        });
        let served = before(&upstream, spoken);
        let answer = ask(&served, path, "far/plain", false);
        assert_eq!(answer.status, 502, "{answer:?}");
        assert_eq!(code(&answer.json()), "provider_malformed");
    }
}

/// A provider that answers every request with this body.
fn answering(body: &'static str) -> Upstream {
    Upstream::before(move |_| Some(reply("200 OK", "", "application/json", body)))
}

#[test]
fn what_nobody_knows_in_a_reply_is_named_and_the_rest_goes_on() {
    let messages = r#"{"id":"m","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"text","text":"found"}],"stop_reason":"pause_turn","usage":{"input_tokens":400,"output_tokens":100}}"#;
    let upstream = answering(messages);
    let served = before(&upstream, "/v1/messages");
    let answer = ask(&served, "/v1/chat/completions", "far/x", false);
    assert_eq!(answer.status, 200, "{answer:?}");
    let said = answer.json();
    assert_eq!(said["choices"][0]["message"]["content"], "found");
    assert_eq!(said["choices"][0]["finish_reason"], "stop");
    assert_eq!(said["usage"]["total_tokens"], 500);
    assert_eq!(
        answer.header("x-durward-left-out"),
        Some("content.server_tool_use, stop_reason.pause_turn")
    );
    assert_eq!(upstream.count(), 1, "it is not asked again");
    let cut = r#"{"id":"c","choices":[{"message":{"tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{\"a\": [1,2"}}]},"finish_reason":"length"}]}"#;
    let upstream = answering(cut);
    let served = before(&upstream, "/v1/chat/completions");
    let answer = ask(&served, "/v1/messages", "far/x", false);
    assert_eq!(answer.status, 200, "{answer:?}");
    let said = answer.json();
    assert_eq!(said["stop_reason"], "max_tokens");
    assert_eq!(said["content"][0]["input"], json!({ "a": [1, 2] }));
    assert_eq!(upstream.count(), 1, "it is not asked again");
}

#[test]
fn budgets_reserve_and_settle_what_a_translated_call_uses() {
    let upstream = Upstream::start();
    let far = upstream.configured("far", "/v1/messages");
    let yaml = format!(
        "models: {{ providers: {{ {far} }}, budgets: {{ each: {{ tokens: 1000, window: 24h }} }} }}"
    );
    let served = serve(&yaml, &[]);
    let mut body = request("/v1/chat/completions", "far/plain", true);
    body["max_tokens"] = json!(100);
    for _ in 0..3 {
        let answer = served.send("POST", "/v1/chat/completions", &[], &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    body["max_tokens"] = json!(990);
    let answer = served.send("POST", "/v1/chat/completions", &[], &body.to_string());
    assert_eq!(code(&answer.json()), "budget_spent");
    let answer = ask(&served, "/v1/chat/completions", "far/plain", false);
    assert_eq!(
        answer.status, 429,
        "the longest reply is not left: {answer:?}"
    );
}
