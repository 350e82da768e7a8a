//! What a caller can make a record weigh is bounded: a long text is recorded as its length, its keyed digest and its beginning.

use std::fs;

use crate::serve_callers::{modern_call, reason, two_callers};
use crate::support::guarded::{LATEST, Place, end};
use crate::support::serving::{Served, modern, modern_headers};
use serde_json::json;

/// Most bytes that one refused call may add to the journal.
const CALL_BYTES_MAX: u64 = 64 * 1024;

fn size(place: &Place) -> u64 {
    let sizes = place
        .segments()
        .into_iter()
        .map(|path| fs::metadata(path).unwrap().len());
    sizes.sum()
}

#[test]
fn long_texts_of_a_caller_weigh_little_and_every_reader_takes_them() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"echo-only","effect":"allow","conditions":{"tool_name":"echo"}}]}"#,
    );
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    let name = "n".repeat(250_000);
    let calls = [
        json!({"name": name, "arguments": {}}),
        json!({"name": "read_file", "arguments": {"path": format!("/{}", "p".repeat(60_000))}}),
        json!({"name": "move_file", "arguments": {
            "source": format!("/{}", "s/".repeat(30_000)),
            "destination": format!("/{}", "\u{1}".repeat(30_000)),
            "paths": vec![format!("/{}", "q".repeat(3_000)); 60],
        }}),
    ];
    for call in &calls {
        let before = size(&place);
        client.request("tools/call", call.clone()).unwrap();
        let added = size(&place) - before;
        assert!(added <= CALL_BYTES_MAX, "{added} bytes");
    }
    end(client);
    let journal = place.journal();
    let long = journal
        .0
        .iter()
        .find(|record| record["tool_name"].is_object())
        .unwrap();
    assert_eq!(long["decision"], "deny", "{long}");
    assert_eq!(long["tool_name"]["bytes"], 250_000, "{long}");
    let digest = long["tool_name"]["digest"].as_str().unwrap();
    assert_eq!(digest.len(), 32, "{long}");
    let start = long["tool_name"]["start"].as_str().unwrap();
    assert_eq!(start, &name[..128]);
    let run = |words: &[&str]| {
        let args = [&["--no-config", "--state-dir", "state"], words].concat();
        let output = place.durward(&args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text, output.stderr)
    };
    let (code, text, err) = run(&["logs", "--refused"]);
    assert_eq!((code, err.len()), (Some(0), 0), "{text} {err:?}");
    assert!(text.lines().count() >= 4 && text.len() < 4_000, "{text}");
    let (code, text, _) = run(&["audit", "show", "--decision", "deny"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(digest), "{text}");
    // Of a call that is not recorded whole, another policy cannot always be judged, and never wrongly.
    fs::write(
        place.path("other.json"),
        r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"n*"}}]}"#,
    )
    .unwrap();
    let (_, text, err) = run(&["policy", "replay", "--policy", "other.json", "--json"]);
    assert!(text.contains("undecidable"), "{text} {err:?}");
}

/// A caller has its bytes of records in a minute, whatever it calls; beyond them its calls leave a count.
#[test]
fn calls_of_one_key_with_long_paths_stop_growing_the_journal() {
    const CALLS: usize = 200;
    const JOURNAL_BYTES_MAX: u64 = 1024 * 1024;
    let (place, one, other) = two_callers();
    let help = place.durward(&["serve", "--help"]);
    let bounded = ["--limit-journal-bytes", "256KiB"];
    // A program that has no such limit writes all of it.
    let flags = match String::from_utf8_lossy(&help.stdout).contains(bounded[0]) {
        true => &bounded[..],
        false => &[],
    };
    let served = Served::start_in(place, flags);
    let before = size(&served.place);
    let long: Vec<String> = (0..60)
        .map(|path| format!("/{path}/{}", "q".repeat(700)))
        .collect();
    let arguments = json!({"text": "x", "paths": long});
    let params = format!(r#""name":"echo","arguments":{arguments}"#);
    let mut headers = modern_headers("tools/call", "echo");
    headers.push(("authorization", &one));
    let reasons: Vec<_> = (0..CALLS)
        .map(|id| {
            let body = modern(&id.to_string(), "tools/call", &params);
            reason(&served.send("POST", "/mcp/echo", &headers, &body))
        })
        .collect();
    let added = size(&served.place) - before;
    assert!(
        added <= JOURNAL_BYTES_MAX,
        "{added} bytes, {:?}",
        reasons[0]
    );
    let limited = |reason: &&Option<String>| reason.as_deref() == Some("journal_bytes_limited");
    assert!(!limited(&&reasons[0]), "{:?}", reasons[0]);
    // Some are earned again while the test runs.
    let refused = reasons.iter().filter(limited).count();
    assert!(refused > CALLS / 2, "{refused}");
    assert_eq!(reason(&modern_call(&served, &other, "900")), None);
}
