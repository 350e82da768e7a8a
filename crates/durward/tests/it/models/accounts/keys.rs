//! Keys of providers that users bring, and the master key that they are sealed with.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::super::support::{Upstream, place, request};
use super::{open_place, registered, send};
use crate::support::guarded::binary;
use crate::support::serving::Served;
use crate::support::web::reply;

/// The keys that were shown to a provider, in their order.
fn shown(upstream: &Upstream) -> Vec<String> {
    let requests = upstream.web.requests();
    let keys = requests.iter().map(|request| {
        let shown = request.header("authorization").unwrap();
        shown.trim_start_matches("Bearer ").to_owned()
    });
    keys.collect()
}

#[test]
fn a_users_own_key_is_used_first_and_for_nobody_else() {
    let refuses = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&refuses);
    let upstream = Upstream::before(move |request| {
        let own = request.header("authorization") == Some("Bearer sk-ada");
        let body = r#"{"error":{"message":"no","type":"x","param":null,"code":"invalid_api_key"}}"#;
        (own && asks.load(Ordering::SeqCst)).then(|| reply("401 x", "", "application/json", body))
    });
    let provider = format!(
        "far: {{ kind: openai, base_url: \"http://127.0.0.1:{}/v1\", api_key: sk-house }}",
        upstream.web.port
    );
    let yaml = format!("models:\n  providers:\n    {provider}\n  accounts: {{ register: open }}\n");
    let served = Served::start_ruled(place(&yaml, &[]));
    let (ada, bob) = (registered(&served, "ada"), registered(&served, "bob"));
    let own = json!({ "far": "sk-ada" });
    assert_eq!(
        send(&served, &ada, "POST", "/v1/user/keys", &own).status,
        200
    );
    let ask = |token: &str| {
        let body = request("/v1/chat/completions", "far/plain", false);
        let answer = send(&served, token, "POST", "/v1/chat/completions", &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    ask(&ada);
    ask(&bob);
    assert_eq!(shown(&upstream), ["sk-ada", "sk-house"]);
    refuses.store(true, Ordering::SeqCst);
    ask(&ada);
    assert_eq!(shown(&upstream)[2..], ["sk-ada", "sk-house"]);
    let gone = send(&served, &ada, "DELETE", "/v1/user/keys/far", &Value::Null);
    assert_eq!(gone.status, 200);
    ask(&ada);
    assert_eq!(shown(&upstream)[4..], ["sk-house"]);
    for (body, status) in [
        (json!({}), 400),
        (json!({ "far": "" }), 400),
        (json!({ "far": "a b" }), 400),
        (json!({ "far": 1 }), 400),
        (json!({ "a b": "x" }), 400),
        (json!([]), 400),
        (json!({ "far": "x".repeat(5_000) }), 400),
    ] {
        let answer = send(&served, &ada, "POST", "/v1/user/keys", &body);
        assert_eq!(answer.status, status, "{body} {answer:?}");
    }
    let twice = r#"{"far":"x","far":"y"}"#;
    let bearer = format!("Bearer {ada}");
    let shown = [("authorization", bearer.as_str())];
    let answer = served.send("POST", "/v1/user/keys", &shown, twice);
    assert_eq!(answer.status, 400, "{answer:?}");
    let gone = send(&served, &ada, "DELETE", "/v1/user/keys/far", &Value::Null);
    assert_eq!(gone.status, 404);
}

#[test]
fn another_master_key_is_refused_at_the_start() {
    let (place, _) = open_place("");
    let (_, place) = Served::start_ruled(place).stop();
    let started = |key: &str| {
        let args = ["--config", "durward.yaml", "--state-dir", "state"];
        let mut command = Command::new(binary());
        command.current_dir(&place.dir).args(args);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        let output = command.env("DURWARD_MASTER_KEY", key).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    let (status, text) = started(&"ab".repeat(32));
    assert_eq!(status, Some(16), "{text}");
    assert!(text.contains("another master key"), "{text}");
    let (status, text) = started("short");
    assert_eq!(status, Some(16), "{text}");
    assert!(text.contains("64 hexadecimal digits"), "{text}");
    assert!(!text.contains("short"), "{text}");
    // The keys directory has the one that was made, for this user alone.
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |file: &str| {
        let found = std::fs::metadata(place.path(&format!("state/keys/{file}"))).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!([mode("master.key"), mode("accounts.key")], [0o600, 0o600]);
}
