//! Replicas that share one budget in a real Redis server: never over, and nothing stranded after a clean end.

use std::sync::Arc;

use mocks::redis_server::RedisProcess;
use serde_json::Value;

use super::support::{ENDPOINTS, ask, code, place};
use crate::support::components::redis_server;
use crate::support::guarded::{Place, eventually};
use crate::support::serving::Served;

/// Callers at each replica.
const CALLERS: usize = 8;

/// Configuration of a replica with a budget of so many calls.
fn replica_place(redis: &RedisProcess, name: &str, most: u64) -> Place {
    let url = redis.url();
    let yaml = format!(
        "models:\n  providers: {{ a: {{ kind: mock, latency: 0ms }} }}\n  budgets: {{ calls: {{ requests: {most}, window: 8784h, per: all }} }}\nstate: {{ url: \"{url}\", replica: {name} }}\n"
    );
    place(&yaml, &[])
}

fn start(redis: &RedisProcess, name: &str, most: u64) -> Arc<Served> {
    Arc::new(Served::start_ruled(replica_place(redis, name, most)))
}

/// Makes calls until one is refused, and returns how many were answered.
fn calls_until_refused(served: &Served) -> u64 {
    let mut answered = 0;
    loop {
        let answer = ask(served, ENDPOINTS[0], "a/plain", false);
        match answer.status {
            200 => answered += 1,
            429 => return answered,
            _ => panic!("{answer:?}"),
        }
    }
}

/// Makes calls at all replicas at once until each has refused all of its callers.
fn calls_at_all(replicas: &[&Arc<Served>]) -> u64 {
    let callers = replicas.iter().flat_map(|served| vec![*served; CALLERS]);
    let callers: Vec<_> = callers
        .map(|served| {
            let served = Arc::clone(served);
            std::thread::spawn(move || calls_until_refused(&served))
        })
        .collect();
    callers
        .into_iter()
        .map(|caller| caller.join().unwrap())
        .sum()
}

fn stop(served: Arc<Served>) -> Place {
    let (code, place) = Arc::into_inner(served).unwrap().stop();
    assert_eq!(code, Some(0));
    place
}

#[test]
fn two_replicas_spend_one_budget_of_calls_and_no_more() {
    let Some(redis) = redis_server() else {
        return;
    };
    let most = 1_000;
    let (first, second) = (start(&redis, "a", most), start(&redis, "b", most));
    let together = calls_at_all(&[&first, &second]);
    assert!(together <= most, "{together} of {most} calls");
    stop(first);
    let rest = calls_until_refused(&second);
    assert_eq!(together + rest, most, "the rest after a clean end: {rest}");
    let place = stop(second);
    // The use outlives all replicas.
    let again = Arc::new(Served::start_ruled(place));
    assert_eq!(calls_until_refused(&again), 0);
}

/// Runs a command in the place of a replica; returns its exit code and both outputs.
fn run(place: &Place, args: &[&str]) -> (Option<i32>, String, String) {
    let own = ["--config", "durward.yaml", "--state-dir", "state"];
    let ended = place.durward(&[&own[..], args].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

fn call(served: &Served) -> (u16, Value) {
    let answer = ask(served, ENDPOINTS[0], "a/plain", false);
    (answer.status, answer.json())
}

#[test]
fn a_killed_replica_goes_on_with_its_claim_and_an_operator_can_release_it() {
    let Some(redis) = redis_server() else {
        return;
    };
    let most = 400;
    let mut first = Served::start_ruled(replica_place(&redis, "a", most));
    let second = start(&redis, "b", most);
    for _ in 0..10 {
        assert_eq!(call(&first).0, 200);
    }
    first.process.kill().unwrap();
    let (_, place) = first.ended();
    let before = calls_until_refused(&second);
    assert!(10 + before <= most, "{before}");
    let first = Arc::new(Served::start_ruled(place));
    let after = calls_until_refused(&first);
    assert_eq!(
        10 + before + after,
        most,
        "the claim of the killed one: {after}"
    );
    let alive = run(&first.place, &["budgets", "release", "b"]);
    assert_eq!(alive.0, Some(16), "{alive:?}");
    let (code, out, err) = run(&first.place, &["budgets", "show", "--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["accounts"][0]["account"], "calls");
    assert_eq!(shown["replicas"].as_array().unwrap().len(), 2, "{shown}");
    stop(first);
    stop(second);
}

#[test]
fn a_store_that_restarts_empty_is_frozen_until_all_have_reported_or_an_operator_thaws() {
    let Some(mut redis) = redis_server() else {
        return;
    };
    let most = 300;
    let first = start(&redis, "a", most);
    let second = start(&redis, "b", most);
    let mut spent = 0;
    for served in [&first, &second] {
        for _ in 0..50 {
            assert_eq!(call(served).0, 200);
            spent += 1;
        }
    }
    // Each knows the other one, and neither holds unused quota.
    let replicas = |served: &Served| {
        let shown = run(&served.place, &["budgets", "show", "--json"]).1;
        serde_json::from_str::<Value>(&shown).unwrap()
    };
    eventually("both have returned their quota", || {
        let shown = replicas(&first);
        let mut claims = shown["accounts"][0]["replicas"].as_array().unwrap().iter();
        claims.all(|own| own["used"] == own["granted"] && own["used"] == 50)
    });
    let first_place = {
        let mut first = Arc::into_inner(first).unwrap();
        first.process.kill().unwrap();
        first.ended().1
    };
    redis.restart().unwrap();
    eventually("the store is frozen", || {
        replicas(&second)["frozen"] == true
    });
    let (status, body) = call(&second);
    assert_eq!((status, code(&body)), (503, "budget_unavailable"));
    let first = Arc::new(Served::start_ruled(first_place));
    eventually("all have reported", || call(&second).0 == 200);
    spent += 1 + calls_until_refused(&second) + calls_until_refused(&first);
    assert_eq!(spent, most);
    let thawed = run(&second.place, &["budgets", "thaw"]);
    assert_eq!(thawed.1, "nothing is frozen\n", "{thawed:?}");
}

#[test]
fn a_second_process_of_one_name_and_a_wrong_password_do_not_start() {
    let Some(redis) = redis_server() else {
        return;
    };
    let first = start(&redis, "a", 10);
    let twin = replica_place(&redis, "a", 10);
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let (code, _, err) = run(&twin, &serve);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("another process is the replica \"a\""),
        "{err}"
    );
    stop(first);
    let yaml = std::fs::read_to_string(twin.path("durward.yaml")).unwrap();
    let wrong = yaml.replace("redis://", "redis://me:s3cret@");
    std::fs::write(twin.path("durward.yaml"), &wrong).unwrap();
    for args in [&serve[..], &["check", "--start"]] {
        let (code, out, err) = run(&twin, args);
        assert_eq!(code, Some(16), "{out}{err}");
        assert!(err.contains("the store rejects the login"), "{err}");
        assert!(!format!("{out}{err}").contains("s3cret"), "{out}{err}");
    }
}

#[test]
fn check_reaches_the_store_and_a_store_that_is_down_refuses_calls_until_it_is_there() {
    let Some(mut redis) = redis_server() else {
        return;
    };
    let place = replica_place(&redis, "a", 10);
    let (code, out, err) = run(&place, &["check", "--start"]);
    assert_eq!(code, Some(0), "{err}");
    for part in [
        "redis ",
        "eviction noeviction",
        "append file off",
        "set appendonly yes",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    redis.kill();
    let (code, _, err) = run(&place, &["check", "--start"]);
    assert_eq!(code, Some(16), "{err}");
    let served = Served::start_ruled(place);
    assert_eq!(call(&served).0, 503);
    redis.restart().unwrap();
    eventually("the store is used", || call(&served).0 == 200);
    assert_eq!(1 + calls_until_refused(&served), 10);
}
