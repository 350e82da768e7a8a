//! Search in place of a long list of tools. The client is shown two tools: one that searches what the policy shows to
//! it, and one that calls what was found. A call through the second becomes the call that it names before anything is
//! judged.

use std::sync::Arc;

use serde_json::{Value, json};
use toolkit::Trace;
use wire::{Canonical, Era, WireError};

use super::super::Face;
use super::lists::{self, Asked, Who};
use crate::federation::{Cursor, Merged, edited, inner_call};
use crate::message::frames;
use crate::message::method::List;
use crate::message::shapes;

/// The tool that searches. No server has a tool of this name: theirs begin with their own name.
const SEARCH: &str = "durward__search_tools";
/// The tool that calls what was found.
const CALL: &str = "durward__call_tool";
/// How many tools are found where the caller names no number, and at most.
const FOUND: usize = 10;
const FOUND_MAX: usize = 50;
/// Longest query, in characters.
const QUERY_CHARS_MAX: usize = 1_000;
/// Most pages of lists that one search reads.
const PAGES_MAX: usize = 64;

/// What a call of one of the two tools becomes.
pub(super) enum Searched {
    /// It is a call of neither.
    Other,
    /// The answer.
    Answer(Vec<u8>),
    /// The call that it names.
    Inner(Box<Canonical>),
}

impl Face {
    /// A list of tools, or the two tools in its place where it has more entries than the configuration allows.
    pub(super) fn shortened(&self, mut merged: Merged) -> Merged {
        let is_long = |most: usize| merged.has_more() || merged.entries().len() > most;
        if self.options.search_above.is_some_and(is_long) {
            merged.replace(&definitions());
        }
        merged
    }

    /// Answers a call of the tool that searches, and unwraps one of the tool that calls.
    pub(super) async fn searched(
        self: &Arc<Self>,
        who: Who<'_>,
        canonical: &Canonical,
        id: &str,
        arrival: &(u64, Trace),
    ) -> Searched {
        let name = canonical.param("name").and_then(wire::jsonrpc::string);
        match name.as_deref() {
            _ if self.options.search_above.is_none() => Searched::Other,
            Some(SEARCH) => {
                let arguments = canonical.param("arguments").unwrap_or("{}");
                let arguments = serde_json::from_str(arguments).unwrap_or_default();
                let answer = self.found(who, &arguments, id, arrival).await;
                Searched::Answer(answer)
            }
            Some(CALL) => match inner(canonical) {
                Some(Ok(call)) => Searched::Inner(Box::new(call)),
                Some(Err(fault)) => Searched::Answer(frames::bad_frame(id, &fault)),
                None => {
                    let message = format!("{CALL} needs the name of a tool as a string");
                    Searched::Answer(frames::error(id, -32602, &message, None))
                }
            },
            Some(_) | None => Searched::Other,
        }
    }

    /// The tools that fit a query best. What is searched is what this client would be listed.
    async fn found(
        self: &Arc<Self>,
        who: Who<'_>,
        arguments: &Value,
        id: &str,
        arrival: &(u64, Trace),
    ) -> Vec<u8> {
        let query = arguments.get("query").and_then(Value::as_str);
        let words = words(query.unwrap_or_default());
        let most = arguments.get("limit").and_then(Value::as_u64);
        let most = most.and_then(|most| usize::try_from(most).ok());
        let most = most.unwrap_or(FOUND).clamp(1, FOUND_MAX);
        let mut found: Vec<(usize, String)> = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let asked = Asked {
                list: List::Tools,
                method: "tools/list",
                id,
                cursor: cursor.take(),
                arrival: arrival.clone(),
            };
            let merged = match self.merged_of_all(who, asked).await {
                Ok(merged) => merged,
                Err(answer) => return answer,
            };
            for entry in merged.entries() {
                let score = score(entry.get(), &words);
                if words.is_empty() || score > 0 {
                    found.push((score, entry.get().to_owned()));
                }
            }
            // The first of equals stays the first.
            found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
            found.truncate(most);
            cursor = merged.cursor().as_ref().and_then(Cursor::text);
            if cursor.is_none() {
                break;
            }
        }
        lists::result(id, &result(&found, who.era()))
    }
}

/// The call inside a call of the tool that calls; `None` where it names no tool.
fn inner(canonical: &Canonical) -> Option<Result<Canonical, WireError>> {
    let edits = inner_call(canonical.text())?;
    let frame = edited(canonical.text().as_bytes(), edits);
    Some(shapes::of_client(&frame))
}

fn words(query: &str) -> Vec<String> {
    let query: String = query.chars().take(QUERY_CHARS_MAX).collect();
    let words = query.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// How well a tool fits: words in its name count most, then those in its description, then those in its schema.
fn score(entry: &str, words: &[String]) -> usize {
    let tool: Value = serde_json::from_str(entry).unwrap_or_default();
    let text = |member: &str| {
        let text = tool.get(member).and_then(Value::as_str);
        text.unwrap_or_default().to_lowercase()
    };
    let (name, title, about) = (text("name"), text("title"), text("description"));
    let schema = tool.get("inputSchema").map(Value::to_string);
    let schema = schema.unwrap_or_default().to_lowercase();
    let of_word = |word: &String| {
        let has = |text: &str, worth: usize| usize::from(text.contains(word.as_str())) * worth;
        has(&name, 4) + has(&title, 2) + has(&about, 2) + has(&schema, 1)
    };
    words.iter().map(of_word).sum()
}

/// The result of a search: the entries as a text for the model, and as structured content.
fn result(found: &[(usize, String)], era: Era) -> String {
    let entries: Vec<&str> = found.iter().map(|(_, entry)| entry.as_str()).collect();
    let tools = format!("{{\"tools\":[{}]}}", entries.join(","));
    let text = match found {
        [] => json!("no tool matches; try other words, or an empty query for the first tools"),
        _ => json!(tools),
    };
    let complete = match era {
        Era::Legacy => "",
        Era::Modern => ",\"resultType\":\"complete\"",
    };
    format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{tools},\"isError\":false{complete}}}"
    )
}

/// The two tools as entries of a list.
fn definitions() -> String {
    let search = json!({
        "name": SEARCH,
        "title": "Search tools",
        "description": format!(
            "Searches the tools of all servers by words. The result has the definitions of the tools that fit best; call one with {CALL}."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words to look for in names, descriptions and schemas; empty for the first tools"},
                "limit": {"type": "integer", "minimum": 1, "maximum": FOUND_MAX, "default": FOUND}
            },
            "required": ["query"]
        },
        "annotations": {"readOnlyHint": true}
    });
    let call = json!({
        "name": CALL,
        "title": "Call a tool",
        "description": format!("Calls a tool that {SEARCH} has found."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The tool's name, as it was found"},
                "arguments": {"type": "object", "description": "The tool's arguments, by its own schema"}
            },
            "required": ["name"]
        }
    });
    format!("{search},{call}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_the_name_counts_more_than_one_elsewhere() {
        let named = r#"{"name":"git__commit_log","description":"Shows commits."}"#;
        let told = r#"{"name":"files__read","description":"Reads a log."}"#;
        let schema = r#"{"name":"x__y","inputSchema":{"properties":{"log":{}}}}"#;
        let of = |entry: &str| score(entry, &words("LOG"));
        assert!(of(named) > of(told) && of(told) > of(schema) && of(schema) > 0);
        assert_eq!(score(told, &words("delete it")), 0);
        assert_eq!(words("  read-file, now "), ["read", "file", "now"]);
    }

    #[test]
    fn the_call_inside_takes_the_place_of_the_one_around_it() {
        let unwrapped = |params: &str| {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
            let canonical = shapes::of_client(text.as_bytes()).unwrap();
            inner(&canonical).map(|call| call.unwrap().text().to_owned())
        };
        let text = unwrapped(
            r#"{"name":"durward__call_tool","arguments":{"name":"a__b","arguments":{"n":15}},"_meta":{"progressToken":3}}"#,
        );
        assert_eq!(
            text.as_deref(),
            Some(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__b","arguments":{"n":15},"_meta":{"progressToken":3}}}"#
            )
        );
        let without = unwrapped(r#"{"name":"durward__call_tool","arguments":{"name":"a__b"}}"#);
        assert!(without.unwrap().contains(r#""name":"a__b","arguments":{}"#));
        for stray in [
            r#"{"name":"durward__call_tool"}"#,
            r#"{"name":"durward__call_tool","arguments":{"name":7}}"#,
        ] {
            assert_eq!(unwrapped(stray), None, "{stray}");
        }
    }
}
