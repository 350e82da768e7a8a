//! What a provider does wrong, told in the words of each dialect, streamed and not.

use super::support::{ENDPOINTS, Upstream, ask, code, events, serve};
use crate::support::serving::Answer;
use serde_json::Value;

/// Asks a provider that has this fault at each endpoint.
fn at_each(model: &str, streams: bool, check: impl Fn(&str, &Answer, &Upstream)) {
    for path in ENDPOINTS {
        let upstream = Upstream::start();
        let provider = upstream.configured("far", path);
        let yaml = format!(
            "models:\n  providers:\n    {provider}\n  deadline: 1s\n  stall: 300ms\n  stream_max: 1s\nlimits: {{ response_bytes: 64KiB }}\n"
        );
        let served = serve(&yaml, &[]);
        let answer = ask(&served, path, &format!("far/{model}"), streams);
        check(path, &answer, &upstream);
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
fn a_stream_without_end_is_ended() {
    broken_off("fault-endless", "provider_endless");
}

#[test]
fn a_page_in_place_of_a_reply_is_malformed() {
    for streams in [false, true] {
        for path in ENDPOINTS {
            let page = crate::support::web::reply("200 OK", "", "text/html", "<html>");
            let upstream = Upstream::before(move |_| Some(page.clone()));
            let provider = upstream.configured("far", path);
            let served = serve(&format!("models:\n  providers:\n    {provider}\n"), &[]);
            let answer = ask(&served, path, "far/x", streams);
            told(path, &answer, 502, "provider_malformed");
        }
    }
}

#[test]
fn without_a_secure_connection_nothing_is_sent() {
    let upstream = Upstream::start();
    let provider = upstream
        .configured("far", "")
        .replace("http://", "https://");
    let served = serve(&format!("models:\n  providers:\n    {provider}\n"), &[]);
    let answer = ask(&served, ENDPOINTS[0], "far/x", false);
    told(ENDPOINTS[0], &answer, 502, "provider_unreachable");
    assert_eq!(upstream.count(), 0);
}

#[test]
fn what_the_provider_says_of_a_wrong_request_is_passed_on() {
    let body = r#"{"error":{"message":"temperature is out of range","type":"invalid_request_error","param":"temperature","code":null}}"#;
    let reply = crate::support::web::reply("400 Bad Request", "", "application/json", body);
    let upstream = Upstream::before(move |_| Some(reply.clone()));
    let provider = upstream.configured("far", "");
    let served = serve(&format!("models:\n  providers:\n    {provider}\n"), &[]);
    let answer = ask(&served, ENDPOINTS[0], "far/x", false);
    assert_eq!((answer.status, answer.body.as_str()), (400, body));
    assert_eq!(upstream.count(), 1, "a wrong request is not sent twice");
}
