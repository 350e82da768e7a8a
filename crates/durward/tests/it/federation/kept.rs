//! Lists that are kept: a server is not asked again for what it would have said has changed.

use std::fs;

use mcp::client::{HttpClient, HttpOptions, Message};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Asks, configured, run_all, text_of};
use crate::support::guarded::{LATEST, PATIENCE, Place, eventually, mock_with};
use crate::support::served::{Site, ready};
use crate::support::serving;

/// A mock that writes down what it is asked, as a server of a configuration.
pub(super) fn recording(place: &Place, name: &str, words: &[&str]) -> Value {
    let record = place.path(name).to_str().unwrap().to_owned();
    let words = [words, &["--record", &record]].concat();
    let words = place.mock(&words);
    let (command, args) = words.split_first().unwrap();
    json!({"command": command, "args": args})
}

/// How often a server was asked for this.
pub(super) fn asked(place: &Place, name: &str, method: &str) -> usize {
    let text = fs::read_to_string(place.path(name)).unwrap_or_default();
    text.matches(&format!(r#""method":"{method}""#)).count()
}

/// Says which tools changed, and from its first call on has others.
pub(super) const CHANGES: [&str; 7] = [
    "hostile",
    "--behaviour",
    "rug-pull",
    "--pull",
    "announced",
    "--at",
    "1",
];
pub(super) const STEADY: [&str; 2] = ["echo", "--announce-changes"];

#[test]
fn a_list_is_asked_for_once_until_its_server_says_that_it_has_changed() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#,
    );
    let servers = json!({
        "changes": recording(&place, "changes", &CHANGES),
        "steady": recording(&place, "steady", &STEADY),
        "silent": recording(&place, "silent", &["echo"]),
    });
    configured(
        &place,
        &json!({"servers": servers, "policy": place.path("policy.json")}),
    );
    let mut client = run_all(&place, &[]);
    client.handshake(LATEST).unwrap();
    let lists = |client: &mut mcp::client::Client| {
        let reply = client.ask("tools/list", json!({}));
        reply.result().unwrap()["tools"].clone()
    };
    let times = |of: &str| asked(&place, of, "tools/list");
    let first = lists(&mut client);
    assert_eq!(first.as_array().unwrap().len(), 9, "{first}");
    assert_eq!(lists(&mut client), first);
    assert_eq!(lists(&mut client), first);
    // Who does not say that its list changes is asked each time.
    assert_eq!(
        (times("changes"), times("steady"), times("silent")),
        (1, 1, 3)
    );
    // None of them says it of its other lists.
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        for round in 1..=2 {
            let reply = client.ask(method, json!({}));
            assert!(!reply.result().unwrap()[member][0].is_null(), "{method}");
            assert_eq!(asked(&place, "steady", method), round, "{method}");
        }
    }
    let called = client.call("changes__echo", json!({"text": "x"}));
    assert_eq!(text_of(&called), "x");
    loop {
        match client.next_message().unwrap() {
            Message::Notification { method, .. } if method.ends_with("tools/list_changed") => break,
            _ => {}
        }
    }
    let changed = lists(&mut client);
    assert_ne!(changed, first);
    assert_eq!(lists(&mut client), changed);
    assert_eq!((times("changes"), times("steady")), (2, 1));
}

#[test]
fn each_caller_sees_of_a_kept_list_what_its_own_rules_show() {
    let place = Place::new();
    place.write_policy(
        &json!({"rules": [
            {"id": "ada", "effect": "allow", "conditions": {"subject_id": "key:ada", "tool_name": "echo"}},
            {"id": "bob", "effect": "allow", "conditions": {"subject_id": "key:bob", "tool_name": ["sized", "delayed"]}}]})
        .to_string(),
    );
    configured(
        &place,
        &json!({"servers": {"a": recording(&place, "a", &STEADY)}, "policy": place.path("policy.json"),
            "share": "all", "prefix": "always"}),
    );
    let key = |name: &str| {
        let args = [
            "--no-config",
            "--state-dir",
            "state",
            "keys",
            "create",
            name,
        ];
        let output = place.durward(&args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (ada, bob) = (key("ada"), key("bob"));
    let served = serving::Served::start_ruled(place);
    let opened = |key: &str| {
        let options = HttpOptions {
            timeout: PATIENCE,
            headers: vec![("authorization".into(), format!("Bearer {key}"))],
            ..HttpOptions::default()
        };
        let url = format!("http://{}/mcp", served.address);
        let mut client = HttpClient::new(&url, options).unwrap();
        client.handshake(LATEST).unwrap();
        client
    };
    let (mut ada, mut bob) = (opened(&ada), opened(&bob));
    for _ in 0..2 {
        assert_eq!(ada.tools().0, ["a__echo"]);
        assert_eq!(bob.tools().0, ["a__sized", "a__delayed"]);
    }
    assert_eq!(asked(&served.place, "a", "tools/list"), 1);
    // Rules that come into force are those of the next list, though its server is not asked.
    let swapped = json!({"rules": [
        {"id": "ada", "effect": "allow", "conditions": {"subject_id": "key:ada", "tool_name": "record"}}]});
    served.place.write_policy(&swapped.to_string());
    eventually("the other rules are in force", || {
        ada.tools().0 == ["a__record"]
    });
    assert!(bob.tools().0.is_empty());
    assert_eq!(asked(&served.place, "a", "tools/list"), 1);
}

#[test]
fn a_list_beyond_the_bound_is_asked_for_each_time() {
    for (tools, times) in [("2000", 1), ("5000", 3)] {
        let place = Place::new();
        let words = ["echo", "--announce-changes", "--tools", tools];
        let servers = json!({"a": recording(&place, "a", &words)});
        configured(
            &place,
            &json!({"servers": servers, "policy": place.path("policy.json")}),
        );
        let mut client = run_all(&place, &[]);
        client.handshake(LATEST).unwrap();
        for _ in 0..3 {
            assert_eq!(client.tools().0.len().to_string(), tools);
        }
        assert_eq!(asked(&place, "a", "tools/list"), times, "{tools}");
    }
}

#[test]
fn a_server_that_is_started_again_is_asked_again() {
    let place = Place::new();
    let servers = json!({"a": recording(&place, "a", &STEADY)});
    configured(
        &place,
        &json!({"servers": servers, "policy": place.path("policy.json")}),
    );
    let mut client = run_all(&place, &[]);
    client.handshake(LATEST).unwrap();
    let record = place.path("a").to_str().unwrap().to_owned();
    let times = || asked(&place, "a", "tools/list");
    let mut before = 0;
    for starts in 1..=3 {
        // While nobody has seen its end, its list is remembered.
        eventually("it is started", || {
            client.tools().0.len() == 4 && asked(&place, "a", "initialize") == starts
        });
        assert!(times() > before, "{starts}");
        client.tools();
        before = times();
        client.tools();
        assert_eq!(times(), before, "{starts}");
        let child = mock_with(&record);
        kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    }
}

#[test]
fn a_server_over_http_is_asked_again_once_it_is_not_heard_any_more() {
    let place = Place::new();
    let record = place.path("far").to_str().unwrap().to_owned();
    let words = ["echo", "--announce-changes", "--record", &record];
    let site = Site::start_to_return(&place, &words);
    configured(
        &place,
        &json!({"servers": {"far": {"url": site.url}}, "policy": place.path("policy.json"), "prefix": "always"}),
    );
    let served = serving::Served::start_ruled(place);
    let url = format!("http://{}/mcp", served.address);
    let mut client = ready(&url, LATEST);
    let place = &served.place;
    let times = || asked(place, "far", "tools/list");
    let mut is_remembered = || {
        let before = times();
        client.tools().0.len() == 4 && times() == before
    };
    // Its stream may be slow to open.
    eventually("its list is kept", &mut is_remembered);
    let before = times();
    let address = site.address().to_owned();
    site.kill();
    let again = Site::start(place, &words, &address);
    eventually("it is asked again", || {
        is_remembered();
        times() > before
    });
    eventually("its list is kept again", &mut is_remembered);
    again.kill();
}
