//! One answer to `initialize` out of those of several servers.

use serde_json::{Map, Value, json};
use wire::jsonrpc::member;
use wire::{Bounds, Era, Revision, scan_reply};

use super::lists::{self, Missing};
use crate::message::method::List;

/// What a server says of itself that it can do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Abilities {
    capabilities: Map<String, Value>,
}

impl Abilities {
    /// Read from the result of `initialize`.
    pub fn of(result: &str) -> Self {
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        let capabilities = result.get("capabilities").and_then(Value::as_object);
        Self {
            capabilities: capabilities.cloned().unwrap_or_default(),
        }
    }

    /// Whether it has this capability.
    pub fn has(&self, capability: &str) -> bool {
        self.capabilities
            .get(capability)
            .is_some_and(Value::is_object)
    }

    /// Whether it has lists of this kind.
    pub fn lists(&self, list: List) -> bool {
        self.has(match list {
            List::Tools => "tools",
            List::Resources | List::Templates => "resources",
            List::Prompts => "prompts",
        })
    }

    fn subscribes(&self) -> bool {
        let resources = self.capabilities.get("resources");
        resources.and_then(|of| of.get("subscribe")) == Some(&Value::Bool(true))
    }
}

/// The result of `initialize` for the client of several servers, or that of `server/discover` where the revision is of
/// the Modern era: their names with what they say of themselves, and the servers that are missing.
pub(crate) fn merged(
    revision: Revision,
    members: &[(String, String)],
    missing: &[Missing],
) -> String {
    let abilities: Vec<Abilities> = members.iter().map(|(_, r)| Abilities::of(r)).collect();
    // What a server that is missing can do is not known yet, and clients ask for nothing that was not announced.
    let any = |name: &str| !missing.is_empty() || abilities.iter().any(|all| all.has(name));
    let mut capabilities = Map::new();
    capabilities.insert("tools".into(), json!({"listChanged": true}));
    if any("prompts") {
        capabilities.insert("prompts".into(), json!({"listChanged": true}));
    }
    if any("resources") {
        let subscribe = abilities.iter().any(Abilities::subscribes);
        let resources = json!({"listChanged": true, "subscribe": subscribe});
        capabilities.insert("resources".into(), resources);
    }
    for plain in ["completions", "logging"] {
        if any(plain) {
            capabilities.insert(plain.into(), json!({}));
        }
    }
    if revision.era() == Era::Modern {
        return discovered(revision, capabilities.into(), members, missing);
    }
    let mut result = json!({
        "protocolVersion": revision.name(),
        "capabilities": capabilities,
        "serverInfo": {"name": "durward", "version": env!("CARGO_PKG_VERSION")},
    });
    if let Some(all) = result.as_object_mut() {
        if let Some(text) = instructions(members, missing) {
            all.insert("instructions".into(), text.into());
        }
        if !missing.is_empty() {
            all.insert("_meta".into(), lists::meta(missing));
        }
    }
    result.to_string()
}

/// The result of `initialize` as a server's part in that of `server/discover`: without what needs a session of the client's
/// own.
pub(crate) fn without_session(result: &str) -> String {
    let mut result: Value = serde_json::from_str(result).unwrap_or_default();
    if let Some(Value::Object(capabilities)) = result.get_mut("capabilities") {
        capabilities.remove("logging");
        if let Some(Value::Object(resources)) = capabilities.get_mut("resources") {
            resources.remove("subscribe");
        }
    }
    result.to_string()
}

fn discovered(
    revision: Revision,
    capabilities: Value,
    members: &[(String, String)],
    missing: &[Missing],
) -> String {
    let ttl = |(_, result): &(String, String)| {
        let scan = scan_reply(result.as_bytes(), &Bounds::default()).ok();
        scan.map_or(0, |scan| lists::ttl_of(member(&scan.members, "ttlMs")))
    };
    let ttl_ms = lists::ttl_ms(members.iter().map(ttl).min(), missing);
    let said = match instructions(members, missing) {
        Some(text) => format!("\"instructions\":{},", Value::from(text)),
        None => String::new(),
    };
    format!(
        "{{\"supportedVersions\":[\"{}\"],\"capabilities\":{capabilities},{said}{}}}",
        revision.name(),
        lists::of_modern(ttl_ms, missing)
    )
}

/// What each server says to the model, under its name; and which servers are missing.
fn instructions(members: &[(String, String)], missing: &[Missing]) -> Option<String> {
    let own = |(server, result): &(String, String)| {
        let result: Value = serde_json::from_str(result).ok()?;
        let text = result.get("instructions")?.as_str()?.trim().to_owned();
        (!text.is_empty()).then(|| format!("# {server}\n\n{text}"))
    };
    let mut parts: Vec<String> = members.iter().filter_map(own).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|one| one.server.as_str()).collect();
        parts.push(format!(
            "Not available at the moment: {}.",
            names.join(", ")
        ));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_those_of_all_and_the_missing_are_named() {
        let members = [
            (
                "a".to_owned(),
                r#"{"capabilities":{"tools":{}},"instructions":"Be kind."}"#.to_owned(),
            ),
            (
                "b".to_owned(),
                r#"{"capabilities":{"resources":{"subscribe":true},"logging":{}}}"#.to_owned(),
            ),
        ];
        let result: Value =
            serde_json::from_str(&merged(Revision::V2025_11_25, &members, &[])).unwrap();
        assert_eq!(
            result["capabilities"],
            json!({"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"logging":{}})
        );
        assert_eq!(result["instructions"], "# a\n\nBe kind.");
        let discovered: Value =
            serde_json::from_str(&merged(Revision::V2026_07_28, &members, &[])).unwrap();
        assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
        for same in ["capabilities", "instructions"] {
            assert_eq!(discovered[same], result[same]);
        }
        assert_eq!(discovered["resultType"], "complete");
        assert_eq!(discovered["cacheScope"], "private");
        let (name, said) = &members[1];
        let bridged = [(name.clone(), without_session(said))];
        let discovered: Value =
            serde_json::from_str(&merged(Revision::V2026_07_28, &bridged, &[])).unwrap();
        assert_eq!(
            discovered["capabilities"],
            json!({"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":false}})
        );
        let missing = [Missing {
            server: "c".into(),
            reason: "upstream_died".into(),
            message: "it ended".into(),
        }];
        let result: Value =
            serde_json::from_str(&merged(Revision::V2025_11_25, &members, &missing)).unwrap();
        assert!(result["capabilities"].get("prompts").is_some());
        assert_eq!(result["_meta"]["durward/missing"][0]["server"], "c");
        assert!(
            result["instructions"]
                .as_str()
                .unwrap()
                .ends_with("Not available at the moment: c.")
        );
    }
}
