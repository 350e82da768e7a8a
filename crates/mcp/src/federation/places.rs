//! Where names, addresses and ids stand in messages; the bytes around them stay as they are.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;
use wire::jsonrpc::{member, string};
use wire::{Bounds, Canonical, Id, scan_reply};

use super::spelling::{Spelling, split_token};
use crate::message::splice;

/// One step into a JSON value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// The member of this name.
    In(&'static str),
    /// Each element.
    Each,
}

use Step::{Each, In};

impl Step {
    fn name(&self) -> &'static str {
        match self {
            In(name) => name,
            Each => "",
        }
    }
}

/// Bytes, and the text that takes their place.
pub(crate) type Edit = (Range<usize>, String);

/// Where the progress token of a request is.
pub(super) const TOKEN: [Step; 3] = [In("params"), In("_meta"), In("progressToken")];

/// Where a server's messages name resources, lists aside.
pub(super) const URIS: [&[Step]; 6] = [
    &[In("params"), In("uri")],
    &[In("result"), In("contents"), Each, In("uri")],
    &[In("result"), In("content"), Each, In("uri")],
    &[In("result"), In("content"), Each, In("resource"), In("uri")],
    &[In("result"), In("messages"), Each, In("content"), In("uri")],
    &[
        In("result"),
        In("messages"),
        Each,
        In("content"),
        In("resource"),
        In("uri"),
    ],
];

/// The raw values at the end of a path: slices of the text.
pub(super) fn at<'t>(text: &'t str, path: &[Step]) -> Vec<&'t str> {
    let mut found = Vec::new();
    walk(text, path, &mut found);
    found
}

fn walk<'t>(raw: &'t str, path: &[Step], found: &mut Vec<&'t str>) {
    let Some((step, rest)) = path.split_first() else {
        found.push(raw);
        return;
    };
    match step {
        In(name) if raw.starts_with('{') => {
            let Ok(scan) = scan_reply(raw.as_bytes(), &Bounds::default()) else {
                return;
            };
            if let Some(inner) = member(&scan.members, name) {
                walk(inner, rest, found);
            }
        }
        Each if raw.starts_with('[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
            for element in elements {
                walk(element.get(), rest, found);
            }
        }
        In(_) | Each => {}
    }
}

/// The first string at the end of a path.
pub(super) fn text_at<'t>(text: &'t str, path: &[Step]) -> Option<Cow<'t, str>> {
    string(at(text, path).first()?)
}

/// Where a slice of a text stands in it.
pub(super) fn place_of(text: &str, part: &str) -> Option<Range<usize>> {
    crate::message::reply::place(text.as_bytes(), part)
}

/// A frame with other texts at some places, which do not overlap.
pub(crate) fn edited(frame: &[u8], edits: Vec<Edit>) -> Vec<u8> {
    let mut places: Vec<(Range<usize>, &[u8])> = edits
        .iter()
        .map(|(place, text)| (place.clone(), text.as_bytes()))
        .collect();
    splice::edited(frame, &mut places)
}

/// What a request reaches for, and so which server it is for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// A tool or a prompt: its spelled name, and where that stands.
    Name(String, Range<usize>),
    /// A resource: its spelled address, and where that stands.
    Uri(String, Range<usize>),
}

/// What a client's request reaches for by a name; none where the method has none, or the request lacks it.
pub(crate) fn aim(method: &str, request: &Canonical) -> Option<Aim> {
    // Members of its parameters, and of what stands there.
    let paths: &[(&str, &[Step])] = match method {
        "tools/call" | "prompts/get" => &[("name", &[])],
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => &[("uri", &[])],
        "completion/complete" => &[("ref", &[In("name")]), ("ref", &[In("uri")])],
        _ => return None,
    };
    paths.iter().find_map(|(param, below)| {
        let raw = *at(request.param(param)?, below).first()?;
        let place = place_of(request.text(), raw)?;
        let spelled = string(raw)?.into_owned();
        match below.last().map_or(*param, Step::name) {
            "uri" => Some(Aim::Uri(spelled, place)),
            _ => Some(Aim::Name(spelled, place)),
        }
    })
}

/// The call that a call carries as its arguments, as edits that put its name and its arguments in the place of those of
/// the call around it; `None` where it names no tool.
pub(crate) fn inner_call(text: &str) -> Option<Vec<Edit>> {
    let outer = |member| at(text, &[In("params"), In(member)]).first().copied();
    let inner = |member| {
        let path = [In("params"), In("arguments"), In(member)];
        at(text, &path).first().copied()
    };
    let name = inner("name")?;
    string(name)?;
    let arguments = inner("arguments").unwrap_or("{}");
    Some(vec![
        (place_of(text, outer("name")?)?, name.to_owned()),
        (place_of(text, outer("arguments")?)?, arguments.to_owned()),
    ])
}

/// A subscription (`subscriptions/listen`) as one server is asked for it, as edits: of resources only its own, by its own
/// addresses. `None` where it asks for nothing of that server.
pub(crate) fn listened_for(text: &str, spelling: &Spelling) -> Option<Vec<Edit>> {
    const RESOURCES: &str = "resourceSubscriptions";
    let filter = at(text, &[In("params"), In("notifications")]);
    let Some(filter) = filter.first().copied() else {
        return Some(Vec::new());
    };
    let scan = scan_reply(filter.as_bytes(), &Bounds::default()).ok()?;
    let Some(uris) = member(&scan.members, RESOURCES) else {
        return Some(Vec::new());
    };
    let uris: Vec<String> = serde_json::from_str(uris).ok()?;
    let own = uris.iter().filter_map(|uri| spelling.own_uri(uri));
    let own: Vec<&str> = own.collect();
    let rest = scan.members.iter().filter(|(name, _)| name != RESOURCES);
    let mut members: Vec<String> = rest
        .map(|(name, raw)| format!("{}:{raw}", serde_json::Value::from(&**name)))
        .collect();
    if !own.is_empty() {
        members.push(format!("\"{RESOURCES}\":{}", serde_json::json!(own)));
    }
    if members.is_empty() {
        return None;
    }
    let place = place_of(text, filter)?;
    Some(vec![(place, format!("{{{}}}", members.join(",")))])
}

/// The server that a client's answer or progress is for, its own id or token, and where the spelled one stands.
pub(crate) fn id_of_server(text: &str) -> Option<(String, Edit)> {
    let paths: [&[Step]; 2] = [&[In("id")], &[In("params"), In("progressToken")]];
    let raw = *paths
        .iter()
        .find_map(|path| at(text, path).first().copied())
        .as_ref()?;
    let spelled = string(raw)?;
    let (server, own) = split_token(&spelled)?;
    // An id or a token, without white space around it: anything else no server has chosen.
    let own = serde_json::from_str::<&RawValue>(own).ok()?.get();
    Id::from_raw(own)?;
    Some((server.to_owned(), (place_of(text, raw)?, own.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_by_a_name_which_server_it_is_for() {
        let cases = [
            (
                "tools/call",
                r#"{"name":"a__b","arguments":{"name":"x"}}"#,
                Some("a__b"),
            ),
            ("resources/read", r#"{"uri":"a+b:c"}"#, Some("a+b:c")),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"a__b"}}"#,
                Some("a__b"),
            ),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/resource","uri":"a+b"}}"#,
                Some("a+b"),
            ),
            ("tools/call", r#"{"arguments":{"name":"x"}}"#, None),
            ("tools/call", r#"{"name":7}"#, None),
            ("tasks/get", r#"{"name":"a__b"}"#, None),
        ];
        for (method, params, expect) in cases {
            let text = format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#);
            let request = Canonical::of(text.as_bytes(), &Bounds::default()).unwrap();
            let found = aim(method, &request).map(|aim| match aim {
                Aim::Name(spelled, place) | Aim::Uri(spelled, place) => {
                    assert_eq!(text[place], format!("\"{spelled}\""));
                    spelled
                }
            });
            assert_eq!(found.as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn a_subscription_asks_each_server_for_what_is_its_own() {
        let spelling = Spelling::of(&std::sync::Arc::from("my_a"));
        let of = |filter: &str| {
            let text = format!(r#"{{"params":{{"notifications":{filter}}}}}"#);
            let edits = listened_for(&text, &spelling)?;
            let edited = String::from_utf8(edited(text.as_bytes(), edits)).unwrap();
            let (_, filter) = edited.split_once("\"notifications\":").unwrap();
            Some(filter.strip_suffix("}}").unwrap().to_owned())
        };
        let cases = [
            (
                r#"{"toolsListChanged":true}"#,
                Some(r#"{"toolsListChanged":true}"#),
            ),
            (
                r#"{"resourceSubscriptions":["my-a+x:y","b+x:y","x:y"],"toolsListChanged":true}"#,
                Some(r#"{"toolsListChanged":true,"resourceSubscriptions":["x:y"]}"#),
            ),
            (
                r#"{"resourceSubscriptions":["b+x:y"],"toolsListChanged":true}"#,
                Some(r#"{"toolsListChanged":true}"#),
            ),
            (r#"{"resourceSubscriptions":["b+x:y"]}"#, None),
            (r#"{"resourceSubscriptions":"my-a+x:y"}"#, None),
        ];
        for (filter, expect) in cases {
            assert_eq!(of(filter).as_deref(), expect, "{filter}");
        }
        assert_eq!(
            listened_for(r#"{"params":{}}"#, &spelling),
            Some(Vec::new())
        );
    }

    #[test]
    fn an_answer_says_which_server_had_asked() {
        let (server, (place, own)) = id_of_server(r#"{"id":"a:\"x\"","result":{}}"#).unwrap();
        assert_eq!((server.as_str(), own.as_str()), ("a", "\"x\""));
        assert_eq!(place, 6..15);
        let (_, (_, own)) = id_of_server(r#"{"id":"a:\n1\r "}"#).unwrap();
        assert_eq!(own, "1");
        for stray in [
            r#"{"id":1}"#,
            r#"{"id":"a"}"#,
            r#"{"id":"a:}"}"#,
            r#"{"id":"a:1,2"}"#,
            r#"{"id":"a:[1]"}"#,
            r#"{"id":"a:{\n}"}"#,
            r#"{"id":"a:null"}"#,
        ] {
            assert_eq!(id_of_server(stray), None, "{stray}");
        }
    }
}
