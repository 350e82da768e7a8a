//! Sessions with servers behind HTTP: opened, kept, lost, opened again, ended; streams, cancellation, and
//! requests of the server, in both eras.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::support::guarded::{self, LATEST, Place, call_works, echo, end, eventually, line};
use crate::support::refusals::is_passed;
use crate::support::web::{
    ACCEPTED, EVENTS_HEAD, Then, Web, behave, behave_modern, echoed, empty, event, forgetful,
    json_reply, reply, send, slow,
};
use mcp::client::Era;
use serde_json::{Value, json};

#[test]
fn session_and_revision_are_said_with_every_message_and_ended_at_the_end() {
    let place = Place::new();
    let web = Web::start(behave);
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "x");
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let requests = web.requests();
    let (first, later) = requests.split_first().unwrap();
    assert_eq!(first.rpc_method(), "initialize");
    assert_eq!(first.header("mcp-session-id"), None);
    assert_eq!(first.header("mcp-protocol-version"), None);
    for request in later {
        assert_eq!(request.header("mcp-session-id"), Some("s-1"), "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
    }
    for request in requests.iter().filter(|r| r.method == "POST") {
        assert_eq!(
            request.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("accept-encoding"), None);
        assert_eq!(request.header("authorization"), None);
        let host = format!("127.0.0.1:{}", web.port);
        assert_eq!(request.header("host"), Some(host.as_str()));
    }
    assert_eq!(requests.last().unwrap().method, "DELETE");
}

#[test]
fn session_that_the_server_forgot_is_opened_again() {
    let complaint = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    for (status, body) in [("404 Not Found", ""), ("400 Bad Request", complaint)] {
        let place = Place::new();
        let (web, newest) = forgetful(status, body);
        let mut client = place.guard_reached(&["--url", &web.url()]);
        client.handshake(LATEST).unwrap();
        call_works(&mut client, "first");
        newest.fetch_add(7, Ordering::SeqCst);
        call_works(&mut client, "second");
        call_works(&mut client, "third");
        let ended = end(client);
        assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
        assert_eq!(web.of_method("initialize").len(), 2);
        assert_eq!(web.of_method("notifications/initialized").len(), 2);
        // The one that was refused was not worked on; then it was sent again.
        assert_eq!(web.texts(), ["first", "second", "second", "third"]);
        let journal = place.journal();
        assert_eq!(journal.decisions().len(), 3);
        assert_eq!(journal.operations().len(), 3);
    }
}

#[test]
fn many_calls_open_a_forgotten_session_again_once() {
    let place = Place::new();
    let (web, newest) = forgetful("404 Not Found", "");
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    newest.fetch_add(1, Ordering::SeqCst);
    for n in 0..20 {
        client
            .send_request("tools/call", echo(&n.to_string()))
            .unwrap();
    }
    for _ in 0..20 {
        let answer = line(&mut client);
        assert!(is_passed(&answer), "{answer}");
    }
    assert_eq!(web.of_method("initialize").len(), 2);
}

#[test]
fn initialized_is_taken_before_anything_that_follows_it() {
    let place = Place::new();
    let ready = AtomicBool::new(false);
    let web = Web::start(move |request, wire| {
        match request.rpc_method().as_str() {
            "notifications/initialized" => {
                guarded::pause(300);
                ready.store(true, Ordering::SeqCst);
            }
            "tools/call" => assert!(ready.load(Ordering::SeqCst), "too early"),
            _ => {}
        }
        behave(request, wire)
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "x");
}

#[test]
fn stream_that_breaks_is_resumed_where_the_server_gave_a_place() {
    let place = Place::new();
    let asked = Arc::new(Mutex::new(Value::Null));
    let web = Web::start(move |request, wire| {
        match (request.method.as_str(), request.rpc_method().as_str()) {
            ("POST", "tools/call") => {
                // Polling: the server gives a place, says when to come back, and hangs up.
                *asked.lock().unwrap() = echoed(request);
                let mut bytes = EVENTS_HEAD.as_bytes().to_vec();
                bytes.extend(event("id: p-1\nretry: 60\n", &Value::Null));
                bytes.extend(b"0\r\n\r\n");
                send(wire, &bytes, Then::Keep)
            }
            ("GET", _) if request.header("last-event-id") == Some("p-1") => {
                // Breaks again, after news.
                let news =
                    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
                wire.write_all(EVENTS_HEAD.as_bytes())?;
                send(wire, &event("id: p-2\nretry: 60\n", &news), Then::Close)
            }
            ("GET", _) if request.header("last-event-id") == Some("p-2") => {
                wire.write_all(EVENTS_HEAD.as_bytes())?;
                let answer = asked.lock().unwrap().clone();
                send(wire, &event("id: p-3\n", &answer), Then::Keep)
            }
            _ => behave(request, wire),
        }
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    client.send_request("tools/call", echo("x")).unwrap();
    assert_eq!(line(&mut client)["method"], "notifications/message");
    assert_eq!(line(&mut client)["result"]["content"][0]["text"], "x");
    assert_eq!(web.texts(), ["x"], "the call itself is sent once");
}

#[test]
fn stream_that_cannot_be_resumed_is_given_up() {
    let place = Place::new();
    let web = Web::start(|request, wire| match request.text().as_deref() {
        Some("faulty") => {
            wire.write_all(EVENTS_HEAD.as_bytes())?;
            send(
                wire,
                &event("id: p-1\nretry: 50\n", &Value::Null),
                Then::Close,
            )
        }
        _ => behave(request, wire),
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    let answer = client.request("tools/call", echo("faulty")).unwrap();
    assert_eq!(answer.error().unwrap()["data"]["reason"], "upstream_broken");
    call_works(&mut client, "after");
}

#[test]
fn stream_that_breaks_for_ever_is_given_up() {
    let place = Place::new();
    let web = Web::start(|request, wire| match request.text().as_deref() {
        Some("faulty") => {
            wire.write_all(EVENTS_HEAD.as_bytes())?;
            send(
                wire,
                &event("id: p-1\nretry: 50\n", &Value::Null),
                Then::Close,
            )
        }
        None if request.header("last-event-id").is_some() => {
            send(wire, EVENTS_HEAD.as_bytes(), Then::Close)
        }
        _ => behave(request, wire),
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    let answer = client.request("tools/call", echo("faulty")).unwrap();
    assert!(answer.error().is_some(), "{}", answer.line());
    let resumed = web
        .requests()
        .iter()
        .filter(|r| r.header("last-event-id").is_some())
        .count();
    assert_eq!(resumed, 5);
    call_works(&mut client, "after");
}

#[test]
fn servers_own_stream_is_read_and_resumed() {
    let place = Place::new();
    let gets = AtomicUsize::new(0);
    let web = Web::start(move |request, wire| {
        if request.method != "GET" {
            return behave(request, wire);
        }
        let number = gets.fetch_add(1, Ordering::SeqCst);
        let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
            "params": {"n": number}});
        wire.write_all(EVENTS_HEAD.as_bytes())?;
        if number < 2 {
            let before = format!("id: g-{number}\nretry: 100\n");
            return send(wire, &event(&before, &news), Then::Close);
        }
        wire.write_all(&event("", &news))?;
        guarded::pause(60_000);
        Ok(Then::Close)
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    for number in 0..3 {
        let news = line(&mut client);
        assert_eq!(news["params"]["n"], number, "{news}");
    }
    let places: Vec<Option<String>> = web
        .requests()
        .iter()
        .filter(|r| r.method == "GET")
        .map(|r| r.header("last-event-id").map(str::to_owned))
        .collect();
    assert_eq!(places, [None, Some("g-0".into()), Some("g-1".into())]);
    call_works(&mut client, "beside it");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
}

#[test]
fn server_asks_the_client_while_a_call_is_under_way() {
    let place = Place::new();
    let answered = Arc::new((Mutex::new(None::<Value>), Condvar::new()));
    let answers = Arc::clone(&answered);
    let web = Web::start(move |request, wire| {
        let (answer, told) = &*answers;
        if request.rpc_method().is_empty() && request.method == "POST" {
            *answer.lock().unwrap() = Some(request.json());
            told.notify_all();
        }
        if request.text().is_none() {
            return behave(request, wire);
        }
        let question = json!({"jsonrpc": "2.0", "id": "q-1", "method": "roots/list"});
        wire.write_all(EVENTS_HEAD.as_bytes())?;
        wire.write_all(&event("", &question))?;
        let mut waiting = answer.lock().unwrap();
        while waiting.is_none() {
            waiting = told.wait_timeout(waiting, guarded::PATIENCE).unwrap().0;
        }
        wire.write_all(&event("", &echoed(request)))?;
        send(wire, b"0\r\n\r\n", Then::Keep)
    });
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#,
    );
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    client.send_request("tools/call", echo("x")).unwrap();
    assert_eq!(line(&mut client)["method"], "roots/list");
    client.respond("\"q-1\"", &json!({"roots": []})).unwrap();
    assert_eq!(line(&mut client)["result"]["content"][0]["text"], "x");
    let answer = answered.0.lock().unwrap().clone().unwrap();
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": "q-1", "result": {"roots": []}})
    );
}

#[test]
fn cancelling_reaches_the_server_in_both_eras() {
    for (era, posts) in [(LATEST, 1), (Era::Modern, 0)] {
        let place = Place::new();
        let (web, closed) = slow();
        let mut client = place.guard_reached(&["--url", &web.url()]);
        client.handshake(era).unwrap();
        let id = client.send_request("tools/call", echo("slow")).unwrap();
        eventually("the call arrives", || web.texts() == ["slow"]);
        let params = json!({"requestId": id.parse::<u64>().unwrap()});
        client.notify("notifications/cancelled", &params).unwrap();
        eventually("the stream is closed", || {
            closed.load(Ordering::SeqCst) == 1
        });
        call_works(&mut client, "after");
        let ended = end(client);
        assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
        assert_eq!(
            web.of_method("notifications/cancelled").len(),
            posts,
            "{era:?}"
        );
        assert_eq!(place.journal().operation(&id)["status"], "Cancelled");
    }
}

#[test]
fn client_that_goes_away_closes_its_calls() {
    let place = Place::new();
    let (web, closed) = slow();
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    client.send_request("tools/call", echo("slow")).unwrap();
    eventually("the call arrives", || web.texts() == ["slow"]);
    drop(client);
    eventually("the stream is closed", || {
        closed.load(Ordering::SeqCst) == 1
    });
}

#[test]
fn modern_messages_mirror_what_they_say_in_headers() {
    let place = Place::new();
    let web = Web::start(|request, wire| match request.rpc_method().as_str() {
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"}, "text": {"type": "string"}}});
            let answer = json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": {
                "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
                "tools": [{"name": "b\u{e9}\r\nX-Evil: 1", "inputSchema": schema}]}});
            send(wire, &json_reply(&answer), Then::Keep)
        }
        "resources/read" => send(wire, &json_reply(&empty(request)), Then::Keep),
        _ => behave_modern(request, wire),
    });
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#,
    );
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(Era::Modern).unwrap();
    client.request("tools/list", json!({})).unwrap();
    let evil = "b\u{e9}\r\nX-Evil: 1";
    let arguments = json!({"text": "x", "region": "\u{fc}\r\nX-Evil: 2"});
    client
        .request("tools/call", json!({"name": evil, "arguments": arguments}))
        .unwrap();
    client
        .request("resources/read", json!({"uri": "test://a b"}))
        .unwrap();
    for request in web.requests() {
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(
            request.header("mcp-method"),
            Some(request.rpc_method().as_str())
        );
        assert_eq!(request.header("mcp-session-id"), None);
        assert_eq!(request.header("x-evil"), None);
    }
    let name = |method: &str| {
        let found = web.of_method(method);
        let raw = found[0].header("mcp-name").map(str::to_owned);
        raw.map(|raw| wire::header::decode(raw.as_bytes()).unwrap().into_owned())
    };
    assert_eq!(name("tools/list"), None);
    assert_eq!(name("tools/call").as_deref(), Some(evil));
    assert_eq!(name("resources/read").as_deref(), Some("test://a b"));
    let call = &web.of_method("tools/call")[0];
    let region = call.header("mcp-param-region").unwrap();
    let region = wire::header::decode(region.as_bytes()).unwrap();
    assert_eq!(region, "\u{fc}\r\nX-Evil: 2");
    // Without a session there is nothing to end.
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        web.requests()
            .iter()
            .all(|request| request.method == "POST")
    );
}

#[test]
fn subscription_outlives_the_time_of_a_call() {
    let place = Place::new();
    let web = Web::start(|request, wire| {
        if request.rpc_method() != "subscriptions/listen" {
            return behave_modern(request, wire);
        }
        wire.write_all(EVENTS_HEAD.as_bytes())?;
        for _ in 0..3 {
            let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            wire.write_all(&event("", &news))?;
            guarded::pause(700);
        }
        wire.write_all(&event("", &empty(request)))?;
        send(wire, b"0\r\n\r\n", Then::Keep)
    });
    let mut client = place.guard_reached(&["--url", &web.url(), "--call-timeout", "1"]);
    client.handshake(Era::Modern).unwrap();
    let params = json!({"notifications": {"toolsListChanged": true}});
    client.send_request("subscriptions/listen", params).unwrap();
    for _ in 0..3 {
        assert_eq!(
            line(&mut client)["method"],
            "notifications/tools/list_changed"
        );
    }
    assert!(is_passed(&line(&mut client)));
}

#[test]
fn eras_that_do_not_meet_are_named() {
    let refuses = |status: &'static str, code: i64, message: &'static str| {
        Web::start(move |request, wire| {
            if request.json()["id"].is_null() {
                return send(wire, ACCEPTED, Then::Keep);
            }
            let error =
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
            let bytes = reply(status, "", "application/json", &error.to_string());
            send(wire, &bytes, Then::Keep)
        })
    };
    let cases = [
        (LATEST, "404 Not Found", -32_601, "Method not found"),
        (
            LATEST,
            "400 Bad Request",
            -32_022,
            "Unsupported protocol version",
        ),
        (
            Era::Modern,
            "400 Bad Request",
            -32_600,
            "Bad Request: Missing session ID",
        ),
        (Era::Modern, "200 OK", -32_601, "Method not found"),
    ];
    for (era, status, code, message) in cases {
        let place = Place::new();
        let web = refuses(status, code, message);
        let mut client = place.guard_reached(&["--url", &web.url()]);
        let refused = client.handshake(era).unwrap_err().to_string();
        assert!(
            refused.contains("era_mismatch"),
            "{era:?} {code}: {refused}"
        );
        // The server's own code stays: a client of both eras tries the other one by it.
        assert!(refused.contains(&code.to_string()), "{refused}");
        end(client);
        place.journal().assert_event("era_mismatch");
    }
}

#[test]
fn message_over_several_lines_arrives_on_one() {
    let place = Place::new();
    let web = Web::start(|request, wire| {
        if request.text().is_none() {
            return behave(request, wire);
        }
        let pretty = serde_json::to_string_pretty(&echoed(request)).unwrap();
        let pretty = pretty.replace('\n', "\r\n");
        send(
            wire,
            &reply("200 OK", "", "application/json; charset=utf-8", &pretty),
            Then::Keep,
        )
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "two\nlines");
}

#[test]
fn more_calls_than_connections_wait_and_are_answered() {
    let place = Place::new();
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    let (peak, running) = (Arc::clone(&most), Arc::clone(&now));
    let web = Web::start(move |request, wire| {
        if request.text().is_some() {
            let count = running.fetch_add(1, Ordering::SeqCst) + 1;
            peak.fetch_max(count, Ordering::SeqCst);
            guarded::pause(100);
            running.fetch_sub(1, Ordering::SeqCst);
        }
        behave(request, wire)
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    for n in 0..200 {
        client
            .send_request("tools/call", echo(&n.to_string()))
            .unwrap();
    }
    for _ in 0..200 {
        let answer = line(&mut client);
        assert!(is_passed(&answer), "{answer}");
    }
    assert_eq!(web.texts().len(), 200);
    assert!(most.load(Ordering::SeqCst) <= 128, "{most:?}");
}
