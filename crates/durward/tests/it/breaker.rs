//! A server that fails too often in a row is spared for a while, and its clients are told so.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::guarded::{Place, eventually};
use crate::support::serving::{Served, call};
use crate::support::web::{Then, Web, behave, json_reply, send};
use serde_json::json;

/// A server that hangs up on calls while `fails`, and answers the text `wrong` with an error.
fn flaky(fails: &Arc<AtomicBool>) -> Web {
    let fails = Arc::clone(fails);
    Web::start(move |request, wire| match request.text().as_deref() {
        Some("wrong") => {
            let error = json!({"code": -32602, "message": "no such text"});
            let answer = json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": error});
            send(wire, &json_reply(&answer), Then::Keep)
        }
        Some(_) if fails.load(Ordering::SeqCst) => Ok(Then::Close),
        _ => behave(request, wire),
    })
}

fn served(web: &Web, breaker: &str) -> Served {
    let place = Place::new();
    let url = web.url();
    let text = format!(
        "servers: {{ echo: {{ url: \"{url}\" }} }}\nbreaker: {{ failures: 3, {breaker} }}\n"
    );
    fs::write(place.path("durward.yaml"), text).unwrap();
    Served::start_configured(place)
}

#[track_caller]
fn counted(served: &Served, event: &str, count: u64) {
    let metrics = served.send("GET", "/metrics", &[], "").body;
    let line =
        format!("durward_breaker_events_total{{target=\"echo\",event=\"{event}\"}} {count}\n");
    assert!(metrics.contains(&line), "{line}{metrics}");
}

#[test]
fn a_server_that_fails_in_a_row_gets_no_further_calls() {
    let fails = Arc::new(AtomicBool::new(false));
    let web = flaky(&fails);
    let served = served(&web, "open: 1h, open_max: 1h");
    let session = served.open("2025-11-25");
    let reason = |id: usize, text: &str| {
        let answer = served
            .post(Some(&session), &call(&id.to_string(), text))
            .json();
        answer["error"]["data"]["reason"].clone()
    };
    // A server that says no has done its part, however often.
    for id in 0..5 {
        assert!(reason(id, "wrong").is_null());
    }
    fails.store(true, Ordering::SeqCst);
    // What fails together does not count, so this goes on for a second.
    let mut id = 5;
    eventually("the breaker opens", || {
        let lost = reason(id, "lost");
        id += 1;
        let is_lost = lost == "upstream_broken" || lost == "upstream_no_answer";
        assert!(is_lost || lost == "circuit_open", "{lost}");
        lost == "circuit_open"
    });
    assert!(id > 8, "at least three have failed: {id}");
    let asked = web.texts().len();
    let answer = served
        .post(Some(&session), &call("100000", "spared"))
        .json();
    let data = &answer["error"]["data"];
    assert_eq!(data["reason"], "circuit_open", "{answer}");
    assert_eq!(data["retryable"], true);
    assert_eq!(web.texts().len(), asked, "nothing was sent");
    counted(&served, "opened", 1);
    counted(&served, "rejected", 2);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    // What was let through and not sent has its record all the same.
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), journal.operations().len());
}

#[test]
fn one_call_that_works_ends_it() {
    let fails = Arc::new(AtomicBool::new(true));
    let web = flaky(&fails);
    let served = served(&web, "open: 10ms, open_max: 10ms");
    let session = served.open("2025-11-25");
    let mut id = 0;
    let mut works = || {
        id += 1;
        let answer = served
            .post(Some(&session), &call(&id.to_string(), "text"))
            .json();
        answer["result"]["content"][0]["text"] == "text"
    };
    eventually("the breaker opens", || {
        assert!(!works());
        let metrics = served.send("GET", "/metrics", &[], "").body;
        !metrics.contains("durward_breaker_events_total{target=\"echo\",event=\"opened\"} 0\n")
    });
    fails.store(false, Ordering::SeqCst);
    eventually("a call works", &mut works);
    assert!(works(), "it is closed again");
    counted(&served, "closed", 1);
    assert_eq!(served.stop().0, Some(0));
}
