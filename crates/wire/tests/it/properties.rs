//! Properties of the scanner, the envelope, the framer and the reader of events, against independent readers.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use wire::{Bounds, FrameEvent, LineFramer, SseParser, WireErrorKind, scan_reply, scan_request};

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

/// What the oracle says of a text.
#[derive(Debug, PartialEq)]
enum Truth {
    Good,
    Duplicate,
    Bad,
}

/// A value that notes member names which stand twice in one object. Strings are read as text, so a lone
/// surrogate is an error; numbers are read as raw text, so none is out of range.
struct Oracle {
    duplicate: bool,
    depth: usize,
}

impl<'de> Deserialize<'de> for Oracle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OracleVisitor)
    }
}

struct OracleVisitor;

impl OracleVisitor {
    fn scalar<E>() -> Result<Oracle, E> {
        Ok(Oracle {
            duplicate: false,
            depth: 0,
        })
    }
}

impl<'de> Visitor<'de> for OracleVisitor {
    type Value = Oracle;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Oracle, E> {
        Self::scalar()
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Oracle, E> {
        Self::scalar()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Oracle, E> {
        Self::scalar()
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Oracle, E> {
        Self::scalar()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Oracle, E> {
        Self::scalar()
    }

    fn visit_unit<E: de::Error>(self) -> Result<Oracle, E> {
        Self::scalar()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Oracle, A::Error> {
        let mut sum = Oracle {
            duplicate: false,
            depth: 1,
        };
        while let Some(item) = items.next_element::<Oracle>()? {
            sum.duplicate |= item.duplicate;
            sum.depth = sum.depth.max(item.depth + 1);
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Oracle, A::Error> {
        let mut sum = Oracle {
            duplicate: false,
            depth: 1,
        };
        let mut names = HashSet::new();
        while let Some((name, value)) = members.next_entry::<String, Oracle>()? {
            sum.duplicate |= value.duplicate | !names.insert(name);
            sum.depth = sum.depth.max(value.depth + 1);
        }
        Ok(sum)
    }
}

fn truth(bytes: &[u8]) -> Truth {
    match serde_json::from_slice::<Oracle>(bytes) {
        Ok(oracle) if oracle.duplicate => Truth::Duplicate,
        Ok(_) => Truth::Good,
        Err(_) => Truth::Bad,
    }
}

/// Numbers beyond a double's range are JSON; the oracle alone refuses them.
fn has_large_exponent(bytes: &[u8]) -> bool {
    let digit_run = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    (0..bytes.len()).any(|at| {
        let rest = &bytes[at..];
        let exponent = matches!(rest[0], b'e' | b'E')
            && digit_run(rest[1..].strip_prefix(b"+").unwrap_or(&rest[1..])) > 2;
        exponent || digit_run(rest) > 300
    })
}

fn agrees(bytes: &[u8]) -> Result<(), TestCaseError> {
    // The oracle's own bound on depth is 128 too; deeper texts have a test of their own.
    let found = scan_request(bytes, &Bounds::default());
    match found.as_ref().map_err(|e| e.kind) {
        Ok(_) if has_large_exponent(bytes) => {}
        Ok(_) => prop_assert_eq!(truth(bytes), Truth::Good),
        Err(WireErrorKind::DuplicateKey) => prop_assert_ne!(truth(bytes), Truth::Good),
        Err(WireErrorKind::Syntax | WireErrorKind::NotUtf8) => {
            // A duplicate before the fault does not make the text good.
            prop_assert_eq!(truth(bytes), Truth::Bad);
        }
        Err(WireErrorKind::TooDeep) => {
            let depth = bytes.iter().filter(|b| matches!(b, b'[' | b'{')).count();
            prop_assert!(depth > 128);
        }
        Err(other) => prop_assert!(false, "{:?} of {:?}", other, bytes),
    }
    // A reply may hold duplicates below its envelope; in all else it is as strict.
    let reply = scan_reply(bytes, &Bounds::default());
    match (found, reply) {
        (Ok(_), Err(fault)) => prop_assert!(false, "a good request is a bad reply: {}", fault),
        (Err(fault), Ok(_)) => prop_assert_eq!(fault.kind, WireErrorKind::DuplicateKey),
        _ => {}
    }
    Ok(())
}

/// Strings as they are spelled: plain, escaped, malformed.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-c]",
        2 => Just("\\u0061".to_owned()),
        1 => Just("\\u0062".to_owned()),
        1 => Just("\\n".to_owned()),
        1 => Just("\\/".to_owned()),
        1 => Just("é".to_owned()),
        1 => Just("\\ud83d\\ude00".to_owned()),
        1 => Just("\\ud800".to_owned()),
        1 => Just("\\udc00".to_owned()),
        1 => Just("\\x".to_owned()),
        1 => Just("\u{1}".to_owned()),
    ];
    prop::collection::vec(piece, 0..3).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// Texts that are nearly always JSON, with names from so small a set that duplicates are common.
fn nearly_json() -> impl Strategy<Value = String> {
    let good_string = "[a-c]{0,2}".prop_map(|s| format!("\"{s}\""));
    let scalar = prop_oneof![
        1 => Just("null".to_owned()),
        1 => Just("true".to_owned()),
        1 => Just("false".to_owned()),
        3 => "-?(0|[1-9][0-9]{0,4})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        8 => good_string,
        2 => string(),
    ];
    let blank = prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\t\r ")];
    scalar.prop_recursive(5, 40, 5, move |inner| {
        let name = prop_oneof![8 => "[a-e]".prop_map(|s| format!("\"{s}\"")), 1 => string()];
        let member = (name, blank.clone(), inner.clone())
            .prop_map(|(name, blank, value)| format!("{name}{blank}:{blank}{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..5)
                .prop_map(|items| format!("{{{}}}", items.join(", "))),
        ]
    })
}

#[test]
fn the_scanner_accepts_what_json_is_and_nothing_else() {
    for_a_second(nearly_json(), |text| agrees(text.as_bytes()));
}

#[test]
fn the_scanner_agrees_on_changed_texts() {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    for_a_second(
        (nearly_json(), prop::collection::vec(change, 1..4)),
        |(text, changes)| {
            let mut bytes = text.into_bytes();
            for (at, byte, how) in changes {
                let at = at.index(bytes.len().max(1));
                match how {
                    0 => bytes.insert(at.min(bytes.len()), byte),
                    1 if at < bytes.len() => {
                        bytes.remove(at);
                    }
                    _ if at < bytes.len() => bytes[at] = byte,
                    _ => {}
                }
            }
            agrees(&bytes)
        },
    );
}

#[test]
fn the_scanner_bears_any_bytes() {
    let bytes = prop::collection::vec(
        prop_oneof![
            any::<u8>(),
            prop::sample::select(br#"{}[]",:\u0e-1tfn"#.to_vec())
        ],
        0..200,
    );
    for_a_second(bytes, |bytes| agrees(&bytes));
}

#[test]
fn depth_is_bounded_exactly() {
    for_a_second((1..300_usize, any::<bool>()), |(depth, objects)| {
        let (open, middle, close) = if objects {
            ("{\"a\":", "1", "}")
        } else {
            ("[", "", "]")
        };
        let text = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
        let found = scan_request(text.as_bytes(), &Bounds::default());
        prop_assert_eq!(found.is_ok(), depth <= 128);
        if depth <= 127 {
            prop_assert_eq!(truth(text.as_bytes()), Truth::Good);
        }
        Ok(())
    });
}

/// Members that make, or nearly make, a message.
fn nearly_a_message() -> impl Strategy<Value = String> {
    let member = prop_oneof![
        6 => Just(r#""jsonrpc":"2.0""#),
        1 => Just(r#""jsonrpc":"1.0""#),
        1 => Just(r#""jsonrpc":2.0"#),
        3 => Just(r#""id":1"#),
        2 => Just(r#""id":"x""#),
        1 => Just(r#""id":null"#),
        1 => Just(r#""id":{}"#),
        3 => Just(r#""method":"tools/call""#),
        1 => Just(r#""method":1"#),
        2 => Just(r#""params":{"name":"a"}"#),
        1 => Just(r#""params":7"#),
        2 => Just(r#""result":{}"#),
        2 => Just(r#""error":{"code":1}"#),
        1 => Just(r#""x":[1]"#),
    ];
    prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")))
}

/// The rules of JSON-RPC 2.0 as MCP narrows them, over a parsed value.
fn kind_by_rules(value: &serde_json::Value) -> Option<&'static str> {
    let members = value.as_object()?;
    let has = |name: &str| members.contains_key(name);
    if members.get("jsonrpc")? != "2.0" {
        return None;
    }
    let id = members.get("id");
    let usable = id.is_none_or(|id| id.is_number() || id.is_string());
    if has("method") {
        let params = members
            .get("params")
            .is_none_or(|p| p.is_object() || p.is_array());
        let whole = members["method"].is_string() && params && usable;
        if !whole || has("result") || has("error") {
            return None;
        }
        return Some(if id.is_some() {
            "request"
        } else {
            "notification"
        });
    }
    let unread = id.is_some_and(serde_json::Value::is_null) && has("error");
    ((has("result") != has("error")) && id.is_some() && (usable || unread)).then_some("response")
}

#[test]
fn the_envelope_knows_a_message_by_the_rules() {
    for_a_second(nearly_a_message(), |text| {
        let Ok(scan) = scan_request(text.as_bytes(), &Bounds::default()) else {
            prop_assert_eq!(truth(text.as_bytes()), Truth::Duplicate);
            return Ok(());
        };
        let found = wire::jsonrpc::Envelope::of(&scan)
            .ok()
            .map(|envelope| match envelope.kind {
                wire::jsonrpc::Kind::Request { .. } => "request",
                wire::jsonrpc::Kind::Notification { .. } => "notification",
                wire::jsonrpc::Kind::Response { .. } => "response",
            });
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(found, kind_by_rules(&value), "{}", text);
        // What is noted is what stands there.
        for (name, raw) in &scan.members {
            let noted: serde_json::Value = serde_json::from_str(raw).unwrap();
            prop_assert_eq!(&noted, &value[name.as_ref()]);
        }
        Ok(())
    });
}

#[test]
fn the_framer_cuts_the_same_lines_in_any_portions() {
    let byte = prop_oneof![6 => Just(b'x'), 2 => Just(b'\n'), 1 => Just(b'\r'), 1 => Just(b' '), 1 => any::<u8>()];
    let stream = prop::collection::vec(byte, 0..400);
    let portions = prop::collection::vec(1..50_usize, 1..40);
    const BYTES_MAX: usize = 20;
    for_a_second((stream, portions), |(stream, portions)| {
        let mut framer = LineFramer::new(BYTES_MAX);
        let mut seen: Vec<Option<Vec<u8>>> = Vec::new();
        let (mut rest, mut sizes) = (&stream[..], portions.iter().cycle());
        while !rest.is_empty() {
            let (part, tail) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            framer.push(part);
            while let Some(event) = framer.next() {
                seen.push(match event {
                    FrameEvent::Frame(frame) => Some(frame.to_vec()),
                    FrameEvent::TooLong(_) => None,
                });
            }
            rest = tail;
        }
        let lines: Vec<&[u8]> = stream.split(|b| *b == b'\n').collect();
        let (unfinished, whole) = lines.split_last().unwrap();
        let expected: Vec<Option<Vec<u8>>> = whole
            .iter()
            .filter(|line| line.len() > BYTES_MAX || !line.iter().all(u8::is_ascii_whitespace))
            .map(|line| {
                let cut = line.strip_suffix(b"\r").unwrap_or(line);
                (line.len() <= BYTES_MAX).then(|| cut.to_vec())
            })
            .collect();
        prop_assert_eq!(seen, expected);
        if unfinished.len() <= BYTES_MAX {
            prop_assert_eq!(framer.remainder(), *unfinished);
        }
        Ok(())
    });
}

/// A stream of events in bytes that matter to their grammar.
fn nearly_events() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec!["data:", "data: x", "id: 7", "id", "event: m", "retry: 5", ":", ": c"])
            .prop_map(|text| text.as_bytes().to_vec()),
        8 => prop::sample::select(vec!["\n", "\r", "\r\n", "\n\n", "\r\n\r\n"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Events by name and data.
type Events = Vec<(Vec<u8>, Vec<u8>)>;

/// The events and the last id: from the whole stream at once.
fn events_by_rules(stream: &[u8]) -> (Events, Option<Vec<u8>>) {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut even = Vec::new();
    for (at, byte) in stream.iter().enumerate() {
        match byte {
            b'\r' => even.push(b'\n'),
            b'\n' if at > 0 && stream[at - 1] == b'\r' => {}
            other => even.push(*other),
        }
    }
    let mut lines: Vec<&[u8]> = even.split(|b| *b == b'\n').collect();
    lines.pop();
    let (mut events, mut data, mut name, mut id) = (Vec::new(), Vec::new(), Vec::new(), None);
    for line in lines {
        let mut parts = line.splitn(2, |b| *b == b':');
        let field = parts.next().unwrap();
        let value = parts.next().unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
        match field {
            _ if line.is_empty() => {
                let data: Vec<Vec<u8>> = std::mem::take(&mut data);
                let name = std::mem::take(&mut name);
                if !data.is_empty() {
                    events.push((name, data.join(&b'\n')));
                }
            }
            b"data" => data.push(value),
            b"event" => name = value,
            b"id" if !value.contains(&0) => id = Some(value),
            _ => {}
        }
    }
    let readable = |id: &Vec<u8>| !id.is_empty() && std::str::from_utf8(id).is_ok();
    (events, id.filter(readable))
}

#[test]
fn events_are_the_same_in_any_portions() {
    let portions = prop::collection::vec(1..20_usize, 1..40);
    for_a_second((nearly_events(), portions), |(stream, portions)| {
        let (expected, id) = events_by_rules(&stream);
        let single = vec![1];
        for sizes in [&portions, &single] {
            let mut parser = SseParser::default();
            let mut seen = Vec::new();
            let (mut rest, mut sizes) = (&stream[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let (part, tail) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                parser.push(part);
                while let Some(event) = parser.next().unwrap() {
                    seen.push((event.name.to_vec(), event.data.to_vec()));
                }
                rest = tail;
            }
            prop_assert_eq!(&seen, &expected);
            prop_assert_eq!(parser.last_event_id().map(str::as_bytes), id.as_deref());
        }
        Ok(())
    });
}

#[test]
fn header_values_come_back_as_they_were() {
    for_a_second(".*", |value| {
        let written = wire::header::encode(&value);
        prop_assert!(written.bytes().all(|b| (0x20..=0x7e).contains(&b)));
        let read = wire::header::decode(written.as_bytes());
        prop_assert_eq!(read.as_deref(), Ok(value.as_str()));
        Ok(())
    });
}
