//! What the journal says of calls to models, and what it never says.

use std::fs;
use std::path::Path;

use super::support::{ENDPOINTS, Upstream, ask, serve};
use serde_json::json;

#[test]
fn decisions_name_the_model_and_operations_what_was_used() {
    let yaml = "models: { providers: { a: { kind: mock, latency: 0ms } }, aliases: { smart: { tiers: [a/fault-500, a/plain] } } }";
    let served = serve(yaml, &[]);
    let body = r#"{"model":"smart","max_tokens":100,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"look"}}],"tool_choice":"none","stream":true}"#;
    let headers = [
        ("x-request-id", "r-1"),
        ("x-durward-run", "run-7"),
        ("user-agent", "OpenAI/Python 3.54.0"),
    ];
    let answer = served.send("POST", "/v1/chat/completions", &headers, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        !answer.body.contains("prompt_tokens"),
        "nobody asked for usage: {answer:?}"
    );
    let (_, place) = served.stop();
    let journal = place.journal();
    let decision = journal.decision("r-1");
    for (name, value) in [
        ("decision", json!("allow")),
        ("mcp_method", json!("chat/completions")),
        ("resource_type", json!("model")),
        ("model", json!(["smart", "a/fault-500", "fault-500"])),
        ("provider", json!("a")),
        ("backend_id", json!("a")),
        ("stream", json!("yes")),
        ("max_tokens", json!(100)),
        ("tools_offered", json!(["look"])),
        ("has_images", json!("no")),
        ("run_id", json!("run-7")),
    ] {
        assert_eq!(decision[name], value, "{name} {decision}");
    }
    let operation = journal.operation("r-1");
    assert_eq!(operation["status"], "Success", "{operation}");
    assert_eq!(
        operation["client_id"], "OpenAI/Python 3.54.0",
        "{operation}"
    );
    assert_eq!(operation["usage"]["output_tokens"], 8, "{operation}");
    let attempts: Vec<_> = operation["attempts"].as_array().unwrap().iter().collect();
    let reasons: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt["reason"].as_str())
        .collect();
    assert_eq!(
        reasons,
        [Some("provider_error"), Some("provider_error"), None]
    );
}

#[test]
fn what_a_provider_does_not_tell_is_counted() {
    let served = serve(
        "models: { providers: { a: { kind: mock, latency: 0ms } } }",
        &[],
    );
    for path in ENDPOINTS {
        let answer = ask(&served, path, "a/fault-unmetered", true);
        assert_eq!(answer.status, 200, "{path} {answer:?}");
    }
    let (_, place) = served.stop();
    let journal = place.journal();
    for operation in journal.operations() {
        let output = operation["usage"]["output_tokens"].as_u64();
        assert!(output >= Some(8), "{operation}");
    }
}

fn holds(dir: &Path, canary: &[u8]) -> Option<String> {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = holds(&path, canary) {
                return Some(found);
            }
        } else if let Ok(bytes) = fs::read(&path) {
            let is_there = bytes.windows(canary.len()).any(|window| window == canary);
            if is_there {
                return Some(path.display().to_string());
            }
        }
    }
    None
}

#[test]
fn no_prompt_completion_or_key_is_kept_anywhere() {
    let upstream = Upstream::start();
    let provider = upstream
        .configured("far", "")
        .replace("${HOME}", "canary-key");
    let served = serve(&format!("models:\n  providers:\n    {provider}\n"), &[]);
    for streams in [false, true] {
        for model in ["echo", "fault-cut", "fault-garbled"] {
            let body = json!({ "model": format!("far/{model}"), "stream": streams,
                "messages": [{ "role": "user", "content": "canary-prompt" }] });
            let answer = served.send("POST", "/v1/chat/completions", &[], &body.to_string());
            let echoed = model == "echo";
            assert_eq!(
                answer.body.contains("canary-prompt"),
                echoed,
                "{model} {answer:?}"
            );
            assert!(!answer.body.contains("canary-key"), "{answer:?}");
        }
    }
    let refused = ask(&served, ENDPOINTS[0], "far/fault-401", false);
    assert!(!refused.body.contains("canary-key"), "{refused:?}");
    let metrics = served.send("GET", "/metrics", &[], "").body;
    assert!(!metrics.contains("canary"), "{metrics}");
    let (_, place) = served.stop();
    assert!(place.journal().operations().len() == 7);
    for canary in ["canary-prompt", "canary-key"] {
        assert_eq!(
            holds(&place.path("state"), canary.as_bytes()),
            None,
            "{canary}"
        );
    }
}
