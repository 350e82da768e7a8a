//! Token budgets: never exceeded by many callers at once, and exact after a kill.

use std::io::BufReader;
use std::sync::Arc;

use super::support::{ENDPOINTS, ask, code, journalled, place, request, serve, used};
use crate::support::guarded::eventually;
use crate::support::serving::{Served, read_head, write_request};

fn yaml(latency: &str, budget: &str) -> String {
    format!(
        "models:\n  providers: {{ a: {{ kind: mock, latency: {latency} }} }}\n  budgets: {{ own: {budget} }}\n"
    )
}

#[test]
fn a_spent_budget_refuses_in_each_dialect_until_its_window_ends() {
    let served = serve(&yaml("0ms", "{ tokens: 400, window: 8784h }"), &[]);
    let mut last = None;
    for _ in 0..100 {
        let answer = ask(&served, ENDPOINTS[1], "a/plain", false);
        if answer.status != 200 {
            last = Some(answer);
            break;
        }
        let left: u64 = answer
            .header("x-ratelimit-remaining-tokens")
            .unwrap()
            .parse()
            .unwrap();
        assert!(left < 400 && answer.header("x-ratelimit-limit-tokens") == Some("400"));
    }
    let last = last.expect("400 tokens are not enough for 100 calls");
    assert_eq!(last.status, 429, "{last:?}");
    for path in ENDPOINTS {
        for streams in [false, true] {
            let answer = ask(&served, path, "a/plain", streams);
            assert_eq!(answer.status, 429, "{path} {answer:?}");
            assert_eq!(code(&answer.json()), "budget_spent", "{path}");
            assert!(answer.header("retry-after").is_some(), "{path}");
            assert_eq!(answer.header("x-should-retry"), Some("false"), "{path}");
        }
    }
    let (_, place) = served.stop();
    assert!(
        place
            .journal()
            .decisions()
            .iter()
            .any(|one| one["reason"] == "budget_spent")
    );
    assert!(used(&place) <= 400 && used(&place) == journalled(&place));
}

#[test]
fn the_rest_of_a_budget_is_told_after_the_call_and_a_refusal_names_the_budget() {
    let served = serve(&yaml("0ms", "{ tokens: 20000, window: 24h }"), &[]);
    let mut used = 0;
    for _ in 0..3 {
        let answer = ask(&served, ENDPOINTS[0], "a/plain", false);
        used += answer.json()["usage"]["total_tokens"].as_u64().unwrap();
        let left = (20_000 - used).to_string();
        let told = answer.header("x-ratelimit-remaining-tokens");
        assert_eq!(told, Some(left.as_str()), "{answer:?}");
    }
    let mut body = super::support::request(ENDPOINTS[0], "a/plain", false);
    body["max_tokens"] = serde_json::json!(30_000);
    let answer = served.send("POST", ENDPOINTS[0], &[], &body.to_string());
    assert_eq!(answer.status, 429, "{answer:?}");
    let message = answer.json()["error"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(message.contains("the budget \"own"), "{message}");
}

#[test]
fn sixty_four_callers_never_exceed_one_budget_and_journal_and_accounts_agree() {
    let most = 3_000;
    let budget = format!("{{ tokens: {most}, per: all }}");
    let served = Arc::new(serve(&yaml("1ms", &budget), &[]));
    let callers: Vec<_> = (0..64)
        .map(|caller| {
            let served = Arc::clone(&served);
            std::thread::spawn(move || {
                let path = ENDPOINTS[caller % 3];
                let mut body = request(path, "a/plain", caller % 2 == 0);
                let limit = if path == "/v1/responses" {
                    "max_output_tokens"
                } else {
                    "max_tokens"
                };
                body[limit] = 8.into();
                let mut passed = 0;
                for _ in 0..8 {
                    let answer = served.send("POST", path, &[], &body.to_string());
                    assert!([200, 429].contains(&answer.status), "{answer:?}");
                    passed += u64::from(answer.status == 200);
                }
                passed
            })
        })
        .collect();
    let passed: u64 = callers
        .into_iter()
        .map(|caller| caller.join().unwrap())
        .sum();
    let served = Arc::into_inner(served).unwrap();
    let (_, place) = served.stop();
    let used = used(&place);
    assert!(used <= most, "{used}");
    assert_eq!(used, journalled(&place));
    assert!(
        passed * 40 > most,
        "the budget can be used up: {passed} calls, {used} tokens"
    );
}

/// What the scripted provider counts of a stream that stalls after its first token: what it read, and one token.
fn counted_by_mock(body: &serde_json::Value) -> u64 {
    let read = ["messages", "input"]
        .iter()
        .filter_map(|name| body.get(name));
    let bytes: usize = read.map(|value| value.to_string().len()).sum();
    u64::try_from(bytes.div_ceil(4)).unwrap() + 1
}

#[test]
fn accounts_journal_and_the_provider_agree_after_a_kill_in_the_middle_of_streams() {
    let mut served = serve(&yaml("5ms", "{ tokens: 1000000 }"), &[]);
    for path in ENDPOINTS {
        assert_eq!(ask(&served, path, "a/plain", true).status, 200);
    }
    let mut expect = 0;
    let open: Vec<_> = ENDPOINTS
        .iter()
        .map(|path| {
            let mut stream = served.connect();
            let body = request(path, "a/fault-stall", true);
            expect += counted_by_mock(&body);
            let id = [("x-request-id", "cut"), ("x-durward-run", "run-9")];
            write_request(&mut stream, "POST", path, &id, &body.to_string());
            let mut reader = BufReader::new(stream);
            assert_eq!(read_head(&mut reader).status, 200);
            super::support::read_until(&mut reader, "This");
            reader
        })
        .collect();
    eventually("the three before are recorded", || {
        served.place.records().operations().len() == 3
    });
    served.process.kill().unwrap();
    drop(open);
    let (_, place) = served.ended();
    let before = used(&place);
    assert!(before > 0 && before == journalled(&place), "{before}");
    // The next start settles what was cut, once.
    let mut place = place;
    for _ in 0..2 {
        place = Served::start_ruled(place).stop().1;
        assert_eq!(used(&place) - before, expect, "the accounts");
        assert_eq!(journalled(&place) - before, expect, "the journal");
        let records = place.records();
        let cut = records
            .0
            .iter()
            .filter(|own| own["reason"] == "settled_at_recovery");
        let cut: Vec<_> = cut.collect();
        assert_eq!(cut.len(), 3, "{cut:?}");
        for own in &cut {
            assert_eq!(
                (&own["request_id"], &own["run_id"]),
                (&"cut".into(), &"run-9".into())
            );
            assert_eq!(own["usage"]["output_tokens"], 1, "{own}");
            let is_decided = |one: &&serde_json::Value| one["op"] == own["op"];
            assert!(records.decisions().iter().any(is_decided), "{own}");
        }
        drop(place.verified());
    }
}

#[test]
fn calls_that_a_kill_cuts_before_their_first_byte_are_settled_at_the_next_start() {
    let mut served = serve(&yaml("5ms", "{ tokens: 1000000 }"), &[]);
    let open: Vec<_> = ENDPOINTS
        .iter()
        .flat_map(|path| [(path, false), (path, true)])
        .map(|(path, streams)| {
            let mut stream = served.connect();
            let body = request(path, "a/fault-silent", streams).to_string();
            write_request(
                &mut stream,
                "POST",
                path,
                &[("x-request-id", "unheard")],
                &body,
            );
            stream
        })
        .collect();
    let underway = served.place.path("state/underway");
    eventually("all are noted", || {
        let notes = std::fs::read(&underway).unwrap_or_default();
        let count = |part: &[u8]| part.windows(9).filter(|own| own == b"\"unheard\"").count();
        count(&notes) == open.len()
    });
    served.process.kill().unwrap();
    drop(open);
    let (_, mut place) = served.ended();
    for _ in 0..2 {
        place = Served::start_ruled(place).stop().1;
        let records = place.records();
        let cut = records.operations();
        assert_eq!(cut.len(), 6, "{cut:?}");
        for own in &cut {
            assert_eq!(own["reason"], "settled_at_recovery", "{own}");
            assert!(own["usage"]["output_tokens"].is_null(), "{own}");
            let is_decided = |one: &&serde_json::Value| one["op"] == own["op"];
            assert!(records.decisions().iter().any(is_decided), "{own}");
        }
        assert_eq!((used(&place), journalled(&place)), (0, 0));
        drop(place.verified());
    }
}

#[test]
fn wrong_budgets_are_refused_by_name() {
    for (budget, says) in [
        ("{}", "has neither tokens nor cost"),
        (
            "{ tokens: 1, cost: 1 }",
            "has more than one of tokens, cost and requests",
        ),
        ("{ cost: 1.1234567 }", "is not an amount of dollars"),
        ("{ cost: -1 }", "is not an amount of dollars"),
        ("{ tokens: -1 }", "is not a whole number"),
        ("{ tokens: 0 }", "is outside of"),
        ("{ tokens: 1, window: 1ms }", "is outside of"),
        (
            "{ tokens: 1, per: team }",
            "is not one of caller, group, all",
        ),
    ] {
        let place = place(&yaml("0ms", budget), &[]);
        let args = ["--config", "durward.yaml", "--state-dir", "state", "check"];
        let output = place.durward(&args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(16), "{budget} {text}");
        assert!(text.contains(says), "{budget} {text}");
    }
}
