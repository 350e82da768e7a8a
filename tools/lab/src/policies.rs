//! The rule sets of the access proxy's paper. Its file of 50 rules was not kept; it is rebuilt from the
//! description: `allow-read-tmp` first, the others of mixed effects and conditions and not matching the call.

use serde_json::{Value, json};

/// One rule that allows everything.
pub(crate) fn allow_all() -> Value {
    document(vec![json!({
        "id": "allow-all", "effect": "allow", "conditions": { "tool_name": "*" },
    })])
}

/// Returns the paper's four rules.
pub(crate) fn four() -> Value {
    document(vec![
        allow_read_tmp(),
        json!({
            "id": "allow-list-tmp", "effect": "allow",
            "conditions": { "tool_name": "list_files", "path_pattern": "/tmp/**" },
        }),
        json!({
            "id": "deny-sensitive-extensions", "effect": "deny",
            "conditions": { "extension": [".key", ".pem", ".env"] },
        }),
        json!({
            "id": "hitl-write-ops", "effect": "hitl",
            "conditions": { "operations": ["write", "delete"] },
        }),
    ])
}

/// Effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleEffect {
    Allow,
    Deny,
    Hitl,
}

impl RuleEffect {
    fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Hitl => "hitl",
        }
    }
}

/// `count` rules: the first allows the read, none of the others matches it.
pub(crate) fn mixed(count: usize) -> Value {
    mixed_behind(allow_read_tmp(), count)
}

/// Returns the same with a first rule about one tool, with any arguments. No answer of a person is remembered.
pub(crate) fn mixed_for(tool: &str, effect: RuleEffect, count: usize) -> Value {
    let effect = effect.name();
    let first = json!({
        "id": format!("{effect}-the-measured"), "effect": effect, "conditions": { "tool_name": tool },
    });
    mixed_behind(first, count)
}

fn mixed_behind(first: Value, count: usize) -> Value {
    let others = (2..=count).map(|number| match number % 4 {
        0 => json!({
            "id": format!("allow-area-{number}"), "effect": "allow",
            "conditions": {
                "tool_name": ["read_file", "list_files"],
                "path_pattern": format!("/srv/area-{number}/**"),
            },
        }),
        1 => json!({
            "id": format!("deny-kind-{number}"), "effect": "deny",
            "conditions": { "extension": [".key", ".pem", format!(".secret{number}")] },
        }),
        2 => json!({
            "id": format!("hitl-change-{number}"), "effect": "hitl",
            "conditions": {
                "operations": ["write", "delete"],
                "path_pattern": format!("/tmp/project-{number}/**"),
            },
        }),
        _ => json!({
            "id": format!("allow-tool-{number}"), "effect": "allow",
            "conditions": { "tool_name": format!("query_{number}_*"), "path_pattern": "/data/**" },
        }),
    });
    document(std::iter::once(first).chain(others).collect())
}

fn allow_read_tmp() -> Value {
    json!({
        "id": "allow-read-tmp", "effect": "allow",
        "conditions": { "tool_name": "read_file", "path_pattern": "/tmp/**" },
    })
}

fn document(rules: Vec<Value>) -> Value {
    json!({ "version": "1", "default_action": "deny", "rules": rules })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rules_as_asked_for_with_ids_of_their_own() {
        for (policy, count) in [
            (allow_all(), 1),
            (four(), 4),
            (mixed(50), 50),
            (mixed(1_000), 1_000),
        ] {
            let rules = policy["rules"].as_array().unwrap();
            let ids: std::collections::BTreeSet<&str> = rules
                .iter()
                .filter_map(|rule| rule["id"].as_str())
                .collect();
            assert_eq!((rules.len(), ids.len()), (count, count));
        }
        assert_eq!(
            mixed_for("echo", RuleEffect::Hitl, 3)["rules"][0],
            json!({ "id": "hitl-the-measured", "effect": "hitl", "conditions": { "tool_name": "echo" } })
        );
        let mixed = mixed(50);
        assert_eq!(mixed["rules"][0]["id"], "allow-read-tmp");
        for effect in ["allow", "deny", "hitl"] {
            let rules = mixed["rules"].as_array().unwrap();
            assert!(rules.iter().filter(|rule| rule["effect"] == effect).count() >= 10);
        }
    }
}
