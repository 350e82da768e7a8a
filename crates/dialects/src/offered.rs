//! Tools and images in a request, read as the most lenient provider would: names are compared as [`fold`](wire::fold)
//! does, and a part that any of several readers could take for an image is one.

use std::borrow::Cow;

use super::body::Body;
use super::endpoint::Endpoint;
use super::json;
use super::request_members;
use wire::fold::same;
use wire::scan::Member;

/// Types of parts that are images, with any other members.
const IMAGES: [&str; 7] = [
    "image",
    "image_url",
    "input_image",
    "image_file",
    "image_embeds",
    "image_pil",
    "computer_screenshot",
];
/// Members of parts that are images with any type; vLLM wants none.
const BY_NAME: [&str; 4] = ["image_url", "image_embeds", "image_pil", "image_file"];
/// Members that say of which kind a file is.
const KINDS: [&str; 3] = ["format", "mime_type", "media_type"];
/// Types of tools that are known by their names alone.
const NAMED: [&str; 2] = ["function", "custom"];
/// A provider's own tools outside of any list of tools, and the names that they count as. Providers that do not know
/// one ignore it, and a gateway takes it to one that does.
const BESIDE: [(&str, &str); 9] = [
    ("web_search_options", "web_search"),
    ("mcp_servers", "mcp"),
    ("search_parameters", "web_search"),
    ("enable_search", "web_search"),
    ("plugins", "plugins"),
    ("data_sources", "data_sources"),
    ("connectors", "connectors"),
    ("compound_custom", "compound_custom"),
    ("vector_store_ids", "file_search"),
];
/// Returns the names of those.
#[cfg(test)]
pub(super) fn beside() -> impl Iterator<Item = &'static str> {
    BESIDE.iter().map(|(name, _)| *name)
}

/// Types of Anthropic's own tools with a name that is not their prefix.
const NAMED_OTHERWISE: [(&str, &str); 2] = [("text_editor_", "str_replace_"), ("mcp_toolset", "")];
/// Lists of tools that lie within another member.
const WITHIN: [(&str, &str); 2] = [
    ("chat_template_kwargs", "tools"),
    ("chat_template_kwargs", "functions"),
];
/// Deepest nesting of parts that is read.
const PARTS_DEPTH_MAX: usize = 12;
/// Deepest nesting of tools in tools that is read.
const TOOLS_DEPTH_MAX: usize = 4;

impl Endpoint {
    /// Returns the names of the tools that a request offers the model, each by every name that a provider may read; one
    /// that has no name counts by its type. `None` if they cannot be known.
    #[must_use]
    pub fn tools_offered(self, body: &Body) -> Option<Vec<String>> {
        tools(self, body)
    }

    /// Returns whether a request shows the model an image. `None` if that cannot be known.
    #[must_use]
    pub fn has_images(self, body: &Body) -> Option<bool> {
        images(self, body)
    }
}

/// Returns whether a request refers to a prompt that its provider keeps: its tools and images are unknown here.
fn is_kept(endpoint: Endpoint, body: &Body) -> bool {
    endpoint == Endpoint::Responses && body.get("prompt").is_some()
}

/// Returns the lists of tools of a request: those at its top, and those that items of its input bring along
/// (`additional_tools`, `tool_search_output`). `None` if there are more items than are read.
pub(super) fn lists(body: &Body) -> Option<Vec<&str>> {
    const WORDS: [&str; 4] = ["tools", "Tools", "TOOLS", "\\u"];
    let mut lists: Vec<&str> = ["tools", "functions", "additional_tools"]
        .into_iter()
        .filter_map(|list| body.get(list))
        .collect();
    for (member, name) in WITHIN {
        lists.extend(request_members::within(body, member, name));
    }
    let has_word = |raw: &str| WORDS.iter().any(|word| raw.contains(word));
    let messages = body.get("messages").unwrap_or_default();
    if has_word(messages) {
        for message in json::all_elements(messages)? {
            let own = json::members(message).into_iter();
            lists.extend(
                own.filter(|(name, _)| same(name, "tools"))
                    .map(|(_, raw)| raw),
            );
        }
    }
    let input = body.get("input").unwrap_or_default();
    if !has_word(input) {
        return Some(lists);
    }
    for item in json::all_elements(input)? {
        let members = json::members(item);
        // A server's earlier list; the server itself is offered separately.
        let kinds: Vec<&str> = members_named(&members, "type").collect();
        let is_listing = kinds == ["\"mcp_list_tools\""];
        let own = members.into_iter().filter(|(name, _)| same(name, "tools"));
        lists.extend(own.filter(|_| !is_listing).map(|(_, raw)| raw));
    }
    Some(lists)
}

/// Returns the names of the tools that a request offers: each by every name that a provider may read, one that has none
/// by its type. `None` if they cannot be known.
fn tools(endpoint: Endpoint, body: &Body) -> Option<Vec<String>> {
    let speaks = matches!(
        endpoint,
        Endpoint::Chat | Endpoint::Responses | Endpoint::Messages
    );
    if is_kept(endpoint, body) || speaks && request_members::has_unknown(body) {
        return None;
    }
    let mut out = Vec::new();
    for list in lists(body)? {
        // Some read an object as the list of its values, and a text as the JSON in it.
        let text = json::text(list);
        if text.is_some_and(|text| text.trim_start().starts_with(['[', '{'])) {
            return None;
        }
        let listed = json::members(list).into_iter().map(|(_, raw)| raw);
        for tool in json::all_elements(list)?.into_iter().chain(listed) {
            tool_names(endpoint, tool, TOOLS_DEPTH_MAX, &mut out)?;
        }
    }
    for (member, name) in BESIDE {
        let is_offered = |raw| !["[]", "false"].contains(&raw);
        if body.get(member).is_some_and(is_offered) {
            out.push(name.to_owned());
        }
    }
    for plugin in json::all_elements(body.get("plugins").unwrap_or_default())? {
        let ids = json::members(plugin);
        let ids = members_named(&ids, "id").filter_map(json::text);
        out.extend(ids.map(Cow::into_owned));
    }
    out.dedup();
    Some(out)
}

/// Returns the members of this name, as a lenient reader compares names.
fn members_named<'m>(members: &'m [Member<'m>], name: &'m str) -> impl Iterator<Item = &'m str> {
    let found = members.iter().filter(move |(own, _)| same(own, name));
    found.map(|(_, raw)| *raw)
}

fn tool_names(endpoint: Endpoint, tool: &str, depth: usize, out: &mut Vec<String>) -> Option<()> {
    let members = json::members(tool);
    let before = out.len();
    let texts = |members: &[Member<'_>], name| -> Vec<String> {
        let texts = members_named(members, name).filter_map(json::text);
        texts.map(Cow::into_owned).collect()
    };
    out.extend(texts(&members, "name"));
    for inner in NAMED
        .into_iter()
        .flat_map(|name| members_named(&members, name))
    {
        out.extend(texts(&json::members(inner), "name"));
    }
    for list in members_named(&members, "tools") {
        for inner in json::all_elements(list)? {
            if depth == 0 {
                return None;
            }
            tool_names(endpoint, inner, depth - 1, out)?;
        }
    }
    let names: Vec<String> = out.get(before..).unwrap_or_default().to_vec();
    for kind in texts(&members, "type") {
        // Tools of Anthropic's own have a type and a name that is fixed; a gateway goes by the type.
        let is_fixed = matches!(endpoint, Endpoint::Messages | Endpoint::CountTokens)
            && names.iter().all(|name| is_name_of(name, &kind));
        if names.is_empty() || !NAMED.contains(&kind.as_str()) && !is_fixed {
            out.push(kind);
        }
    }
    if names.is_empty() {
        // Gemini's own tools are members: `{"googleSearch": {}}`.
        let own = members.iter().filter(|(name, _)| !same(name, "type"));
        out.extend(own.map(|(name, _)| (**name).to_owned()));
    }
    Some(())
}

/// Returns whether a tool of this type of Anthropic's own has this name.
fn is_name_of(name: &str, kind: &str) -> bool {
    let is_other = |(begin, own): &(&str, &str)| kind.starts_with(begin) && name.starts_with(own);
    kind.starts_with(name) || NAMED_OTHERWISE.iter().any(is_other)
}

/// Returns whether a request shows the model an image. `None` if that cannot be known.
fn images(endpoint: Endpoint, body: &Body) -> Option<bool> {
    if matches!(endpoint, Endpoint::ImageEdits | Endpoint::ImageVariations) {
        return Some(true);
    }
    let turns: &[&str] = match endpoint {
        Endpoint::Chat => &["messages"],
        Endpoint::Messages | Endpoint::CountTokens => &["messages", "system"],
        Endpoint::Responses => &["input"],
        _ => return Some(false),
    };
    let turns = turns.iter().filter_map(|name| body.get(name));
    match turns
        .into_iter()
        .any(|turn| is_image(turn, PARTS_DEPTH_MAX))
    {
        true => Some(true),
        false if is_kept(endpoint, body) => None,
        false => Some(false),
    }
}

/// Returns whether a part of a message is an image, or has one among its own parts. A part that is nested too deeply to
/// be read may be one.
fn is_image(part: &str, depth: usize) -> bool {
    const WORDS: [&str; 5] = ["image", "Image", "IMAGE", "screenshot", "\\u"];
    if !WORDS.iter().any(|word| part.contains(word)) {
        return false;
    }
    if part.starts_with('"') {
        const DATA: &str = "data:image/";
        return json::text(part).is_none_or(|text| {
            let begin = text.get(..DATA.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(DATA))
        });
    }
    if depth == 0 {
        return true;
    }
    // One of more than are read may be one.
    let elements = json::all_elements(part);
    if elements.is_none_or(|all| all.into_iter().any(|inner| is_image(inner, depth - 1))) {
        return true;
    }
    let members = json::members(part);
    let mut types = members_named(&members, "type").filter_map(json::text);
    if types.any(|kind| IMAGES.iter().any(|image| same(image, &kind))) {
        return true;
    }
    // The arguments of a tool call are text to it.
    let is_call = members_named(&members, "type").any(|kind| kind == "\"tool_use\"");
    let is_kind = |inner: &str| {
        let begin = json::text(inner).and_then(|text| Some(text.get(..6)?.to_ascii_lowercase()));
        begin.is_some_and(|begin| begin == "image/")
    };
    members.iter().any(|(name, inner)| {
        BY_NAME.iter().any(|image| same(image, name))
            || KINDS.iter().any(|kind| same(kind, name)) && is_kind(inner)
            || !(is_call && name == "input") && is_image(inner, depth - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(endpoint: Endpoint, text: &str) -> Body {
        Body::read(text.as_bytes(), endpoint.known_members()).unwrap()
    }

    #[test]
    fn tools_are_found_wherever_a_provider_reads_them_and_unknown_members_may_hold_some() {
        let offered = |text: &str| {
            tools(
                Endpoint::Chat,
                &body(Endpoint::Chat, &format!("{{{text}}}")),
            )
        };
        let tool = r#"{"type":"function","function":{"name":"shell"}}"#;
        for place in [
            format!(r#""chat_template_kwargs":{{"tools":[{tool}]}}"#),
            format!(r#""messages":[{{"role":"developer","content":"x","tools":[{tool}]}}]"#),
            format!(r#""tools":{{"0":{tool}}}"#),
            format!(r#""additional_tools":[{tool}]"#),
        ] {
            assert_eq!(offered(&place).unwrap(), ["shell"], "{place}");
        }
        for unknown in [
            r#""tools":"[{\"type\":\"function\"}]""#,
            r#""invented_tomorrow":[]"#,
            r#""toolConfig":{"tools":[{"toolSpec":{"name":"shell"}}]}"#,
        ] {
            assert_eq!(offered(unknown), None, "{unknown}");
        }
        assert_eq!(
            offered(
                r#""min_p":0.1,"chat_template_kwargs":{"enable_thinking":false},"invented":null"#
            ),
            Some(Vec::new())
        );
    }

    #[test]
    fn a_tool_counts_by_every_name_that_a_provider_may_read() {
        use Endpoint::{Chat, Messages, Responses};
        let cases: [(Endpoint, &str, &[&str]); 22] = [
            (
                Responses,
                r#""input":[{"type":"additional_tools","tools":[{"type":"mcp","server_url":"x"}]},{"type":"mcp_list_tools","tools":[{"name":"old"}]},{"type":"additional_tools","Type":"mcp_list_tools","tools":[{"name":"a"}]}]"#,
                &["mcp", "server_url", "a"],
            ),
            (
                Responses,
                r#""input":[{"type":"tool_search_output","t\u006fols":[{"type":"function","name":"a"}]}]"#,
                &["a"],
            ),
            (Chat, r#""tools":[{"googleSearch":{}}]"#, &["googleSearch"]),
            (
                Chat,
                r#""tools":[{"type":"function","code_execution":{}}]"#,
                &["function", "code_execution"],
            ),
            (Chat, r#""mcp_servers":[{"url":"x"}]"#, &["mcp"]),
            (Chat, r#""plugins":[{"id":"web"}]"#, &["plugins", "web"]),
            (
                Responses,
                r#""search_parameters":{"mode":"on"}"#,
                &["web_search"],
            ),
            (
                Messages,
                r#""tools":[{"type":"web_search_20250305","name":"harmless"}]"#,
                &["harmless", "web_search_20250305"],
            ),
            (
                Messages,
                r#""tools":[{"type":"text_editor_20250124","name":"str_replace_editor"},{"type":"web_search_20250305","name":"web_search"}]"#,
                &["str_replace_editor", "web_search"],
            ),
            (Chat, r#""enable_search":false,"plugins":[]"#, &[]),
            (
                Chat,
                r#""tools":[{"type":"function","function":{"name":"a"}}]"#,
                &["a"],
            ),
            (Chat, r#""functions":[{"name":"a"}]"#, &["a"]),
            (
                Chat,
                r#""tools":[{"type":"custom","custom":{"name":"a"}}]"#,
                &["a"],
            ),
            (
                Chat,
                r#""tools":[{"function":{"name":"a","Name":"b"}}]"#,
                &["a", "b"],
            ),
            (
                Chat,
                r#""tools":[{"function":{"name":"a"},"Function":{"name":"b"}}]"#,
                &["a", "b"],
            ),
            (Chat, r#""web_search_options":{}"#, &["web_search"]),
            (
                Responses,
                r#""tools":[{"type":"function","name":"b","function":{"name":"a"}}]"#,
                &["b", "a"],
            ),
            (
                Responses,
                r#""tools":[{"type":"mcp","name":"a"}]"#,
                &["a", "mcp"],
            ),
            (
                Responses,
                r#""tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"}]}]"#,
                &["n", "a", "namespace"],
            ),
            (
                Messages,
                r#""tools":[{"type":"bash_20250124","name":"bash"},{"name":"a"}]"#,
                &["bash", "a"],
            ),
            (Messages, r#""mcp_servers":[{"url":"x"}]"#, &["mcp"]),
            (Messages, r#""mcp_servers":[],"tools":"no""#, &[]),
        ];
        for (endpoint, members, expect) in cases {
            let found = tools(endpoint, &body(endpoint, &format!("{{{members}}}")));
            assert_eq!(found.unwrap(), expect, "{members}");
        }
        let kept = body(Responses, r#"{"prompt":{"id":"p"},"input":"x"}"#);
        assert_eq!(
            (tools(Responses, &kept), images(Responses, &kept)),
            (None, None)
        );
        let nested = format!(
            "{}{{\"name\":\"a\"}}{}",
            r#"{"tools":["#.repeat(6),
            "]}".repeat(6)
        );
        let deep = body(Responses, &format!(r#"{{"tools":[{nested}]}}"#));
        assert_eq!(tools(Responses, &deep), None);
    }

    #[test]
    fn what_stands_behind_more_than_is_read_is_not_known() {
        let many = |one: &str, last: &str| format!("[{}{last}]", format!("{one},").repeat(66_000));
        let offered = many(
            r#"{"type":"x"}"#,
            r#"{"type":"function","function":{"name":"a"}}"#,
        );
        let text = format!(r#"{{"tools":{offered}}}"#);
        assert_eq!(tools(Endpoint::Chat, &body(Endpoint::Chat, &text)), None);
        let text = format!(r#"{{"tools":[{{"name":"n","tools":{offered}}}]}}"#);
        let asked = body(Endpoint::Responses, &text);
        assert_eq!(tools(Endpoint::Responses, &asked), None);
        let shown = many(r#"{"type":"text"}"#, r#"{"type":"image"}"#);
        let text = format!(r#"{{"messages":[{{"content":{shown}}}]}}"#);
        let asked = body(Endpoint::Chat, &text);
        assert_eq!(images(Endpoint::Chat, &asked), Some(true));
    }

    #[test]
    fn an_image_is_one_wherever_it_stands_and_a_word_is_none() {
        use Endpoint::{Chat, Messages, Responses};
        for (endpoint, turns, expect) in [
            (
                Chat,
                r#""messages":[{"content":[{"image_url":{"url":"x"}}]}]"#,
                true,
            ),
            (
                Chat,
                r#""messages":[{"content":{"type":"image_url"}}]"#,
                true,
            ),
            (
                Chat,
                r#""messages":[{"content":[{"Type":"Image_URL"}]}]"#,
                true,
            ),
            (
                Chat,
                r#""messages":[{"content":[{"type":"file","file":{"file_data":"data:image/png;base64,"}}]}]"#,
                true,
            ),
            (Chat, r#""messages":[{"content":"an image_url"}]"#, false),
            (
                Responses,
                r#""input":[{"output":{"type":"computer_screenshot","file_id":"f"}}]"#,
                true,
            ),
            (
                Responses,
                r#""input":[{"type":"message","content":[{"type":"input_text","text":"image"}]}]"#,
                false,
            ),
            (
                Messages,
                r#""messages":[{"content":[{"type":"document","source":{"type":"content","content":[{"type":"image"}]}}]}]"#,
                true,
            ),
            (
                Messages,
                r#""messages":[{"content":[{"type":"tool_use","input":{"image_url":"x"}}]}]"#,
                false,
            ),
            (Messages, r#""system":[{"type":"im\u0061ge"}]"#, true),
            (
                Chat,
                r#""messages":[{"content":[{"type":"file","file":{"file_id":"gs://b/x","format":"image/png"}}]}]"#,
                true,
            ),
            (
                Chat,
                r#""messages":[{"content":[{"image_embeds":{"a":"b"}}]}]"#,
                true,
            ),
            (
                Chat,
                r#""messages":[{"content":[{"type":"text","text":"image/png"}]}]"#,
                false,
            ),
        ] {
            let found = images(endpoint, &body(endpoint, &format!("{{{turns}}}")));
            assert_eq!(found, Some(expect), "{turns}");
        }
    }

    #[test]
    fn what_is_read_of_a_request_is_known_in_each_dialect() {
        for endpoint in [Endpoint::Chat, Endpoint::Responses, Endpoint::Messages] {
            let read = crate::endpoint::MAXIMA.iter().copied().chain(beside());
            for name in read.chain(["background", "deferred", "n"]) {
                assert!(
                    endpoint.known_members().contains(&name),
                    "{endpoint:?} {name}"
                );
            }
        }
    }
}
