//! Surface of the conformance server that needs no conversation: lists, plain tools, prompts, resources.

use super::shared::SharedState;
use crate::json::{self, one_line, quote, text_result};
use crate::server::{RequestFault, ServerIdentity, ServerSurface, ToolResult};
use serde::Deserialize;
use std::sync::Arc;

const TOOLS: &str = include_str!("tools.json");
const PROMPTS: &str = include_str!("prompts.json");
const RESOURCES: &str = include_str!("resources.json");
const TEMPLATES: &str = r#"[{"uriTemplate":"test://template/{id}/data","name":"template","title":"Data by id","description":"A document about an id.","mimeType":"application/json"}]"#;
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},"completions":{},"logging":{}}"#;

/// The tool that comes and goes.
const PASSING_TOOL: &str = r#"{"name":"test_passing_tool","title":"Passing","description":"Is there at times.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}"#;
/// The prompt that comes and goes.
const PASSING_PROMPT: &str =
    r#"{"name":"test_passing_prompt","title":"Passing","description":"Is there at times."}"#;

/// A PNG of one red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mO4oKAAAALUARHyogz6AAAAAElFTkSuQmCC";
/// A WAV of eight samples.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAoIBggKCAYA==";

/// The fixtures, and what of them changes.
#[derive(Debug, Clone)]
pub(super) struct Fixtures {
    pub(super) shared: Arc<SharedState>,
}

#[derive(Deserialize)]
struct RegionArgs {
    region: String,
}

#[derive(Deserialize)]
struct PromptWords {
    arg1: String,
    arg2: String,
}

#[derive(Deserialize)]
struct HeldResource {
    #[serde(rename = "resourceUri")]
    uri: String,
}

impl ServerSurface for Fixtures {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity {
            name: "mock-conformance",
            title: "Conformance fixtures",
            instructions: "Offers what the official conformance suite asks for.",
        }
    }

    fn capabilities(&mut self) -> Option<String> {
        Some(CAPABILITIES.into())
    }

    fn tools(&mut self) -> String {
        with_last(TOOLS, PASSING_TOOL, self.shared.has_passing_tool())
    }

    fn call(&mut self, tool: &str, arguments: &str) -> Result<ToolResult, RequestFault> {
        let image = || format!(r#"{{"type":"image","data":"{PNG}","mimeType":"image/png"}}"#);
        let members = match tool {
            "test_simple_text" => text_result("Plain words.", false),
            "test_image_content" => content(&image()),
            "test_audio_content" => content(&format!(
                r#"{{"type":"audio","data":"{WAV}","mimeType":"audio/wav"}}"#
            )),
            "test_embedded_resource" => content(&embedded("test://embedded-resource", "Inside.")),
            "test_multiple_content_types" => content(&format!(
                r#"{{"type":"text","text":"Three kinds."}},{},{}"#,
                image(),
                embedded("test://mixed-content-resource", "Beside the others.")
            )),
            "test_error_handling" => text_result("this tool always fails", true),
            "test_passing_tool" if self.shared.has_passing_tool() => {
                text_result("Here for now.", false)
            }
            "test_header_parameter" => match json::object::<RegionArgs>(arguments.as_bytes()) {
                Ok(RegionArgs { region }) => text_result(&region, false),
                Err(error) => text_result(&format!("{tool}: {error}"), true),
            },
            "json_schema_2020_12_tool" => text_result("Its schema is what matters.", false),
            _ => return Err(RequestFault::InvalidParams(format!("unknown tool {tool}"))),
        };
        Ok(ToolResult::now(members))
    }

    fn prompts(&mut self) -> Option<String> {
        Some(with_last(
            PROMPTS,
            PASSING_PROMPT,
            self.shared.has_passing_prompt(),
        ))
    }

    fn prompt(&mut self, name: &str, arguments: &str) -> Result<String, RequestFault> {
        let wrong = |error| RequestFault::InvalidParams(format!("{name}: {error}"));
        let text = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, quote(text));
        Ok(match name {
            "test_simple_prompt" => messages(&[text("Say something plain.")]),
            "test_prompt_with_arguments" => {
                let words: PromptWords = json::object(arguments.as_bytes()).map_err(wrong)?;
                let PromptWords { arg1, arg2 } = words;
                messages(&[text(&format!("Use {arg1} and {arg2} in a sentence."))])
            }
            "test_prompt_with_embedded_resource" => {
                let HeldResource { uri } = json::object(arguments.as_bytes()).map_err(wrong)?;
                let held = embedded(&uri, "Held by a prompt.");
                messages(&[held, text("Say what the resource holds.")])
            }
            "test_prompt_with_image" => messages(&[
                format!(r#"{{"type":"image","data":"{PNG}","mimeType":"image/png"}}"#),
                text("Say what the image shows."),
            ]),
            "test_passing_prompt" if self.shared.has_passing_prompt() => {
                messages(&[text("Here for now.")])
            }
            _ => {
                return Err(RequestFault::InvalidParams(format!(
                    "unknown prompt {name}"
                )));
            }
        })
    }

    fn resources(&mut self) -> Option<String> {
        Some(one_line(RESOURCES))
    }

    fn templates(&mut self) -> String {
        TEMPLATES.into()
    }

    fn read(&mut self, uri: &str) -> Result<String, RequestFault> {
        let text = |kind: &str, text: &str| {
            let (uri, text) = (quote(uri), quote(text));
            format!(r#""contents":[{{"uri":{uri},"mimeType":"{kind}","text":{text}}}]"#)
        };
        if let Some(id) = template_id(uri) {
            let document = format!(r#"{{"id":{},"fromTemplate":true}}"#, quote(id));
            return Ok(text("application/json", &document));
        }
        match uri {
            "test://static-text" => Ok(text("text/plain", "A text that never changes.")),
            "test://static-binary" => Ok(format!(
                r#""contents":[{{"uri":"{uri}","mimeType":"image/png","blob":"{PNG}"}}]"#
            )),
            "test://watched-resource" => {
                let changes = self.shared.resource_changes();
                Ok(text("text/plain", &format!("Changed {changes} times.")))
            }
            _ => Err(RequestFault::UnknownResource { uri: uri.into() }),
        }
    }
}

fn template_id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?;
    id.strip_suffix("/data").filter(|id| !id.is_empty())
}

fn content(parts: &str) -> String {
    format!(r#""content":[{parts}],"isError":false"#)
}

fn embedded(uri: &str, text: &str) -> String {
    let (uri, text) = (quote(uri), quote(text));
    format!(
        r#"{{"type":"resource","resource":{{"uri":{uri},"mimeType":"text/plain","text":{text}}}}}"#
    )
}

/// Returns a prompt's result; every part is one message of the user.
pub(super) fn messages(parts: &[String]) -> String {
    let messages: Vec<String> = parts
        .iter()
        .map(|part| format!(r#"{{"role":"user","content":{part}}}"#))
        .collect();
    format!(r#""messages":[{}]"#, messages.join(","))
}

fn with_last(list: &str, last: &str, there: bool) -> String {
    let list = one_line(list);
    match list.strip_suffix(']') {
        Some(open) if there => format!("{open},{last}]"),
        _ => list,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn lists_are_json_with_and_without_what_passes() {
        for (list, last) in [(TOOLS, PASSING_TOOL), (PROMPTS, PASSING_PROMPT)] {
            let count = |there| {
                let list: Value = serde_json::from_str(&with_last(list, last, there)).unwrap();
                list.as_array().unwrap().len()
            };
            assert_eq!(count(true), count(false) + 1);
        }
    }

    #[test]
    fn a_template_holds_one_id() {
        for (uri, id) in [
            ("test://template/123/data", Some("123")),
            ("test://template//data", None),
            ("test://template/123", None),
            ("test://other", None),
        ] {
            assert_eq!(template_id(uri), id, "{uri}");
        }
    }
}
