//! `lab users` before a gateway with the shipped example, and before one whose models fail.

use std::path::Path;

use serde_json::Value;

use super::support::place;
use crate::support::guarded::Place;
use crate::support::program::lab_command;
use crate::support::serving::Served;

/// The shipped example in a place of its own, its scripted models without a pause.
fn example() -> Place {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let text = std::fs::read_to_string(shipped.join("ai-gateway.yaml")).unwrap();
    let text = text.replace("{ kind: mock }", "{ kind: mock, latency: 0ms }");
    let policy = std::fs::read_to_string(shipped.join("ai-gateway-policy.json")).unwrap();
    let place = Place::new();
    std::fs::write(place.path("durward.yaml"), text).unwrap();
    std::fs::write(place.path("ai-gateway-policy.json"), policy).unwrap();
    place
}

fn users(served: &Served, flags: &[&str]) -> (Option<i32>, Value, String) {
    let host = format!("http://{}", served.address);
    let fixed = ["users", "--host", &host, "--json", "--token-ms", "0"];
    let output = served.place.within(lab_command().args(fixed).args(flags));
    let text = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let json = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text} {told}"));
    (output.status.code(), json, told)
}

fn row<'r>(told: &'r Value, user: &str) -> &'r Value {
    let mut rows = told["rows"].as_array().unwrap().iter();
    rows.find(|row| row["user"] == user)
        .unwrap_or_else(|| panic!("no row of {user}: {told:#}"))
}

#[test]
fn all_four_users_find_the_shipped_example_right_word_by_word() {
    let served = Served::start_ruled(example());
    let tags = "stress,agent_reasoning,rotation,auth";
    let flags = ["-u", "4", "-r", "100", "--run-time", "3s", "--no-pause"];
    let more = ["--register", "--tags", tags, "--beside", "mock_agent"];
    let (code, told, said) = users(&served, &[&flags[..], &more].concat());
    assert_eq!(code, Some(0), "{told:#} {said}");
    for user in [
        "Registration",
        "StressUser",
        "ReActUser",
        "SwitchoverUser",
        "SwitchoverUser, fixed",
        "AuthenticatedUser",
    ] {
        let row = row(&told, user);
        assert!(row["requests"].as_u64().unwrap() > 0, "{row:#}");
        assert_eq!(row["failures"], serde_json::json!({}), "{row:#}");
    }
    assert_eq!(row(&told, "Registration")["requests"], 4);
    // One caller in turn: the four models of the tier have answered equally often, but for the last round.
    let models = row(&told, "SwitchoverUser")["models"].as_object().unwrap();
    let counts: Vec<u64> = models
        .values()
        .map(|count| count.as_u64().unwrap())
        .collect();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(counts.len() == 4 && most - least <= 1, "{models:?}");
}

#[test]
fn a_reply_that_is_cut_refused_or_not_there_is_a_failure_and_never_a_time() {
    for (model, says) in [
        ("a/fault-cut", "the stream ends with an error"),
        ("a/fault-429", "HTTP 429 provider_rate_limited"),
        ("a/echo", "the reply says"),
    ] {
        let yaml = format!(
            "models:\n  providers: {{ a: {{ kind: mock, latency: 0ms }} }}\n  aliases: {{ mock_agent: {{ tiers: [{model}] }} }}\n"
        );
        let served = Served::start_ruled(place(&yaml, &[]));
        let flags = ["-u", "1", "--run-time", "1s", "--tags", "stress"];
        let (code, told, said) = users(&served, &flags);
        assert_eq!(code, Some(1), "{model} {told:#}");
        assert!(
            said.contains("some replies were wrong or missing"),
            "{said}"
        );
        let row = row(&told, "StressUser");
        assert_eq!(row["requests"], 0, "{row:#}");
        let mut failures = row["failures"].as_object().unwrap().keys();
        assert!(failures.any(|why| why.contains(says)), "{model} {row:#}");
    }
}
