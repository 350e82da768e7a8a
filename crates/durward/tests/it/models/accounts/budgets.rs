//! Budgets of tokens inside those of users, teams and tenants: never exceeded, and exact after a kill.

use std::io::BufReader;
use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use super::super::support::{code, journalled, read_until, request};
use super::{MOCK, ask, get, open_place, place_of, registered, send};
use crate::support::serving::{Served, read_head, write_request};

/// What is used of the first budget of a team, a tenant or a user.
fn used(served: &Served, admin: &str, path: &str) -> u64 {
    let told = get(served, admin, path);
    told["budgets"][0]["used"].as_u64().unwrap()
}

/// A tenant with a team in it that has a user, each with these budgets.
fn nested(served: &Served, admin: &str, budgets: [Value; 3]) -> String {
    let [tenant, team, user] = budgets;
    let put = |path: &str, body: Value| {
        let answer = send(served, admin, "PUT", path, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    put("/admin/tenants/acme", json!({ "budgets": tenant }));
    put(
        "/admin/teams/red",
        json!({ "tenant": "acme", "budgets": team }),
    );
    let token = registered(served, "ada");
    let change = json!({ "team": "red", "budgets": user });
    let answer = send(served, admin, "PATCH", "/admin/users/ada", &change);
    assert_eq!(answer.status, 200, "{answer:?}");
    token
}

#[test]
fn each_level_refuses_where_it_is_spent_and_the_others_keep_what_they_had() {
    let (place, admin) = open_place(", requests: 0");
    let served = Served::start_ruled(place);
    let budgets = [[5], [4], [3]].map(|most| json!([{ "requests": most[0] }]));
    let token = nested(&served, &admin, budgets);
    let second = json!({ "name": "narrow", "budgets": [{ "requests": 1 }] });
    let second = send(&served, &token, "POST", "/v1/user/tokens", &second).json();
    let narrow = second["token"].as_str().unwrap().to_owned();
    assert_eq!(ask(&served, &narrow).status, 200);
    let refused = ask(&served, &narrow);
    assert_eq!(
        (refused.status, code(&refused.json())),
        (429, "rate_limited")
    );
    assert_eq!(
        [ask(&served, &token).status, ask(&served, &token).status],
        [200, 200]
    );
    assert_eq!(
        ask(&served, &token).status,
        429,
        "the user's three are spent"
    );
    let paths = [
        "/admin/users/ada",
        "/admin/teams/red",
        "/admin/tenants/acme",
    ];
    assert_eq!(paths.map(|path| used(&served, &admin, path)), [3, 3, 3]);
    let bob = registered(&served, "bob");
    let change = json!({ "team": "red" });
    send(&served, &admin, "PATCH", "/admin/users/bob", &change);
    assert_eq!(ask(&served, &bob).status, 200);
    assert_eq!(ask(&served, &bob).status, 429, "the team's four are spent");
    assert_eq!(paths.map(|path| used(&served, &admin, path)), [3, 4, 4]);
}

#[test]
fn sixty_four_callers_of_many_tokens_never_exceed_the_budget_of_their_team() {
    // All ask while the first are still answered, and what they would use together is twice the budget.
    let most = 600;
    let (place, admin) = place_of(&MOCK.replace("0ms", "20ms"), ", requests: 0");
    let served = Arc::new(Served::start_ruled(place));
    let forever = json!([{ "tokens": 1_000_000 }]);
    let budgets = [forever.clone(), json!([{ "tokens": most }]), forever];
    let token = nested(&served, &admin, budgets);
    let second = send(
        &served,
        &token,
        "POST",
        "/v1/user/tokens",
        &json!({ "name": "b" }),
    )
    .json();
    let tokens = [token, second["token"].as_str().unwrap().to_owned()];
    let start = Arc::new(Barrier::new(64));
    let callers: Vec<_> = (0..64)
        .map(|caller| {
            let (served, token) = (Arc::clone(&served), tokens[caller % 2].clone());
            let start = Arc::clone(&start);
            std::thread::spawn(move || {
                start.wait();
                for _ in 0..2 {
                    let answer = ask(&served, &token);
                    assert!([200, 429].contains(&answer.status), "{answer:?}");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
    let served = Arc::into_inner(served).unwrap();
    // One caller alone uses up what the others have left.
    while ask(&served, &tokens[0]).status == 200 {}
    let team = used(&served, &admin, "/admin/teams/red");
    assert!(team <= most && team > most - 200, "{team} of {most}");
    assert_eq!(used(&served, &admin, "/admin/tenants/acme"), team);
    assert_eq!(used(&served, &admin, "/admin/users/ada"), team);
    let (_, place) = served.stop();
    assert_eq!(journalled(&place), team);
}

#[test]
fn accounts_and_journal_agree_after_a_kill_in_the_middle_of_streams() {
    let (place, admin) = open_place(", requests: 0");
    let mut served = Served::start_ruled(place);
    let forever = json!([{ "tokens": 1_000_000 }]);
    let budgets = [forever.clone(), forever.clone(), forever];
    let token = nested(&served, &admin, budgets);
    for _ in 0..3 {
        assert_eq!(ask(&served, &token).status, 200);
    }
    let bearer = format!("Bearer {token}");
    let mut stream = served.connect();
    let path = "/v1/chat/completions";
    let body = request(path, "a/fault-stall", true).to_string();
    let shown = [("authorization", bearer.as_str())];
    write_request(&mut stream, "POST", path, &shown, &body);
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).status, 200);
    read_until(&mut reader, "This");
    // Records of what has ended may come a little later than its reply.
    let ended = |place: &crate::support::guarded::Place| place.records().operations().len() >= 3;
    crate::support::guarded::eventually("three records", || ended(&served.place));
    served.process.kill().unwrap();
    let (_, place) = served.ended();
    let before = journalled(&place);
    assert!(before > 0);
    let served = Served::start_ruled(place);
    // The stream that was cut was settled by what had gone by.
    let after = journalled(&served.place);
    assert!(after > before, "{after} after {before}");
    for path in [
        "/admin/users/ada",
        "/admin/teams/red",
        "/admin/tenants/acme",
    ] {
        assert_eq!(used(&served, &admin, path), after, "{path}");
    }
    assert_eq!(ask(&served, &token).status, 200);
}

/// How many more requests the user may make in this minute, by the reply.
fn remaining(answer: &crate::support::serving::Answer) -> u64 {
    let text = answer.header("x-ratelimit-remaining-requests");
    text.unwrap().parse().unwrap()
}

#[test]
fn the_61st_request_in_a_minute_is_refused_to_its_user_alone() {
    let (place, _) = open_place("");
    let served = Served::start_ruled(place);
    let (ada, bob) = (registered(&served, "ada"), registered(&served, "bob"));
    let path_of = |at: usize| super::super::support::ENDPOINTS[at % 3];
    let ask = |token: &str, at: usize| {
        let mut body = request(path_of(at), "a/plain", at.is_multiple_of(2));
        if path_of(at) == "/v1/messages" {
            body["max_tokens"] = json!(16);
        }
        send(&served, token, "POST", path_of(at), &body)
    };
    // A minute may end on the way, and then the count begins anew.
    let mut left = 60;
    let refused = (0..)
        .map(|at| ask(&ada, at))
        .find(|answer| {
            if answer.status == 200 {
                let now = remaining(answer);
                assert!(now + 1 == left || now == 59, "{now} after {left}");
                left = now;
            }
            answer.status != 200
        })
        .unwrap();
    assert_eq!(left, 0, "60 requests pass");
    assert_eq!(
        (refused.status, code(&refused.json())),
        (429, "rate_limited")
    );
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(ask(&bob, 0).status, 200, "both come from one address");
}
