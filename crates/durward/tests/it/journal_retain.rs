//! `journal.retain`: a journal that is held to a size, by the program that an operator starts.

use std::fs;

use serde_json::Value;

use crate::support::guarded::Place;
use crate::support::program::lab_command;
use crate::support::serving::Served;

const RETAIN: u64 = 8 << 20;
/// The segments that a journal of this size has.
const SEGMENT: u64 = RETAIN / 8;

fn place(journal: &str) -> Place {
    let place = Place::new();
    let mock = place.mock(&["echo"]);
    let (command, args) = mock.split_first().unwrap();
    let server = format!("  echo: {{ command: {command:?}, args: {args:?} }}\n");
    let text = format!("journal: {{ {journal} }}\nmcpServers:\n{server}");
    fs::write(place.dir.join("durward.yaml"), text).unwrap();
    place
}

/// The journal as `durward status --json` tells.
fn journal(place: &Place) -> Value {
    let words = ["--config", "durward.yaml", "--state-dir", "state", "status"];
    let output = place.durward(&[&words[..], &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let mut told: Value = serde_json::from_slice(&output.stdout).unwrap();
    told["journal"].take()
}

/// Calls for a second.
fn call(served: &Served) {
    let target = format!("http://{}/mcp/echo", served.address);
    let words = ["load", "tool", "--target", &target, "--quiet"];
    let long = ["--workers", "8", "--duration", "1s", "--out", "runs"];
    let output = served.place.within(lab_command().args(words).args(long));
    assert!(output.status.success(), "{output:?}");
}

/// The exit code of verification, and what it says.
fn verified(place: &Place) -> (Option<i32>, String) {
    let words = ["--no-config", "--state-dir", "state", "audit", "verify"];
    let output = place.durward(&words);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_journal_that_is_held_to_a_size_lets_its_oldest_records_go_and_verifies() {
    let served = Served::start_configured(place("retain: 8MiB"));
    let retired = |served: &Served| {
        let words = ["--no-config", "--state-dir", "state", "audit", "show"];
        // All that are left: by default only the latest are shown.
        let all = ["--json", "--limit", "1000000"];
        let output = served.place.durward(&[&words[..], &all].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).contains("segment_retired")
    };
    let mut largest = 0;
    for _ in 0..60 {
        call(&served);
        largest = largest.max(journal(&served.place)["size_bytes"].as_u64().unwrap());
        if largest + SEGMENT > RETAIN && retired(&served) {
            break;
        }
    }
    assert!(retired(&served), "nothing went of {largest} bytes");
    assert!(largest <= RETAIN + SEGMENT / 2, "{largest} bytes");
    let told = journal(&served.place);
    assert_eq!(told["retain_bytes"], RETAIN);
    assert!(told["segments"].as_u64().unwrap() <= 9, "{told}");
    let (_, text) = verified(&served.place);
    assert!(
        text.starts_with("open: ") || text.starts_with("sound: "),
        "{text}"
    );
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let (code, text) = verified(&place);
    assert!(code == Some(0) && text.starts_with("sound: "), "{text}");
}

#[test]
fn without_a_size_nothing_goes() {
    let served = Served::start_configured(place("warn_below: 0"));
    let mut told = journal(&served.place);
    while told["size_bytes"].as_u64().unwrap() < 2 * SEGMENT {
        call(&served);
        told = journal(&served.place);
    }
    assert_eq!(
        (&told["retain_bytes"], told["segments"].as_u64()),
        (&Value::Null, Some(1))
    );
}
