//! Servers that cannot be asked: they are down, or speak another revision.

use std::fs;
use std::time::Instant;

use mcp::client::Era;
use serde_json::json;

use super::super::kept::recording;
use super::super::{Asks as _, configured, text_of};
use super::{send, servers};
use crate::support::guarded::{LATEST, Place, eventually};
use crate::support::served::{Served, ready};
use crate::support::serving;

#[test]
fn a_server_that_is_down_is_named_and_takes_nothing_from_the_others() {
    let place = Place::new();
    let mut all = servers(&place);
    all["dead"] = json!({"command": "/bin/false"});
    let served = Served::start(&place, &all);
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    let discovered = client.ask("server/discover", json!({}));
    let result = discovered.result().unwrap();
    let away = &result["_meta"]["durward/missing"];
    assert_eq!(away.as_array().map(Vec::len), Some(1), "{result}");
    assert_eq!(away[0]["server"], "dead", "{result}");
    assert_eq!(away[0]["reason"], "upstream_died", "{result}");
    // It may be there the next moment.
    assert_eq!(result["ttlMs"], 0, "{result}");
    let said = result["instructions"].as_str().unwrap();
    assert!(
        said.ends_with("Not available at the moment: dead."),
        "{said}"
    );
    let (names, missing) = client.tools();
    assert_eq!(missing, ["dead"]);
    assert!(names.contains(&"old__echo".to_owned()), "{names:?}");
    let absent = client.call("dead__x", json!({}));
    let message = absent["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("\"dead\" is not available"), "{absent}");
    assert_eq!(
        text_of(&client.call("new__echo", json!({"text": "x"}))),
        "x"
    );
}

#[test]
fn a_server_that_is_down_is_tried_again_now_and_then_and_is_listed_once_it_is_up() {
    let place = Place::new();
    let mut all = servers(&place);
    let mock = place.mock(&["echo", "--eras", "legacy"]).join(" ");
    let (started, up) = (place.path("started"), place.path("up"));
    let script = format!(
        "echo x >> {}; test -e {} || exit 1; exec {mock}",
        started.display(),
        up.display()
    );
    all["late"] = json!({"command": "sh", "args": ["-c", script]});
    let served = Served::start(&place, &all);
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    let begun = Instant::now();
    for _ in 0..50 {
        assert_eq!(client.tools().1, ["late"]);
    }
    let starts = fs::read_to_string(&started).unwrap().lines().count();
    let most = 2 + begun.elapsed().as_secs() / 5;
    assert!(starts as u64 <= most, "{starts} starts, at most {most}");
    fs::write(up, "").unwrap();
    eventually("the server is there", || client.tools().1.is_empty());
    let answer = client.call("late__echo", json!({"text": "x"}));
    assert_eq!(text_of(&answer), "x");
}

#[test]
fn where_no_server_speaks_the_revision_the_client_is_told_to_open_a_session() {
    let place = Place::new();
    let old = ["echo", "--eras", "legacy"];
    let all = json!({"a": recording(&place, "a", &old), "b": recording(&place, "b", &old)});
    let configuration = json!({"servers": all, "policy": place.path("policy.json")});
    configured(&place, &configuration);
    let served = serving::Served::start_ruled(place);
    for method in ["server/discover", "tools/list", "subscriptions/listen"] {
        let told = send(&served, method, "", "");
        assert_eq!(told.status, 400, "{told:?}");
        let error = &told.json()["error"];
        assert_eq!(error["code"], -32022, "{told:?}");
        assert_eq!(error["data"]["reason"], "era_mismatch", "{told:?}");
        let supported = error["data"]["supported"].as_array().unwrap();
        assert!(supported.contains(&json!("2025-11-25")), "{told:?}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("open a session with initialize"),
            "{told:?}"
        );
    }
    let mut client = ready(&format!("http://{}/mcp", served.address), LATEST);
    assert_eq!(text_of(&client.call("b__echo", json!({"text": "x"}))), "x");
}
