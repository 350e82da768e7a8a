//! Members by which LiteLLM asks elsewhere than for the model that was judged: another deployment, provider or account.

use serde_json::{Value, json};

use super::foreign::FRONTS;
use super::foreign_litellm::{Proxy, configured};
use super::support::{Upstream, ask, code, serve};

/// Behind the proxy, a model that reaches a provider. What others wrote takes each member over its own configuration.
#[test]
fn no_member_leads_the_proxy_to_another_deployment_provider_or_header_than_the_models_own() {
    let upstream = Upstream::start();
    let base = format!("http://127.0.0.1:{}/v1", upstream.web.port);
    let own = json!({"model": "openai/m/echo", "api_key": "none", "api_base": base});
    let model = json!({"model_name": "far", "litellm_params": own});
    let cloud = json!({"model": "bedrock/anthropic.claude-3-haiku-20240307-v1:0", "aws_region_name": "us-east-1",
        "aws_bedrock_runtime_endpoint": format!("http://127.0.0.1:{}", upstream.web.port),
        "aws_access_key_id": "a", "aws_secret_access_key": "b"});
    let cloud = json!({"model_name": "cloud", "litellm_params": cloud});
    let Some(proxy) = Proxy::start(&configured(&[model, cloud])) else {
        return;
    };
    let asked = || -> Vec<String> {
        let requests = upstream.web.requests().into_iter();
        requests
            .map(|request| {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                format!("{} {:?} {body}", request.path, request.headers)
            })
            .collect()
    };
    let turns = json!([{ "role": "user", "content": "hello" }]);
    let away: [(&str, Value, &str); 6] = [
        ("deployment_id", json!("m/other"), "deployments/m/other"),
        ("extra_headers", json!({"x-account": "other"}), "x-account"),
        ("organization", json!("other"), "openai-organization"),
        ("azure", json!(true), "openai/deployments"),
        ("custom_llm_provider", json!("anthropic"), "/messages"),
        ("model_id", json!("other"), "/model/other/"),
    ];
    for (name, value, shows) in &away {
        let before = asked().len();
        let model = if *name == "model_id" { "cloud" } else { "far" };
        let mut body = json!({"model": model, "messages": turns});
        body[name] = value.clone();
        let _ = proxy.answers(&body);
        let told = asked().split_off(before);
        assert!(
            told.iter().any(|one| one.contains(shows)),
            "{name} {told:?}"
        );
    }
    let served = serve(
        &format!(
            "models: {{ providers: {{ o: {{ kind: openai, base_url: \"http://127.0.0.1:{}/v1\", api_key: none }} }} }}",
            proxy.port
        ),
        &[],
    );
    let before = asked().len();
    for path in FRONTS {
        for (name, value, _) in &away {
            for within in [false, true] {
                let mut body = super::support::request(path, "o/far", false);
                match within {
                    true => body["extra_body"] = json!({ *name: value }),
                    false => body[name] = value.clone(),
                }
                let answer = served.send("POST", path, &[], &body.to_string());
                assert_eq!(answer.status, 400, "{path} {name} {answer:?}");
                assert_eq!(code(&answer.json()), "request_unreadable", "{path} {name}");
                assert!(answer.body.contains(name), "{answer:?}");
            }
        }
    }
    assert_eq!(asked().len(), before, "nothing was sent");
}

/// The rules see what a request offers a model wherever a provider reads it, and the most that it may write.
#[test]
fn rules_see_tools_and_maxima_that_only_some_providers_read() {
    let rules = [
        r#"{"id":"no-tools","effect":"deny","conditions":{"resource_type":"model","when":"tools_offered != null && size(tools_offered) > 0"}}"#,
        r#"{"id":"short","effect":"deny","conditions":{"resource_type":"model","when":"max_tokens != null && max_tokens > 100"}}"#,
    ];
    let served = serve(
        "models: { providers: { a: { kind: mock, latency: 0ms } } }",
        &rules,
    );
    let plain = ask(&served, FRONTS[0], "a/m", false);
    assert_eq!(plain.status, 200, "{plain:?}");
    let hidden: [(&str, Value, &str); 6] = [
        ("tools", json!([{"googleSearch": {}}]), "no-tools"),
        ("mcp_servers", json!([{"url": "http://x"}]), "no-tools"),
        ("plugins", json!([{"id": "web"}]), "no-tools"),
        ("search_parameters", json!({"mode": "on"}), "no-tools"),
        ("n_predict", json!(5000), "short"),
        ("max_output_tokens", json!(5000), "short"),
    ];
    for (name, value, rule) in hidden {
        let mut body = super::support::request(FRONTS[0], "a/m", false);
        body["max_tokens"] = json!(1);
        body[name] = value;
        let answer = served.send("POST", FRONTS[0], &[], &body.to_string());
        assert_eq!(answer.status, 403, "{name} {answer:?}");
        assert!(answer.body.contains(rule), "{name} {answer:?}");
    }
    let mut body = super::support::request("/v1/responses", "a/m", false);
    body["input"] = json!([{"type": "additional_tools", "role": "developer", "tools": [{"type": "shell"}]},
        {"role": "user", "content": "hi"}]);
    let answer = served.send("POST", "/v1/responses", &[], &body.to_string());
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(answer.body.contains("no-tools"), "{answer:?}");
    let mut body = super::support::request("/v1/responses", "a/m", false);
    body["tools"] = json!([{"type": "image_generation", "model": "other"}]);
    let answer = served.send("POST", "/v1/responses", &[], &body.to_string());
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("tools[].model"), "{answer:?}");
}
