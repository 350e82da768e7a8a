//! Members by which a provider may answer with another model than the one that is named: OpenRouter, LiteLLM and other
//! gateways go on to these if the first one fails, and a caller can make it fail. And members within another one, at a
//! depth that no rule reads, and that a gateway takes for members of the request.

use super::body::Body;
use super::json;
use super::offered;
use wire::fold::{folded, same};
use wire::scan::Member;

/// Members that may contain such a member.
const WITHIN: [&str; 5] = [
    "extra_body",
    "provider_options",
    "gateway",
    "orq",
    "router_settings_override",
];
/// Members with the request's own members inside, to LiteLLM and the providers behind it.
const BESIDE: [&str; 4] = [
    "extra_body",
    "generation_config",
    "inference_config",
    "additional_model_request_fields",
];
/// Deepest nesting of them that is read.
const DEPTH_MAX: usize = 8;
/// Members that set for a provider, or a gateway behind, the deployment, adapter, address, account or headers to use
/// instead of those that it has for the model: LiteLLM, SGLang, vLLM, llama.cpp, TGI and OpenRouter take them over what
/// they are configured with.
const AWAY: [&str; 35] = [
    "deployment_id",
    "model_id",
    "agent_id",
    "assistant_id",
    "custom_llm_provider",
    "azure",
    "user_config",
    "model_list",
    "litellm_credential_name",
    "litellm_params",
    "api_base",
    "base_url",
    "api_key",
    "api_version",
    "organization",
    "headers",
    "extra_headers",
    "extra_query",
    "provider_specific_header",
    "aws_region_name",
    "vertex_project",
    "vertex_location",
    "preset",
    "draft_model",
    "lora",
    "lora_path",
    "lora_request",
    "adapter_id",
    "adapter_source",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "kv_transfer_params",
    "custom_logit_processor",
    "logits_processors",
];
/// The ends of such names with a gateway's own prefix, as in `tensorzero::extra_body`.
const AWAY_ENDS: [&str; 5] = [
    "extrabody",
    "extraheaders",
    "variantname",
    "variantconfig",
    "credentials",
];
/// Members of a tool or plugin that are not its own settings: their content goes to the model, or to a server of tools.
const DESCRIBES: [&str; 12] = [
    "function",
    "custom",
    "input_schema",
    "output_schema",
    "properties",
    "default",
    "examples",
    "items",
    "definitions",
    "$defs",
    "headers",
    "metadata",
];
/// Deepest settings of a tool or plugin that are read.
const SETTINGS_DEPTH_MAX: usize = 4;

/// Returns the member by which a request leaves it to its provider which model answers; `None` where `model` alone says
/// it.
#[must_use]
pub fn chooses_model(body: &Body) -> Option<String> {
    within(body, &|name, raw| {
        // OpenRouter finds a model by itself.
        let is_fallback =
            || json::text(raw).is_some_and(|text| text.eq_ignore_ascii_case("fallback"));
        is_list(name) && may_name(raw) || same(name, "route") && is_fallback()
    })
}

/// Returns the member by which a request has a gateway ask elsewhere than it is configured to.
#[must_use]
pub fn leads_away(body: &Body) -> Option<String> {
    within(body, &|name, raw| {
        // Of a form, readers take `headers[x]` for a member of `headers`.
        let name = name.split('[').next().unwrap_or(name);
        let is_end = |end: &&str| folded(name).collect::<String>().ends_with(*end);
        let is_away = AWAY.iter().any(|own| same(own, name))
            || name.contains("::") && AWAY_ENDS.iter().any(is_end);
        let says_nothing = matches!(raw, "null" | "false") || !may_name(raw) && is_holder(raw);
        is_away && !says_nothing
    })
}

/// Returns the member of a tool or plugin by which that asks another model than the one that is named, such as the one
/// that makes its images.
#[must_use]
pub fn names_another(body: &Body) -> Option<String> {
    fn names(raw: &str, depth: usize) -> Option<String> {
        json::members(raw).iter().find_map(|(name, raw)| {
            let word: String = folded(name).collect();
            if (word.ends_with("model") || word.ends_with("models"))
                && raw.starts_with(['"', '['])
                && may_name(raw)
            {
                return Some((**name).to_owned());
            }
            let is_setting = depth > 0 && !DESCRIBES.iter().any(|own| same(own, name));
            is_setting.then(|| names(raw, depth - 1))?
        })
    }
    let tools = offered::lists(body).map(|lists| lists.into_iter().map(|raw| ("tools", raw)));
    let plugins = body.members().filter(|(name, _)| same(name, "plugins"));
    // If there are more than are read, one of the rest may.
    let may = |raw: &str| raw.contains('\\') || raw.to_ascii_lowercase().contains("model");
    let Some(tools) = tools else {
        return body
            .get("input")
            .filter(|raw| may(raw))
            .map(|_| "input".to_owned());
    };
    for (list, raw) in tools.chain(plugins) {
        let Some(all) = json::all_elements(raw) else {
            return may(raw).then(|| list.to_owned());
        };
        if let Some(name) = all
            .into_iter()
            .find_map(|one| names(one, SETTINGS_DEPTH_MAX))
        {
            return Some(format!("{list}[].{name}"));
        }
    }
    None
}

/// Returns a member that is read at the top of a request, and that is in one of [`BESIDE`] as well or instead; `known`
/// are those that are read.
#[must_use]
pub fn hides(body: &Body, known: &[&str]) -> Option<String> {
    fn is_beside(name: &str) -> bool {
        BESIDE.iter().any(|own| same(own, name))
    }
    fn find(raw: &str, known: &[&str], depth: usize) -> Option<String> {
        let members: Vec<Member<'_>> = json::members(raw);
        if depth == 0 && !members.is_empty() {
            return Some(String::from("extra_body"));
        }
        members.iter().find_map(|(name, raw)| {
            if known.iter().any(|own| same(own, name)) {
                return Some((**name).to_owned());
            }
            is_beside(name).then(|| find(raw, known, depth - 1))?
        })
    }
    let mut beside = body.members().filter(|(name, _)| is_beside(name));
    beside.find_map(|(_, raw)| find(raw, known, DEPTH_MAX))
}

/// Returns the first member, also of those within others, that is one; too deep a nesting counts as one.
fn within(body: &Body, is_one: &dyn Fn(&str, &str) -> bool) -> Option<String> {
    fn find(
        name: &str,
        raw: &str,
        is_one: &dyn Fn(&str, &str) -> bool,
        depth: usize,
    ) -> Option<String> {
        if is_one(name, raw) {
            return Some(name.to_owned());
        }
        if !WITHIN.iter().any(|own| same(own, name)) {
            return None;
        }
        let inner: Vec<Member<'_>> = json::members(raw);
        if depth == 0 && !inner.is_empty() {
            return Some(name.to_owned());
        }
        inner
            .iter()
            .find_map(|(name, raw)| find(name, raw, is_one, depth - 1))
    }
    body.members()
        .find_map(|(name, raw)| find(name, raw, is_one, DEPTH_MAX))
}

/// Returns whether a member of this name lists further models. Of a form, readers take `fallbacks[]` for `fallbacks`.
fn is_list(name: &str) -> bool {
    let name = name.strip_suffix("[]").unwrap_or(name);
    same(name, "models") || folded(name).collect::<String>().contains("fallback")
}

/// Returns whether a value is a text, a list or an object, empty or not.
fn is_holder(raw: &str) -> bool {
    raw.starts_with(['"', '[', '{'])
}

/// Returns whether a value may name a model: a number, and yes or no (`disable_fallbacks`), name none.
fn may_name(raw: &str) -> bool {
    let is_empty = match raw.as_bytes().first() {
        Some(b'"') => json::text(raw).is_some_and(|text| text.is_empty()),
        Some(b'[') => json::all_elements(raw).is_some_and(|all| all.is_empty()),
        Some(b'{') => json::is_object(raw) && json::members(raw).is_empty(),
        _ => true,
    };
    !is_empty
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
            (r#""fallbacks[]":["x"]"#, "fallbacks[]"),
            (r#""models[]":["x"]"#, "models[]"),
            (r#""fallbackProviders":["x"]"#, "fallbackProviders"),
            (
                r#""context_window_fallback_dict":{"m":"x"}"#,
                "context_window_fallback_dict",
            ),
            (
                r#""router_settings_override":{"fallbacks":["x"]}"#,
                "fallbacks",
            ),
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
            r#""fallbacks":"""#,
            r#""fallbacks":{}"#,
            r#""disable_fallbacks":true,"max_fallbacks":5"#,
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
    #[test]
    fn what_leads_a_gateway_away_from_what_it_is_configured_with_is_found() {
        let read = |members: &str| {
            let text = format!(r#"{{"model":"m",{members}}}"#);
            Body::read(text.as_bytes(), &["model"]).unwrap()
        };
        for (members, expected) in [
            (r#""deployment_id":"big""#, Some("deployment_id")),
            (r#""deploymentId":"big""#, Some("deploymentId")),
            (r#""azure":true"#, Some("azure")),
            (r#""modelId":"big""#, Some("modelId")),
            (r#""extra_headers[x-a]":"b""#, Some("extra_headers[x-a]")),
            (r#""lora":[{"id":1,"scale":1}]"#, Some("lora")),
            (r#""bootstrap_port":7"#, Some("bootstrap_port")),
            (
                r#""extra_body":{"custom_llm_provider":"x"}"#,
                Some("custom_llm_provider"),
            ),
            (r#""extra_headers":{"a":"b"}"#, Some("extra_headers")),
            (
                r#""tensorzero::extra_body":[{"pointer":"/model","value":"x"}]"#,
                Some("tensorzero::extra_body"),
            ),
            (r#""azure":false,"api_base":null,"headers":{}"#, None),
            (r#""metadata":{"deployment_id":"x"},"user":"azure""#, None),
        ] {
            assert_eq!(leads_away(&read(members)).as_deref(), expected, "{members}");
        }
        let many = format!(
            r#""tools":[{}{{"mod\u0065l":"x"}}]"#,
            r#"{"type":"x"},"#.repeat(66_000)
        );
        assert_eq!(names_another(&read(&many)).as_deref(), Some("tools"));
        let none = many.replace(r"mod\u0065l", "name");
        assert_eq!(names_another(&read(&none)), None);
        for (members, expected) in [
            (
                r#""tools":[{"type":"x"},{"type":"image_generation","model":"big"}]"#,
                Some("tools[].model"),
            ),
            (
                r#""tools":[{"type":"openrouter:fusion","parameters":{"analysis_models":["a"]}}]"#,
                Some("tools[].analysis_models"),
            ),
            (
                r#""tools":[{"type":"image_generation","svg":{"model":"x"}}]"#,
                Some("tools[].model"),
            ),
            (
                r#""input":[{"type":"additional_tools","tools":[{"type":"advisor","model":"x"}]}]"#,
                Some("tools[].model"),
            ),
            (
                r#""tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"model":{"enum":["a"]}},"required":["model"]}}]"#,
                None,
            ),
            (
                r#""tools":[{"type":"mcp","headers":{"x-model":"a"}}]"#,
                None,
            ),
            (
                r#""plugins":[{"id":"fusion","Model":"x"}]"#,
                Some("plugins[].Model"),
            ),
            (
                r#""tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"model":{}}}}}]"#,
                None,
            ),
            (
                r#""tools":[{"name":"f","input_schema":{"model":"x"}}]"#,
                None,
            ),
        ] {
            assert_eq!(
                names_another(&read(members)).as_deref(),
                expected,
                "{members}"
            );
        }
    }
    #[test]
    fn a_member_that_rules_read_is_found_where_a_gateway_takes_it_for_one() {
        let found = |members: &str| {
            let text = format!(r#"{{"model":"m",{members}}}"#);
            hides(
                &Body::read(text.as_bytes(), &["model"]).unwrap(),
                &["model", "tools"],
            )
        };
        for (members, expected) in [
            (r#""extra_body":{"tools":[]}"#, Some("tools")),
            (r#""extraBody":{"Tools":[]}"#, Some("Tools")),
            (
                r#""extra_body":{"x":1,"extra_body":{"mod\u0065l":"b"}}"#,
                Some("model"),
            ),
            (r#""extra_body":{"x":{"tools":[]}}"#, None),
            (r#""x_new":{"model":1}"#, None),
            (
                r#""extra_body":{"generationConfig":{"Tools":1}}"#,
                Some("Tools"),
            ),
            (r#""inferenceConfig":{"tools":1}"#, Some("tools")),
            (r#""extra_body":"tools""#, None),
        ] {
            assert_eq!(found(members).as_deref(), expected, "{members}");
        }
        let deep = format!("{}1{}", r#"{"extra_body":"#.repeat(20), "}".repeat(20));
        assert!(found(&format!(r#""extra_body":{deep}"#)).is_some());
    }
}
