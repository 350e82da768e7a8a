//! Members by which a provider may answer with another model than the one that is named: OpenRouter, LiteLLM and other
//! gateways go on to these where the first one fails, and a caller can make it fail.

use super::body::Body;
use super::json;
use crate::fold::same;
use crate::scan::Member;

/// Members that name further models.
const LISTS: [&str; 5] = [
    "models",
    "fallbacks",
    "fallback_models",
    "context_window_fallbacks",
    "content_policy_fallbacks",
];
/// Members that such a list may stand in.
const WITHIN: [&str; 4] = ["extra_body", "provider_options", "gateway", "orq"];
/// Deepest nesting of them that is read.
const DEPTH_MAX: usize = 8;

/// The member by which a request leaves it to its provider which model answers; `None` where `model` alone says it.
#[must_use]
pub fn chooses_model(body: &Body) -> Option<String> {
    body.members()
        .find_map(|(name, raw)| chooses(name, raw, DEPTH_MAX))
}

fn chooses(name: &str, raw: &str, depth: usize) -> Option<String> {
    let is_one_of = |names: &[&str]| names.iter().any(|own| same(own, name));
    // OpenRouter finds a model by itself.
    let is_fallback = || json::text(raw).is_some_and(|text| text.eq_ignore_ascii_case("fallback"));
    if is_one_of(&LISTS) && !is_empty(raw) || is_one_of(&["route"]) && is_fallback() {
        return Some(name.to_owned());
    }
    if !is_one_of(&WITHIN) {
        return None;
    }
    let inner: Vec<Member<'_>> = json::members(raw);
    if depth == 0 && !inner.is_empty() {
        return Some(name.to_owned());
    }
    inner
        .iter()
        .find_map(|(name, raw)| chooses(name, raw, depth - 1))
}

fn is_empty(raw: &str) -> bool {
    raw == "null"
        || raw.starts_with('[') && json::all_elements(raw).is_some_and(|all| all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_names_further_models_is_found() {
        let found = |members: &str| {
            let text = format!(r#"{{"model":"m",{members}}}"#);
            chooses_model(&Body::read(text.as_bytes(), &["model"]).unwrap())
        };
        for (members, expected) in [
            (r#""models":["a/b"]"#, "models"),
            (r#""Models":["a/b"]"#, "Models"),
            (r#""mod\u0065ls":["a/b"]"#, "models"),
            (r#""fallbacks":[{"model":"x","messages":[]}]"#, "fallbacks"),
            (r#""fallbacks":"x""#, "fallbacks"),
            (
                r#""context_window_fallbacks":[{"m":["x"]}]"#,
                "context_window_fallbacks",
            ),
            (r#""route":"fallback""#, "route"),
            (r#""extra_body":{"models":["a/b"]}"#, "models"),
            (
                r#""providerOptions":{"gateway":{"models":["a/b"]}}"#,
                "models",
            ),
            (r#""orq":{"fallbacks":[{"model":"x"}]}"#, "fallbacks"),
        ] {
            assert_eq!(found(members).as_deref(), Some(expected), "{members}");
        }
        for members in [
            r#""models":null"#,
            r#""models":[ ]"#,
            r#""route":"other""#,
            r#""messages":[{"role":"user","content":"models"}]"#,
            r#""metadata":{"models":["a"]}"#,
            r#""tools":[{"function":{"name":"f","parameters":{"properties":{"models":{}}}}}]"#,
        ] {
            assert_eq!(found(members), None, "{members}");
        }
        let deep = format!(
            r#"{}"extra_body":{{"models":["x"]}}{}"#,
            r#""extra_body":{"#.repeat(20),
            "}".repeat(20)
        );
        assert!(found(&deep).is_some());
    }
}
