//! JSON in a string. Some servers read an argument that is no string in their schema as if the value stood
//! there itself (the official Python SDK does), so the paths in it are paths of the call. Whether it is a
//! string or what it holds is for the server to say, so no allow rule about paths counts on either.

use ahash::AHashSet as HashSet;

use gate::paths::canonical::Meaning;
use gate::paths::{PathArgument, Role, is_content_key};
use serde_json::Value;
use wire::WireErrorKind;
use wire::scan::{Bounds, scan_request};

use super::{Context, paths_within};

/// Most strings with JSON within one another.
pub(super) const DEPTH_MAX: usize = 8;

/// Whether the characters of a string, as they are spelled, may hold JSON with strings in it.
pub(super) fn may_hold_json(spelled: &str) -> bool {
    spelled.contains("\\\"") || spelled.contains("\\u0022")
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

/// Adds the paths in a string that holds JSON; nothing where it holds none. `depth` is how many more strings
/// within one another are read.
pub(super) fn paths_in(
    text: &str,
    tool: &str,
    context: &Context<'_>,
    depth: usize,
    out: &mut Vec<PathArgument>,
) {
    // What JSON readers take off, and a byte order mark, which some take off as well.
    let bare = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if !bare.starts_with(['[', '{', '"']) {
        return;
    }
    let Some(depth) = depth.checked_sub(1) else {
        out.push(unread(text));
        return;
    };
    match scan_request(as_argument(bare).as_bytes(), &Bounds::default()) {
        Ok(scan) => {
            let mut paths = paths_within(tool, &scan.leaves, context, depth);
            for path in &mut paths {
                path.meaning.ambiguous = true;
            }
            out.append(&mut paths);
        }
        Err(fault) if fault.kind == WireErrorKind::Syntax && !some_take(bare) => {}
        // Other readers may take it, and as what nobody knows.
        Err(_) => out.push(unread(text)),
    }
}

/// A call with this value among its arguments.
fn as_argument(value: &str) -> String {
    format!(r#"{{"params":{{"arguments":{{"":{value}}}}}}}"#)
}

/// Whether only that keeps it from being JSON which some readers take: numbers that are none, and halves of
/// surrogate pairs.
fn some_take(text: &str) -> bool {
    const TAKEN: [(&str, &str); 5] = [
        ("-Infinity", "0"),
        ("Infinity", "0"),
        ("NaN", "0"),
        ("\\ud", "\\u0"),
        ("\\uD", "\\u0"),
    ];
    if !TAKEN.iter().any(|(odd, _)| text.contains(odd)) {
        return false;
    }
    let plain = TAKEN.iter().fold(text.to_owned(), |text, (odd, plain)| {
        text.replace(odd, plain)
    });
    scan_request(as_argument(&plain).as_bytes(), &Bounds::default()).is_ok()
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
    use crate::describe::{ArgumentRoles, PathSchemas, Said};
    use gate::Caller;

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
        };
        let mut out = Vec::new();
        paths_in(text, "t", &context, DEPTH_MAX, &mut out);
        assert!(out.iter().all(|path| path.meaning.ambiguous), "{text}");
        let unread = |path: &PathArgument| path.meaning.places.is_empty();
        let is_certain = !out.iter().any(unread);
        let texts = out.into_iter().filter(|path| !path.content);
        (texts.map(|path| path.text).collect(), is_certain)
    }

    #[test]
    fn paths_are_found_by_name_and_by_looks_in_json_alone() {
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
        };
        let call = as_argument("0").replace(r#""":0"#, r#""content":"{\"path\":\"/a\"}""#);
        let scan = scan_request(call.as_bytes(), &Bounds::default()).unwrap();
        let paths = paths_within("t", &scan.leaves, &context, DEPTH_MAX);
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
    fn what_another_reader_may_take_counts_against_the_call() {
        let deep = format!("{}\"/a\"{}", "[".repeat(5_000), "]".repeat(5_000));
        let mut wrapped = "\"/a\"".to_owned();
        for _ in 0..12 {
            wrapped = serde_json::Value::from(wrapped).to_string();
        }
        let twice = r#"{"path":"/a","path":1}"#;
        let odd = [r#"{"path":"/a","n":NaN}"#, r#"{"path":"/a","x":"\ud800"}"#];
        for text in [deep.as_str(), &wrapped, twice, odd[0], odd[1]] {
            assert!(!found(text).1, "{text}");
        }
    }
}
