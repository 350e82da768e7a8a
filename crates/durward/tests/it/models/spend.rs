//! `durward models spend` beside the records and the headers of the calls it sums.

use serde_json::{Value, json};

use super::support::{ENDPOINTS, Upstream, ask, serve};
use crate::support::guarded::Place;
use crate::support::web::reply;

/// Returns what the command prints, after it has ended well.
fn spend(place: &Place, flags: &[&str]) -> String {
    let first = ["--config", "durward.yaml", "--state-dir", "state"];
    let output = place.durward(&[&first, &["models", "spend"][..], flags].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn report(place: &Place, flags: &[&str]) -> Value {
    serde_json::from_str(&spend(place, &[flags, &["--json"]].concat())).unwrap()
}

#[test]
fn rows_are_what_replies_and_records_say_and_name_who_answered() {
    let down = Upstream::before(|_| Some(reply("500 x", "", "application/json", "{}")));
    let far = down.configured("down", "/v1/chat/completions");
    let served = serve(
        &format!(
            "models: {{ providers: {{ {far}, b: {{ kind: mock, latency: 0ms }} }},
              aliases: {{ both: {{ tiers: [down/other, b/plain] }} }}, prices: {{ b/plain: {{ input: 1, output: 10 }} }} }}"
        ),
        &[],
    );
    let mut micros = 0;
    for path in ENDPOINTS {
        let answer = ask(&served, path, "both", false);
        let cost = answer.header("x-durward-cost").unwrap().replace('.', "");
        // A stream of the same call costs as much.
        micros += 2 * cost.parse::<u64>().unwrap();
        assert_eq!(ask(&served, path, "both", true).status, 200);
    }
    assert_eq!(ask(&served, ENDPOINTS[0], "b/echo", false).status, 200);
    assert_eq!(ask(&served, ENDPOINTS[0], "down/other", false).status, 502);
    let (_, place) = served.stop();

    let told = report(&place, &["--by", "alias,model,provider"]);
    let rows: Vec<Value> = told["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let group = &row["group"];
            json!([
                group["alias"],
                group["model"],
                group["provider"],
                row["calls"],
                row["failed"],
                row["unpriced"],
                row["cost_micros"]
            ])
        })
        .collect();
    let expect = json!([
        ["both", "plain", "b", 6, 0, 0, micros],
        ["b/echo", "echo", "b", 1, 0, 1, 0],
        ["down/other", "other", "down", 1, 1, 0, 0],
    ]);
    assert_eq!(Value::from(rows), expect, "{told:#}");

    let records = place.records();
    let recorded = |name: &str| -> u64 {
        let operations = records.operations();
        let numbers = operations.iter().map(|of| of["usage"][name].as_u64());
        numbers.map(Option::unwrap_or_default).sum()
    };
    for name in ["input_tokens", "output_tokens", "cost_micros"] {
        assert_eq!(told["total"][name], recorded(name), "{name}");
    }

    let only = report(
        &place,
        &["--by", "day", "--provider", "b", "--model", "echo"],
    );
    assert_eq!(only["total"]["calls"], 1);
    let csv = spend(&place, &["--by", "provider", "--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("provider,calls,failed,"), "{csv}");
    assert!(lines[1].starts_with("b,7,0,"), "{csv}");
    let none = spend(&place, &["--since", "2999-01-01"]);
    assert!(none.starts_with("No model call"), "{none}");
}

#[test]
fn a_journal_that_was_altered_gives_no_figures() {
    let served = serve(
        "models: { providers: { b: { kind: mock, latency: 0ms } } }",
        &[],
    );
    assert_eq!(ask(&served, ENDPOINTS[0], "b/plain", false).status, 200);
    let (_, place) = served.stop();
    let segment = place.segments().pop().unwrap();
    let text = std::fs::read_to_string(&segment).unwrap();
    let less = text.replacen("\"output_tokens\":8", "\"output_tokens\":1", 1);
    assert_ne!(less, text);
    std::fs::write(&segment, less).unwrap();
    let output = place.durward(&[
        "--config",
        "durward.yaml",
        "--state-dir",
        "state",
        "models",
        "spend",
    ]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}
