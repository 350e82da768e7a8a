//! What a provider does wrong, told in the words of each dialect, streamed and not, and where the provider speaks another one.

use super::support::{ENDPOINTS, PAIRS, Upstream, ask, code, events, serve};
use crate::support::authority::{Authority, secure};
use crate::support::serving::{Answer, Served};
use crate::support::web::{Request, reply};
use serde_json::{Value, json};

/// A gateway before one provider for each pair; `far0` is that of the first.
fn gateway(start: impl Fn() -> Upstream, more: &str) -> (Served, Vec<Upstream>) {
    let upstreams: Vec<Upstream> = PAIRS.iter().map(|_| start()).collect();
    let all = PAIRS.iter().zip(&upstreams).enumerate();
    let providers = all.map(|(at, ((_, spoken), upstream))| {
        let provider = upstream.configured(&format!("far{at}"), spoken);
        format!("    {provider}\n")
    });
    let providers: String = providers.collect();
    let served = serve(&format!("models:\n  providers:\n{providers}{more}"), &[]);
    (served, upstreams)
}

/// Asks a provider that has this fault, for every pair.
fn at_each(model: &str, streams: bool, check: impl Fn(&str, &Answer, &Upstream)) {
    let more =
        "  deadline: 1s\n  stall: 300ms\n  stream_max: 1s\nlimits: { response_bytes: 64KiB }\n";
    let (served, upstreams) = gateway(Upstream::start, more);
    for (at, ((path, spoken), upstream)) in PAIRS.iter().zip(&upstreams).enumerate() {
        let answer = ask(&served, path, &format!("far{at}/{model}"), streams);
        check(path, &answer, upstream);
        assert!(!upstream.web.requests().is_empty(), "{path} {spoken}");
    }
}

/// The call is answered with this status and label.
#[track_caller]
fn refused(model: &str, status: u16, label: &str) {
    for streams in [false, true] {
        at_each(model, streams, |path, answer, _| {
            told(path, answer, status, label)
        });
    }
}

#[track_caller]
fn told(path: &str, answer: &Answer, status: u16, label: &str) {
    assert_eq!(answer.status, status, "{path} {answer:?}");
    assert_eq!(code(&answer.json()), label, "{path}");
    assert_eq!(answer.header("x-should-retry"), Some("false"), "{path}");
    assert!(answer.header("x-request-id").is_some());
}

/// The stream begins, and ends with this label and without the mark of a good end.
#[track_caller]
fn broken_off(model: &str, label: &str) {
    at_each(model, true, |path, answer, _| {
        assert_eq!(answer.status, 200, "{path} {answer:?}");
        let events = events(answer);
        assert!(events.len() > 1, "{path} {events:?}");
        let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
        assert_eq!(code(&last), label, "{path} {last}");
        for mark in ["[DONE]", "message_stop", "response.completed"] {
            assert!(!answer.body.contains(mark), "{path} {mark}");
        }
        if path != "/v1/chat/completions" {
            assert!(answer.body.contains("event: error\n"), "{path}");
        }
    });
}

#[test]
fn a_429_is_told_with_its_wait_and_the_provider_rests() {
    for streams in [false, true] {
        at_each("fault-429", streams, |path, answer, upstream| {
            told(path, answer, 429, "provider_rate_limited");
            assert_eq!(answer.header("retry-after"), Some("1"));
            assert_eq!(upstream.count(), 1, "it is not asked again at once");
        });
    }
}

#[test]
fn a_500_is_tried_again_once() {
    for streams in [false, true] {
        at_each("fault-500", streams, |path, answer, upstream| {
            told(path, answer, 502, "provider_error");
            assert_eq!(upstream.count(), 2, "{path}");
            assert_eq!(answer.header("x-durward-attempts"), Some("2"));
        });
    }
}

#[test]
fn a_key_that_the_provider_does_not_take_is_not_told_as_the_callers() {
    refused("fault-401", 502, "provider_credentials");
}

#[test]
fn a_provider_that_never_begins_is_given_up() {
    refused("fault-silent", 504, "provider_timeout");
}

#[test]
fn a_stall_in_the_middle_ends_the_stream() {
    broken_off("fault-stall", "provider_stalled");
    at_each("fault-stall", false, |path, answer, upstream| {
        told(path, answer, 504, "provider_timeout");
        assert!(upstream.closed() > 0, "{path}: the provider's work ends");
    });
}

#[test]
fn a_cut_stream_does_not_look_whole() {
    broken_off("fault-cut", "provider_cut");
    at_each("fault-cut", false, |path, answer, _| {
        told(path, answer, 502, "provider_cut")
    });
}

#[test]
fn a_malformed_chunk_ends_the_stream() {
    broken_off("fault-garbled", "provider_malformed");
    at_each("fault-garbled", false, |path, answer, _| {
        told(path, answer, 502, "provider_malformed");
    });
}

#[test]
fn an_event_of_100_mb_is_not_read_to_its_end() {
    broken_off("fault-huge", "provider_too_long");
    at_each("fault-huge", false, |path, answer, upstream| {
        told(path, answer, 502, "provider_too_long");
        assert!(upstream.closed() > 0, "{path}");
    });
}

#[test]
fn a_stream_without_end_is_ended_and_so_is_such_a_body() {
    broken_off("fault-endless", "provider_endless");
    at_each("fault-endless", false, |path, answer, upstream| {
        told(path, answer, 502, "provider_too_long");
        assert!(upstream.closed() > 0, "{path}");
    });
}

#[test]
fn a_page_in_place_of_a_reply_is_malformed() {
    let page = || {
        let page = reply("200 OK", "", "text/html", "<html>");
        Upstream::before(move |_| Some(page.clone()))
    };
    let (served, _upstreams) = gateway(page, "");
    for streams in [false, true] {
        for (at, (path, _)) in PAIRS.iter().enumerate() {
            let answer = ask(&served, path, &format!("far{at}/x"), streams);
            told(path, &answer, 502, "provider_malformed");
        }
    }
}

/// The port of a server that answers whatever comes in the clear.
fn in_the_clear() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut socket, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    port
}

#[test]
fn without_a_secure_connection_nothing_is_sent() {
    let authority = Authority::new();
    let stranger = secure(&authority.certify("127.0.0.1", |_| ()), None);
    let elsewhere = secure(&authority.certify("elsewhere.test", |_| ()), None);
    let plain = in_the_clear();
    let kinds = ["openai", "anthropic"];
    let providers = kinds.map(|kind| {
        let at = |name: &str, port: u16, more: &str| {
            format!(
                "{name}-{kind}: {{ kind: {kind}, base_url: \"https://127.0.0.1:{port}/v1\", api_key: \"${{HOME}}\"{more} }}"
            )
        };
        [
            at("plain", plain, ""),
            at("stranger", stranger.port, ""),
            at("elsewhere", elsewhere.port, ", ca: ca.pem"),
        ]
        .join(", ")
    });
    let place = super::support::place(
        &format!(
            "models: {{ providers: {{ {} }}, deadline: 5s }}",
            providers.join(", ")
        ),
        &[],
    );
    std::fs::write(place.path("ca.pem"), authority.pem()).unwrap();
    let served = Served::start_ruled(place);
    for (path, spoken) in PAIRS {
        let kind = kinds[usize::from(spoken == ENDPOINTS[1])];
        for name in ["plain", "stranger", "elsewhere"] {
            for streams in [false, true] {
                let answer = ask(&served, path, &format!("{name}-{kind}/x"), streams);
                told(path, &answer, 502, "provider_unreachable");
            }
        }
    }
    assert!(stranger.requests().is_empty() && elsewhere.requests().is_empty());
}

#[test]
fn a_model_that_the_provider_does_not_have_is_told_and_the_next_target_asked() {
    let aliases: String = (0..PAIRS.len())
        .map(|at| format!("    next{at}: {{ tiers: [far{at}/fault-404, far{at}/plain] }}\n"))
        .collect();
    let (served, upstreams) = gateway(Upstream::start, &format!("  aliases:\n{aliases}"));
    for (at, (path, spoken)) in PAIRS.iter().enumerate() {
        for streams in [false, true] {
            let answer = ask(&served, path, &format!("far{at}/fault-404"), streams);
            assert_eq!(answer.status, 404, "{path} {spoken} {answer:?}");
            assert_eq!(answer.header("x-should-retry"), Some("false"));
            let message = answer.json()["error"]["message"].clone();
            assert_eq!(message, "there is no such model", "{path} {spoken}");
            let answer = ask(&served, path, &format!("next{at}"), streams);
            assert_eq!(answer.status, 200, "{path} {spoken} {answer:?}");
            let target = format!("far{at}/plain");
            assert_eq!(answer.header("x-durward-target"), Some(target.as_str()));
        }
        assert_eq!(
            upstreams[at].count(),
            6,
            "a missing model is not tried twice"
        );
    }
}

/// A reply of a model that calls itself otherwise than it was asked for.
fn imposed(request: &Request) -> Option<Vec<u8>> {
    let text = String::from_utf8(request.body.clone()).unwrap();
    let is_wrong = text.contains("\"x\"") && !text.contains("\"stream\":true");
    is_wrong.then(|| {
        let body = if request.path == ENDPOINTS[1] {
            json!({ "id": "m", "type": "message", "role": "assistant", "model": "other",
                "content": [{ "type": "text", "text": "hi" }], "stop_reason": "end_turn",
                "usage": { "input_tokens": 3, "output_tokens": 1 } })
        } else {
            json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "other",
                "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hi" },
                    "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4 } })
        };
        reply("200 OK", "", "application/json", &body.to_string())
    })
}

#[test]
fn a_reply_of_another_model_is_told_as_such_and_recorded_as_the_target_that_was_asked() {
    let (served, _upstreams) = gateway(|| Upstream::before(imposed), "");
    for (at, (path, spoken)) in PAIRS.iter().enumerate() {
        let answer = ask(&served, path, &format!("far{at}/x"), false);
        assert_eq!(answer.status, 200, "{path} {spoken} {answer:?}");
        assert_eq!(answer.json()["model"], "other", "{path} {spoken}");
        let target = format!("far{at}/x");
        assert_eq!(answer.header("x-durward-target"), Some(target.as_str()));
    }
}

#[test]
fn what_the_provider_says_of_a_wrong_request_is_passed_on() {
    let body = |path: &str| match path.ends_with("/messages") {
        true => {
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"temperature is out of range"}}"#
        }
        false => {
            r#"{"error":{"message":"temperature is out of range","type":"invalid_request_error","param":"temperature","code":null}}"#
        }
    };
    let wrong = || {
        Upstream::before(move |request| {
            let body = body(&request.path);
            Some(reply("400 Bad Request", "", "application/json", body))
        })
    };
    let (served, upstreams) = gateway(wrong, "");
    for (at, (path, spoken)) in PAIRS.iter().enumerate() {
        for streams in [false, true] {
            let answer = ask(&served, path, &format!("far{at}/x"), streams);
            assert_eq!(answer.status, 400, "{path} {answer:?}");
            if path == spoken {
                assert_eq!(answer.body, body(path), "{path}");
            } else {
                let message = &answer.json()["error"]["message"];
                assert_eq!(message, "temperature is out of range", "{path}");
            }
        }
        assert_eq!(
            upstreams[at].count(),
            2,
            "a wrong request is not sent twice"
        );
    }
}

#[test]
fn a_reply_that_does_not_tell_what_was_used_is_counted() {
    let (served, _upstreams) = gateway(
        Upstream::start,
        "  budgets: { all: { tokens: 1000000, per: all } }\n",
    );
    for (at, (path, spoken)) in PAIRS.iter().enumerate() {
        for streams in [false, true] {
            let model = format!("far{at}/fault-unmetered");
            let answer = ask(&served, path, &model, streams);
            assert_eq!(answer.status, 200, "{path} {spoken} {answer:?}");
        }
    }
    let (_, place) = served.stop();
    let records = place.records();
    let mut sum = 0;
    for operation in records.operations() {
        let number = |name: &str| operation["usage"][name].as_u64().unwrap_or(0);
        let (input, output) = (number("input_tokens"), number("output_tokens"));
        assert!(input > 0 && output >= 8, "{operation}");
        assert!(number("counted_tokens") >= input, "{operation}");
        sum += input + output;
    }
    assert_eq!(records.operations().len(), 2 * PAIRS.len());
    assert_eq!(super::support::used(&place), sum);
}
