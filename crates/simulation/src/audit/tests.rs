use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use gate::effect::Effect;
use gate::facts::Value as FactValue;
use gate::journal::{
    Decision, Digest, Journal, JournalOptions, Keys, Micros, OpId, Operation, Record, RecordedFact,
    RecordedJob, ResponseSummary, Status, SyncPolicy, System, SystemEvent, format_utc,
};
use gate::reason::Reason;

use super::*;

/// 2026-11-21T03:38:09.123Z
const NOW_MS: i64 = 1_795_232_289_123;

/// A journal of small segments, removed at the end.
struct TestJournal {
    directory: PathBuf,
    journal: Journal,
    groups: [std::sync::Arc<str>; 1],
}

fn place() -> TestJournal {
    static PLACES: AtomicU64 = AtomicU64::new(0);
    let number = PLACES.fetch_add(1, Ordering::Relaxed);
    let name = format!("simulation-audit-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&directory);
    let mut byte = 0_u8;
    let mut random = move |bytes: &mut [u8]| {
        for to in bytes {
            byte = byte.wrapping_mul(5).wrapping_add(113);
            *to = byte;
        }
    };
    let options = JournalOptions {
        sync: SyncPolicy::Never,
        segment_bytes_max: 4 << 10,
        ..JournalOptions::default()
    };
    let keys = Keys::ephemeral(&mut random);
    let journal = Journal::open(&directory, &keys, options, [7; 16], NOW_MS, &mut random).unwrap();
    TestJournal {
        directory,
        journal,
        groups: ["operator".into()],
    }
}

impl Drop for TestJournal {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Returns the name of the call that came so many milliseconds after the beginning.
fn op(at: i64) -> OpId {
    OpId(u128::try_from(NOW_MS + at).unwrap() << 80)
}

impl TestJournal {
    fn write(&self, at: i64, record: &Record<'_>) {
        self.journal.append(NOW_MS + at, record).unwrap();
    }

    fn write_decision(&self, at: i64, server: &str, more: Decision<'_>) {
        let groups = FactValue::Names(&self.groups);
        let facts = [RecordedFact {
            name: "subject_groups",
            value: groups,
        }];
        let decision = Decision {
            op: op(at),
            subject_id: Some("ada"),
            backend_id: Some(server),
            arguments_digest: Some(Digest([0xab; 16])),
            facts: &facts,
            ..more
        };
        self.write(at, &Record::Decision(&decision));
    }

    fn write_end(&self, at: i64, later: i64, server: &str, tool: Option<&str>) {
        let operation = Operation {
            op: op(at),
            status: Status::Success,
            method: Some(if tool.is_some() {
                "tools/call"
            } else {
                "resources/read"
            }),
            tool_name: tool,
            backend_id: Some(server),
            response_summary: Some(ResponseSummary {
                size_bytes: 7,
                body_hash: Some(Digest([0xcd; 16])),
            }),
            duration_us: Micros::from_nanos(1_500_000),
            ..Operation::default()
        };
        self.write(at + later, &Record::Operation(&operation));
    }

    /// A call that was let through and has ended.
    fn call(&self, at: i64, server: &str, tool: Option<&str>) {
        let allowed = Decision {
            decision: Effect::Allow,
            mcp_method: Some("tools/call"),
            tool_name: tool,
            ..Decision::default()
        };
        self.write_decision(at, server, allowed);
        self.write_end(at, 0, server, tool);
    }

    fn read_events(&self, limit: usize, event_type: Option<&str>) -> Vec<Value> {
        let told = self.read(limit, event_type).unwrap();
        assert_eq!(told.get("notes"), None, "{told}");
        told["events"].as_array().unwrap().clone()
    }

    fn read(&self, limit: usize, event_type: Option<&str>) -> Result<Value, Fault> {
        let asked = EventQuery {
            limit,
            event_type: event_type.map(str::to_owned),
        };
        JournalReader::default().events(&self.directory, "pbpk", &asked)
    }
}

#[test]
fn calls_refusals_and_jobs_of_one_server_are_events() {
    let place = place();
    place.call(1, "pbpk", Some("load_simulation"));
    place.call(2, "other", Some("echo"));
    place.call(3, "pbpk", None);
    let refused = Decision {
        decision: Effect::Deny,
        reason: Some(Reason::DenyRule),
        mcp_method: Some("tools/call"),
        tool_name: Some("run_simulation"),
        ..Decision::default()
    };
    place.write_decision(4, "pbpk", refused);
    let job = System {
        op: Some(op(1)),
        backend_id: Some("pbpk"),
        job: Some(RecordedJob {
            id: "job_1",
            kind: "population",
            status: "succeeded",
            queue_wait_us: Micros::from_nanos(2_000_000),
            ran_us: Some(Micros::from_nanos(1_500_000_000)),
        }),
        ..System::of(SystemEvent::JobEnded)
    };
    place.write(5, &Record::System(&job));
    // It has no end yet.
    let begun = Decision {
        decision: Effect::Allow,
        tool_name: Some("run_simulation"),
        ..Decision::default()
    };
    place.write_decision(6, "pbpk", begun);

    let told = place.read_events(100, None);
    let types: Vec<&str> = told
        .iter()
        .map(|e| e["eventType"].as_str().unwrap())
        .collect();
    let expected = [
        "job.population.succeeded",
        "tool.run_simulation",
        "http.mcp.resources.read",
        "tool.load_simulation",
    ];
    assert_eq!(types, expected);
    for event in &told {
        let who = json!({"subject": "ada", "roles": ["operator"]});
        assert_eq!(event["identity"], who, "{event}");
    }
    let (given, arguments) = ("cd".repeat(16), "ab".repeat(16));
    assert_eq!(
        told[3]["tool"],
        json!({"name": "load_simulation", "argumentsDigest": arguments, "resultDigest": given, "status": "success", "durationMs": 1.5})
    );
    assert_eq!(told[3]["timestamp"], format_utc(NOW_MS + 1));
    assert_eq!(told[2]["request"]["bodyDigest"], arguments);
    assert_eq!(told[1]["tool"]["status"], "refused");
    assert_eq!(told[1]["error"], "denied_by_rule");
    assert_eq!(
        told[0]["job"],
        json!({"jobId": "job_1", "jobType": "population", "status": "succeeded", "finishedAt": format_utc(NOW_MS + 5),
            "queueWaitSeconds": 0.002, "runtimeSeconds": 1.5})
    );

    let of_type = place.read_events(100, Some("tool.run_simulation"));
    assert_eq!(of_type, told[1..2]);
    assert_eq!(place.read_events(100, Some("tool.none")), [] as [Value; 0]);
    assert_eq!(place.read_events(2, None), told[..2]);
}

#[test]
fn who_called_is_found_in_an_earlier_segment() {
    let place = place();
    let allowed = || Decision {
        decision: Effect::Allow,
        tool_name: Some("run_simulation"),
        ..Decision::default()
    };
    place.write_decision(1, "pbpk", allowed());
    // Segments of other calls between the two.
    for at in 2..40 {
        place.call(at, "other", Some("echo"));
    }
    place.write_end(1, 50, "pbpk", Some("run_simulation"));
    let files = std::fs::read_dir(&place.directory).unwrap().count();
    assert!(files > 4, "{files}");
    let [event] = &place.read_events(1, None)[..] else {
        panic!("one event")
    };
    assert_eq!(event["identity"]["subject"], "ada", "{event}");
    assert_eq!(event["tool"]["argumentsDigest"], "ab".repeat(16));
}

#[test]
fn a_large_journal_is_read_in_part_and_says_so() {
    let place = place();
    for at in 1..60 {
        place.call(at, "pbpk", Some("get_results"));
    }
    let reach = Reach {
        bytes_max: 6 << 10,
        segments_max: 100,
    };
    let read = |limit: usize| {
        let asked = EventQuery {
            limit,
            event_type: None,
        };
        let reader = JournalReader::default();
        reader
            .events_within(reach, &place.directory, "pbpk", &asked)
            .unwrap()
    };
    let cut = read(1_000);
    let found = cut["events"].as_array().unwrap().len();
    assert!((1..59).contains(&found), "{found}");
    assert_eq!(cut["events"][0]["timestamp"], format_utc(NOW_MS + 59));
    let note = cut["notes"][0].as_str().unwrap();
    assert!(note.contains("durward audit show"), "{note}");
    assert_eq!(read(1).get("notes"), None);
}

#[test]
fn one_reading_at_a_time() {
    let place = place();
    let reader = JournalReader::default();
    let under_way = reader.0.lock().unwrap();
    let asked = EventQuery {
        limit: 1,
        event_type: None,
    };
    let busy = reader.events(&place.directory, "pbpk", &asked).unwrap_err();
    assert_eq!(busy.kind, Kind::Busy);
    drop(under_way);
    assert!(reader.events(&place.directory, "pbpk", &asked).is_ok());
}

#[test]
fn names_that_no_tool_has_are_cut() {
    let place = place();
    let long = "é".repeat(1_000);
    place.call(1, "pbpk", Some(&long));
    let told = place.read_events(1, None);
    let name = told[0]["tool"]["name"].as_str().unwrap();
    // The journal keeps the first 128 bytes of a long name, its length and its digest.
    assert!(name.starts_with(&"é".repeat(64)), "{name}");
    assert!(name.chars().count() <= 129, "{name}");
}

#[test]
fn a_uri_has_one_spelling_and_the_limit_its_bounds() {
    let of = |limit: usize, event_type: Option<&str>| EventQuery {
        limit,
        event_type: event_type.map(str::to_owned),
    };
    for (uri, expect) in [
        ("sim://audit/events", of(100, None)),
        ("sim://audit/events?limit=1000", of(1_000, None)),
        (
            "sim://audit/events?eventType=tool.x",
            of(100, Some("tool.x")),
        ),
        (
            "sim://audit/events?limit=7&eventType=a%20%2F",
            of(7, Some("a /")),
        ),
    ] {
        assert_eq!(EventQuery::read(uri), Ok(expect), "{uri}");
    }
    for asked in [of(100, None), of(1, Some("ä?&=#"))] {
        assert_eq!(EventQuery::read(&asked.to_uri()), Ok(asked));
    }
    for (uri, said) in [
        (UNREAD, "a number from 1 to 1000"),
        ("sim://audit/events?limit=1001", "a number from 1 to 1000"),
        ("sim://audit/events?limit=x", "a number from 1 to 1000"),
        ("sim://audit/events?eventType=", "1 to 256 characters"),
        ("sim://audit/events?limit=1&limit=2", "given twice"),
        (
            "sim://audit/events?limit=01",
            "write sim://audit/events?limit=1",
        ),
        (
            "sim://audit/events?eventType=%74ool",
            "write sim://audit/events?eventType=tool",
        ),
        (
            "sim://audit/events?eventType=a&limit=1",
            "write sim://audit/events?limit=1&eventType=a",
        ),
        ("sim://audit/events?", "write sim://audit/events"),
        ("sim://audit/events?page=1", "no such part"),
        ("sim://audit/", "no such part"),
        ("sim://audits", "no such part"),
    ] {
        assert!(is_named(uri));
        let wrong = EventQuery::read(uri).unwrap_err();
        assert!(wrong.contains(said), "{uri}: {wrong}");
    }
}

#[test]
fn a_journal_that_cannot_be_read_says_why() {
    let place = place();
    place.call(1, "pbpk", Some("get_results"));
    let mut files: Vec<PathBuf> = std::fs::read_dir(&place.directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let changed = text.replacen("get_results", "get_resulzz", 1);
    assert_ne!(text, changed);
    std::fs::write(&files[0], changed).unwrap();
    let fault = place.read(1, None).unwrap_err();
    assert_eq!(fault.kind, Kind::InternalError);
    assert!(fault.message.contains("was changed"), "{fault}");
    assert!(
        fault.details[0]
            .hint
            .as_deref()
            .unwrap()
            .contains("durward audit verify")
    );
    std::fs::remove_dir_all(&place.directory).unwrap();
    let fault = place.read(1, None).unwrap_err();
    assert!(fault.message.contains("cannot read"), "{fault}");
}
