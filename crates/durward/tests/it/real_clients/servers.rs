//! What servers say early, and what they must be told again.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp::client::Message;
use rustix::process::{Pid, Signal, kill_process};

use super::{Need, within};
use crate::support::guarded::{LATEST, Place, call_works, eventually, mock_with};
use crate::support::refusals::is_passed;
use crate::support::serving::Served;
use crate::support::web::{ACCEPTED, EVENTS_HEAD, Then, Web, behave, event, reply, send};

const ALLOW: &str = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
    {"id":"subscriptions","effect":"allow","conditions":{"mcp_method":"resources/subscribe"}}]}"#;

/// A server that says something on its own stream as soon as it hears `initialized`; where that stream is not
/// open by then, the word is lost. Tells whether it was.
fn eager() -> (Web, Arc<AtomicBool>) {
    let (open, said) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (is_open, has_said) = (Arc::clone(&open), Arc::clone(&said));
    let web = Web::start(move |request, wire| {
        match (request.method.as_str(), request.rpc_method().as_str()) {
            ("GET", _) => {
                // From here on what is said goes out; whoever reads the head may be quicker than the line after it.
                is_open.store(true, Ordering::SeqCst);
                wire.write_all(EVENTS_HEAD.as_bytes())?;
                while !has_said.load(Ordering::SeqCst) {
                    wire.write_all(b"3\r\n:\n\n\r\n")?;
                    crate::support::guarded::pause(5);
                }
                let news = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                wire.write_all(&event("", &news))?;
                loop {
                    wire.write_all(b"3\r\n:\n\n\r\n")?;
                    crate::support::guarded::pause(50);
                }
            }
            (_, "notifications/initialized") => {
                has_said.store(is_open.load(Ordering::SeqCst), Ordering::SeqCst);
                send(wire, ACCEPTED, Then::Keep)
            }
            _ => behave(request, wire),
        }
    });
    (web, said)
}

fn heard(said: &AtomicBool) -> Need {
    match said.load(Ordering::SeqCst) {
        true => Ok(()),
        false => Err("the server heard `initialized` while its stream was not open".to_owned()),
    }
}

pub(super) fn w2_what_a_server_says_on_initialized_reaches_a_client_of_run() -> Need {
    let place = Place::new();
    let (web, said) = eager();
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "x");
    heard(&said)?;
    match client.next_message() {
        Ok(Message::Notification { method, .. }) if method.ends_with("list_changed") => Ok(()),
        other => Err(format!("the news did not come: {other:?}")),
    }
}

pub(super) fn w2_what_a_server_says_on_initialized_reaches_a_client_of_serve() -> Need {
    let (web, said) = eager();
    let served = Served::start_server(Place::new(), &format!("echo={}", web.url()), &[]);
    let session = served.open("2025-11-25");
    eventually("`initialized` has arrived", || {
        !web.of_method("notifications/initialized").is_empty()
    });
    heard(&said)?;
    let mut news = served.stream("GET", &session, &[], "");
    let message = news.message();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    Ok(())
}

/// Serves a child that records what it is told, and has a client that tells it this; then the child is killed,
/// and the client calls again. Says whether the new one was told the same.
fn told_again(method: &str, params: &str) -> Need {
    let (served, session, told) = killed_after(method, params, None);
    if !within(3_000, || told() == 2) {
        return Err(format!("{method} was not said again"));
    }
    let news = served.stream("GET", &session, &[], "").message();
    match news["method"].as_str() {
        Some("notifications/tools/list_changed") => Ok(()),
        _ => Err(format!("lists that may have changed were not told: {news}")),
    }
}

/// The first half of that, with another policy taken up before the child is killed; and how often a child was told.
fn killed_after(
    method: &str,
    params: &str,
    policy: Option<&str>,
) -> (Served, String, impl Fn() -> usize) {
    let place = Place::new();
    place.write_policy(ALLOW);
    let record = place.path("received");
    let record_text = record.to_str().unwrap().to_owned();
    let mock = place
        .mock(&["conformance", "--record", &record_text])
        .join(" ");
    let served = Served::start_server(place, &format!("echo={mock}"), &[]);
    let session = served.open("2025-11-25");
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let answer = served.post(Some(&session), &body);
    assert!(is_passed(&answer.json()), "{answer:?}");
    let words = format!(r#""method":"{method}""#);
    let told = move || {
        let text = fs::read_to_string(&record).unwrap_or_default();
        text.matches(&words).count()
    };
    assert_eq!(told(), 1);
    if let Some(policy) = policy {
        served.place.write_policy(policy);
        let args = ["--no-config", "--state-dir", "state", "reload"];
        let reloaded = served.place.durward(&args);
        assert!(reloaded.status.success(), "{reloaded:?}");
    }
    let child = mock_with(&record_text);
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    let works = || {
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"test_simple_text","arguments":{}}}"#;
        let answer = served.post(Some(&session), call);
        answer.status == 200 && is_passed(&answer.json())
    };
    eventually("the server is started again", works);
    (served, session, told)
}

pub(super) fn w5_a_server_that_is_started_again_is_subscribed_to_again() -> Need {
    told_again(
        "resources/subscribe",
        r#"{"uri":"test://watched-resource"}"#,
    )
}

/// What one policy let through is not sent again under another, which was never asked.
pub(super) fn a_subscription_is_not_renewed_under_another_policy() -> Need {
    let params = r#"{"uri":"test://watched-resource"}"#;
    let tools = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
    let (_served, _session, told) = killed_after("resources/subscribe", params, Some(tools));
    match told() {
        1 => Ok(()),
        count => Err(format!("the server was subscribed to {count} times")),
    }
}

pub(super) fn w5_a_server_that_is_started_again_logs_at_the_same_level() -> Need {
    told_again("logging/setLevel", r#"{"level":"error"}"#)
}

/// HTTP with a stream of its own, as 2024-11-05 had it.
pub(super) fn w8_a_server_of_the_older_transport_is_named_as_such() -> Need {
    let web = Web::start(|request, wire| {
        if request.method == "GET" {
            wire.write_all(EVENTS_HEAD.as_bytes())?;
            let endpoint = b"event: endpoint\ndata: /messages?session_id=1\n\n";
            let chunk = format!("{:x}\r\n", endpoint.len());
            wire.write_all(&[chunk.as_bytes(), endpoint, b"\r\n"].concat())?;
            loop {
                wire.write_all(b"3\r\n:\n\n\r\n")?;
                crate::support::guarded::pause(50);
            }
        }
        let status = "405 Method Not Allowed";
        send(
            wire,
            &reply(status, "Allow: GET\r\n", "text/plain", "no"),
            Then::Keep,
        )
    });
    let place = Place::new();
    let mut client = place.guard_reached(&["--url", &web.url()]);
    let refused = client
        .handshake(LATEST)
        .expect_err("it cannot be spoken to");
    let told = format!("{refused} {}", client.process().stderr());
    match told.contains("2024-11-05") {
        true => Ok(()),
        false => Err(format!("nothing names the transport of 2024-11-05: {told}")),
    }
}
