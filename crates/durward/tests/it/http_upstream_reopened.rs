//! What a server over HTTP that has lost its session is told again, and what its clients are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::guarded::{LATEST, Place, call_works, end, eventually, line};
use crate::support::refusals::is_passed;
use crate::support::serving::{Served, call};
use crate::support::web::{Then, Web, behave, initialized, reply, send};

const ALLOW: &str = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
    {"id":"subscriptions","effect":"allow","conditions":{"mcp_method":"resources/subscribe"}}]}"#;
const WATCHED: &str = "test://watched";

/// A server that knows only its newest session, numbered, and announces changes of its tools. Where
/// `stubborn`, a session that is not the first loses itself over every subscription.
fn losing(stubborn: bool) -> (Web, Arc<AtomicUsize>) {
    let newest = Arc::new(AtomicUsize::new(0));
    let known = Arc::clone(&newest);
    let web = Web::start(move |request, wire| {
        if request.rpc_method() == "initialize" {
            let id = known.fetch_add(1, Ordering::SeqCst) + 1;
            let mut answer = initialized(request);
            answer["result"]["capabilities"] = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {}});
            let header = format!("Mcp-Session-Id: s-{id}\r\n");
            let bytes = reply("200 OK", &header, "application/json", &answer.to_string());
            return send(wire, &bytes, Then::Keep);
        }
        let own = format!("s-{}", known.load(Ordering::SeqCst));
        let is_lost = request.header("mcp-session-id") != Some(&own);
        let is_refused = stubborn && own != "s-1" && request.rpc_method() == "resources/subscribe";
        if is_lost || is_refused {
            let bytes = reply("404 Not Found", "", "application/json", "");
            return send(wire, &bytes, Then::Keep);
        }
        behave(request, wire)
    });
    (web, newest)
}

/// A server that knows only its newest session, and forgets one as soon as it has taken a log level in it:
/// `times` times after the first.
fn forgetful(times: usize) -> (Web, Arc<AtomicUsize>) {
    let newest = Arc::new(AtomicUsize::new(0));
    let left = AtomicUsize::new(times);
    let known = Arc::clone(&newest);
    let web = Web::start(move |request, wire| {
        if request.rpc_method() == "initialize" {
            let id = known.fetch_add(1, Ordering::SeqCst) + 1;
            let mut answer = initialized(request);
            answer["result"]["capabilities"] =
                json!({"tools": {}, "resources": {"subscribe": true}, "logging": {}});
            let header = format!("Mcp-Session-Id: s-{id}\r\n");
            let bytes = reply("200 OK", &header, "application/json", &answer.to_string());
            return send(wire, &bytes, Then::Keep);
        }
        let own = format!("s-{}", known.load(Ordering::SeqCst));
        if request.header("mcp-session-id") != Some(&own) {
            let bytes = reply("404 Not Found", "", "application/json", "");
            return send(wire, &bytes, Then::Keep);
        }
        if request.rpc_method() == "logging/setLevel"
            && own != "s-1"
            && left.load(Ordering::SeqCst) > 0
        {
            left.fetch_sub(1, Ordering::SeqCst);
            known.fetch_add(1, Ordering::SeqCst);
        }
        behave(request, wire)
    });
    (web, newest)
}

/// How often each was asked for in this session, with what.
fn asked(web: &Web, session: &str) -> (Vec<Value>, Vec<Value>) {
    let of = |method: &str| {
        let requests = web.of_method(method).into_iter();
        let own = requests.filter(|r| r.header("mcp-session-id") == Some(session));
        own.map(|r| r.json()["params"].clone()).collect()
    };
    (of("resources/subscribe"), of("logging/setLevel"))
}

fn ask(client: &mut Client, method: &str, params: Value) {
    client.send_request(method, params).unwrap();
    let answer = line(client);
    assert!(is_passed(&answer), "{answer}");
}

fn guarded(place: &Place, web: &Web) -> Client {
    place.write_policy(ALLOW);
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    ask(&mut client, "resources/subscribe", json!({"uri": WATCHED}));
    ask(&mut client, "logging/setLevel", json!({"level": "error"}));
    client
}

#[test]
fn w5_run_asks_again_for_subscriptions_and_level_and_tells_of_changed_lists() {
    let (web, newest) = losing(false);
    let place = Place::new();
    let mut client = guarded(&place, &web);
    newest.fetch_add(1, Ordering::SeqCst);
    let sent = client.send_request("tools/call", crate::support::guarded::echo("x"));
    sent.unwrap();
    // The answer and the news come in either order.
    let both = [line(&mut client), line(&mut client)];
    assert!(both.iter().any(is_passed), "{both:?}");
    assert!(
        both.iter()
            .any(|m| m["method"] == "notifications/tools/list_changed"),
        "{both:?}"
    );
    let again = (
        vec![json!({"uri": WATCHED})],
        vec![json!({"level": "error"})],
    );
    eventually("the server is asked again", || asked(&web, "s-3") == again);
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The answers to what was asked again are nobody's.
    assert!(ended.rest.is_empty(), "{ended:?}");
    place.journal().assert_event("server_session_reopened");
}

#[test]
fn w5_serve_asks_again_and_tells_its_clients() {
    let (web, newest) = losing(false);
    let place = Place::new();
    place.write_policy(ALLOW);
    let served = Served::start_server(place, &format!("echo={}", web.url()), &[]);
    let session = served.open("2025-11-25");
    let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": WATCHED}});
    let answer = served.post(Some(&session), &subscribe.to_string());
    assert!(is_passed(&answer.json()), "{answer:?}");
    newest.fetch_add(1, Ordering::SeqCst);
    let answer = served.post(Some(&session), &call("2", "x"));
    assert!(is_passed(&answer.json()), "{answer:?}");
    let again = (vec![json!({"uri": WATCHED})], vec![]);
    eventually("the server is asked again", || asked(&web, "s-3") == again);
    let news = served.stream("GET", &session, &[], "").message();
    assert_eq!(news["method"], "notifications/tools/list_changed", "{news}");
}

#[test]
fn server_that_loses_every_session_over_it_is_not_asked_for_ever() {
    let (web, newest) = losing(true);
    let place = Place::new();
    let mut client = guarded(&place, &web);
    newest.fetch_add(1, Ordering::SeqCst);
    client
        .send_request("tools/call", crate::support::guarded::echo("x"))
        .unwrap();
    let both = [line(&mut client), line(&mut client)];
    assert!(both.iter().any(is_passed), "{both:?}");
    // Opened for the call, and once more for the subscription, which is given up then.
    eventually("the subscription is asked for in both", || {
        web.of_method("resources/subscribe").len() >= 3
    });
    for text in ["a", "b", "c"] {
        call_works(&mut client, text);
    }
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(web.of_method("initialize").len(), 3);
    place.journal().assert_event("server_refuses_again");
}

/// A call in a session that is lost may meet the loss of the next one as well, and is not sent a third time then.
fn passes_or_loses_its_session_again(client: &mut Client) {
    client
        .send_request("tools/call", crate::support::guarded::echo("x"))
        .unwrap();
    let answer = line(client);
    let lost_again = answer["error"]["data"]["reason"] == "upstream_session_lost";
    assert!(is_passed(&answer) || lost_again, "{answer}");
}

#[test]
fn what_was_asked_before_the_session_was_lost_again_is_asked_once_more() {
    let (web, newest) = forgetful(1);
    let place = Place::new();
    let mut client = guarded(&place, &web);
    newest.fetch_add(1, Ordering::SeqCst);
    passes_or_loses_its_session_again(&mut client);
    // The level was taken by s-3, which is forgotten over it; s-5 was opened for the subscription.
    let both = (
        vec![json!({"uri": WATCHED})],
        vec![json!({"level": "error"})],
    );
    eventually("the newest session is asked for both", || {
        let (mut subscribed, level) = asked(&web, "s-5");
        subscribed.dedup();
        (subscribed, level) == both
    });
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(web.of_method("initialize").len(), 3);
}

#[test]
fn server_that_forgets_every_session_while_it_is_asked_is_not_asked_for_ever() {
    let (web, newest) = forgetful(usize::MAX);
    let place = Place::new();
    let mut client = guarded(&place, &web);
    newest.fetch_add(1, Ordering::SeqCst);
    passes_or_loses_its_session_again(&mut client);
    // Once by the client, and three times in a row by us.
    eventually("the level is asked for again", || {
        web.of_method("logging/setLevel").len() == 4 && web.of_method("initialize").len() == 5
    });
    for text in ["a", "b", "c"] {
        call_works(&mut client, text);
    }
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(web.of_method("initialize").len(), 5);
    assert_eq!(web.of_method("logging/setLevel").len(), 4);
    place.journal().assert_event("server_refuses_again");
}
