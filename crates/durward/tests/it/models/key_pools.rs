//! What a provider says of a key decides what becomes of it, and whether the caller notices.

use std::sync::{Arc, Condvar, Mutex};

use super::support::{ENDPOINTS, PAIRS, Upstream, ask, code, request, serve};
use crate::support::web::{Request, reply};

fn shown(request: &Request) -> &str {
    let key = request
        .header("authorization")
        .or(request.header("x-api-key"));
    key.unwrap_or_default().trim_start_matches("Bearer ")
}

const QUOTA: &str = r#"{"error":{"message":"nothing left","type":"insufficient_quota","code":"insufficient_quota"}}"#;

/// What is said of the first key: status, headers, body; and whether it rests for the model alone.
const CASES: [(&str, &str, &str, bool); 8] = [
    ("401 Unauthorized", "", "{}", false),
    ("402 Payment Required", "", "{}", false),
    ("403 Forbidden", "", "{}", true),
    ("429 Too Many Requests", "", QUOTA, false),
    ("429 Too Many Requests", "Retry-After: 3600\r\n", "{}", true),
    ("429 Too Many Requests", "", "{}", true),
    (
        "500 Internal Server Error",
        "Retry-After: 3600\r\n",
        "{}",
        true,
    ),
    ("529 Overloaded", "", "{}", true),
];

#[test]
fn the_next_key_is_used_at_once_and_the_refused_one_rests() {
    for (status, headers, body, rests) in CASES {
        let upstreams = PAIRS.map(|_| {
            Upstream::before(move |request| match shown(request) {
                "k-refused" => Some(reply(status, headers, "application/json", body)),
                "k-good" => None,
                other => panic!("{other}"),
            })
        });
        let all = PAIRS.iter().zip(&upstreams).enumerate();
        let providers = all.map(|(at, ((_, spoken), upstream))| {
            let provider = upstream.configured(&format!("far{at}"), spoken);
            provider.replace("api_key: \"${HOME}\"", "api_keys: [k-refused, k-good]")
        });
        let providers = providers.collect::<Vec<_>>().join(", ");
        let served = serve(&format!("models: {{ providers: {{ {providers} }} }}"), &[]);
        for (at, ((path, _), upstream)) in PAIRS.iter().zip(&upstreams).enumerate() {
            for (streams, attempts) in [(at.is_multiple_of(2), "2"), (true, "1"), (false, "1")] {
                let answer = ask(&served, path, &format!("far{at}/x"), streams);
                assert_eq!(answer.status, 200, "{path} {status} {answer:?}");
                let told = answer.header("x-durward-attempts");
                assert_eq!(told, Some(attempts), "{path} {status}");
            }
            // A key that is refused altogether is not tried for another model either.
            let answer = ask(&served, path, &format!("far{at}/other"), false);
            assert_eq!(answer.status, 200, "{path} {status} {answer:?}");
            let asked = upstream.web.requests();
            let refused = asked.iter().filter(|own| shown(own) == "k-refused").count();
            assert!(refused == 1 || rests, "{path} {status}: {refused}");
        }
    }
}

#[test]
fn the_last_key_rests_after_four_refusals_and_the_caller_is_told_at_once() {
    for (status, label, told) in [
        ("401 Unauthorized", "provider_credentials", 502),
        ("402 Payment Required", "provider_quota", 429),
    ] {
        let upstream = Upstream::before(move |_| Some(reply(status, "", "application/json", "{}")));
        let provider = upstream.configured("far", ENDPOINTS[0]);
        let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
        for path in [ENDPOINTS[0], ENDPOINTS[1], ENDPOINTS[2]] {
            for streams in [false, true] {
                let answer = ask(&served, path, "far/x", streams);
                assert_eq!(answer.status, told, "{path} {answer:?}");
                assert_eq!(code(&answer.json()), label, "{path}");
            }
        }
        // Until its rest of a second is over, nobody is asked.
        assert!(upstream.count() >= 4, "{status}: it is given some chances");
        let metrics = served.send("GET", "/metrics", &[], "").body;
        let line = format!("durward_model_keys_resting{{provider=\"far\",reason=\"{label}\"}}");
        let rests = metrics.contains(&format!("{line} 1"));
        assert!(rests || upstream.count() > 4, "{status} {metrics}");
    }
}

#[test]
fn status_and_metrics_say_which_keys_rest() {
    let upstream = Upstream::before(|request| match shown(request) {
        "k-refused" => Some(reply("401 Unauthorized", "", "application/json", "{}")),
        _ => None,
    });
    let provider = upstream.configured("far", ENDPOINTS[0]);
    let provider = provider.replace("api_key: \"${HOME}\"", "api_keys: [k-refused, k-good]");
    let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
    assert_eq!(ask(&served, ENDPOINTS[0], "far/x", false).status, 200);
    let metrics = served.send("GET", "/metrics", &[], "").body;
    let line = "durward_model_keys_resting{provider=\"far\",reason=\"provider_credentials\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    let output = served
        .place
        .durward(&["--state-dir", "state", "status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = status.to_string();
    assert!(!text.contains("k-refused"), "{text}");
    let key = status.pointer("/instances/0/serving/resting_keys/0");
    let key = key.unwrap_or_else(|| panic!("{text}"));
    assert_eq!((&key["provider"], &key["key"]), (&"far".into(), &1.into()));
    assert_eq!(key["reason"], "provider_credentials");
}

#[test]
fn one_key_serves_fifty_calls_at_once() {
    const CALLS: usize = 50;
    // Nobody is answered before all have come, so nobody may wait for another's key.
    let met = Arc::new((Mutex::new(0), Condvar::new()));
    let own = Arc::clone(&met);
    let upstream = Upstream::before(move |_| {
        let (count, all) = &*own;
        let mut count = count.lock().unwrap();
        *count += 1;
        all.notify_all();
        let wait = std::time::Duration::from_secs(60);
        let (count, _) = all
            .wait_timeout_while(count, wait, |own| *own < CALLS)
            .unwrap();
        (*count < CALLS).then(|| reply("500 x", "", "application/json", "{}"))
    });
    let provider = upstream.configured("far", ENDPOINTS[0]);
    let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
    let body = request(ENDPOINTS[0], "far/x", false).to_string();
    std::thread::scope(|scope| {
        for _ in 0..CALLS {
            scope.spawn(|| {
                let answer = served.send("POST", ENDPOINTS[0], &[], &body);
                assert_eq!(answer.status, 200, "{answer:?}");
                assert_eq!(answer.header("x-durward-attempts"), Some("1"));
            });
        }
    });
    assert_eq!(upstream.count(), CALLS);
}
