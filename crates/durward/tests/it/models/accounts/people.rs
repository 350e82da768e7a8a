//! Who may do what with which account.

use std::fs;
use std::io::BufReader;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::support::{code, place};
use super::{MOCK, admin_key, ask, get, open_place, register, registered, send};
use crate::serve_keys::keys;
use crate::support::guarded::eventually;
use crate::support::serving::{Answer, Served, read_answer, write_request};

/// Every file below a directory, as one text.
fn everything_below(directory: &std::path::Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            all.extend(everything_below(&path));
        } else if path.is_file() {
            all.extend(fs::read(path).unwrap());
        }
    }
    all
}

fn holds(all: &[u8], text: &str) -> bool {
    all.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn a_token_is_shown_once_opens_models_and_the_own_account_and_is_kept_nowhere() {
    let (place, _) = open_place("");
    let served = Served::start_ruled(place);
    let answer = register(&served, "ada");
    assert_eq!(answer.status, 200, "{answer:?}");
    let user = answer.json();
    let token = user["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("dwu_") && token.len() == 68, "{token}");
    for name in [
        "id",
        "username",
        "created_at",
        "provider_keys",
        "config_overrides",
    ] {
        assert!(!user[name].is_null(), "{name} {user}");
    }
    assert_eq!(user["is_active"], true);
    let own_key = json!({ "openai": "sk-canary-0123456789" });
    let kept = send(&served, &token, "POST", "/v1/user/keys", &own_key).json();
    assert_eq!(kept["updated"], json!(["openai"]), "{kept}");
    let me = get(&served, &token, "/v1/user/me");
    assert_eq!(me["username"], "ada");
    assert_eq!(me["token"], Value::Null);
    assert_eq!(me["provider_keys"], json!({ "openai": "********" }));
    assert_eq!(me["budgets"][0]["requests"], 60, "{me}");
    let answer = ask(&served, &token);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("x-ratelimit-limit-requests"), Some("60"));
    // By the header of Anthropic's clients, too.
    let shown = [("x-api-key", token.as_str())];
    assert_eq!(served.send("GET", "/v1/models", &shown, "").status, 200);
    let second = json!({ "name": "laptop" });
    let second = send(&served, &token, "POST", "/v1/user/tokens", &second).json();
    let second_text = second["token"].as_str().unwrap().to_owned();
    assert_eq!(ask(&served, &second_text).status, 200);
    let path = format!("/v1/user/tokens/{}", second["id"].as_str().unwrap());
    assert_eq!(
        send(&served, &token, "DELETE", &path, &Value::Null).status,
        200
    );
    assert_eq!(ask(&served, &second_text).status, 401);
    let (_, place) = served.stop();
    let all = everything_below(&place.path("state"));
    for secret in [&token[4..], &second_text[4..], "sk-canary"] {
        assert!(!holds(&all, secret), "{secret} is kept as it is");
    }
    let records = place.records();
    let changed = records
        .0
        .iter()
        .filter(|own| own["event"] == "account_changed");
    let changed: Vec<&str> = changed.filter_map(|own| own["message"].as_str()).collect();
    assert_eq!(changed.len(), 4, "{changed:?}");
    assert_eq!(changed[0], "user ada has registered");
    // What was written down is there at the next start.
    let served = Served::start_ruled(place);
    assert_eq!(ask(&served, &token).status, 200);
    assert_eq!(ask(&served, &second_text).status, 401);
}

#[test]
fn without_a_credential_or_the_role_everything_but_registration_is_refused() {
    let (place, admin) = open_place("");
    // Whoever manages accounts could make one that reaches more than the key.
    let scoped = keys(
        &place,
        &["create", "part", "--group", "admin", "--scope", "a"],
    );
    let served = Served::start_ruled(place);
    let token = registered(&served, "eve");
    let paths = [
        ("GET", "/v1/user/me"),
        ("GET", "/v1/user/keys"),
        ("POST", "/v1/user/tokens"),
        ("GET", "/admin/users"),
        ("GET", "/admin/teams"),
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/embeddings"),
        ("GET", "/metrics"),
    ];
    for (method, path) in paths {
        let answer = served.send(method, path, &[], "");
        assert_eq!(answer.status, 401, "{path} {answer:?}");
        let wrong = format!("dwu_{}", "0".repeat(64));
        assert_eq!(
            send(&served, &wrong, method, path, &Value::Null).status,
            401
        );
    }
    for (method, path) in [
        ("GET", "/admin/users"),
        ("POST", "/admin/users"),
        ("PATCH", "/admin/users/eve"),
        ("DELETE", "/admin/users/eve"),
        ("PUT", "/admin/teams/red"),
    ] {
        for key in [&token, &scoped] {
            let answer = send(&served, key, method, path, &json!({ "role": "admin" }));
            assert_eq!(answer.status, 403, "{path} {answer:?}");
            assert_eq!(code(&answer.json()), "admin_needed", "{path}");
        }
    }
    // What is the operator's own is not a user's.
    assert_eq!(
        send(&served, &token, "GET", "/metrics", &Value::Null).status,
        403
    );
    assert_eq!(
        send(&served, &admin, "GET", "/metrics", &Value::Null).status,
        200
    );
    let answer = send(&served, &admin, "GET", "/v1/user/me", &Value::Null);
    assert_eq!(code(&answer.json()), "account_needed", "{answer:?}");
}

#[test]
fn an_administrator_sees_to_users_and_a_disabled_one_is_refused() {
    let (place, admin) = open_place("");
    let served = Served::start_ruled(place);
    let made = json!({ "username": "bob", "budgets": [{ "requests": 5 }] });
    let made = send(&served, &admin, "POST", "/admin/users", &made).json();
    let token = made["token"].as_str().unwrap().to_owned();
    assert_eq!(ask(&served, &token).status, 200);
    let change = |body: Value| send(&served, &admin, "PATCH", "/admin/users/bob", &body);
    assert_eq!(change(json!({ "is_active": false })).status, 200);
    assert_eq!(ask(&served, &token).status, 401);
    assert_eq!(change(json!({ "is_active": true })).status, 200);
    assert_eq!(ask(&served, &token).status, 200);
    let bob = get(&served, &admin, "/admin/users/bob");
    assert_eq!(bob["budgets"][0]["used"], 2, "{bob}");
    assert_eq!(change(json!({ "team": "red" })).status, 404);
    assert_eq!(change(json!({ "role": "admin" })).status, 200);
    assert_eq!(
        get(&served, &token, "/admin/users")["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let put = |path: &str, body: Value| send(&served, &admin, "PUT", path, &body);
    assert_eq!(put("/admin/tenants/acme", json!({})).status, 200);
    assert_eq!(
        put("/admin/teams/red", json!({ "tenant": "acme" })).status,
        200
    );
    assert_eq!(change(json!({ "team": "red" })).status, 200);
    for (path, is_there) in [("/admin/teams/red", 409), ("/admin/tenants/acme", 409)] {
        let answer = send(&served, &admin, "DELETE", path, &Value::Null);
        assert_eq!(answer.status, is_there, "{answer:?}");
        assert_eq!(code(&answer.json()), "in_use");
    }
    let gone = send(&served, &admin, "DELETE", "/admin/users/bob", &Value::Null);
    assert_eq!(gone.status, 200);
    assert_eq!(ask(&served, &token).status, 401);
    let path = "/admin/teams/red";
    assert_eq!(
        send(&served, &admin, "DELETE", path, &Value::Null).status,
        200
    );
    assert_eq!(get(&served, &admin, "/admin/teams")["data"], json!([]));
}

#[test]
fn what_cannot_be_taken_is_refused_by_name_and_registrations_have_a_bound() {
    let (place, admin) = open_place("");
    let served = Served::start_ruled(place);
    registered(&served, "ada");
    let answer = register(&served, "ada");
    assert_eq!((answer.status, code(&answer.json())), (409, "name_taken"));
    let long = "x".repeat(65);
    for name in ["", " ", "a b", "a/b", "..", "user:x", "ü", &long] {
        let answer = register(&served, name);
        assert_eq!(answer.status, 400, "{name:?} {answer:?}");
    }
    let post = |body: &str| served.send("POST", "/v1/auth/register", &[], body);
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"username":1}"#,
        r#"{"username":"x","role":"admin"}"#,
        r#"{"username":"x","username":"y"}"#,
    ] {
        let answer = post(body);
        assert_eq!(answer.status, 400, "{body} {answer:?}");
        assert_eq!(code(&answer.json()), "request_unreadable", "{body}");
    }
    let huge = format!(r#"{{"username":"{}"}}"#, "x".repeat(70_000));
    assert_eq!(post(&huge).status, 413);
    assert_eq!(served.send("GET", "/v1/auth/register", &[], "").status, 405);
    for body in [
        json!({ "username": "c", "budgets": [{ "tokens": -5 }] }),
        json!({ "username": "c", "budgets": [{ "tokens": 5, "requests": 5 }] }),
        json!({ "username": "c", "role": "root" }),
        json!({ "username": "c", "nick": "x" }),
    ] {
        let answer = send(&served, &admin, "POST", "/admin/users", &body);
        assert_eq!(answer.status, 400, "{body} {answer:?}");
    }
    // Two minutes have room for 120 at the most, and this takes less.
    let refused = (0..200)
        .map(|n| register(&served, &format!("user{n}")))
        .find(|answer| answer.status != 200)
        .expect("registrations are bounded");
    assert_eq!(
        (refused.status, code(&refused.json())),
        (429, "rate_limited")
    );
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
}

#[test]
fn where_registration_is_closed_an_administrator_makes_accounts() {
    let place = super::place(&format!("{MOCK}  accounts: {{ requests: 5 }}\n"), &[]);
    let admin = admin_key(&place);
    let served = Served::start_ruled(place);
    let answer = register(&served, "ada");
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(code(&answer.json()), "registration_closed");
    let made = send(
        &served,
        &admin,
        "POST",
        "/admin/users",
        &json!({ "username": "ada" }),
    );
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let answer = ask(&served, &token);
    assert_eq!(
        answer.header("x-ratelimit-limit-requests"),
        Some("5"),
        "{answer:?}"
    );
}

#[test]
fn the_name_of_a_user_who_was_removed_is_not_there_for_whoever_registers() {
    let (place, admin) = open_place("");
    let served = Served::start_ruled(place);
    registered(&served, "alice");
    let gone = send(
        &served,
        &admin,
        "DELETE",
        "/admin/users/alice",
        &Value::Null,
    );
    assert_eq!(gone.status, 200);
    let refused = |served: &Served| {
        let answer = register(served, "alice");
        assert_eq!(
            (answer.status, code(&answer.json())),
            (409, "name_taken"),
            "{answer:?}"
        );
    };
    refused(&served);
    let (_, place) = served.stop();
    let served = Served::start_ruled(place);
    refused(&served);
    // An administrator knows who that is.
    let made = send(
        &served,
        &admin,
        "POST",
        "/admin/users",
        &json!({ "username": "alice" }),
    );
    assert_eq!(made.status, 200, "{made:?}");
}

/// The session that a credential opens with the server `echo`, where it is good.
fn entered(served: &Served, key: &str) -> Option<String> {
    let own = [
        ("authorization", key),
        ("accept", "application/json, text/event-stream"),
    ];
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let opened = served.send("POST", "/mcp/echo", &own, hello);
    opened.header("mcp-session-id").map(str::to_owned)
}

/// Whether a call in a session is answered.
fn is_answered(served: &Served, key: &str, session: &str) -> bool {
    let own = [
        ("authorization", key),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", session),
    ];
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello there"}}}"#;
    let answer = served.send("POST", "/mcp/echo", &own, body);
    answer.body.contains("hello there")
}

#[test]
fn what_a_token_has_opened_ends_when_its_time_is_over() {
    let models = format!(
        "{MOCK}  accounts: {{ register: open, servers: [echo] }}\nservers: {{ echo: {{ builtin: echo }} }}\n"
    );
    let tools = r#"{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}"#;
    let served = Served::start_ruled(place(&models, &[tools]));
    let token = registered(&served, "ann");
    let other = registered(&served, "ben");
    let bearer = |token: &str| format!("Bearer {token}");
    let of_ben = entered(&served, &bearer(&other)).unwrap();
    // One that could be shown before its time was over, however slow this machine is.
    let session = (0..).find_map(|number| {
        let asked = json!({ "name": format!("short-{number}"), "expires_in_s": 1 });
        let made = send(&served, &token, "POST", "/v1/user/tokens", &asked).json();
        entered(&served, &bearer(made["token"].as_str().unwrap()))
    });
    let session = session.unwrap();
    // The user's own token remains good; nobody knows which of them has opened what.
    eventually("what was open has ended", || {
        !is_answered(&served, &bearer(&token), &session)
    });
    let again = entered(&served, &bearer(&token)).unwrap();
    assert!(is_answered(&served, &bearer(&token), &again));
    assert!(is_answered(&served, &bearer(&other), &of_ben));
}

#[test]
fn what_is_open_does_not_keep_the_team_that_its_user_has_left() {
    let servers = ", servers: [echo]";
    let models = format!(
        "{MOCK}  accounts: {{ register: open{servers} }}\nservers: {{ echo: {{ builtin: echo }} }}\n"
    );
    let reds = r#"{"id":"reds","effect":"allow","conditions":{"tool_name":"*","when":"subject_groups != null && 'team:red' in subject_groups"}}"#;
    let acme = r#"{"id":"acme","effect":"allow","conditions":{"tool_name":"*","when":"subject_groups != null && 'tenant:acme' in subject_groups"}}"#;
    let place = place(&models, &[reds, acme]);
    let admin = admin_key(&place);
    let served = Served::start_ruled(place);
    let put = |path: &str, body: Value| {
        let answer = send(&served, &admin, "PUT", path, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    for (path, body) in [
        ("/admin/tenants/acme", json!({})),
        ("/admin/teams/red", json!({})),
        ("/admin/teams/blue", json!({ "tenant": "acme" })),
        ("/admin/teams/green", json!({})),
    ] {
        put(path, body);
    }
    let enter = |key: &str| entered(&served, key).unwrap();
    let opened = |user: &str, team: &str| {
        let made = json!({ "username": user, "team": team });
        let made = send(&served, &admin, "POST", "/admin/users", &made).json();
        let key = format!("Bearer {}", made["token"].as_str().unwrap());
        let session = enter(&key);
        (key, session)
    };
    let calls = |(key, session): &(String, String)| is_answered(&served, key, session);
    let (ann, ben) = (opened("ann", "red"), opened("ben", "blue"));
    assert!(calls(&ann) && calls(&ben));
    let moves = |user: &str, team: &str| {
        let path = format!("/admin/users/{user}");
        let moved = send(&served, &admin, "PATCH", &path, &json!({ "team": team }));
        assert_eq!(moved.status, 200, "{moved:?}");
    };
    moves("ann", "green");
    put("/admin/teams/blue", json!({}));
    eventually("neither is in its group any more", || {
        !calls(&ann) && !calls(&ben)
    });
    // What is opened after the move stays.
    let (key, before) = opened("cat", "green");
    moves("cat", "red");
    let cat = (key.clone(), enter(&key));
    assert!(!calls(&(key, before)));
    for _ in 0..20 {
        assert!(calls(&cat));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Takes the journal away and has somebody register; the answer, where it comes before serving has noticed by itself.
fn registered_without_journal() -> Option<Answer> {
    let (place, admin) = open_place("");
    let served = Served::start_ruled(place);
    registered(&served, "ada");
    let mut stream = served.connect();
    fs::remove_file(served.place.segments().last().unwrap()).unwrap();
    let body = json!({ "username": "eve" }).to_string();
    write_request(&mut stream, "POST", "/v1/auth/register", &[], &body);
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        read_answer(&mut BufReader::new(stream))
    }));
    let (code, place) = served.ended();
    assert_eq!(code, Some(10));
    let served = Served::start_ruled(place);
    let known = get(&served, &admin, "/admin/users");
    let names = known["data"].as_array().unwrap().iter();
    let names: Vec<&Value> = names.map(|user| &user["username"]).collect();
    assert_eq!(names, ["ada"], "eve is in no journal");
    seen.ok()
}

#[test]
fn what_is_not_in_the_journal_is_not_changed() {
    // Serving looks after its journal four times a second and may be first: then it just ends.
    let refused = (0..40).find_map(|_| registered_without_journal());
    let refused = refused.expect("the request comes first, sooner or later");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(code(&refused.json()), "journal_failed");
}

#[test]
fn a_name_in_another_case_is_the_same_and_the_operators_names_are_not_for_everybody() {
    let (place, _) = open_place("");
    let served = Served::start_ruled(place);
    registered(&served, "alice");
    for taken in ["Alice", "ALICE"] {
        let answer = register(&served, taken);
        assert_eq!(answer.status, 409, "{taken}: {}", answer.body);
    }
    for reserved in ["admin", "Root", "local", "sys-admin"] {
        let answer = register(&served, reserved);
        assert_eq!(answer.status, 400, "{reserved}: {}", answer.body);
        assert!(answer.body.contains("reserved"), "{}", answer.body);
    }
    registered(&served, "administrator2");
}
