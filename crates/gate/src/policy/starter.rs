//! The policy that applies where none is given.

use super::secrets::secret_paths;

/// Writes the policy around a list of path patterns.
macro_rules! starter {
    ($first:literal, $($rest:literal,)*) => {
        concat!(
            r#"{
  "version": "1",
  "default_action": "deny",
  "rules": [
    {
      "id": "starter-allow-reads",
      "description": "tools of which everything known says that they only read, resources and prompts",
      "effect": "allow",
      "conditions": { "reads_only": "yes" }
    },
    {
      "id": "starter-allow-client-questions",
      "description": "a server may ask the person at the client, and for the client's roots",
      "effect": "allow",
      "conditions": { "mcp_method": ["elicitation/create", "roots/list", "completion/complete", "resources/subscribe", "resources/unsubscribe"] }
    },
    {
      "id": "starter-allow-models",
      "description": "models of the providers in durward.yaml",
      "effect": "allow",
      "conditions": { "resource_type": "model" }
    },
    {
      "id": "starter-ask-outward",
      "description": "whoever has read what others wrote and what is private waits for a person before anything is sent outward; labels come from durward.yaml",
      "effect": "hitl",
      "conditions": { "session_labels": "untrusted+private", "sends_outward": "yes" }
    },
    {
      "id": "starter-ask-secrets",
      "description": "places where secrets lie, for whatever would reach them",
      "effect": "hitl",
      "conditions": {
        "path_pattern": [
          "#,
            "\"", $first, "\"",
            $(",\n          \"", $rest, "\"",)*
            r#"
        ]
      }
    },
    {
      "id": "starter-ask-tools",
      "description": "any other tool waits for a person",
      "effect": "hitl",
      "conditions": { "tool_name": "*", "reads_only": "no" },
      "cache_side_effects": ["fs_read", "fs_write"]
    },
    {
      "id": "starter-ask-sampling",
      "description": "a server that wants to use the client's model waits for a person",
      "effect": "hitl",
      "conditions": { "mcp_method": "sampling/createMessage" }
    }
  ]
}
"#
        )
    };
}

/// The starter policy: reads pass but for places where secrets lie, configured models may be called, the client's own
/// person is asked by the client itself, all else waits for approval.
pub const STARTER_POLICY: &str = secret_paths!(starter);
