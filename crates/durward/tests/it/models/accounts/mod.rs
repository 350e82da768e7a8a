//! Accounts over HTTP: registration, tokens, keys of providers, administration, budgets.

mod budgets;
mod keys;
mod page;
mod people;

use serde_json::{Value, json};

use super::support::{place, request};
use crate::support::guarded::Place;
use crate::support::serving::{Answer, Served};

const MOCK: &str = "models:\n  providers: { a: { kind: mock, latency: 0ms } }\n";

/// A place with accounts that anybody may make, and an administrator's key of the operator's.
fn open_place(more: &str) -> (Place, String) {
    place_of(MOCK, more)
}

/// The same, with these models.
fn place_of(models: &str, more: &str) -> (Place, String) {
    let place = place(
        &format!("{models}  accounts: {{ register: open{more} }}\n"),
        &[],
    );
    let key = admin_key(&place);
    (place, key)
}

fn admin_key(place: &Place) -> String {
    let args = ["keys", "create", "ops", "--group", "admin"];
    let kept = ["--state-dir", "state", "--no-config"];
    let made = place.durward(&[&args[..], &kept[..]].concat());
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert!(key.starts_with("dw_"), "{key}");
    key
}

/// Sends a request with a credential.
fn send(served: &Served, key: &str, method: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {key}");
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    served.send(method, path, &[("authorization", &bearer)], &text)
}

fn get(served: &Served, key: &str, path: &str) -> Value {
    let answer = send(served, key, "GET", path, &Value::Null);
    assert_eq!(answer.status, 200, "{path} {answer:?}");
    answer.json()
}

fn register(served: &Served, name: &str) -> Answer {
    let body = json!({ "username": name }).to_string();
    served.send("POST", "/v1/auth/register", &[], &body)
}

/// The token of a new user.
fn registered(served: &Served, name: &str) -> String {
    let answer = register(served, name);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["token"].as_str().unwrap().to_owned()
}

/// Asks the scripted model, not streamed, for a short reply.
fn ask(served: &Served, token: &str) -> Answer {
    let mut body = request("/v1/chat/completions", "a/plain", false);
    body["max_tokens"] = json!(16);
    send(served, token, "POST", "/v1/chat/completions", &body)
}
