//! Amazon Bedrock, played by a server on AWS's own library: it checks each signature and writes the frames of each stream.

use serde_json::{Value, json};

use super::foreign::{streamed, whole};
use super::support::{ENDPOINTS, Played, ask, code, events, place};
use crate::support::components;
use crate::support::serving::Served;

/// What is in the keys, and may be nowhere else.
const CANARY: &str = "c4nary";
const SAID: &str = "bonjour, été\n";

struct Bedrock(Played);

impl Bedrock {
    /// `None` where AWS's library is not installed.
    fn start() -> Option<Self> {
        let python = components::aws_python()?;
        Some(Self(Played::start(python, "bedrock.py", &[])))
    }

    fn before(&self, secret: &str) -> Served {
        let at = format!(
            "kind: bedrock, region: eu-west-3, base_url: \"http://127.0.0.1:{}\"",
            self.0.port
        );
        let yaml = format!(
            "models: {{ providers: {{ b: {{ {at}, access_key: AKIDEXAMPLE, secret_key: \"{secret}\", session_token: \"c4nary-token==\" }}, \
             t: {{ {at}, api_key: c4nary-bearer }} }}, deadline: 5s }}"
        );
        Served::start_ruled(place(&yaml, &[]))
    }
}

const SECRET: &str = "c4nary/secret+key";

/// Nothing of a key is in what was recorded or said.
fn is_clean(served: Served) {
    let (output, place) = served.stop();
    let said = format!("{output:?}");
    assert!(!said.contains(CANARY), "{said}");
    let journal = place.journal();
    for record in journal.operations() {
        assert!(!record.to_string().contains(CANARY), "{record}");
    }
}

#[test]
fn signed_calls_are_answered_whole_and_streamed_in_every_dialect() {
    let Some(bedrock) = Bedrock::start() else {
        return;
    };
    let served = bedrock.before(SECRET);
    for path in ENDPOINTS {
        // The name of a model has what a path has to escape, and a signature escapes again.
        for model in ["b/anthropic.claude-v1:0", "t/arn:aws:x/y~z", "b/ü"] {
            let answer = ask(&served, path, model, false);
            assert_eq!(answer.status, 200, "{path} {model} {answer:?}");
            let streams = ask(&served, path, model, true);
            assert_eq!(streams.status, 200, "{path} {model} {streams:?}");
            if path == "/v1/responses" {
                let text = answer.json()["output"][0]["content"][0]["text"].clone();
                assert_eq!(text, SAID, "{answer:?}");
                assert!(streams.body.contains("response.completed"), "{streams:?}");
            } else {
                let (answer, streams) = (whole(&answer.json()), streamed(&streams));
                assert_eq!(answer.text, SAID, "{path} {model}");
                assert_eq!(streams, answer, "{path} {model}");
            }
        }
    }
    // Each event of the caller's own dialect has its name.
    let own = ask(&served, "/v1/messages", "b/m", true);
    for name in ["message_start", "content_block_delta", "message_stop"] {
        assert!(own.body.contains(&format!("event: {name}\n")), "{own:?}");
    }
    let beta = [("anthropic-beta", "one-1, two-2")];
    let body =
        json!({"model": "b/m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
    let told = served.send("POST", "/v1/messages", &beta, &body.to_string());
    assert_eq!(
        whole(&told.json()).text,
        r#"["one-1", "two-2"]"#,
        "{told:?}"
    );
    let (_, place) = served.stop();
    let journal = place.journal();
    let operations = journal.operations();
    assert_eq!(operations.len(), 20);
    for one in operations {
        assert_eq!(one["usage"]["input_tokens"], 7, "{one}");
        assert_eq!(one["usage"]["output_tokens"], 5, "{one}");
    }
}

#[test]
fn a_wrong_secret_is_refused_and_told_as_the_providers_key() {
    let Some(bedrock) = Bedrock::start() else {
        return;
    };
    let served = bedrock.before("c4nary/another");
    for _ in 0..2 {
        let answer = ask(&served, ENDPOINTS[1], "b/m", false);
        assert_eq!(code(&answer.json()), "provider_credentials", "{answer:?}");
        assert!(!answer.body.contains(CANARY) && !answer.body.contains("canonical"));
    }
    is_clean(served);
}

#[test]
fn its_errors_are_told_by_their_kind() {
    let Some(bedrock) = Bedrock::start() else {
        return;
    };
    for path in ENDPOINTS {
        let served = bedrock.before(SECRET);
        for (model, status, label, says) in [
            ("throttled", 429, "provider_rate_limited", ""),
            ("invalid", 400, "provider_refused", "has to be positive"),
            ("long", 400, "context_too_long", "too long"),
            ("denied", 404, "provider_no_model", "no model"),
            ("down", 502, "provider_error", ""),
            ("throttled-later", 429, "provider_rate_limited", ""),
            ("odd-kind", 502, "provider_malformed", ""),
            ("expired", 502, "provider_credentials", ""),
        ] {
            let streams = model.starts_with("odd") || model.ends_with("later");
            let answer = ask(&served, path, &format!("b/{model}"), streams);
            assert_eq!(answer.status, status, "{path} {model} {answer:?}");
            assert_eq!(code(&answer.json()), label, "{path} {model}");
            assert!(answer.body.contains(says), "{path} {model} {answer:?}");
            assert!(!answer.body.contains(CANARY), "{path} {model} {answer:?}");
        }
        let answer = ask(&served, path, "b/m", false);
        assert_eq!(answer.status, 200, "the key is not lost: {answer:?}");
        is_clean(served);
    }
}

#[test]
fn a_stream_that_is_cut_or_broken_does_not_look_whole() {
    let Some(bedrock) = Bedrock::start() else {
        return;
    };
    let served = bedrock.before(SECRET);
    for path in ENDPOINTS {
        for (model, label) in [
            ("cut", "provider_cut"),
            ("broken", "provider_malformed"),
            ("broken-head", "provider_malformed"),
            ("huge", "provider_too_long"),
            ("no-bytes", "provider_malformed"),
            ("fails-later", "provider_error"),
        ] {
            let answer = ask(&served, path, &format!("b/{model}"), true);
            assert_eq!(answer.status, 200, "{path} {model} {answer:?}");
            let events = events(&answer);
            let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
            assert_eq!(code(&last), label, "{path} {model} {last}");
            assert!(events.concat().contains("bonjour"), "{path} {model}");
            for mark in ["[DONE]", "message_stop", "response.completed", "été"] {
                assert!(!answer.body.contains(mark), "{path} {model} {mark}");
            }
            let has_said = answer.body.contains("has had enough");
            assert_eq!(has_said, model == "fails-later", "{path} {answer:?}");
        }
    }
    is_clean(served);
}
