//! What is known of a server's tools: which may be called again without harm, and which arguments go
//! into headers (`x-mcp-header`, SEP-2243).

use std::collections::HashMap;

use serde_json::Value;

use crate::message::mirrored::{self, Mirrored};

/// Most tools that are remembered.
const TOOLS_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Tools {
    known: HashMap<String, Tool>,
}

#[derive(Debug, Default)]
struct Tool {
    repeatable: bool,
    headers: Vec<Mirrored>,
}

impl Tools {
    /// Learns from the result of `tools/list`.
    pub(super) fn learn(&mut self, result: &str) {
        let Ok(result) = serde_json::from_str::<Value>(result) else {
            return;
        };
        let tools = result.get("tools").and_then(Value::as_array);
        for tool in tools.into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else {
                continue;
            };
            if self.known.len() < TOOLS_MAX || self.known.contains_key(name) {
                self.known.insert(name.to_owned(), Tool::of(tool));
            }
        }
    }

    /// Whether the server says of this tool that calling it twice does no harm.
    pub(super) fn is_repeatable(&self, tool: &str) -> bool {
        self.known.get(tool).is_some_and(|tool| tool.repeatable)
    }

    /// The headers for a call of this tool, by name and unencoded value.
    pub(super) fn mirrored(&self, tool: &str, arguments: &str) -> Vec<(String, String)> {
        let headers = match self.known.get(tool) {
            Some(tool) if !tool.headers.is_empty() => &tool.headers,
            _ => return Vec::new(),
        };
        let Ok(arguments) = serde_json::from_str::<Value>(arguments) else {
            return Vec::new();
        };
        headers
            .iter()
            .filter_map(|mirrored| Some((mirrored.header(), mirrored.value(&arguments)?)))
            .collect()
    }
}

impl Tool {
    fn of(tool: &Value) -> Self {
        let hint = |name: &str| {
            let hint = tool.get("annotations").and_then(|hints| hints.get(name));
            hint.and_then(Value::as_bool) == Some(true)
        };
        // A declaration that breaks the rules makes all of the tool's void.
        let headers = tool.get("inputSchema").and_then(mirrored::declared);
        Self {
            repeatable: hint("readOnlyHint") || hint("idempotentHint"),
            headers: headers.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mirrored(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
        let mut tools = Tools::default();
        tools.learn(&json!({"tools": [{"name": "t", "inputSchema": schema}]}).to_string());
        let mut found = tools.mirrored("t", &arguments.to_string());
        found.sort();
        found
    }

    #[test]
    fn declared_arguments_go_into_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "deep": {"type": "object", "properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
            "other": {"type": "string"}}});
        let cases = [
            (
                json!({"region": "eu\r\nX: y", "n": 7, "deep": {"on": true}, "other": "x"}),
                vec![
                    ("mcp-param-N", "7"),
                    ("mcp-param-On", "true"),
                    ("mcp-param-Region", "eu\r\nX: y"),
                ],
            ),
            (json!({"region": null, "n": 1.5, "deep": []}), vec![]),
            (json!([]), vec![]),
        ];
        for (arguments, expect) in cases {
            let found = mirrored(&schema, &arguments);
            let found: Vec<(&str, &str)> = found
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(found, expect, "{arguments}");
        }
    }

    #[test]
    fn declarations_against_the_rules_void_all_of_the_tool() {
        let good = json!({"type": "string", "x-mcp-header": "Good"});
        let bad = [
            json!({"type": "number", "x-mcp-header": "A"}),
            json!({"type": "object", "x-mcp-header": "A"}),
            json!({"type": "string", "x-mcp-header": ""}),
            json!({"type": "string", "x-mcp-header": "A B"}),
            json!({"type": "string", "x-mcp-header": "A\r\nX: y"}),
            json!({"type": "string", "x-mcp-header": "gOOD"}),
            json!({"type": "string", "x-mcp-header": 7}),
        ];
        for bad in bad {
            let schema = json!({"properties": {"a": good, "b": bad}});
            let found = mirrored(&schema, &json!({"a": "x", "b": "y"}));
            assert_eq!(found, [], "{bad}");
        }
        // What cannot be reached by `properties` alone is not looked at.
        let schema = json!({"properties": {"l": {"type": "array", "items": good}}});
        assert_eq!(mirrored(&schema, &json!({"l": ["x"]})), []);
    }

    #[test]
    fn only_what_the_server_says_is_repeatable() {
        let mut tools = Tools::default();
        tools.learn(
            &json!({"tools": [
                {"name": "read", "annotations": {"readOnlyHint": true}},
                {"name": "put", "annotations": {"idempotentHint": true}},
                {"name": "write", "annotations": {"readOnlyHint": false}},
                {"name": "odd", "annotations": {"readOnlyHint": "true"}},
                {"name": "plain"}, {"no": "name"}, 7]})
            .to_string(),
        );
        tools.learn("garbage");
        let cases = [
            ("read", true),
            ("put", true),
            ("write", false),
            ("odd", false),
            ("plain", false),
            ("unknown", false),
        ];
        for (tool, expect) in cases {
            assert_eq!(tools.is_repeatable(tool), expect, "{tool}");
        }
    }

    #[test]
    fn no_more_tools_are_remembered_than_the_bound() {
        let mut tools = Tools::default();
        let many: Vec<Value> = (0..TOOLS_MAX + 10)
            .map(|n| json!({"name": format!("t{n}")}))
            .collect();
        tools.learn(&json!({"tools": many}).to_string());
        assert_eq!(tools.known.len(), TOOLS_MAX);
    }
}
