//! Not among the targets that run by default: what the house knows to be missed is still to be left out of it.
//!
//! Any arguments of a call: no panic, and whatever leads to a protected or denied place by a plain reading is refused,
//! also where it stands in quotes, behind an option, in a URI, in JSON, or percent-encoded.
#![no_main]

use std::path::{Component, Path};
use std::sync::OnceLock;

use gate::Caller;
use gate::facts::{Facts, ResourceType};
use gate::paths::PathView;
use gate::paths::view::Link;
use gate::policy::{Effect, Policy};
use libfuzzer_sys::fuzz_target;
use mcp::describe::{self, ArgumentRoles, Context, PathSchemas};
use serde_json::{Value, json};
use wire::{Bounds, scan_request};

/// Places that are refused: one by the policy, one by the gate itself.
const PLACES: [&str; 2] = ["/srv/work/vault", "/srv/work/state"];
/// Most wrappings of one text. Some of those within one another are no spelling of the path any more for any reader, such as
/// JSON behind `x:`.
const WRAPS_MAX: usize = 1;

/// A server started in `/srv/work`, on a machine without links.
struct Machine;

impl PathView for Machine {
    fn home(&self) -> Option<String> {
        Some("/home/u".into())
    }

    fn current_dir(&self) -> Option<String> {
        Some("/srv/work".into())
    }

    fn read_link(&self, _: &str) -> Link {
        Link::NotALink
    }
}

fn policy() -> &'static Policy {
    static POLICY: OnceLock<Policy> = OnceLock::new();
    POLICY.get_or_init(|| {
        let text = r#"{"version":"1","default_action":"deny","rules":[
            {"id":"all","effect":"allow","conditions":{"tool_name":"*"}},
            {"id":"no","effect":"deny","conditions":{"path_pattern":"/srv/work/vault/**"}}]}"#;
        Policy::load(text, Some(&Machine), &["/srv/work/state".into()]).expect("a policy")
    })
}

/// What is read of a call with these arguments; none where the message itself is refused.
fn facts(arguments: &str) -> Option<Facts> {
    let frame = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
    );
    let scan = scan_request(frame.as_bytes(), &Bounds::default()).ok()?;
    let context = Context {
        backend_id: "s",
        caller: &Caller::local("u"),
        view: Some(&Machine),
        schemas: &PathSchemas::default(),
        roles: &ArgumentRoles::default(),
        definitions: None,
        builtin: None,
        inline: None,
    };
    let facts = describe::client_request("tools/call", Some(ResourceType::Tool), &scan, &context);
    facts.ok().map(|facts| *facts)
}

/// Whether a path is at or below a refused place, as the standard library splits it.
fn is_refused_place(text: &str) -> bool {
    if !text.starts_with('/') || text.contains('\0') {
        return false;
    }
    let mut parts = Vec::new();
    for part in Path::new(text).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy()),
            Component::ParentDir => drop(parts.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let place = format!("/{}", parts.join("/"));
    let is_below = |top: &&str| {
        place
            .strip_prefix(*top)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    PLACES.iter().any(is_below)
}

/// Whether a string plainly leads to a refused place: as it stands, without blanks or quotes around it, as a file
/// URI, or behind the first equals sign of an option.
fn plainly_leads(text: &str) -> bool {
    let bare = text.trim_matches([' ', '\t', '\n', '\r']);
    let quoted = ['"', '\'']
        .into_iter()
        .find_map(|mark| bare.strip_prefix(mark)?.strip_suffix(mark));
    let uri = bare
        .strip_prefix("file://")
        .filter(|rest| rest.starts_with('/') && !rest.contains('%'));
    let option = bare
        .strip_prefix("--")
        .and_then(|rest| rest.split_once('='))
        .map(|(_, value)| value);
    [Some(bare), quoted, uri, option]
        .into_iter()
        .flatten()
        .any(is_refused_place)
}

/// Every string of a value but those that are written rather than opened.
fn strings<'v>(value: &'v Value, all: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => all.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, all)),
        Value::Object(members) => {
            for (name, item) in members {
                all.push(name);
                if !["content", "text", "oldText", "newText"].contains(&name.as_str()) {
                    strings(item, all);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text in another spelling of which a reader gets the same path.
fn wrapped(text: &str, how: u8) -> String {
    let encoded = |which: &dyn Fn(u8) -> bool| -> String {
        let one = |byte: u8| match which(byte) || !byte.is_ascii() {
            true => format!("%{byte:02x}"),
            false => char::from(byte).to_string(),
        };
        text.bytes().map(one).collect()
    };
    match how % 18 {
        0 => format!("'{text}'"),
        1 => format!("\"{text}\""),
        2 => format!("--x={text}"),
        3 => format!("@{text}"),
        4 => encoded(&|_| true),
        5 => encoded(&|byte| matches!(byte, b'/' | b'%' | b'"' | b'\\')),
        6 => json!(text).to_string(),
        7 => json!([text]).to_string(),
        8 => json!({ "path": text }).to_string(),
        9 => json!({ "x": ["a", { "y": text }] }).to_string(),
        10 => format!(" {text} "),
        11 => format!("a\n{text}\nb"),
        12 => format!("\u{200b}{text}"),
        13 => format!("a,{text}"),
        14 => format!("--file {text}"),
        15 => format!("if={text}"),
        16 => format!("x:{text}"),
        _ => format!("`{text}`"),
    }
}

/// A spelling of a file below a refused place.
fn spelled(place: &str, how: u8) -> String {
    let (top, name) = place.rsplit_once('/').expect("an absolute place");
    match how % 12 {
        0 => format!("{place}/key.txt"),
        1 => place.to_owned(),
        2 => format!("{top}/./{name}/key.txt"),
        3 => format!("{top}//{name}//key.txt"),
        4 => format!("{top}/a/../{name}/key.txt"),
        5 => format!("/../..{place}/key.txt"),
        6 => format!("file://{place}/key.txt"),
        7 => format!("file://localhost{place}/key.txt"),
        8 => format!("{name}/key.txt"),
        9 => format!("./{name}/key.txt"),
        10 => format!("../work/{name}/key.txt"),
        _ => format!("{place}/key.txt?a#b"),
    }
}

fn assert_refused(arguments: &str) {
    if let Some(facts) = facts(arguments) {
        let judgement = policy().judge(&facts);
        assert_eq!(
            judgement.verdict().effect,
            Effect::Deny,
            "{arguments} passes as {facts:?}"
        );
    }
}

fuzz_target!(|input: (u8, u8, &[u8], &str)| {
    let (place, how, wraps, arguments) = input;
    if let Some(facts) = facts(arguments) {
        let effect = policy().judge(&facts).verdict().effect;
        assert_eq!(policy().judge(&facts).verdict().effect, effect);
        if let Ok(value) = serde_json::from_str::<Value>(arguments) {
            let mut all = Vec::new();
            strings(&value, &mut all);
            if let Some(text) = all.into_iter().find(|text| plainly_leads(text)) {
                assert_eq!(effect, Effect::Deny, "{text:?} of {arguments}");
            }
        }
    }
    let mut text = spelled(PLACES[usize::from(place) % PLACES.len()], how);
    for wrap in wraps.iter().take(WRAPS_MAX) {
        text = wrapped(&text, *wrap);
    }
    let key = ["path", "x", "cwd", "uri", "q"][usize::from(place / 2) % 5];
    assert_refused(&json!({ key: text }).to_string());
    assert_refused(&json!({ "a": { key: ["b", text] } }).to_string());
});
