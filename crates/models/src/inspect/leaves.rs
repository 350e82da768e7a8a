//! Where the text of a stream stands in its events, in each dialect.

use dialects::Endpoint;
use serde_json::Value;

/// Members of a delta that are names of the protocol's and no text of the model's.
const NAMES: [&str; 7] = [
    "id",
    "type",
    "role",
    "name",
    "index",
    "finish_reason",
    "stop_reason",
];
/// Deepest nesting of a delta.
const DEPTH_MAX: usize = 16;

/// A part of a text that goes on in other events.
#[derive(Debug)]
pub(super) struct Leaf {
    /// Which text: a group, and the place in it.
    pub lane: String,
    /// Where it stands in the event, as a JSON pointer.
    pub at: String,
    pub text: String,
}

/// Which texts no later event goes on with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    None,
    /// Those whose lanes begin with one of these.
    Groups(Vec<String>),
    All,
}

/// The parts of texts in an event.
pub(super) fn of(endpoint: Endpoint, event: &Value) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    for (at, group) in deltas(endpoint, event) {
        if let Some(delta) = event.pointer(&at) {
            collect(delta, &at, &group, 0, &mut leaves);
        }
    }
    leaves
}

fn number(event: &Value, name: &str) -> String {
    event[name].as_u64().unwrap_or_default().to_string()
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

/// Where deltas stand, and the group of each.
fn deltas(endpoint: Endpoint, event: &Value) -> Vec<(String, String)> {
    match endpoint {
        Endpoint::Chat => {
            let choices = event["choices"].as_array().into_iter().flatten();
            let delta = |(at, choice): (usize, &Value)| {
                let at = format!("/choices/{at}/delta");
                (at, format!("{}/", number(choice, "index")))
            };
            choices.enumerate().map(delta).collect()
        }
        Endpoint::Messages => {
            let at = match kind(event) {
                "content_block_start" => "/content_block",
                "content_block_delta" => "/delta",
                _ => return Vec::new(),
            };
            vec![(at.to_owned(), format!("{}/", number(event, "index")))]
        }
        Endpoint::Responses if kind(event).ends_with(".delta") => {
            let parts = ["content_index", "summary_index"].map(|name| number(event, name));
            let item = number(event, "output_index");
            let group = format!("{item}/{}/{}/", parts.join("/"), kind(event));
            vec![("/delta".to_owned(), group)]
        }
        _ => Vec::new(),
    }
}

fn collect(value: &Value, at: &str, lane: &str, depth: usize, leaves: &mut Vec<Leaf>) {
    match value {
        Value::String(text) if !text.is_empty() => leaves.push(Leaf {
            lane: lane.to_owned(),
            at: at.to_owned(),
            text: text.clone(),
        }),
        Value::Object(members) if depth < DEPTH_MAX => {
            for (name, value) in members {
                if !NAMES.contains(&name.as_str()) {
                    let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                    // The first part of a text and the others stand below different names.
                    collect(value, &at, &format!("{lane}{name}/"), depth + 1, leaves);
                }
            }
        }
        Value::Array(items) if depth < DEPTH_MAX => {
            for (position, item) in items.iter().enumerate() {
                let number = item["index"].as_u64().map_or(position, |number| {
                    usize::try_from(number).unwrap_or(position)
                });
                let at = format!("{at}/{position}");
                collect(item, &at, &format!("{lane}{number}/"), depth + 1, leaves);
            }
        }
        _ => {}
    }
}

/// Which texts an event ends.
pub(super) fn ended(endpoint: Endpoint, event: &Value) -> Ended {
    match endpoint {
        Endpoint::Chat => {
            let choices = event["choices"].as_array().into_iter().flatten();
            let done = choices.filter(|choice| choice["finish_reason"].is_string());
            let groups: Vec<String> = done
                .map(|choice| format!("{}/", number(choice, "index")))
                .collect();
            match groups.is_empty() {
                true if event.get("error").is_some() => Ended::All,
                true => Ended::None,
                false => Ended::Groups(groups),
            }
        }
        Endpoint::Messages => match kind(event) {
            "content_block_stop" => Ended::Groups(vec![format!("{}/", number(event, "index"))]),
            "message_stop" | "error" => Ended::All,
            _ => Ended::None,
        },
        Endpoint::Responses => match kind(event) {
            "response.completed" | "response.incomplete" | "response.failed" | "error" => {
                Ended::All
            }
            kind if kind.ends_with(".done") => {
                Ended::Groups(vec![format!("{}/", number(event, "output_index"))])
            }
            _ => Ended::None,
        },
        _ => Ended::All,
    }
}

/// Takes out what repeats a text token by token; whether there was any.
pub(super) fn drop_tokens(value: &mut Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, item| drop_tokens(item) | any),
        Value::Object(members) => {
            let mut any = false;
            for (name, value) in members {
                if name != "logprobs" {
                    any |= drop_tokens(value);
                } else if value.is_array() {
                    any = true;
                    *value = Value::Array(Vec::new());
                } else if !value.is_null() {
                    any = true;
                    *value = Value::Null;
                }
            }
            any
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lanes(endpoint: Endpoint, event: &Value) -> Vec<(String, String)> {
        let leaves = of(endpoint, event).into_iter();
        let told = |leaf: Leaf| {
            let there = event.pointer(&leaf.at).and_then(Value::as_str);
            assert_eq!(there, Some(leaf.text.as_str()));
            (leaf.lane, leaf.text)
        };
        leaves.map(told).collect()
    }

    #[test]
    fn each_dialect_says_which_text_a_part_belongs_to() {
        let call = json!({ "index": 2, "id": "call_1", "type": "function",
            "function": { "name": "f", "arguments": "{\"a" } });
        let chat = json!({ "choices": [
            { "index": 1, "delta": { "role": "assistant", "content": "x", "tool_calls": [call] } },
            { "index": 0, "delta": { "content": "" } },
        ] });
        let expect = [
            ("1/content/", "x"),
            ("1/tool_calls/2/function/arguments/", "{\"a"),
        ];
        let expect = expect.map(|(lane, text)| (lane.to_owned(), text.to_owned()));
        assert_eq!(lanes(Endpoint::Chat, &chat), expect);
        let block = json!({ "type": "content_block_delta", "index": 3,
            "delta": { "type": "input_json_delta", "partial_json": "{" } });
        let expect = [("3/partial_json/".to_owned(), "{".to_owned())];
        assert_eq!(lanes(Endpoint::Messages, &block), expect);
        let text = json!({ "type": "response.output_text.delta", "output_index": 1,
            "content_index": 2, "item_id": "m", "delta": "y" });
        let expect = [(
            "1/2/0/response.output_text.delta/".to_owned(),
            "y".to_owned(),
        )];
        assert_eq!(lanes(Endpoint::Responses, &text), expect);
    }

    #[test]
    fn a_text_ends_with_its_block_and_no_other() {
        let stop = json!({ "type": "content_block_stop", "index": 1 });
        let one = Ended::Groups(vec!["1/".to_owned()]);
        assert_eq!(ended(Endpoint::Messages, &stop), one);
        let ping = json!({ "type": "ping" });
        assert_eq!(ended(Endpoint::Messages, &ping), Ended::None);
        let done = json!({ "choices": [{ "index": 1, "delta": {}, "finish_reason": "stop" }] });
        assert_eq!(ended(Endpoint::Chat, &done), one);
        let usage = json!({ "choices": [], "usage": {} });
        assert_eq!(ended(Endpoint::Chat, &usage), Ended::None);
        let done = json!({ "type": "response.output_text.done", "output_index": 1 });
        assert_eq!(ended(Endpoint::Responses, &done), one);
        let completed = json!({ "type": "response.completed" });
        assert_eq!(ended(Endpoint::Responses, &completed), Ended::All);
    }

    #[test]
    fn what_repeats_a_text_by_tokens_is_taken_out() {
        let mut reply = json!({ "choices": [{ "logprobs": { "content": [] }, "index": 0 }] });
        assert!(drop_tokens(&mut reply));
        assert_eq!(
            reply,
            json!({ "choices": [{ "logprobs": null, "index": 0 }] })
        );
        assert!(!drop_tokens(&mut reply));
        let mut event = json!({ "logprobs": [{ "token": "a" }] });
        assert!(drop_tokens(&mut event));
        assert_eq!(event, json!({ "logprobs": [] }));
    }
}
