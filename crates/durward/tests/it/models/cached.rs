//! Replies that are remembered: for the same request of the same caller, byte by byte, and for nobody else.

use serde_json::{Value, json};

use super::support::{ENDPOINTS, Upstream, ask, journalled, place, request, serve, used};
use crate::support::serving::{Answer, Served};

const CACHE: &str = "cache: { ttl: 1h, bytes: 1MiB }";

fn yaml(upstream: &Upstream, path: &str, more: &str) -> String {
    let provider = upstream.configured("far", path);
    format!("models: {{ providers: {{ {provider} }}, {CACHE}{more} }}")
}

fn is_hit(answer: &Answer) -> bool {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("x-durward-cache") == Some("hit")
}

#[test]
fn the_same_request_is_answered_byte_by_byte_without_the_provider_and_costs_nothing() {
    for path in ENDPOINTS {
        let upstream = Upstream::start();
        let prices = ", prices: { plain: { input: 1, output: 10 } }, budgets: { all: { tokens: 100000, per: all } }";
        let served = serve(&yaml(&upstream, path, prices), &[]);
        let first = ask(&served, path, "far/plain", false);
        assert!(!is_hit(&first));
        let again = ask(&served, path, "far/plain", false);
        assert!(is_hit(&again), "{path} {again:?}");
        assert_eq!(again.body, first.body, "{path}");
        assert_eq!(again.header("x-durward-cost"), Some("0.000000"));
        assert_eq!(again.header("x-durward-target"), Some("far/plain"));
        assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
        assert_eq!(upstream.count(), 1, "{path}");
        // A stream is no whole reply, and another format is another request.
        assert!(!is_hit(&ask(&served, path, "far/plain", true)));
        let mut other = request(path, "far/plain", false);
        other["metadata"] = json!({ "x": "y" });
        let text = other.to_string();
        assert!(!is_hit(&served.send("POST", path, &[], &text)));
        let anew = [("cache-control", "no-cache")];
        assert!(!is_hit(&served.send("POST", path, &anew, &text)));
        assert_eq!(upstream.count(), 4, "{path}");
        let (_, place) = served.stop();
        let records = place.journal();
        let operations = records.operations();
        let told: Vec<_> = operations
            .iter()
            .filter(|own| own["reason"] == "served_from_cache")
            .collect();
        assert_eq!(told.len(), 1, "{operations:?}");
        assert_eq!(
            (&told[0]["status"], &told[0]["usage"]),
            (&json!("Success"), &Value::Null)
        );
        assert_eq!(used(&place), journalled(&place));
    }
}

#[test]
fn another_response_format_is_another_request() {
    let upstream = Upstream::start();
    let served = serve(&yaml(&upstream, ENDPOINTS[0], ""), &[]);
    let mut body = request(ENDPOINTS[0], "far/plain", false);
    assert!(!is_hit(&served.send(
        "POST",
        ENDPOINTS[0],
        &[],
        &body.to_string()
    )));
    body["response_format"] = json!({ "type": "json_object" });
    let structured = served.send("POST", ENDPOINTS[0], &[], &body.to_string());
    assert!(!is_hit(&structured));
    assert!(structured.body.contains("mock"), "{structured:?}");
}

#[test]
fn nothing_is_remembered_where_the_configuration_does_not_say_so_or_the_reply_is_no_good() {
    let upstream = Upstream::start();
    let served = serve(
        &format!(
            "models: {{ providers: {{ {} }} }}",
            upstream.configured("far", ENDPOINTS[0])
        ),
        &[],
    );
    for _ in 0..2 {
        assert!(!is_hit(&ask(&served, ENDPOINTS[0], "far/plain", false)));
    }
    let served = serve(&yaml(&upstream, ENDPOINTS[0], ""), &[]);
    for _ in 0..2 {
        let answer = ask(&served, ENDPOINTS[0], "far/fault-404", false);
        assert_eq!(
            (answer.status, answer.header("x-durward-cache")),
            (404, None)
        );
    }
}

/// A gateway with a key for each of these names.
fn keyed(yaml: &str, rules: &[&str], names: &[&str]) -> (Served, Vec<String>) {
    let place = place(yaml, rules);
    let keys = names.iter().map(|name| {
        let args = [
            "keys",
            "create",
            name,
            "--state-dir",
            "state",
            "--no-config",
        ];
        let made = place.durward(&args);
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    });
    let keys = keys.collect();
    (Served::start_ruled(place), keys)
}

fn ask_as(served: &Served, key: &str, model: &str) -> Answer {
    let bearer = format!("Bearer {key}");
    let body = request(ENDPOINTS[0], model, false).to_string();
    served.send("POST", ENDPOINTS[0], &[("authorization", &bearer)], &body)
}

#[test]
fn no_caller_is_given_what_another_was_told() {
    let upstream = Upstream::start();
    let (served, keys) = keyed(&yaml(&upstream, ENDPOINTS[0], ""), &[], &["one", "two"]);
    assert!(!is_hit(&ask_as(&served, &keys[0], "far/plain")));
    assert!(!is_hit(&ask_as(&served, &keys[1], "far/plain")));
    assert!(is_hit(&ask_as(&served, &keys[0], "far/plain")));
    assert_eq!(upstream.count(), 2);
}

#[test]
fn users_of_one_tenant_share_where_the_configuration_says_so_and_no_others_do() {
    let mock = "models: { providers: { a: { kind: mock, latency: 0ms } }, cache: { per: tenant }, accounts: { register: open } }";
    let (served, keys) = keyed(mock, &[], &[]);
    assert!(keys.is_empty());
    let (place_now, admin) = {
        let args = [
            "keys",
            "create",
            "ops",
            "--group",
            "admin",
            "--state-dir",
            "state",
            "--no-config",
        ];
        let (_, place) = served.stop();
        let made = place.durward(&args);
        (
            place,
            String::from_utf8(made.stdout).unwrap().trim().to_owned(),
        )
    };
    let served = Served::start_ruled(place_now);
    let send = |method: &str, path: &str, body: Value| {
        let bearer = format!("Bearer {admin}");
        let answer = served.send(
            method,
            path,
            &[("authorization", &bearer)],
            &body.to_string(),
        );
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    for tenant in ["t", "u"] {
        send("PUT", &format!("/admin/tenants/{tenant}"), json!({}));
        send(
            "PUT",
            &format!("/admin/teams/of-{tenant}"),
            json!({ "tenant": tenant }),
        );
    }
    let user = |name: &str, team: &str| {
        let made = send(
            "POST",
            "/admin/users",
            json!({ "username": name, "team": team }),
        );
        made["token"].as_str().unwrap().to_owned()
    };
    let (ada, bob, eve) = (
        user("ada", "of-t"),
        user("bob", "of-t"),
        user("eve", "of-u"),
    );
    assert!(!is_hit(&ask_as(&served, &ada, "a/plain")));
    assert!(is_hit(&ask_as(&served, &bob, "a/plain")));
    assert!(!is_hit(&ask_as(&served, &eve, "a/plain")));
}

#[test]
fn what_is_remembered_is_judged_as_any_call_and_looked_through_again() {
    let upstream = Upstream::start();
    let deny = r#"{"id":"not-late","effect":"deny","conditions":{"resource_type":"model","when":"max_tokens != null && max_tokens > 5"}}"#;
    let inspect = "\ninspect: { word: { patterns: [MOCK], on: results, action: mask } }";
    let served = serve(
        &format!("{}{inspect}", yaml(&upstream, ENDPOINTS[0], "")),
        &[deny],
    );
    let answers = [(); 2].map(|()| ask(&served, ENDPOINTS[0], "far/plain", false));
    assert!(is_hit(&answers[1]));
    for answer in &answers {
        assert!(answer.body.contains("[masked: word]"), "{answer:?}");
    }
    let mut body = request(ENDPOINTS[0], "far/plain", false);
    body["max_tokens"] = json!(9);
    let refused = served.send("POST", ENDPOINTS[0], &[], &body.to_string());
    assert_eq!(refused.status, 403, "{refused:?}");
    let (_, place) = served.stop();
    let records = place.records();
    let found = records
        .operations()
        .into_iter()
        .filter(|own| !own["inspected"].is_null());
    assert_eq!(found.count(), 2, "{records:?}");
}
