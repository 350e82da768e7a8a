//! What callers send, and what of it reaches a provider.

use super::support::{ENDPOINTS, Upstream, ask, code, serve};
use crate::support::serving::Served;

fn mocked() -> Served {
    serve(
        "models: { providers: { local: { kind: mock, latency: 0ms, models: [plain] } } }",
        &[],
    )
}

#[test]
fn every_byte_but_the_model_reaches_the_provider() {
    let upstream = Upstream::start();
    let provider = upstream.configured("far", "");
    let yaml = format!(
        "models:\n  providers:\n    {provider}\n  aliases: {{ smart: {{ tiers: [far/big] }} }}\n"
    );
    let served = serve(&yaml, &[]);
    let body = " {\"temperature\": 1.0e0, \"model\":\"sm\\u0061rt\" ,\"messages\":[ {\"content\":\"h\\u00e9\\/\",\"role\":\"user\"}],\"x_new\":{\"model\":1}}\n";
    let answer = served.send("POST", "/v1/chat/completions", &[], body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let got = upstream.web.requests().pop().unwrap();
    let expect = body.replace("\"sm\\u0061rt\"", "\"big\"");
    assert_eq!(String::from_utf8(got.body).unwrap(), expect);
    assert_eq!(got.path, "/v1/chat/completions");
}

#[test]
fn headers_of_the_dialect_reach_the_provider_and_the_callers_key_does_not() {
    let upstream = Upstream::start();
    let provider = upstream.configured("far", "/v1/messages");
    let served = serve(&format!("models:\n  providers:\n    {provider}\n"), &[]);
    let headers = [
        ("x-api-key", "callers-own"),
        ("anthropic-beta", "prompt-caching-2024-07-31,x"),
        ("anthropic-version", "2026-10-21"),
        ("x-request-id", "abc-1"),
    ];
    let body = super::support::request("/v1/messages", "far/m", false).to_string();
    let answer = served.send("POST", "/v1/messages", &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("x-request-id"), Some("abc-1"));
    assert_eq!(answer.header("request-id"), Some("abc-1"));
    let got = upstream.web.requests().pop().unwrap();
    assert_eq!(
        got.header("anthropic-beta"),
        Some("prompt-caching-2024-07-31,x")
    );
    assert_eq!(got.header("anthropic-version"), Some("2026-10-21"));
    assert_eq!(got.header("x-request-id"), Some("abc-1"));
    assert!(!format!("{got:?}").contains("callers-own"), "{got:?}");
}

#[test]
fn a_body_that_two_readers_read_in_two_ways_is_refused() {
    let served = mocked();
    let cases = [
        (
            r#"{"model":"plain","model":"other","messages":[]}"#,
            "twice",
        ),
        (
            r#"{"model":"plain","Model":"other","messages":[]}"#,
            "Model",
        ),
        (
            r#"{"model":"plain","mess_ages":[],"messages":[]}"#,
            "mess_ages",
        ),
        (
            r#"{"model":"plain","messages":[{"role":"user","role":"system"}]}"#,
            "twice",
        ),
        (r#"{"model":"plain","messages":["#, "middle of a value"),
        ("[]", "object"),
        ("", ""),
        (r#"{"messages":[]}"#, "model"),
        (r#"{"model":7}"#, "model"),
        (r#"{"model":"plain","stream":"yes"}"#, "stream"),
        ("\u{feff}{}", ""),
    ];
    for path in ENDPOINTS {
        for (body, says) in cases {
            let body = match path {
                "/v1/responses" => body
                    .replace("messages", "input")
                    .replace("mess_ages", "in_put"),
                _ => body.to_owned(),
            };
            let answer = served.send("POST", path, &[], &body);
            assert_eq!(answer.status, 400, "{path} {body} {answer:?}");
            assert_eq!(code(&answer.json()), "request_unreadable", "{path} {body}");
            let says = says.replace(
                "mess_ages",
                if path == "/v1/responses" {
                    "in_put"
                } else {
                    "mess_ages"
                },
            );
            assert!(answer.body.contains(&says), "{says} {answer:?}");
        }
    }
}

/// Gateways such as OpenRouter and LiteLLM go on to the models that a request names beside `model`.
#[test]
fn a_request_that_leaves_the_model_to_its_provider_is_refused() {
    let upstream = Upstream::start();
    let provider = upstream.configured("far", "");
    let deny = r#"{"id":"no-big","effect":"deny","conditions":{"model":"*big*"}}"#;
    let served = serve(
        &format!("models: {{ providers: {{ {provider} }} }}"),
        &[deny],
    );
    for path in ENDPOINTS {
        for (name, value) in [
            ("models", r#"["big"]"#),
            ("Models", r#"["big"]"#),
            ("fallbacks", r#"[{"model":"big"}]"#),
            ("route", r#""fallback""#),
            ("fallback_providers", r#"["big"]"#),
            ("context_window_fallback_dict", r#"{"small":"big"}"#),
            ("extra_body", r#"{"models":["big"]}"#),
            ("router_settings_override", r#"{"fallbacks":["big"]}"#),
            ("model", r#""far/small,big""#),
            ("providerOptions", r#"{"gateway":{"models":["big"]}}"#),
        ] {
            let mut body = super::support::request(path, "far/small", false);
            body[name] = serde_json::from_str(value).unwrap();
            let answer = served.send("POST", path, &[], &body.to_string());
            assert_eq!(answer.status, 400, "{path} {name} {answer:?}");
            assert_eq!(code(&answer.json()), "request_unreadable", "{path} {name}");
        }
    }
    assert!(upstream.web.requests().is_empty());
    let mut body = super::support::request(ENDPOINTS[0], "far/small", false);
    body["models"] = serde_json::json!([]);
    body["disable_fallbacks"] = true.into();
    let answer = served.send("POST", ENDPOINTS[0], &[], &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// LiteLLM gives the members of `extra_body` to its provider as if they stood beside it, where no rule has read them.
#[test]
fn what_rules_read_of_a_request_stands_nowhere_else_in_it() {
    let upstream = Upstream::start();
    let provider = upstream.configured("far", "");
    let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
    let ask = |path, inner: &str| {
        let mut body = super::support::request(path, "far/small", false);
        body["extra_body"] = serde_json::from_str(inner).unwrap();
        served.send("POST", path, &[], &body.to_string())
    };
    for path in ENDPOINTS {
        for inner in [
            r#"{"tools":[{"name":"shell"}]}"#,
            r#"{"Stream":true}"#,
            r#"{"extra_body":{"model":"big"}}"#,
        ] {
            let answer = ask(path, inner);
            assert_eq!(answer.status, 400, "{path} {inner} {answer:?}");
            assert_eq!(code(&answer.json()), "request_unreadable", "{path} {inner}");
        }
    }
    assert!(upstream.web.requests().is_empty());
    let answer = ask(ENDPOINTS[0], r#"{"top_k":5}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Of more tools or parts than were read, none counted.
#[test]
fn a_rule_about_tools_or_images_holds_however_many_stand_before_them() {
    let rules = [
        r#"{"id":"no-tools","effect":"deny","conditions":{"resource_type":"model","when":"tools_offered != null && 'shell' in tools_offered"}}"#,
        r#"{"id":"no-images","effect":"deny","conditions":{"resource_type":"model","when":"has_images == 'yes'"}}"#,
    ];
    let yaml = "models: { providers: { local: { kind: mock, latency: 0ms, models: [plain] } } }";
    let served = serve(yaml, &rules);
    let many = |one: &str, last: &str| format!("[{}{last}]", format!("{one},").repeat(66_000));
    let tool = |name: &str| format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#);
    let parts = many(
        r#"{"type":"text","text":"x"}"#,
        r#"{"type":"image_url","image_url":{"url":"y"}}"#,
    );
    for (members, rule) in [
        (
            format!(
                r#""messages":[],"tools":{}"#,
                many(&tool("look"), &tool("shell"))
            ),
            "no-tools",
        ),
        (
            format!(r#""messages":[{{"role":"user","content":{parts}}}]"#),
            "no-images",
        ),
    ] {
        let body = format!(r#"{{"model":"plain",{members}}}"#);
        let answer = served.send("POST", ENDPOINTS[0], &[], &body);
        assert_eq!(answer.status, 403, "{rule} {:.300}", answer.body);
        assert!(answer.body.contains(rule), "{rule} {:.300}", answer.body);
    }
}

#[test]
fn a_body_longer_than_the_bound_is_refused_in_the_dialect() {
    let served = mocked();
    let long = format!(
        r#"{{"model":"plain","messages":[],"x":"{}"}}"#,
        "x".repeat(17 << 20)
    );
    for path in ENDPOINTS {
        let answer = served.send("POST", path, &[], &long);
        assert_eq!(answer.status, 413, "{path}");
        assert_eq!(code(&answer.json()), "body_too_long", "{path}");
    }
}

#[test]
fn paths_are_taken_with_and_without_v1_and_unknown_ones_are_told() {
    let served = mocked();
    let body = super::support::request(ENDPOINTS[0], "plain", false).to_string();
    for path in [
        "/chat/completions",
        "/v1//chat/completions",
        "/v1/v1/chat/completions",
        "/v1/chat/completions/",
    ] {
        assert_eq!(served.send("POST", path, &[], &body).status, 200, "{path}");
    }
    let cases = [
        ("/v1/audio", "POST", 404, "endpoint_not_served"),
        ("/v1/files", "POST", 404, "endpoint_not_served"),
        ("/v1/rerank", "GET", 405, "method_not_allowed"),
        ("/v1/chat/completions", "GET", 405, "method_not_allowed"),
        ("/v1/models", "POST", 405, "method_not_allowed"),
    ];
    for (path, method, status, label) in cases {
        let answer = served.send(method, path, &[], "{}");
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(code(&answer.json()), label, "{path}");
    }
}

#[test]
fn a_model_that_nobody_has_is_told_in_each_dialect() {
    let served = mocked();
    for path in ENDPOINTS {
        for model in ["nope", "local/other", "far/x", "local/"] {
            let answer = ask(&served, path, model, false);
            assert_eq!(answer.status, 404, "{path} {model}");
            assert_eq!(code(&answer.json()), "model_not_found", "{path} {model}");
        }
    }
}
