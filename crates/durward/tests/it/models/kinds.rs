//! In what the presets of providers differ from OpenAI: each is asked as its own API wants it.

use serde_json::{Value, json};

use super::support::{ENDPOINTS, Upstream, ask, events, request, serve};

/// Presets that have chat completions and no responses.
const WITHOUT_RESPONSES: [&str; 5] = ["mistral", "deepseek", "cerebras", "sambanova", "cohere"];

fn configured(upstream: &Upstream, kind: &str) -> String {
    let port = upstream.web.port;
    format!("{kind}: {{ kind: {kind}, base_url: \"http://127.0.0.1:{port}/v1\", api_key: k }}")
}

/// What was sent last.
fn sent(upstream: &Upstream) -> (String, Value) {
    let request = upstream.web.requests().pop().unwrap();
    let body = serde_json::from_slice(&request.body).unwrap();
    (request.path, body)
}

#[test]
fn responses_reach_providers_that_have_none() {
    let upstream = Upstream::start();
    for kind in WITHOUT_RESPONSES {
        let own = configured(&upstream, kind);
        let served = serve(&format!("models: {{ providers: {{ {own} }} }}"), &[]);
        for streams in [false, true] {
            let answer = ask(&served, ENDPOINTS[2], &format!("{kind}/plain"), streams);
            assert_eq!(answer.status, 200, "{kind}: {answer:?}");
            assert!(answer.body.contains("MOCK response"), "{kind}: {answer:?}");
            assert_eq!(sent(&upstream).0, ENDPOINTS[0], "{kind}");
        }
    }
    for kind in ["groq", "local"] {
        let own = configured(&upstream, kind);
        let served = serve(&format!("models: {{ providers: {{ {own} }} }}"), &[]);
        ask(&served, ENDPOINTS[2], &format!("{kind}/plain"), false);
        assert_eq!(sent(&upstream).0, ENDPOINTS[2], "{kind}");
    }
}

#[test]
fn mistral_is_sent_no_member_that_it_refuses_and_its_usage_counts() {
    let upstream = Upstream::before(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let refused = ["stream_options", "user"];
        let name = refused.into_iter().find(|name| body.get(name).is_some())?;
        let detail = json!([{ "loc": ["body", name], "msg": "Extra inputs are not permitted" }]);
        let body = json!({ "object": "error", "message": { "detail": detail } }).to_string();
        let length = body.len();
        let head = "HTTP/1.1 422 x\r\ncontent-type: application/json\r\ncontent-length:";
        Some(format!("{head} {length}\r\n\r\n{body}").into_bytes())
    });
    let own = configured(&upstream, "mistral");
    let served = serve(&format!("models: {{ providers: {{ {own} }} }}"), &[]);
    for path in ENDPOINTS {
        let mut body = request(path, "mistral/plain", true);
        match path {
            "/v1/messages" => body["metadata"] = json!({ "user_id": "ann" }),
            "/v1/chat/completions" => body["stream_options"] = json!({ "include_usage": true }),
            _ => body["user"] = json!("ann"),
        }
        let answer = served.send("POST", path, &[], &body.to_string());
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let left_out = match path {
            "/v1/messages" => Some("user_id"),
            "/v1/chat/completions" => None,
            _ => Some("user"),
        };
        assert_eq!(answer.header("x-durward-left-out"), left_out, "{path}");
        assert!(events(&answer).len() > 8, "{path}: {answer:?}");
    }
    let mut body = request(ENDPOINTS[0], "mistral/plain", false);
    body["user"] = json!("ann");
    let answer = served.send("POST", ENDPOINTS[0], &[], &body.to_string());
    assert_eq!(
        answer.status, 422,
        "a caller's own word is sent: {answer:?}"
    );
    let told = "body.user: Extra inputs are not permitted";
    assert!(answer.body.contains(told), "{answer:?}");
}

#[test]
fn thoughts_go_back_where_each_provider_takes_them() {
    let upstream = Upstream::start();
    let turns = json!([
        { "role": "user", "content": "hello" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "hm", "signature": "" }, { "type": "text", "text": "so" },
        ] },
        { "role": "user", "content": "go on" },
    ]);
    let parts = json!([
        { "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] },
        { "type": "text", "text": "so" },
    ]);
    let beside = |name: &str| {
        let mut said = json!({ "role": "assistant", "content": "so" });
        said[name] = json!("hm");
        said
    };
    for (kind, expect) in [
        ("groq", beside("reasoning")),
        ("cerebras", beside("reasoning")),
        ("deepseek", beside("reasoning_content")),
        ("mistral", json!({ "role": "assistant", "content": parts })),
    ] {
        let own = configured(&upstream, kind);
        let served = serve(&format!("models: {{ providers: {{ {own} }} }}"), &[]);
        let model = format!("{kind}/plain");
        let body = json!({ "model": model, "max_tokens": 9, "messages": turns });
        let answer = served.send("POST", ENDPOINTS[1], &[], &body.to_string());
        assert_eq!(answer.status, 200, "{kind}: {answer:?}");
        assert_eq!(sent(&upstream).1["messages"][1], expect, "{kind}");
    }
}
