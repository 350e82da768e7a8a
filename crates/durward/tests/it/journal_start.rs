//! A closed segment that was changed: the next start ends, a repair sets the segment aside, and the configuration may have it
//! reported only.

use std::fs;
use std::process::Output;

use crate::support::guarded::{LATEST, Place, call_works, end, eventually};
use crate::support::serving::Served;
use journal_rate::{RateArgs, SyncMode};
use serde_json::{Value, json};

/// A place with one closed segment, of which one record was changed.
fn changed() -> Place {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "text");
    end(client);
    change(&place);
    place
}

/// Changes the name of a tool in the oldest segment.
fn change(place: &Place) {
    let segment = &place.segments()[0];
    let text = fs::read_to_string(segment).unwrap();
    let other = text.replacen("\"tool_name\":\"echo\"", "\"tool_name\":\"ecko\"", 1);
    assert_ne!(text, other);
    fs::write(segment, other).unwrap();
}

fn state(place: &Place, words: &[&str]) -> Output {
    place.durward(&[&["--no-config", "--state-dir", "state"], words].concat())
}

fn verdict(place: &Place, words: &[&str]) -> (Option<i32>, Value) {
    let output = state(place, &[&["audit", "verify", "--json"], words].concat());
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report)
}

/// `durward run` with nothing to read: it ends at once, whatever it finds.
fn started(place: &Place) -> (Option<i32>, String) {
    let mock = place.mock(&["echo"]);
    let words: Vec<&str> = mock.iter().map(String::as_str).collect();
    let args = place.run_args(&[], &words);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = place.durward(&args);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), err)
}

#[test]
fn a_start_ends_when_a_closed_segment_was_changed() {
    let place = changed();
    let (code, err) = started(&place);
    assert_eq!(code, Some(10), "{err}");
    let file = place.segments()[0].file_name().unwrap().to_owned();
    for part in [
        "the journal was changed",
        file.to_str().unwrap(),
        "its hash does not match",
        "durward audit repair",
    ] {
        assert!(err.contains(part), "{part:?} is not in {err}");
    }
    assert_eq!(place.segments().len(), 1, "no segment was begun");
}

#[test]
fn a_repair_keeps_the_evidence_and_the_journal_goes_on_sound() {
    let place = changed();
    let segment = place.segments().remove(0);
    let bytes = fs::read(&segment).unwrap();
    let done = state(&place, &["audit", "repair"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let aside: Vec<_> = fs::read_dir(place.path("state/set-aside"))
        .unwrap()
        .collect();
    let aside = aside[0].as_ref().unwrap().path();
    assert_eq!(
        fs::read(aside.join(segment.file_name().unwrap())).unwrap(),
        bytes
    );
    let report = fs::read(aside.join("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["findings"][0]["problem"], "changed", "{report}");
    assert!(aside.join("head.json").exists());
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "text");
    end(client);
    let (code, report) = verdict(&place, &[]);
    assert_eq!(code, Some(0), "{report}");
    place.journal().assert_event("segment_set_aside");
    let again = state(&place, &["audit", "repair"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(said.contains("nothing to repair"), "{said}");
}

#[test]
fn a_configuration_may_have_a_changed_segment_reported_only() {
    let place = changed();
    let mock = place.mock(&["echo"]);
    let (program, arguments) = mock.split_first().unwrap();
    let text = format!(
        "servers: {{ echo: {{ command: {}, args: {} }} }}\npolicy: policy.json\njournal: {{ verify: report }}\n",
        json!(program),
        json!(arguments)
    );
    fs::write(place.path("durward.yaml"), text).unwrap();
    let served = Served::start_ruled(place);
    let output = state(&served.place, &["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    let instance = &status["instances"][0];
    let finding = instance["journal_verified"]["finding"].as_str();
    assert!(
        finding.is_some_and(|text| text.contains("its hash does not match")),
        "{status}"
    );
    assert_eq!(instance["healthy"], false, "{status}");
    let metrics = served.send("GET", "/metrics", &[], "").body;
    assert!(
        metrics.contains("\ndurward_journal_altered 1\n"),
        "{metrics}"
    );
    let output = state(&served.place, &["audit", "show", "--kind", "system"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("journal_altered"), "{shown}");
}

#[test]
fn the_status_says_how_far_the_journal_is_verified() {
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    end(client);
    let served = Served::start_in(place, &[]);
    let output = state(&served.place, &["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verified = &status["instances"][0]["journal_verified"];
    assert_eq!(verified["complete"], true, "{status}");
    assert_eq!(verified["segments"], 1, "{status}");
    assert!(verified["back_to"].as_str().unwrap().ends_with('Z'));
    let output = state(&served.place, &["status"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("closed segments verified"), "{text}");
}

/// What takes longer than a start may take is verified beside the calls, with the same end.
#[test]
fn a_change_in_what_the_start_leaves_for_later_ends_the_instance() {
    let place = Place::new();
    let rate = RateArgs {
        directory: place.path("state"),
        writers: 16,
        records: 120_000,
        sync: SyncMode::Interval,
    };
    journal_rate::measure(&rate).unwrap();
    let segment = place.segments().remove(0);
    assert!(fs::metadata(&segment).unwrap().len() > 32 << 20);
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.len() / 2;
    let tool = b"\"tool_name\":\"";
    let found = bytes[at..]
        .windows(tool.len())
        .position(|part| part == tool);
    bytes[at + found.unwrap() + tool.len()] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let mut served = Served::start_in(place, &[]);
    eventually("the instance ends", || {
        served.process.try_wait().unwrap().is_some()
    });
    let (code, place) = served.ended();
    assert_eq!(code, Some(10));
    assert_eq!(verdict(&place, &[]).0, Some(1));
}

#[test]
fn a_job_can_verify_beside_a_running_instance() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    assert!(!session.is_empty());
    assert_eq!(verdict(&served.place, &[]).0, Some(3), "the end is open");
    let (code, report) = verdict(&served.place, &["--running"]);
    assert_eq!((code, &report["status"]), (Some(0), &json!("sound")));
    let mut served = served;
    served.process.kill().unwrap();
    served.process.wait().unwrap();
    eventually("the lock of the segment is gone", || {
        verdict(&served.place, &["--running"]).0 == Some(3)
    });
}
