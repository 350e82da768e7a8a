//! Any bytes through the writer of canonical frames: no panic, one spelling, the same value.
#![no_main]

use json_event_parser::{JsonEvent, SliceJsonParser};
use libfuzzer_sys::fuzz_target;
use wire::canonical::NameTree;
use wire::{Bounds, Canonical, WireErrorKind, jsonrpc, scan_request};

/// The events of a text, without members of the message that the writer drops.
fn events(text: &str) -> Vec<String> {
    let mut parser = SliceJsonParser::new(text.as_bytes());
    let mut events = Vec::new();
    loop {
        match parser.parse_next().expect("a text that was accepted") {
            JsonEvent::Eof => return events,
            event => events.push(format!("{event:?}")),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let bounds = Bounds::default();
    let scan = scan_request(bytes, &bounds);
    let canonical = match Canonical::of(bytes, &bounds) {
        Ok(canonical) => canonical,
        Err(fault) => {
            assert!(fault.at <= bytes.len());
            if scan.is_ok() {
                assert_eq!(fault.kind, WireErrorKind::AmbiguousMember);
            }
            return;
        }
    };
    let text = canonical.text();
    assert!(!text.contains(['\r', '\n', '\u{85}', '\u{2028}', '\u{2029}']));
    let again = Canonical::of(text.as_bytes(), &bounds).expect("its own text");
    assert_eq!(again.text(), text);
    let (noted, noted_again) = (canonical.scan(), again.scan());
    assert_eq!(noted.members, noted_again.members);
    assert_eq!(noted.params, noted_again.params);
    assert_eq!(noted.reply, noted_again.reply);
    assert_eq!(noted.leaves, noted_again.leaves);
    assert_eq!(noted.objects, noted_again.objects);
    for (name, raw) in noted.members.iter().chain(&noted.params) {
        assert!(
            scan_request(raw.as_bytes(), &bounds).is_ok() || scan.is_err(),
            "{name}"
        );
    }
    let mut declared = NameTree::default();
    declared.declare("a").declare("B");
    let _ = canonical.arguments_are(&declared);
    let _ = canonical.envelope();

    let input = std::str::from_utf8(bytes).expect("a text that was accepted");
    let read: serde_json::Value = match serde_json::from_str(input) {
        Ok(value) => value,
        // Numbers out of range and depth are that reader's own bounds.
        Err(_) => return,
    };
    let mut expected = read;
    let dropped = drop_unknown(&mut expected);
    let written: serde_json::Value = serde_json::from_str(text).expect("its own text");
    assert_eq!(written, expected);
    if !dropped {
        assert_eq!(events(text), events(input));
    }
});

/// What the writer says that it drops; whether that was anything.
fn drop_unknown(value: &mut serde_json::Value) -> bool {
    let Some(members) = value.as_object_mut() else {
        return false;
    };
    let before = members.len();
    if members.contains_key("method") {
        members.retain(|name, _| jsonrpc::MEMBERS.contains(&name.as_str()));
    }
    members.len() != before
}
