//! The argument names that tools declare, by which a name that is only like one of them is found.

use ahash::AHashMap as HashMap;

use wire::canonical::NameTree;

/// Most tools whose names are kept.
const TOOLS_MAX: usize = 4_096;
/// Most names of one tool.
const NAMES_MAX: usize = 4_096;
/// Deepest schema that is walked.
const DEPTH_MAX: usize = 32;

/// Argument names by tool.
#[derive(Debug, Default)]
pub struct ArgumentNames {
    by_tool: HashMap<String, NameTree>,
    none: NameTree,
}

impl ArgumentNames {
    /// Learns from a tool's definition.
    pub fn learn(&mut self, tool: &str, input_schema: &serde_json::Value) {
        if self.by_tool.len() < TOOLS_MAX || self.by_tool.contains_key(tool) {
            let mut names = NameTree::default();
            let mut left = NAMES_MAX;
            declare(&mut names, input_schema, DEPTH_MAX, &mut left);
            self.by_tool.insert(tool.to_owned(), names);
        }
    }

    /// What a tool declares; nothing where it is not known.
    #[must_use]
    pub fn of(&self, tool: Option<&str>) -> &NameTree {
        tool.and_then(|tool| self.by_tool.get(tool))
            .unwrap_or(&self.none)
    }
}

fn declare(names: &mut NameTree, schema: &serde_json::Value, depth: usize, left: &mut usize) {
    let (Some(schema), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
        return;
    };
    let properties = schema.get("properties").and_then(|p| p.as_object());
    for (name, property) in properties.into_iter().flatten() {
        let Some(fewer) = left.checked_sub(1) else {
            return;
        };
        *left = fewer;
        declare(names.declare(name), property, depth, left);
    }
    // Of an array the objects in it, of alternatives each.
    for (keyword, below) in schema {
        match keyword.as_str() {
            "items" | "then" | "else" => declare(names, below, depth, left),
            "prefixItems" | "anyOf" | "oneOf" | "allOf" => {
                for below in below.as_array().into_iter().flatten() {
                    declare(names, below, depth, left);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::shapes;
    use serde_json::json;

    #[test]
    fn names_that_are_only_like_declared_ones_are_refused() {
        let mut names = ArgumentNames::default();
        let edits =
            json!({"type": "array", "items": {"properties": {"oldText": {}, "old_text": {}}}});
        let schema = json!({"properties": {"path": {}, "edits": edits}});
        names.learn("t", &schema);
        let cases = [
            (r#"{"path":"a"}"#, true),
            (r#"{"Path":"a"}"#, false),
            (r#"{"path":"a","Path":"b"}"#, false),
            (r#"{"edits":[{"oldText":1,"old_text":2}]}"#, true),
            (r#"{"edits":[{"OldText":1}]}"#, false),
            (r#"{"other":1}"#, true),
            (r#"{"other":1,"Other":2}"#, false),
        ];
        for (arguments, fits) in cases {
            let frame = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            let canonical = shapes::of_client(frame.as_bytes()).unwrap();
            let checked = canonical.arguments_are(names.of(Some("t")));
            assert_eq!(checked.is_ok(), fits, "{arguments}");
        }
    }
}
