//! Lists that are remembered: one is given out as it was worked out before, for as long as it would come out the same.

use std::fs;
use std::io::BufReader;

use mcp::client::{HttpClient, HttpOptions, Message};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::kept::{CHANGES, STEADY, asked, recording};
use super::{Asks, configured, run_all, text_of};
use crate::serve_keys::{bearer, keys};
use crate::support::guarded::{LATEST, PATIENCE, Place, eventually, mock_with};
use crate::support::served::ready;
use crate::support::serving::{Events, Served, read_head, write_request};

const ALL: &str = r#"{"rules":[{"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

/// Serves these servers by the place's rules; `more` are further members of the configuration.
fn serving(place: Place, servers: &Value, more: &Value) -> Served {
    configure(&place, servers, more);
    Served::start_ruled(place)
}

fn configure(place: &Place, servers: &Value, more: &Value) {
    let policy = place.path("policy.json");
    let mut all = json!({"servers": servers, "policy": policy, "prefix": "always"});
    let more = more.as_object().cloned().unwrap_or_default();
    all.as_object_mut().unwrap().extend(more);
    configured(place, &all);
}

fn url(served: &Served) -> String {
    format!("http://{}/mcp", served.address)
}

fn with_key(served: &Served, key: &str) -> HttpClient {
    let options = HttpOptions {
        timeout: PATIENCE,
        headers: vec![("authorization".into(), key.to_owned())],
        ..HttpOptions::default()
    };
    let mut client = HttpClient::new(&url(served), options).unwrap();
    client.handshake(LATEST).unwrap();
    client
}

/// How many parts of lists were remembered and how many worked out, so far.
fn parts(served: &Served, headers: &[(&str, &str)]) -> (u64, u64) {
    let text = served.send("GET", "/metrics", headers, "").body;
    let of = |how: &str| {
        let name = format!("durward_list_parts_total{{how=\"{how}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
    };
    (of("remembered"), of("worked_out"))
}

/// What a list is, as text, and how many of its parts were remembered and worked out.
fn list(served: &Served, client: &mut HttpClient) -> (String, (u64, u64)) {
    let before = parts(served, &[]);
    let reply = client.ask("tools/list", json!({}));
    let after = parts(served, &[]);
    let (_, result) = reply.line().split_once("\"result\":").unwrap();
    (result.to_owned(), (after.0 - before.0, after.1 - before.1))
}

/// Lists until all of it is remembered that can be: definitions are pinned with the first list, and agree from the second on.
fn remembered(served: &Served, client: &mut HttpClient, of: u64) -> String {
    let (first, counted) = list(served, client);
    assert_eq!(counted.0, 0, "nothing can be remembered yet");
    let (second, _) = list(served, client);
    let (third, (from_memory, _)) = list(served, client);
    assert_eq!(from_memory, of);
    assert!(first == second && second == third, "{first} {third}");
    third
}

#[test]
fn a_list_is_given_out_as_it_was_where_nothing_has_changed() {
    let place = Place::new();
    place.write_policy(ALL);
    let servers = json!({
        "changes": recording(&place, "changes", &CHANGES),
        "silent": recording(&place, "silent", &["echo"]),
        "steady": recording(&place, "steady", &STEADY),
    });
    let served = serving(place, &servers, &json!({}));
    let mut client = ready(&url(&served), LATEST);
    let before = remembered(&served, &mut client, 2);
    // Each list is counted, whether it was remembered or not.
    let lists = || {
        let text = served.send("GET", "/metrics", &[], "").body;
        let line = text.lines().find(|line| line.contains("\"list\""));
        let (_, count) = line
            .unwrap_or_else(|| panic!("{text}"))
            .rsplit_once(' ')
            .unwrap();
        count.parse::<u64>().unwrap()
    };
    let counted = lists();
    let (again, (from_memory, worked_out)) = list(&served, &mut client);
    assert_eq!((from_memory, worked_out), (2, 1));
    assert_eq!((lists() - counted, again), (3, before));
    assert_eq!(asked(&served.place, "steady", "tools/list"), 1);
    // Another session of the same caller begins anew, and finds the same.
    let mut other = ready(&url(&served), LATEST);
    let (theirs, (from_memory, _)) = list(&served, &mut other);
    assert_eq!((theirs, from_memory), (list(&served, &mut client).0, 0));
    // A page that is asked for by its cursor is worked out.
    let refused = client.ask("tools/list", json!({"cursor": "2"}));
    assert_eq!(refused.error_code(), Some(-32602));
}

#[test]
fn what_a_server_says_has_changed_is_worked_out_anew() {
    let place = Place::new();
    place.write_policy(ALL);
    let servers = json!({"changes": recording(&place, "changes", &CHANGES)});
    configure(&place, &servers, &json!({}));
    let mut client = run_all(&place, &[]);
    client.handshake(LATEST).unwrap();
    let list = |client: &mut mcp::client::Client| {
        let reply = client.ask("tools/list", json!({}));
        reply.result().unwrap()["tools"].clone()
    };
    let first = list(&mut client);
    for _ in 0..3 {
        assert_eq!(list(&mut client), first);
    }
    assert_eq!(
        text_of(&client.call("changes__echo", json!({"text": "x"}))),
        "x"
    );
    loop {
        match client.next_message().unwrap() {
            Message::Notification { method, .. } if method.ends_with("tools/list_changed") => break,
            _ => {}
        }
    }
    assert_ne!(list(&mut client), first);
}

#[test]
fn a_server_that_is_started_again_may_list_something_else() {
    let place = Place::new();
    place.write_policy(ALL);
    let (tools, record) = (place.path("tools"), place.path("a"));
    let record = record.to_str().unwrap();
    let words = place.mock(&["echo", "--announce-changes", "--record", record]);
    let tools_of_file = format!("--tools $(cat {})", tools.display());
    let script = format!("exec {} {tools_of_file}", words.join(" "));
    let servers = json!({"a": {"command": "/bin/sh", "args": ["-c", script]}});
    fs::write(&tools, "6").unwrap();
    // Nothing but the answer itself is another: definitions are not pinned, and nothing is announced.
    let served = serving(place, &servers, &json!({"share": "all", "pin": "off"}));
    let mut client = ready(&url(&served), LATEST);
    remembered(&served, &mut client, 1);
    assert_eq!(client.tools().0.len(), 6);
    fs::write(&tools, "5").unwrap();
    let child = Pid::from_raw(mock_with(record)).unwrap();
    kill_process(child, Signal::KILL).unwrap();
    eventually("another session sees the other list", || {
        ready(&url(&served), LATEST).tools().0.len() == 5
    });
    assert_eq!(client.tools().0.len(), 5);
}

#[test]
fn rules_that_come_into_force_are_those_of_the_next_list() {
    let place = Place::new();
    place.write_policy(ALL);
    let servers = json!({"a": recording(&place, "a", &STEADY)});
    let served = serving(place, &servers, &json!({"share": "all"}));
    let mut client = ready(&url(&served), LATEST);
    remembered(&served, &mut client, 1);
    let only = |tool: &str| json!({"rules":[{"id":"one","effect":"allow","conditions":{"tool_name":tool}}]});
    for tool in ["sized", "echo"] {
        served.place.write_policy(&only(tool).to_string());
        let expect = [format!("a__{tool}")];
        eventually("another session sees the other rules", || {
            ready(&url(&served), LATEST).tools().0 == expect
        });
        assert_eq!(client.tools().0, expect);
        // And so it is remembered.
        assert_eq!(list(&served, &mut client).1, (1, 0));
        assert_eq!(client.tools().0, expect);
    }
    assert_eq!(asked(&served.place, "a", "tools/list"), 1);
}

#[test]
fn pins_are_held_as_they_are_written_now() {
    let place = Place::new();
    place.write_policy(ALL);
    let servers = json!({
        "changes": recording(&place, "changes", &CHANGES),
        "steady": recording(&place, "steady", &STEADY),
    });
    let served = serving(place, &servers, &json!({"pin": "enforce", "share": "all"}));
    let mut client = ready(&url(&served), LATEST);
    remembered(&served, &mut client, 2);
    let all = client.tools().0;
    let of = |name: &str| -> Vec<String> {
        let prefix = format!("{name}__");
        all.iter()
            .filter(|tool| tool.starts_with(&prefix))
            .cloned()
            .collect()
    };
    // What cannot be read hides all that it was to hold, at once.
    let pins = served.place.path("state/pins/steady.json");
    let written = fs::read(&pins).unwrap();
    fs::write(&pins, "{").unwrap();
    assert_eq!(client.tools().0, of("changes"));
    fs::write(&pins, &written).unwrap();
    assert_eq!(client.tools().0, all);
    // A definition that drifts is hidden from who lists next, and shown once it is approved.
    let mut stream = listening(&served, &client);
    client.call("changes__echo", json!({"text": "x"}));
    while stream.message()["method"] != "notifications/tools/list_changed" {}
    let drifted = client.tools().0;
    assert_eq!(drifted, of("steady"), "the only tool has drifted");
    assert_eq!(client.tools().0, drifted);
    let approve = ["--state-dir", "state", "pins", "approve", "changes", "echo"];
    assert!(served.place.durward(&approve).status.success());
    assert_eq!(client.tools().0, all);
    // The other face has a suspicious phrase: what is to be told of a list is found anew each time.
    for _ in 0..2 {
        assert_eq!(list(&served, &mut client).1, (1, 1));
        assert_eq!(client.tools().0, all);
    }
}

/// The stream of a client's session at the one URL.
fn listening(served: &Served, client: &HttpClient) -> Events {
    let mut stream = served.connect();
    let session = client.session().unwrap();
    let headers = [("mcp-session-id", session), ("accept", "text/event-stream")];
    write_request(&mut stream, "GET", "/mcp", &headers, "");
    let mut reader = BufReader::new(stream);
    let answer = read_head(&mut reader);
    assert_eq!(answer.status, 200, "{answer:?}");
    Events::over(reader)
}

#[test]
fn what_another_session_has_unlearned_is_learned_again() {
    let place = Place::new();
    place.write_policy(ALL);
    let servers = json!({"a": recording(&place, "a", &CHANGES)});
    let served = serving(place, &servers, &json!({"pin": "off"}));
    let mut client = ready(&url(&served), LATEST);
    remembered(&served, &mut client, 1);
    // Another process of the server says that its tools are others: what was known of them is forgotten.
    let mut other = ready(&url(&served), LATEST);
    let mut stream = listening(&served, &other);
    other.tools();
    other.call("a__echo", json!({"text": "x"}));
    while stream.message()["method"] != "notifications/tools/list_changed" {}
    // This process still lists what it did, and who lists it knows it again.
    assert_eq!(list(&served, &mut client).1, (0, 1));
    let before = asked(&served.place, "a", "tools/list");
    assert_eq!(text_of(&client.call("a__echo", json!({"text": "x"}))), "x");
    assert_eq!(asked(&served.place, "a", "tools/list"), before);
}

#[test]
fn a_list_from_memory_counts_against_the_limits() {
    let place = Place::new();
    place.write_policy(ALL);
    let servers =
        json!({"a": recording(&place, "a", &STEADY), "b": recording(&place, "b", &STEADY)});
    configure(&place, &servers, &json!({}));
    let limits = ["--limit-requests", "1/h", "--limit-burst", "9"];
    let served = Served::start_limited(place, &limits);
    let mut client = ready(&url(&served), LATEST);
    remembered(&served, &mut client, 2);
    let listed = |client: &mut HttpClient| {
        let reply = client.ask("tools/list", json!({}));
        let result = reply.result().unwrap().clone();
        let away = result["_meta"]["durward/missing"].as_array().cloned();
        (
            result["tools"].as_array().unwrap().len(),
            away.unwrap_or_default(),
        )
    };
    // Three lists of two servers were six of nine.
    let (whole, missing) = listed(&mut client);
    assert_eq!((missing, whole > 0), (vec![], true));
    let (half, missing) = listed(&mut client);
    assert_eq!((half, missing.len()), (whole / 2, 1));
    assert_eq!(missing[0]["reason"], "rate_limited", "{missing:?}");
    assert_eq!(listed(&mut client).0, 0);
    let (_, place) = served.stop();
    let journal = place.journal();
    let refused = journal.decisions();
    assert!(
        refused
            .iter()
            .all(|record| record["reason"] == "rate_limited"),
        "{refused:?}"
    );
    assert_eq!(refused[0]["mcp_method"], "tools/list", "{}", refused[0]);
}

#[test]
fn each_key_is_given_its_own_list_and_none_once_it_is_revoked() {
    let place = Place::new();
    let rules = json!({"rules": [
        {"id": "ada", "effect": "allow", "conditions": {"subject_id": "key:ada", "tool_name": "echo"}},
        {"id": "bob", "effect": "allow", "conditions": {"subject_id": "key:bob", "tool_name": "sized"}}]});
    place.write_policy(&rules.to_string());
    let servers =
        json!({"a": recording(&place, "a", &STEADY), "b": recording(&place, "b", &STEADY)});
    let (ada, bob) = (
        bearer(&place, &["create", "ada"]),
        bearer(&place, &["create", "bob", "--scope", "a", "--unlisted"]),
    );
    let served = serving(place, &servers, &json!({"share": "all"}));
    let (mut first, mut second) = (with_key(&served, &ada), with_key(&served, &bob));
    for _ in 0..4 {
        assert_eq!(first.tools().0, ["a__echo", "b__echo"]);
        assert_eq!(second.tools().0, ["a__sized"]);
    }
    let authorized = [("authorization", ada.as_str())];
    let before = parts(&served, &authorized);
    assert!(before.0 > 0, "{before:?}");
    keys(&served.place, &["revoke", "bob"]);
    eventually("bob is not let in", || {
        second.request("tools/list", json!({})).is_err()
    });
    assert_eq!(first.tools().0, ["a__echo", "b__echo"]);
}

#[test]
fn labels_of_a_session_change_no_list() {
    let place = Place::new();
    let rules = json!({"rules": [
        {"id": "all", "effect": "allow", "conditions": {"tool_name": "*"}},
        {"id": "tainted", "effect": "deny", "conditions": {"tool_name": "sized", "session_labels": "untrusted"}}]});
    place.write_policy(&rules.to_string());
    let mut a = recording(&place, "a", &STEADY);
    a["labels"] = json!(["untrusted"]);
    let served = serving(place, &json!({"a": a}), &json!({}));
    let mut client = ready(&url(&served), LATEST);
    let before = remembered(&served, &mut client, 1);
    client.call("a__echo", json!({"text": "x"}));
    let refused = client.call("a__sized", json!({"bytes": 1}));
    assert!(refused.to_string().contains("tainted"), "{refused}");
    // A list is judged without labels, also where it is worked out.
    assert_eq!(list(&served, &mut client).0, before);
    assert_eq!(list(&served, &mut ready(&url(&served), LATEST)).0, before);
}

#[test]
fn what_is_remembered_of_one_client_is_bounded() {
    let place = Place::new();
    place.write_policy(ALL);
    let words = ["echo", "--announce-changes", "--tools", "2000"];
    let servers: serde_json::Map<String, Value> = (0..10)
        .map(|n| (format!("s{n}"), recording(&place, &format!("s{n}"), &words)))
        .collect();
    let served = serving(place, &servers.into(), &json!({"pin": "off"}));
    let mut client = ready(&url(&served), LATEST);
    eventually("all servers are there", || client.tools().1.is_empty());
    let first = list(&served, &mut client).0;
    let (second, (from_memory, worked_out)) = list(&served, &mut client);
    assert!(first == second);
    let of_one = u64::try_from(first.len()).unwrap() / 10;
    assert!(
        from_memory > 0 && worked_out > 0,
        "{from_memory} {worked_out}"
    );
    assert!(from_memory * of_one <= 4 << 20, "{from_memory} of {of_one}");
    assert!(
        (from_memory + 1) * (of_one + 1_024) > 4 << 20,
        "{from_memory} of {of_one}"
    );
}
