//! A refused request says nothing of the key that it was sent with: the caller reads the provider's words, and the next call is served.

use super::support::{ENDPOINTS, Upstream, ask, code, serve};
use crate::support::web::{Request, reply};
use serde_json::Value;

/// A refusal of a provider: status, body, what its caller reads (status, words), and whether another target serves the call.
type Refusal = (&'static str, &'static str, (u16, &'static str), bool);

const REFUSALS: [Refusal; 12] = [
    (
        "403 Forbidden",
        r#"{"error":{"code":403,"message":"Input was flagged by moderation","metadata":{"reasons":["violence"]}}}"#,
        (403, "flagged by moderation"),
        false,
    ),
    (
        "403 Forbidden",
        r#"{"error":{"message":"Your organization must be verified to use the model `m`.","type":"invalid_request_error"}}"#,
        (403, "must be verified"),
        true,
    ),
    (
        "403 Forbidden",
        r#"{"error":{"message":"Project does not have access to model","code":"model_not_found"}}"#,
        (403, "does not have access"),
        true,
    ),
    (
        "403 Forbidden",
        r#"{"type":"error","error":{"type":"permission_error","message":"no permission for the specified resource"}}"#,
        (403, "specified resource"),
        true,
    ),
    (
        "403 Forbidden",
        r#"{"error":{"code":403,"message":"The caller does not have permission","status":"PERMISSION_DENIED"}}"#,
        (403, "not have permission"),
        true,
    ),
    (
        "401 Unauthorized",
        r#"{"error":{"message":"key not allowed to access model","type":"key_model_access_denied"}}"#,
        (403, "not allowed to access"),
        true,
    ),
    (
        "403 Forbidden",
        "<html><head><title>Attention Required!</title></head></html>",
        (403, "Attention Required!"),
        true,
    ),
    (
        "402 Payment Required",
        r#"{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}"#,
        (402, "fewer max_tokens"),
        true,
    ),
    (
        "402 Payment Required",
        r#"{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}"#,
        (402, "Insufficient Balance"),
        true,
    ),
    (
        "429 Too Many Requests",
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        (429, "exceeded your current quota"),
        true,
    ),
    (
        "400 Bad Request",
        r#"{"error":{"message":"Your credit balance is too low to access the API","type":"invalid_request_error"}}"#,
        (400, "balance is too low"),
        true,
    ),
    (
        "400 Bad Request",
        r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum","type":"invalid_request_error"}}"#,
        (400, "too long"),
        true,
    ),
];

/// Whether a request asks for what is refused: its model says so.
fn is_refused(request: &Request) -> bool {
    String::from_utf8_lossy(&request.body).contains("\"refused\"")
}

/// A provider that answers this to some requests, and well to all others.
fn refusing(status: &'static str, body: &'static str) -> Upstream {
    let kind = if body.starts_with('<') {
        "text/html"
    } else {
        "application/json"
    };
    Upstream::before(move |request| is_refused(request).then(|| reply(status, "", kind, body)))
}

#[test]
fn no_key_is_lost_by_a_request_that_is_refused() {
    for keys in ["[k1]", "[k1, k2, k3]"] {
        for (status, body, (expect, words), _) in REFUSALS {
            let upstream = refusing(status, body);
            let provider = upstream.configured("far", ENDPOINTS[0]);
            let provider = provider.replace("api_key: \"${HOME}\"", &format!("api_keys: {keys}"));
            let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
            for path in [ENDPOINTS[0], ENDPOINTS[1]] {
                assert_eq!(ask(&served, path, "far/good", false).status, 200, "{body}");
                let answer = ask(&served, path, "far/refused", false);
                assert_eq!(answer.status, expect, "{path} {body} {answer:?}");
                assert!(answer.body.contains(words), "{path} {body} {answer:?}");
                for streams in [false, true] {
                    let answer = ask(&served, path, "far/good", streams);
                    assert_eq!(answer.status, 200, "{path} {body} {answer:?}");
                }
            }
        }
    }
}

#[test]
fn a_fallback_goes_where_the_scope_of_the_error_says_and_no_breaker_opens() {
    for (status, body, (expect, _), falls_back) in REFUSALS {
        let (upstream, other) = (refusing(status, body), Upstream::start());
        let providers = [
            upstream.configured("far", ENDPOINTS[0]),
            other.configured("other", ENDPOINTS[0]),
        ];
        let yaml = format!(
            "models: {{ providers: {{ {} }}, aliases: {{ both: {{ tiers: [far/refused, other/x] }} }} }}\nbreaker: {{ failures: 1, open: 1h, open_max: 1h }}\n",
            providers.join(", ")
        );
        let served = serve(&yaml, &[]);
        for _ in 0..3 {
            let answer = ask(&served, ENDPOINTS[0], "both", false);
            let status = if falls_back { 200 } else { expect };
            assert_eq!(answer.status, status, "{body} {answer:?}");
            assert_eq!(answer.header("x-durward-spared"), None, "{body}");
        }
        assert_eq!(other.count(), if falls_back { 3 } else { 0 }, "{body}");
    }
}

#[test]
fn an_error_under_a_good_status_is_an_error() {
    let bodies = [
        r#"{"error":{"message":"boom","code":500}}"#,
        r#"{"id":"x","object":"chat.completion","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0}}"#,
    ];
    for body in bodies {
        let bad = Upstream::before(move |_| Some(reply("200 OK", "", "application/json", body)));
        let good = Upstream::start();
        let yaml = format!(
            "models: {{ providers: {{ {}, {} }}, aliases: {{ both: {{ tiers: [bad/x, good/x] }} }} }}",
            bad.configured("bad", ENDPOINTS[0]),
            good.configured("good", ENDPOINTS[0]),
        );
        let served = serve(&yaml, &[]);
        for path in [ENDPOINTS[0], ENDPOINTS[1]] {
            let answer = ask(&served, path, "both", false);
            assert_eq!(answer.status, 200, "{path} {body} {answer:?}");
            assert_eq!(answer.header("x-durward-target"), Some("good/x"), "{path}");
            let answer = ask(&served, path, "bad/x", false);
            assert_eq!(answer.status, 502, "{path} {body} {answer:?}");
            let label = code(&answer.json()).to_owned();
            assert!(["provider_error", "provider_malformed"].contains(&label.as_str()));
        }
    }
}

#[test]
fn a_reply_that_cannot_be_used_is_paid_for_all_the_same() {
    // There is nothing in it for anybody, and 500 tokens are told.
    let body = r#"{"id":"x","choices":[],"usage":{"prompt_tokens":400,"completion_tokens":100}}"#;
    let upstream = Upstream::before(move |_| Some(reply("200 OK", "", "application/json", body)));
    let provider = upstream.configured("far", ENDPOINTS[0]);
    let budget = "budgets: { b: { tokens: 1000 } }, reserve: 16";
    let served = serve(
        &format!("models: {{ providers: {{ {provider} }}, {budget} }}"),
        &[],
    );
    let mut last = Value::Null;
    for _ in 0..20 {
        last = ask(&served, ENDPOINTS[1], "far/x", false).json();
    }
    assert_eq!(code(&last), "budget_spent", "{last}");
    assert!(
        upstream.count() <= 3,
        "{} calls were paid for",
        upstream.count()
    );
}
