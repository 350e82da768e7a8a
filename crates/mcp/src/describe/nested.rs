//! Lists and maps in a string. Some servers parse an argument that is no string in their schema as if the value stood
//! there itself (the official Python SDK does), so the paths in it are paths of the call. Whether it is a
//! string or what it holds is for the server to say, so no allow rule about paths counts on either.

use ahash::AHashSet as HashSet;

use gate::paths::canonical::Meaning;
use gate::paths::reach::read_literals;
use gate::paths::{
    PathArgument, Role, StepBudget, is_content_key, looks_like_path, meanings_within,
};
use serde_json::Value;

use super::{Context, Said, role_of_argument};

/// Most strings with lists or maps within one another.
pub(super) const DEPTH_MAX: usize = 8;

/// What reading the strings of a call takes.
#[derive(Clone, Copy)]
pub(super) struct Reading<'r, 'c> {
    /// The tool that is called.
    pub tool: &'r str,
    /// What is known beside the request.
    pub context: &'r Context<'c>,
    /// What is left of the call's budget.
    pub budget: &'r StepBudget,
}

/// What is known of the string that others are read from.
#[derive(Debug, Clone, Copy)]
pub(super) struct OuterString {
    /// The part that its argument's name gives it, which what it holds inherits.
    pub role: Option<Role>,
    /// It stands under a content key.
    pub is_content: bool,
}

/// The arguments of a tool that are called like contents, and of which its schema does not say that they are texts: a
/// server may take what a string holds for the object or list that it wants there.
pub(super) fn structured_contents(schema: &Value) -> HashSet<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    let structured =
        properties.filter(|(name, schema)| is_content_key(name) && !is_plain(schema, DEPTH_MAX));
    structured.map(|(name, _)| name.clone()).collect()
}

/// Whether a schema takes nothing but texts, numbers, truth values and null.
fn is_plain(schema: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    let is_scalar = |name: &Value| {
        let name = name.as_str();
        name.is_some_and(|name| name != "object" && name != "array")
    };
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().all(is_scalar),
        Some(name) => is_scalar(name),
        None => ["anyOf", "oneOf"].iter().any(|of| {
            let options = schema.get(of).and_then(Value::as_array);
            options.is_some_and(|all| all.iter().all(|option| is_plain(option, depth)))
        }),
    }
}

/// Adds the paths in a string that some server parses as a list or a map; nothing if none does. `depth` is how many
/// more strings within one another are read.
pub(super) fn paths_in(
    text: &str,
    outer: OuterString,
    reading: Reading<'_, '_>,
    depth: usize,
    out: &mut Vec<PathArgument>,
) {
    let Reading {
        tool,
        context,
        budget,
    } = reading;
    let Some(found) = read_literals(text) else {
        return;
    };
    if !budget.spend(u64::try_from(text.len()).unwrap_or(u64::MAX)) {
        out.push(unread(text));
        return;
    }
    let Some(depth) = depth.checked_sub(1) else {
        out.push(unread(text));
        return;
    };
    if found.is_truncated {
        out.push(unread(text));
    }
    for literal in found.strings {
        let key = literal.key.as_deref().filter(|_| !literal.is_name);
        let said = key.and_then(|key| context.roles.of(tool, key));
        let is_content = match (key, said) {
            (_, Some(Said::Content)) => true,
            (Some(key), None) => is_content_key(key),
            (None, _) => outer.is_content && !literal.is_name,
            (_, Some(Said::Path(_))) => false,
        };
        let own = key.and_then(|key| role_of_argument(tool, key, context));
        let role = own.or(outer.role.filter(|_| !literal.is_name && !is_content));
        let inner = OuterString { role, is_content };
        if !is_content {
            paths_in(&literal.text, inner, reading, depth, out);
        }
        let role = role.or_else(|| looks_like_path(&literal.text).then_some(Role::Shape));
        if let Some(role) = role {
            out.push(PathArgument {
                role,
                content: is_content,
                meaning: Meaning {
                    ambiguous: true,
                    ..meanings_within(&literal.text, context.view, budget)
                },
                text: literal.text.into_owned(),
            });
        }
    }
}

/// A string of which nobody here knows what a server makes of it.
fn unread(text: &str) -> PathArgument {
    PathArgument {
        text: text.chars().take(256).collect(),
        role: Role::Shape,
        content: false,
        meaning: Meaning {
            uncertain: true,
            ambiguous: true,
            ..Meaning::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{ArgumentRoles, PathSchemas, Said, paths_of};
    use gate::Caller;
    use wire::scan::{Bounds, scan_request};

    /// The paths in a string, and whether it is certain that there are no more.
    fn found(text: &str) -> (Vec<String>, bool) {
        let schemas = PathSchemas::default();
        let context = Context {
            backend_id: "s",
            caller: &Caller::local("u"),
            view: None,
            schemas: &schemas,
            roles: &ArgumentRoles::default(),
            definitions: None,
            builtin: None,
            inline: None,
        };
        let mut out = Vec::new();
        let outer = OuterString {
            role: None,
            is_content: false,
        };
        let reading = Reading {
            tool: "t",
            context: &context,
            budget: &StepBudget::for_input(text.len()),
        };
        paths_in(text, outer, reading, DEPTH_MAX, &mut out);
        assert!(out.iter().all(|path| path.meaning.ambiguous), "{text}");
        let unread = |path: &PathArgument| path.meaning.places.is_empty();
        let is_certain = !out.iter().any(unread);
        let texts = out.into_iter().filter(|path| !path.content);
        (texts.map(|path| path.text).collect(), is_certain)
    }

    #[test]
    fn paths_are_found_by_name_and_by_looks_in_lists_and_maps_alone() {
        let cases: [(&str, &[&str]); 11] = [
            (r#"{"path":"/a"}"#, &["/a"]),
            (" \n{\"p\\u0061th\":\"/a\"}\t", &["/a"]),
            ("\u{feff}[\"/a\",\"b\",1]", &["/a"]),
            (r#"{"x":[{"y":"/a"}],"text":"/b"}"#, &["/a"]),
            (r#"{"/a":true}"#, &["/a"]),
            (r#""/a""#, &["/a"]),
            (r#""{\"x\":\"/a\"}""#, &["/a"]),
            (r#"{"x":"word","n":[1,null,true]}"#, &[]),
            ("{ isNaN(x) ? \"/a\" : \"\\ud83d\" }", &[]),
            ("/a", &[]),
            ("", &[]),
        ];
        for (text, paths) in cases {
            let expect: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(found(text), (expect, true), "{text}");
        }
    }

    /// The paths of a call of a tool with this schema of `content`.
    fn in_content(schema: &Value, said: Option<&str>) -> Vec<String> {
        let mut schemas = PathSchemas::default();
        let schema = serde_json::json!({"type": "object", "properties": {"content": schema}});
        schemas.learn("t", &schema);
        let mut roles = ArgumentRoles::default();
        if let Some(key) = said {
            roles.say(key, Said::Content);
        }
        let context = Context {
            backend_id: "s",
            caller: &Caller::local("u"),
            view: None,
            schemas: &schemas,
            roles: &roles,
            definitions: None,
            builtin: None,
            inline: None,
        };
        let call = r#"{"params":{"arguments":{"content":"{\"path\":\"/a\"}"}}}"#;
        let scan = scan_request(call.as_bytes(), &Bounds::default()).unwrap();
        let paths = paths_of("t", &scan.leaves, &context, &StepBudget::for_input(0));
        paths.into_iter().map(|path| path.text).collect()
    }

    #[test]
    fn a_content_is_a_text_where_its_schema_says_so_and_else_what_it_holds() {
        use serde_json::json;
        for plain in [
            json!({"type": "string"}),
            json!({"type": ["string", "null"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ] {
            assert!(in_content(&plain, None).is_empty(), "{plain}");
        }
        for more in [
            json!({"type": "object"}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"$ref": "#/$defs/Place"}),
            json!({"anyOf": [{"type": "string"}, {"type": "object"}]}),
            json!({"title": "Content"}),
            json!(true),
        ] {
            assert_eq!(in_content(&more, None), ["/a"], "{more}");
            let said = in_content(&more, Some("content"));
            assert!(said.is_empty(), "the operator knows: {more}");
        }
    }

    #[test]
    fn what_lenient_parsers_alone_take_is_found_too() {
        let deep = format!("{}\"/a\"{}", "[".repeat(3_000), "]".repeat(3_000));
        for text in [
            deep.as_str(),
            r#"{"path":"/a","path":1}"#,
            r#"{"path":"/a","n":NaN}"#,
            r#"{"path":"/a","x":"\ud800"}"#,
            r#"["\u002fa","\ud800",1e999]"#,
            "['/a']",
            "('/a',)",
            "[/a]",
            "- /a",
            "x: /a",
        ] {
            assert!(found(text).0.contains(&"/a".to_owned()), "{text}");
        }
        let mut wrapped = "\"/a\"".to_owned();
        for _ in 0..12 {
            wrapped = serde_json::Value::from(wrapped).to_string();
        }
        let deeper = format!("{}\"/a\"{}", "[".repeat(5_000), "]".repeat(5_000));
        for text in [&wrapped, &deeper] {
            assert!(!found(text).1, "{text}");
        }
    }

    #[test]
    fn what_a_named_string_holds_inherits_its_part() {
        let schemas = PathSchemas::default();
        let context = Context {
            backend_id: "s",
            caller: &Caller::local("u"),
            view: None,
            schemas: &schemas,
            roles: &ArgumentRoles::default(),
            definitions: None,
            builtin: None,
            inline: None,
        };
        let frame =
            r#"{"params":{"arguments":{"source":" [\"a/b\"]","dest":"{\"k\":[\"c/d\"]}"}}}"#;
        let scan = scan_request(frame.as_bytes(), &Bounds::default()).unwrap();
        let paths = paths_of("t", &scan.leaves, &context, &StepBudget::for_input(0));
        let of = |text: &str| {
            paths
                .iter()
                .find(|path| path.text == text)
                .map(|path| path.role)
        };
        assert_eq!(of("a/b"), Some(Role::Source));
        assert_eq!(of("c/d"), Some(Role::Destination));
        assert!(paths.iter().all(|path| path.meaning.ambiguous));
    }
}
