//! A call to a model that a person has to allow.

use super::support::{ENDPOINTS, code, place, request};
use crate::support::guarded::eventually;
use crate::support::serving::Served;

const ASK: &str = r#"{"id":"ask-big","effect":"hitl","conditions":{"model":"*/big"}}"#;

#[test]
fn a_person_allows_or_denies_and_the_answer_is_told_in_the_dialect() {
    let yaml = "models: { providers: { a: { kind: mock, latency: 0ms } } }";
    let served = Served::start_ruled(place(yaml, &[ASK]));
    for (path, verb, status) in [
        (ENDPOINTS[0], "once", 200),
        (ENDPOINTS[1], "deny", 403),
        (ENDPOINTS[2], "deny", 403),
    ] {
        let body = request(path, "a/big", true).to_string();
        let answer = std::thread::scope(|scope| {
            let asked = scope.spawn(|| served.send("POST", path, &[], &body));
            let mut id = String::new();
            eventually("a person is asked", || {
                let listed = served.place.durward(&["approvals", "list", "--json"]);
                let text = String::from_utf8(listed.stdout).unwrap();
                let found: Vec<serde_json::Value> = text
                    .lines()
                    .filter_map(|line| serde_json::from_str(line).ok())
                    .collect();
                let waiting = found.first().and_then(|one| one["id"].as_str());
                id = waiting.unwrap_or_default().to_owned();
                !id.is_empty()
            });
            let said = served.place.durward(&["approvals", verb, &id]);
            assert!(said.status.success(), "{said:?}");
            asked.join().unwrap()
        });
        assert_eq!(answer.status, status, "{path} {answer:?}");
        if status != 200 {
            assert_eq!(code(&answer.json()), "approval_denied", "{path}");
        }
    }
}
