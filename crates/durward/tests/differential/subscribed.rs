//! A subscription to a resource is judged however its name is spelled.

use std::fs;

use mocks::ambiguous::MODERN_META;
use serde_json::json;
use wire::Revision;

use crate::edge::{Edge, Transport, Way, run};
use crate::lines::{Lines, PATIENCE};
use crate::place::Place;
use crate::servers::{self, Server};

const DENIED: &str = "file:///srv/secret/x";
const ALLOWED: &str = "file:///srv/open/x";

/// What is passed for subscriptions to resources, escaped or as a reader spells it that folds names.
const SPELLINGS: [&str; 4] = [
    "resource\\u0053ubscriptions",
    "resource_subscriptions",
    "ResourceSubscriptions",
    "resourcesubscriptions",
];

/// A subscription to this resource, or to these with `","` between them.
fn listen(id: &str, name: &str, uri: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","method":"subscriptions/listen","params":{{"notifications":{{"{name}":["{uri}"]}},"_meta":{{{MODERN_META}}}}}}}"#
    )
}

/// The first that a process says to subscriptions, each spelled another way.
fn said(command: &[String], place: &Place, uri: &str, spellings: &[&str]) -> Vec<String> {
    let way = Way {
        edge: Edge::Run,
        transport: Transport::Stdio,
        revision: Revision::V2026_07_28,
    };
    let said = |name: &&str| {
        let mut lines = Lines::open(way, command, place);
        assert!(lines.send(listen("subscribed", name, uri).as_bytes()));
        let line = lines.line("subscribed", PATIENCE).unwrap();
        lines.kill();
        line
    };
    spellings.iter().map(said).collect()
}

/// The spellings by which the server itself, without a gate, is subscribed to.
fn read_as_subscriptions(server: &Server) -> Vec<&'static str> {
    let place = Place::new();
    let said = said(&server.command, &place, DENIED, &SPELLINGS);
    let read = SPELLINGS.into_iter().zip(said);
    read.filter(|(_, line)| line.contains(DENIED))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn j11_a_subscription_to_a_denied_resource_is_refused_however_it_is_spelled() {
    let python = servers::all()
        .into_iter()
        .find(|server| server.name == "official Python SDK");
    let escaped = SPELLINGS[0];
    let folded = [escaped, "ResourceSubscriptions", "resourcesubscriptions"];
    for (server, read) in [(python, &[escaped][..]), (servers::held(), &folded)] {
        let Some(server) = server else {
            continue;
        };
        assert_eq!(read_as_subscriptions(&server), read, "{}", server.name);
        let place = Place::new();
        let policy = json!({"rules": [
            {"id": "listen", "effect": "allow", "conditions": {"mcp_method": "subscriptions/listen"}},
            {"id": "secret", "effect": "deny", "conditions": {"path_pattern": "/srv/secret/**"}}]});
        fs::write(place.dir.join("policy.json"), policy.to_string()).unwrap();
        let guarded = run(&server, None);
        for line in said(&guarded, &place, DENIED, &SPELLINGS) {
            assert!(line.contains("\"error\""), "{}: {line}", server.name);
        }
        let plain = said(&guarded, &place, ALLOWED, &["resourceSubscriptions"]);
        assert!(plain[0].contains(ALLOWED), "{}: {plain:?}", server.name);
        let decisions = place.decisions();
        let rules: Vec<_> = decisions
            .iter()
            .map(|decision| &decision["final_rule"])
            .collect();
        // The names that are only like the real one are refused with their frames.
        assert_eq!(
            rules,
            ["secret", "listen"],
            "{}: {decisions:?}",
            server.name
        );
    }
}

/// Rules about addresses that are no paths looked at reads alone.
#[test]
fn a_subscription_is_refused_by_the_rules_that_refuse_to_read_its_resource() {
    let Some(server) = servers::held() else {
        return;
    };
    let place = Place::new();
    let policy = json!({"rules": [
        {"id": "all", "effect": "allow", "conditions": {"backend_id": "*"}},
        {"id": "scheme", "effect": "deny", "conditions": {"scheme": "note"}},
        {"id": "path", "effect": "deny", "conditions": {"path_pattern": "secret:**"}},
        {"id": "uri", "effect": "deny",
            "conditions": {"when": "uri != null && uri.startsWith('vault:')"}}]});
    fs::write(place.dir.join("policy.json"), policy.to_string()).unwrap();
    let guarded = run(&server, None);
    let said = |uri| said(&guarded, &place, uri, &["resourceSubscriptions"]).concat();
    for (uri, rule) in [
        ("note:x", "scheme"),
        ("secret:x", "path"),
        ("vault:x", "uri"),
        (r#"open:x","secret:x"#, "path"),
        // Of which of them a rule about `uri` or its scheme speaks nobody can say.
        (r#"open:x","vault:x"#, "scheme"),
    ] {
        let line = said(uri);
        let refused = line.contains("\"error\"");
        assert!(
            refused && line.contains(&format!(r#""final_rule":"{rule}""#)),
            "{uri}: {line}"
        );
    }
    assert!(said("open:x").contains("acknowledged"));
}
