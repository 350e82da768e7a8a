//! Who may call which model, and how a refusal reads in each dialect.

use super::support::{ENDPOINTS, Upstream, ask, code, place, request, serve};
use crate::support::serving::Served;
use serde_json::Value;

#[test]
fn without_a_credential_nobody_is_answered() {
    let place = place(
        "models: { providers: { local: { kind: mock, latency: 0ms } } }",
        &[],
    );
    let made = place.durward(&["keys", "create", "k", "--state-dir", "state", "--no-config"]);
    let key = String::from_utf8(made.stdout).unwrap();
    let served = Served::start_ruled(place);
    for path in ENDPOINTS {
        let answer = ask(&served, path, "local/plain", false);
        assert_eq!(answer.status, 401, "{path}");
        let told = &answer.json()["error"]["type"];
        assert_eq!(told, "authentication_error", "{path}");
        let body = request(path, "local/plain", false).to_string();
        let bearer = format!("Bearer {}", key.trim());
        for (name, value) in [("authorization", &*bearer), ("x-api-key", key.trim())] {
            let answer = served.send("POST", path, &[(name, value)], &body);
            assert_eq!(answer.status, 200, "{path} {name} {answer:?}");
        }
        let wrong = served.send("POST", path, &[("x-api-key", "dw_wrong")], &body);
        assert_eq!(wrong.status, 401, "{path}");
    }
}

const DENY: &str = r#"{"id":"no-big","effect":"deny","conditions":{"model":"far/big*"}}"#;

#[test]
fn a_denied_model_is_refused_in_each_dialect_under_every_name() {
    for path in ENDPOINTS {
        let upstream = Upstream::start();
        let provider = upstream.configured("far", path);
        let provider = provider.replace(" }", ", models: [big-1, small] }");
        let yaml = format!(
            "models:\n  providers:\n    {provider}\n  aliases: {{ smart: {{ tiers: [far/big-1] }} }}\n"
        );
        let served = serve(&yaml, &[DENY]);
        for streams in [false, true] {
            for model in ["far/big-1", "big-1", "smart"] {
                let answer = ask(&served, path, model, streams);
                assert_eq!(answer.status, 403, "{path} {model} {answer:?}");
                let error = answer.json();
                assert_eq!(code(&error), "denied_by_rule", "{path} {model}");
                assert_eq!(error["error"]["type"], "permission_error", "{path}");
                assert!(answer.body.contains("no-big"), "{answer:?}");
            }
        }
        assert_eq!(upstream.count(), 0, "{path}");
        let names: Vec<Value> = served.send_get("/v1/models")["data"]
            .as_array()
            .unwrap()
            .clone();
        let names: Vec<&str> = names
            .iter()
            .filter_map(|model| model["id"].as_str())
            .collect();
        assert_eq!(names, ["far/small"], "what is refused is not listed");
    }
}

#[test]
fn rules_see_what_a_request_asks_for() {
    let rules = [
        r#"{"id":"no-tools","effect":"deny","conditions":{"resource_type":"model","when":"tools_offered != null && 'shell' in tools_offered"}}"#,
        r#"{"id":"no-long","effect":"deny","conditions":{"resource_type":"model","when":"max_tokens != null && max_tokens > 1000"}}"#,
        r#"{"id":"no-images","effect":"deny","conditions":{"resource_type":"model","when":"has_images == 'yes'"}}"#,
    ];
    let served = serve(
        "models: { providers: { local: { kind: mock, latency: 0ms } } }",
        &rules,
    );
    let cases = [
        (r#""temperature":1"#, 200, ""),
        // What a provider may read in a member that nobody knows is not known.
        (r#""invented_tomorrow":1"#, 403, "no-tools"),
        (r#""max_tokens":1000"#, 200, ""),
        (r#""max_tokens":1001"#, 403, "no-long"),
        (
            r#""max_tokens":1,"max_completion_tokens":5e3"#,
            403,
            "no-long",
        ),
        (
            r#""tools":[{"type":"function","function":{"name":"look"}}]"#,
            200,
            "",
        ),
        (
            r#""tools":[{"type":"function","function":{"name":"look"}},{"type":"function","function":{"name":"sh\u0065ll"}}]"#,
            403,
            "no-tools",
        ),
        (r#""functions":[{"name":"shell"}]"#, 403, "no-tools"),
        (
            r#""messages":[{"role":"user","content":[{"type":"im\u0061ge_url","image_url":{"url":"x"}}]}]"#,
            403,
            "no-images",
        ),
        // What one reader passes over, another takes.
        (r#""max_tokens":"5000""#, 403, "no-long"),
        (
            r#""tools":[{"type":"custom","custom":{"name":"shell"}}]"#,
            403,
            "no-tools",
        ),
        (
            r#""tools":[{"function":{"name":"look"},"name":"shell"}]"#,
            403,
            "no-tools",
        ),
        (
            r#""messages":[{"role":"user","content":[{"image_url":{"url":"x"}}]}]"#,
            403,
            "no-images",
        ),
    ];
    for (member, status, rule) in cases {
        let body = format!(r#"{{"model":"local/plain",{member}}}"#);
        let answer = served.send("POST", "/v1/chat/completions", &[], &body);
        assert_eq!(answer.status, status, "{member} {answer:?}");
        assert!(answer.body.contains(rule), "{member} {answer:?}");
    }
}

#[test]
fn a_caller_beyond_its_limits_is_told_when_to_come_back() {
    let yaml = "models: { providers: { local: { kind: mock, latency: 0ms } } }";
    let place = place(yaml, &[]);
    let served = Served::start_limited(place, &["--limit-requests", "1/m", "--limit-burst", "2"]);
    for path in ENDPOINTS.into_iter().cycle().take(2) {
        assert_eq!(ask(&served, path, "local/plain", false).status, 200);
    }
    for path in ENDPOINTS {
        let answer = ask(&served, path, "local/plain", false);
        assert_eq!(answer.status, 429, "{path} {answer:?}");
        assert_eq!(code(&answer.json()), "rate_limited", "{path}");
        assert_eq!(answer.json()["error"]["type"], "rate_limit_error", "{path}");
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
}
