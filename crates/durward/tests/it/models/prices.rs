//! What calls cost: as a fact for rules, in headers and records, and as budgets of money.

use serde_json::{Value, json};

use super::support::{ENDPOINTS, Upstream, ask, code, request, serve};
use crate::support::web::reply;

/// A dollar for a million tokens read is a millionth of one each; what is written costs ten times as much.
const PRICES: &str =
    "prices: { plain: { input: 1, output: 10 }, b/plain: { input: 2, output: 20 } }";

fn yaml(more: &str) -> String {
    format!(
        "models: {{ providers: {{ a: {{ kind: mock, latency: 0ms }}, b: {{ kind: mock, latency: 0ms }} }}, aliases: {{ both: {{ tiers: [a/plain, b/plain] }} }}, {PRICES}{more} }}"
    )
}

#[test]
fn a_reply_says_what_it_cost_and_so_does_its_record() {
    let served = serve(&yaml(""), &[]);
    for path in ENDPOINTS {
        for (model, price) in [("a/plain", 1), ("b/plain", 2)] {
            let whole = ask(&served, path, model, false);
            let told = whole.header("x-durward-cost").unwrap().to_owned();
            let usage = whole.json()["usage"].clone();
            let read = usage.get("prompt_tokens").or(usage.get("input_tokens"));
            let read = read.and_then(Value::as_u64).unwrap();
            let micros = price * (read + 8 * 10);
            assert_eq!(told, format!("0.{micros:06}"), "{path} {model}");
            let stream = ask(&served, path, model, true);
            assert_eq!(stream.header("x-durward-cost"), None, "not known yet");
        }
        let unpriced = ask(&served, path, "a/echo", false);
        assert_eq!(unpriced.header("x-durward-cost"), None);
    }
    let (_, place) = served.stop();
    let records = place.records();
    let costs: Vec<Option<u64>> = records
        .operations()
        .iter()
        .map(|record| record["usage"]["cost_micros"].as_u64())
        .collect();
    assert_eq!(costs.len(), 15);
    for group in costs.chunks(5) {
        assert_eq!(group[0], group[1], "streamed or not, the cost is one");
        assert_eq!(group[2], group[0].map(|cost| cost * 2));
        assert_eq!((group[3], group[4]), (group[2], None));
    }
}

#[test]
fn a_rule_asks_or_refuses_above_a_price_that_is_known_before_the_call() {
    let deny = r#"{"id":"dear","effect":"deny","conditions":{"resource_type":"model","when":"estimated_price != null && estimated_price > 1000000"}}"#;
    let served = serve(&yaml(""), &[deny]);
    for path in ENDPOINTS {
        let mut body = request(path, "a/plain", false);
        let name = if path == "/v1/responses" {
            "max_output_tokens"
        } else {
            "max_tokens"
        };
        body[name] = json!(90_000);
        let answer = served.send("POST", path, &[], &body.to_string());
        assert_eq!(answer.status, 200, "{path} {answer:?}");
        body[name] = json!(110_000);
        let answer = served.send("POST", path, &[], &body.to_string());
        assert_eq!(answer.status, 403, "{path} {answer:?}");
        // At the second target it is dearer, and the first one will do.
        body[name] = json!(60_000);
        body["model"] = json!("both");
        let answer = served.send("POST", path, &[], &body.to_string());
        assert_eq!(answer.header("x-durward-target"), Some("a/plain"));
        body["model"] = json!("b/plain");
        let answer = served.send("POST", path, &[], &body.to_string());
        assert_eq!(answer.status, 403, "{path} {answer:?}");
        body["model"] = json!("a/echo");
        let answer = served.send("POST", path, &[], &body.to_string());
        assert_eq!(answer.status, 200, "nobody knows its price: {answer:?}");
    }
    let (_, place) = served.stop();
    let records = place.records();
    let decisions = records.decisions();
    let refused = decisions
        .iter()
        .find(|record| record["final_rule"] == "dear")
        .unwrap();
    assert!(refused["estimated_price"].as_u64() > Some(1_000_000));
}

#[test]
fn a_budget_of_money_is_reserved_with_one_of_tokens_and_settled_by_what_was_used() {
    let budgets = ", budgets: { money: { cost: 0.002 }, tokens: { tokens: 100000 } }";
    let served = serve(&yaml(budgets), &[]);
    let mut body = request("/v1/chat/completions", "a/plain", false);
    body["max_tokens"] = json!(100);
    let mut spent = 0;
    let last = loop {
        let answer = served.send("POST", "/v1/chat/completions", &[], &body.to_string());
        if answer.status != 200 {
            break answer;
        }
        let told = answer.header("x-durward-cost").unwrap();
        spent += told.trim_start_matches("0.").parse::<u64>().unwrap();
        assert!(spent <= 2_000, "the budget was exceeded");
    };
    assert_eq!(last.status, 429, "{last:?}");
    assert_eq!(code(&last.json()), "budget_spent");
    // A call reserves the most that it can cost: the rest was less than that.
    assert!(spent + 1_200 > 2_000, "{spent}");
    body["model"] = json!("a/echo");
    let free = served.send("POST", "/v1/chat/completions", &[], &body.to_string());
    assert_eq!(free.status, 200, "it has no price: {free:?}");
    let (_, place) = served.stop();
    let kept = std::fs::read_to_string(place.path("state/budgets")).unwrap();
    let of = |name: &str| -> u64 {
        let lines = kept.lines().filter(|line| line.starts_with(name));
        let used = lines.map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap());
        used.sum()
    };
    assert_eq!(of("money"), spent);
    assert!(of("tokens") > 0);
}

#[test]
fn what_a_cache_gave_took_and_thoughts_are_recorded_with_what_each_cost() {
    let usage = r#""usage":{"input_tokens":5,"cache_read_input_tokens":4,"cache_creation_input_tokens":1,"output_tokens":3,"output_tokens_details":{"thinking_tokens":2}}"#;
    let whole = format!(
        r#"{{"type":"message","id":"i","role":"assistant","model":"m","content":[],"stop_reason":"end_turn",{usage}}}"#
    );
    let stream = format!(
        "data: {{\"type\":\"message_start\",\"message\":{{\"id\":\"i\",\"model\":\"m\",{usage}}}}}\n\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},{usage}}}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"
    );
    let upstream = Upstream::before(move |request| {
        let streams = request
            .body
            .windows(13)
            .any(|part| part == b"\"stream\":true");
        Some(match streams {
            true => reply("200 x", "", "text/event-stream", &stream),
            false => reply("200 x", "", "application/json", &whole),
        })
    });
    let far = upstream.configured("far", "/v1/messages");
    let prices =
        "prices: { m: { input: 10, output: 100, cached: 1, written: 20, reasoning: 1000 } }";
    let served = serve(
        &format!("models: {{ providers: {{ {far} }}, {prices} }}"),
        &[],
    );
    for path in ENDPOINTS {
        for streams in [false, true] {
            let answer = ask(&served, path, "far/m", streams);
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
        }
    }
    let (_, place) = served.stop();
    let records = place.records();
    let operations = records.operations();
    assert_eq!(operations.len(), 6);
    for operation in operations {
        // 5 × 10 + 4 × 1 + 1 × 20 + 1 × 100 + 2 × 1,000
        let expect = json!({
            "input_tokens": 10, "output_tokens": 3, "cached_tokens": 4, "written_tokens": 1, "reasoning_tokens": 2, "cost_micros": 2_174,
        });
        assert_eq!(operation["usage"], expect, "{operation}");
    }
}
