//! Properties of canonical frames, against three readers that know nothing of them.

use json_event_parser::{JsonEvent, SliceJsonParser};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use serde_json::value::RawValue;
use std::time::{Duration, Instant};
use tinyjson::JsonValue;
use wire::{Bounds, Canonical, WireErrorKind, scan_request};

/// How long each property is tried.
const TIME: Duration = Duration::from_secs(1);

/// Tries a property on fresh inputs until the time is over.
fn for_a_second<S: Strategy>(
    strategy: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let until = Instant::now() + TIME;
    let mut runner = TestRunner::new(Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    });
    loop {
        match runner.run(&strategy, &property) {
            Ok(()) if Instant::now() < until => {}
            Ok(()) => return,
            Err(TestError::Fail(why, input)) => panic!("{why}: {input:?}"),
            Err(TestError::Abort(why)) => panic!("aborted: {why}"),
        }
    }
}

/// A value with its members in their order and its scalars as they are spelled.
#[derive(Debug, PartialEq)]
enum Tree {
    Object(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    String(String),
    Scalar(String),
}

/// Members in their order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// As `serde_json` reads it.
fn by_serde(text: &str) -> Option<Tree> {
    let raw: Box<RawValue> = serde_json::from_str(text).ok()?;
    let text = raw.get();
    Some(match text.as_bytes().first()? {
        b'{' => {
            let members: Members = serde_json::from_str(text).ok()?;
            let members = members.0.into_iter();
            let members = members.map(|(name, value)| Some((name, by_serde(value.get())?)));
            Tree::Object(members.collect::<Option<_>>()?)
        }
        b'[' => {
            let elements: Vec<Box<RawValue>> = serde_json::from_str(text).ok()?;
            let elements = elements.iter().map(|element| by_serde(element.get()));
            Tree::Array(elements.collect::<Option<_>>()?)
        }
        b'"' => Tree::String(serde_json::from_str(text).ok()?),
        _ => Tree::Scalar(text.to_owned()),
    })
}

/// As `json-event-parser` reads it: events in their order, numbers as they are spelled.
fn by_events(text: &str) -> Option<Vec<JsonEvent<'static>>> {
    let mut parser = SliceJsonParser::new(text.as_bytes());
    let mut events = Vec::new();
    loop {
        let event = match parser.parse_next().ok()? {
            JsonEvent::Eof => return Some(events),
            JsonEvent::String(s) => JsonEvent::String(s.into_owned().into()),
            JsonEvent::Number(s) => JsonEvent::Number(s.into_owned().into()),
            JsonEvent::ObjectKey(s) => JsonEvent::ObjectKey(s.into_owned().into()),
            JsonEvent::Boolean(b) => JsonEvent::Boolean(b),
            JsonEvent::Null => JsonEvent::Null,
            JsonEvent::StartArray => JsonEvent::StartArray,
            JsonEvent::EndArray => JsonEvent::EndArray,
            JsonEvent::StartObject => JsonEvent::StartObject,
            JsonEvent::EndObject => JsonEvent::EndObject,
        };
        events.push(event);
    }
}

/// As `tinyjson` reads it: numbers as floats, members without order.
fn by_tinyjson(text: &str) -> Option<JsonValue> {
    text.parse().ok()
}

/// What must hold of every text; whether it was written.
fn holds(bytes: &[u8]) -> Result<bool, TestCaseError> {
    let bounds = Bounds::default();
    let canonical = match Canonical::of(bytes, &bounds) {
        Ok(canonical) => canonical,
        Err(fault) => {
            prop_assert!(fault.at <= bytes.len());
            // Nothing is refused that a scan accepts, but for names like the protocol's.
            match scan_request(bytes, &bounds) {
                Ok(_) => prop_assert_eq!(fault.kind, WireErrorKind::AmbiguousMember),
                Err(same) => prop_assert!(
                    same.kind == fault.kind || fault.kind == WireErrorKind::AmbiguousMember
                ),
            }
            return Ok(false);
        }
    };
    let text = canonical.text();
    let again = Canonical::of(text.as_bytes(), &bounds).unwrap();
    prop_assert_eq!(again.text(), text);
    prop_assert_eq!(again.scan().members, canonical.scan().members);
    prop_assert_eq!(again.scan().params, canonical.scan().params);
    prop_assert_eq!(again.scan().leaves, canonical.scan().leaves);
    prop_assert_eq!(again.scan().objects, canonical.scan().objects);
    let breaks = ['\r', '\n', '\u{85}', '\u{2028}', '\u{2029}'];
    prop_assert!(!text.contains(breaks), "{:?}", text);
    prop_assert!(!has_blank_outside_strings(text), "{:?}", text);
    let input = std::str::from_utf8(bytes).unwrap();
    let mut tree = by_serde(input);
    drop_unknown(&mut tree);
    prop_assert!(tree.is_some());
    prop_assert_eq!(by_serde(text), tree);
    if canonical.member("method").is_none() || input_is_known(&canonical, input) {
        prop_assert!(by_events(text).is_some());
        prop_assert_eq!(by_events(text), by_events(input));
        prop_assert_eq!(by_tinyjson(text), by_tinyjson(input));
    }
    Ok(true)
}

/// Whether nothing was dropped, so that readers without a tree can compare the whole.
fn input_is_known(canonical: &Canonical, input: &str) -> bool {
    let scan = scan_request(input.as_bytes(), &Bounds::default());
    scan.is_ok_and(|scan| scan.members.len() == canonical.scan().members.len())
}

/// What the writer says it drops, done to the tree.
fn drop_unknown(tree: &mut Option<Tree>) {
    let Some(Tree::Object(members)) = tree else {
        return;
    };
    if members.iter().any(|(name, _)| name == "method") {
        members.retain(|(name, _)| wire::jsonrpc::MEMBERS.contains(&name.as_str()));
    }
}

fn has_blank_outside_strings(text: &str) -> bool {
    let (mut inside, mut escaped) = (false, false);
    text.chars().any(|c| {
        match c {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ => {}
        }
        !inside && c.is_whitespace()
    })
}

/// Strings as they are spelled, with each kind of escape and each line end.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-c/ ]{0,9}",
        1 => any::<char>().prop_map(|c| format!("\\u{:04x}", u32::from(c) & 0xd7ff)),
        1 => (0xd800..0xdc00_u32, 0xdc00..0xe000_u32).prop_map(|(a, b)| format!("\\u{a:04X}\\u{b:04x}")),
        2 => prop::sample::select(vec![r"\/", r#"\""#, r"\\", r"\b", r"\f", r"\n", r"\r", r"\t"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["\u{85}", "\u{2028}", "\u{2029}", "\u{84}", "\u{2027}", "é", "😀", "\u{7f}"]).prop_map(str::to_owned),
        1 => any::<char>().prop_filter("not special", |c| *c >= ' ' && !"\"\\".contains(*c)).prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn blank() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "", "", " ", "\t", "\r", "\n", "\r\n  "])
}

/// A value, as it is spelled.
fn value() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        2 => prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned),
        3 => "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?",
        8 => string(),
    ];
    scalar.prop_recursive(5, 40, 5, |inner| {
        let name = prop_oneof![3 => "[a-z]{1,6}".prop_map(|s| format!("\"{s}\"")), 1 => string()];
        let member =
            (blank(), name, blank(), inner.clone()).prop_map(|(before, name, blank, value)| {
                format!("{before}{name}{blank}:{value}{before}")
            });
        prop_oneof![
            (blank(), prop::collection::vec(inner, 0..4))
                .prop_map(|(blank, items)| format!("[{blank}{}]", items.join(","))),
            (blank(), prop::collection::vec(member, 0..5))
                .prop_map(|(blank, items)| format!("{{{blank}{}}}", items.join(","))),
        ]
    })
}

/// A message with known, unknown and ambiguous members.
fn message() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        12 => prop::sample::select(vec!["jsonrpc", "id", "method", "params", "result", "error"]),
        3 => prop::sample::select(vec!["x", "y", "\\u0069d", "par\\u0061ms"]),
        1 => prop::sample::select(vec!["Method", "ID", "param\u{17f}", "_id", "\\u0049d"]),
    ];
    let value = prop_oneof![
        1 => value(),
        1 => value().prop_map(|v| format!("{{\"arguments\":{v} , \"name\":\"t\"}}")),
    ];
    let member = (blank(), name, value)
        .prop_map(|(blank, name, value)| format!("{blank}\"{name}\":{blank}{value}"));
    prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")))
}

#[test]
fn values_survive_and_have_one_spelling() {
    let written = std::cell::Cell::new((0, 0));
    for_a_second(value(), |text| {
        let (taken, all) = written.get();
        let done = holds(text.as_bytes())?;
        written.set((taken + u32::from(done), all + 1));
        Ok(())
    });
    let (taken, all) = written.get();
    assert!(taken * 2 > all, "{taken} of {all} texts were written");
}

#[test]
fn messages_survive_without_what_json_rpc_does_not_know() {
    let written = std::cell::Cell::new((0, 0));
    for_a_second(message(), |text| {
        let (taken, all) = written.get();
        let done = holds(text.as_bytes())?;
        written.set((taken + u32::from(done), all + 1));
        Ok(())
    });
    let (taken, all) = written.get();
    assert!(taken * 5 > all, "{taken} of {all} texts were written");
}

#[test]
fn any_bytes_are_borne() {
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(b"{}[]\",:\\u0e-1tfn \r\xc2\x85\xe2\x80\xa8".to_vec())
    ];
    for_a_second(prop::collection::vec(byte, 0..200), |bytes| {
        holds(&bytes).map(|_| ())
    });
}
