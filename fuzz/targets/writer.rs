//! Any arguments through the writer of canonical frames, and through the masks of the inspection: three other parsers
//! read of what was written what they read of what came.
#![no_main]

use std::sync::OnceLock;

use gate::inspect::{Action, Finds, Inspection, Rule, Way, pattern};
use gate::labels::Labels;
use json_event_parser::{JsonEvent, SliceJsonParser};
use libfuzzer_sys::fuzz_target;
use tinyjson::JsonValue;
use wire::{Bounds, Canonical};

/// The events of a text as a streaming parser gives them: order and spelling of numbers included.
fn events(text: &str) -> Option<Vec<String>> {
    let mut parser = SliceJsonParser::new(text.as_bytes());
    let mut events = Vec::new();
    loop {
        match parser.parse_next().ok()? {
            JsonEvent::Eof => return Some(events),
            event => events.push(format!("{event:?}")),
        }
    }
}

fn tree(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}

/// A plain tree of a parser that nobody here wrote; not a number is not equal to itself, so it is compared as text.
fn plain(text: &str) -> Option<String> {
    let value: JsonValue = text.parse().ok()?;
    Some(format!("{:?}", sorted(value)))
}

/// Members by their names: that parser keeps them in no order.
#[derive(Debug)]
#[expect(dead_code, reason = "compared by what it prints")]
enum Sorted {
    Leaf(JsonValue),
    Items(Vec<Sorted>),
    Members(std::collections::BTreeMap<String, Sorted>),
}

fn sorted(value: JsonValue) -> Sorted {
    match value {
        JsonValue::Array(items) => Sorted::Items(items.into_iter().map(sorted).collect()),
        JsonValue::Object(members) => Sorted::Members(
            members
                .into_iter()
                .map(|(name, value)| (name, sorted(value)))
                .collect(),
        ),
        leaf => Sorted::Leaf(leaf),
    }
}

/// Masks every run of three letters `x`, and digits behind `id`.
fn inspection() -> &'static Inspection {
    static INSPECTION: OnceLock<Inspection> = OnceLock::new();
    INSPECTION.get_or_init(|| {
        let patterns = ["x{3,}", "id[0-9]+"].map(|text| pattern(text).expect("a pattern"));
        Inspection::new(vec![Rule {
            name: "m\"\\\u{2028}".into(),
            finds: Finds::Patterns(patterns.into()),
            requests: true,
            results: true,
            servers: Vec::new(),
            action: Action::Mask,
            labels: Labels::default(),
        }])
    })
}

/// What each parser reads of both texts is the same. `came` was accepted, so whoever reads it has to read `written`.
fn read_alike(came: &str, written: &str) {
    if let Some(of_came) = tree(came) {
        assert_eq!(tree(written), Some(of_came), "{came:?} {written:?}");
    }
    if let Some(of_came) = events(came) {
        assert_eq!(events(written), Some(of_came), "{came:?} {written:?}");
    }
    if let Some(of_came) = plain(came) {
        assert_eq!(plain(written), Some(of_came), "{came:?} {written:?}");
    }
}

/// Whether the text closed the message's own braces and added a member that JSON-RPC does not know: of a request it is
/// dropped.
fn drops(frame: &str, bounds: &Bounds) -> bool {
    let own = ["jsonrpc", "id", "method", "params", "result"];
    let scan = wire::scan_request(frame.as_bytes(), bounds);
    scan.is_ok_and(|scan| scan.members.iter().any(|(name, _)| !own.contains(&&**name)))
}

fuzz_target!(|text: &str| {
    let bounds = Bounds::default();
    for frame in [
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{text}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":"a","result":{text}}}"#),
    ] {
        let Ok(canonical) = Canonical::of(frame.as_bytes(), &bounds) else {
            continue;
        };
        if drops(&frame, &bounds) {
            continue;
        }
        read_alike(&frame, canonical.text());
        let (masked, finding) = inspection().value(Way::Request, "s", canonical.text(), &[]);
        let Some(finding) = finding else {
            assert_eq!(masked, canonical.text());
            continue;
        };
        // A match in a member's name is refused and not masked.
        let again = Canonical::of(masked.as_bytes(), &bounds).expect("a masked message is one");
        read_alike(&masked, again.text());
        let left = inspection().value(Way::Request, "s", &masked, &[]).1;
        let masks_left = left.map_or(0, |found| found.masked());
        assert_eq!(masks_left, 0, "{} masked in {masked:?}", finding.masked());
    }
});
