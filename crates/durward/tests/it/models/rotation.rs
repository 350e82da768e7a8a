//! Where each call begins within a tier, by every way of choosing.

use std::io::BufReader;

use super::support::{ENDPOINTS, ask, place, request, serve};
use crate::support::guarded::pause;
use crate::support::serving::{Served, read_head, write_request};

const CHAT: &str = "/v1/chat/completions";

fn alias(latencies: [&str; 2], more: &str) -> Served {
    let [a, b] = latencies;
    serve(
        &format!(
            "models: {{ providers: {{ a: {{ kind: mock, latency: {a} }}, b: {{ kind: mock, latency: {b} }} }}, aliases: {{ any: {{ tiers: [[a/plain, b/plain]], {more} }} }}, prices: {{ a/plain: {{ input: 2, output: 2 }}, b/plain: {{ input: 1, output: 1 }} }} }}"
        ),
        &[],
    )
}

/// Who answers each of so many calls.
fn targets(served: &Served, count: usize) -> Vec<String> {
    let one = |at: usize| {
        let answer = ask(served, ENDPOINTS[at % 3], "any", at % 2 == 1);
        answer.header("x-durward-target").unwrap().to_owned()
    };
    (0..count).map(one).collect()
}

fn of(targets: &[String], name: &str) -> usize {
    targets.iter().filter(|target| *target == name).count()
}

#[test]
fn weights_are_kept_exactly() {
    let served = alias(["0ms", "0ms"], "rotate: weighted, weights: { a/plain: 3 }");
    for _ in 0..3 {
        let four = targets(&served, 4);
        assert_eq!((of(&four, "a/plain"), of(&four, "b/plain")), (3, 1));
    }
}

#[test]
fn the_cheapest_target_is_asked_first() {
    let served = alias(["0ms", "0ms"], "rotate: cheapest");
    assert_eq!(of(&targets(&served, 5), "b/plain"), 5);
}

#[test]
fn the_fastest_target_is_asked_first() {
    let served = alias(["300ms", "0ms"], "rotate: least_latency");
    let first = targets(&served, 2);
    assert_eq!(of(&first, "a/plain"), 1, "nobody knows yet: {first:?}");
    assert_eq!(of(&targets(&served, 10), "b/plain"), 10);
}

#[test]
fn the_target_that_answers_the_fewest_calls_is_asked_first() {
    let served = Served::start_ruled(place(
        "models: { providers: { a: { kind: mock, latency: 60s }, b: { kind: mock, latency: 0ms } }, aliases: { any: { tiers: [[a/plain, b/plain]], rotate: least_busy } } }",
        &[],
    ));
    let mut stream = served.connect();
    let body = request(CHAT, "any", true).to_string();
    write_request(&mut stream, "POST", CHAT, &[], &body);
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader);
    assert_eq!(head.header("x-durward-target"), Some("a/plain"), "{head:?}");
    assert_eq!(of(&targets(&served, 4), "b/plain"), 4, "the other is busy");
    drop(reader);
    // Once it is known that the caller has gone, both are idle and take turns.
    for _ in 0..600 {
        let mut stream = served.connect();
        write_request(&mut stream, "POST", CHAT, &[], &body);
        let head = read_head(&mut BufReader::new(stream));
        if head.header("x-durward-target") == Some("a/plain") {
            return;
        }
        pause(100);
    }
    panic!("the first target stays busy for ever");
}

#[test]
fn without_a_rotation_each_call_begins_with_the_first_target() {
    let served = alias(["0ms", "0ms"], "rotate: none");
    assert_eq!(of(&targets(&served, 6), "a/plain"), 6);
}

#[test]
fn many_callers_at_once_share_one_wheel() {
    let served = alias(["0ms", "0ms"], "rotate: round_robin");
    let all: Vec<String> = std::thread::scope(|scope| {
        let callers = [(); 4].map(|()| scope.spawn(|| targets(&served, 50)));
        callers
            .into_iter()
            .flat_map(|caller| caller.join().unwrap())
            .collect()
    });
    assert_eq!((of(&all, "a/plain"), of(&all, "b/plain")), (100, 100));
}
