//! Handshakes, and what each revision requires.

use crate::common::{mock, ready};
use mcp::client::{ClientError, Era};
use mocks::server::{
    LEGACY_VERSIONS, META_CAPABILITIES, META_SERVER, META_VERSION, MODERN_VERSION,
};
use serde_json::{Value, json};

#[test]
fn every_legacy_version_is_settled_as_asked() {
    for version in LEGACY_VERSIONS {
        let mut client = mock(&["echo"]);
        let reply = client.initialize(version).unwrap();
        let result = reply.result().unwrap();
        assert_eq!(result["serverInfo"]["name"], "mock-echo");
        assert!(result["capabilities"]["tools"].is_object());
        assert!(
            result.get("resultType").is_none(),
            "a Legacy result has no resultType"
        );
        client.request("ping", json!({})).unwrap().result().unwrap();
    }
}

#[test]
fn an_unknown_legacy_version_settles_on_the_newest() {
    let mut client = mock(&["echo"]);
    for requested in ["1999-01-01", MODERN_VERSION, ""] {
        let reply = client
            .request(
                "initialize",
                json!({"protocolVersion": requested, "capabilities": {}}),
            )
            .unwrap();
        assert_eq!(
            reply.result().unwrap()["protocolVersion"],
            "2025-11-25",
            "{requested}"
        );
    }
    let reply = client
        .request("initialize", json!({"protocolVersion": 5}))
        .unwrap();
    assert_eq!(reply.error_code(), Some(-32602));
}

#[test]
fn discover_names_versions_capabilities_and_caching() {
    let mut client = mock(&["files"]);
    let reply = client.discover().unwrap();
    let result = reply.result().unwrap();
    assert_eq!(result["supportedVersions"], json!([MODERN_VERSION]));
    assert!(result["capabilities"]["tools"].is_object());
    assert!(
        result["capabilities"].get("prompts").is_none(),
        "the file server has no prompts"
    );
    assert!(result["ttlMs"].is_u64());
    assert_eq!(result["cacheScope"], "public");
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["_meta"][META_SERVER]["name"], "mock-files");
}

#[test]
fn modern_results_carry_type_server_and_where_due_caching() {
    let mut client = ready(&["echo"], Era::Modern);
    let cases = [
        ("tools/list", json!({}), true),
        ("prompts/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("resources/read", json!({"uri": "mock://echo/motd"}), true),
        (
            "prompts/get",
            json!({"name": "greeting", "arguments": {"name": "A"}}),
            false,
        ),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "a"}}),
            false,
        ),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {}}),
            false,
        ),
    ];
    for (method, params, cached) in cases {
        let reply = client.request(method, params).unwrap();
        let result = reply.result().unwrap();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert!(
            result["_meta"][META_SERVER]["version"].is_string(),
            "{method}"
        );
        assert_eq!(result.get("ttlMs").is_some(), cached, "{method}");
        assert_eq!(result.get("cacheScope").is_some(), cached, "{method}");
    }
}

#[test]
fn legacy_results_carry_none_of_it() {
    let mut client = ready(&["echo"], Era::Legacy("2025-11-25"));
    for method in ["tools/list", "prompts/list", "resources/list", "ping"] {
        let reply = client.request(method, json!({})).unwrap();
        for member in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            assert!(
                reply.result().unwrap().get(member).is_none(),
                "{method} {member}"
            );
        }
    }
}

#[test]
fn a_modern_request_needs_its_meta_keys() {
    let mut client = mock(&["echo"]);
    let meta = |meta: Value| json!({"name": "echo", "arguments": {"text": "a"}, "_meta": meta});
    let cases = [
        (json!({"name": "echo"}), -32602),
        (meta(json!({})), -32602),
        (meta(json!({META_CAPABILITIES: {}})), -32602),
        (meta(json!({META_VERSION: MODERN_VERSION})), -32602),
        (
            meta(json!({META_VERSION: MODERN_VERSION, META_CAPABILITIES: null})),
            -32602,
        ),
        (
            meta(json!({META_VERSION: MODERN_VERSION, META_CAPABILITIES: []})),
            -32602,
        ),
        (
            meta(json!({META_VERSION: 20260728, META_CAPABILITIES: {}})),
            -32602,
        ),
        (meta(json!("modern")), -32602),
        (
            meta(json!({META_VERSION: "2027-01-01", META_CAPABILITIES: {}})),
            -32022,
        ),
        (
            meta(json!({META_VERSION: "2025-11-25", META_CAPABILITIES: {}})),
            -32022,
        ),
    ];
    for (params, code) in cases {
        assert_eq!(
            client
                .request("tools/call", params.clone())
                .unwrap()
                .error_code(),
            Some(code),
            "{params}"
        );
    }
    let good = meta(json!({META_VERSION: MODERN_VERSION, META_CAPABILITIES: {}}));
    assert_eq!(
        client.request("tools/call", good).unwrap().text(),
        Some("a")
    );
}

#[test]
fn an_unknown_modern_version_is_told_what_is_supported() {
    let mut client = mock(&["echo"]);
    let params = json!({"_meta": {META_VERSION: "2027-01-01", META_CAPABILITIES: {}}});
    let reply = client.request("server/discover", params).unwrap();
    let error = reply.error().unwrap();
    assert_eq!(
        error["data"],
        json!({"supported": [MODERN_VERSION], "requested": "2027-01-01"})
    );
}

#[test]
fn methods_belong_to_their_era() {
    let mut legacy = ready(&["echo"], Era::Legacy("2025-11-25"));
    assert_eq!(
        legacy
            .request("server/discover", json!({}))
            .unwrap()
            .error_code(),
        Some(-32601)
    );
    let mut modern = ready(&["echo"], Era::Modern);
    assert_eq!(
        modern.request("ping", json!({})).unwrap().error_code(),
        Some(-32601)
    );
    let mut files = ready(&["files"], Era::Modern);
    for method in [
        "prompts/list",
        "resources/list",
        "resources/read",
        "subscriptions/listen",
    ] {
        assert_eq!(
            files.request(method, json!({})).unwrap().error_code(),
            Some(-32601),
            "{method}"
        );
    }
}

#[test]
fn one_process_serves_both_eras_side_by_side() {
    let mut client = ready(&["echo"], Era::Legacy("2025-06-18"));
    let meta = json!({META_VERSION: MODERN_VERSION, META_CAPABILITIES: {}});
    let modern = client
        .request("tools/list", json!({"_meta": meta}))
        .unwrap();
    assert_eq!(modern.result().unwrap()["resultType"], "complete");
    let legacy = client
        .request("tools/list", json!({"_meta": {"progressToken": 1}}))
        .unwrap();
    assert!(legacy.result().unwrap().get("resultType").is_none());
}

#[test]
fn a_server_of_one_era_refuses_the_other() {
    let mut legacy = mock(&["echo", "--eras", "legacy"]);
    let refused = legacy.discover().unwrap_err();
    assert!(
        matches!(&refused, ClientError::Handshake { line } if line.contains("-32601")),
        "{refused}"
    );
    let mut legacy = ready(&["echo", "--eras", "legacy"], Era::Legacy("2025-03-26"));
    assert_eq!(
        legacy
            .call_tool("echo", json!({"text": "a"}))
            .unwrap()
            .text(),
        Some("a")
    );

    let mut modern = mock(&["echo", "--eras", "modern"]);
    let refused = modern.initialize("2025-11-25").unwrap_err();
    assert!(
        matches!(&refused, ClientError::Handshake { line } if line.contains("-32022")),
        "{refused}"
    );
    let mut modern = ready(&["echo", "--eras", "modern"], Era::Modern);
    assert_eq!(
        modern
            .call_tool("echo", json!({"text": "a"}))
            .unwrap()
            .text(),
        Some("a")
    );
}

#[test]
fn before_the_handshake_a_legacy_server_serves_only_ping() {
    let mut client = mock(&["echo", "--eras", "legacy"]);
    client.request("ping", json!({})).unwrap().result().unwrap();
    assert_eq!(
        client
            .request("tools/list", json!({}))
            .unwrap()
            .error_code(),
        Some(-32600)
    );
}

#[test]
fn batches_are_served_in_the_two_oldest_revisions_only() {
    let batch = br#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2.0,"method":"tools/call","params":{"name":"delayed","arguments":{"text":"b","delay_us":1000}}}]"#;
    for version in LEGACY_VERSIONS {
        let mut client = ready(&["echo"], Era::Legacy(version));
        client.process().send_line(batch).unwrap();
        let line = String::from_utf8(client.process().read_line().unwrap()).unwrap();
        if version < "2025-06-18" {
            let replies: Vec<Value> = serde_json::from_str(&line).unwrap();
            assert_eq!(replies.len(), 2, "{line}");
            assert!(
                line.contains(r#""id":"a""#) && line.contains(r#""id":2.0"#),
                "{line}"
            );
        } else {
            assert!(line.contains("-32600"), "{version}: {line}");
        }
    }
    let mut client = ready(&["echo"], Era::Legacy("2024-11-05"));
    client
        .process()
        .send_line(br#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#)
        .unwrap();
    client.request("ping", json!({})).unwrap().result().unwrap();
}
