//! Records of a journal that is written here.

use std::fs;
use std::path::PathBuf;

use gate::effect::Effect;
use gate::journal::{
    Decision, Journal, JournalOptions, Keys, OpId, Operation, Record as Written, Status, SyncPolicy,
};

use super::*;
use crate::ErrorKind;

/// 2026-11-21T03:38:09.123Z
const NOW_MS: i64 = 1_795_232_289_123;

/// A state directory with a journal; removed when dropped.
struct StateDirectory(PathBuf);

impl StateDirectory {
    /// Seven decisions, three of them in one millisecond, each but the denied third with an operation.
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("admin-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let state = Self(path);
        let journal = state.open();
        for at in 1..=7_u8 {
            let op = OpId(u128::from(at));
            let time_ms = NOW_MS + i64::from(at.clamp(3, 5)) * 1_000;
            let decision = Decision {
                op,
                decision: if at == 3 { Effect::Deny } else { Effect::Allow },
                tool_name: Some("read_file"),
                ..Decision::default()
            };
            journal
                .append(time_ms, &Written::Decision(&decision))
                .unwrap();
            if at != 3 {
                let operation = Operation {
                    op,
                    status: Status::Success,
                    ..Operation::default()
                };
                journal
                    .append(time_ms, &Written::Operation(&operation))
                    .unwrap();
            }
        }
        journal.close(NOW_MS + 60_000, "stopped").unwrap();
        state
    }

    fn open(&self) -> Journal {
        let mut byte = 0_u8;
        let mut random = |bytes: &mut [u8]| {
            byte += 1;
            bytes.fill(byte);
        };
        let keys = Keys::open(&self.0.join("keys"), &mut random).unwrap();
        let options = JournalOptions {
            sync: SyncPolicy::Never,
            ..JournalOptions::default()
        };
        Journal::open(
            &self.journal(),
            &keys,
            options,
            [9; 16],
            NOW_MS,
            &mut random,
        )
        .unwrap()
    }

    fn journal(&self) -> PathBuf {
        self.0.join("journal")
    }
}

impl Drop for StateDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn query(limit: usize) -> CallQuery {
    CallQuery {
        filter: RecordKind::Decisions.filter(),
        limit,
        ..CallQuery::default()
    }
}

fn member(record: &Record, name: &str) -> String {
    let members = record.members().unwrap();
    members[name].as_str().unwrap().to_owned()
}

#[test]
fn pages_hold_every_record_once_at_every_limit() {
    let state = StateDirectory::new("pages");
    let all = list(&state.journal(), &query(PAGE_RECORDS_MAX)).unwrap();
    assert_eq!((all.records.len(), all.next), (7, None));
    for limit in 1..=8 {
        let (mut paged, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let query = CallQuery {
                cursor,
                ..query(limit)
            };
            let page = list(&state.journal(), &query).unwrap();
            assert!(page.records.len() <= limit);
            pages += 1;
            paged.splice(0..0, page.records);
            let Some(next) = page.next else { break };
            // The text of a cursor is the cursor.
            cursor = Some(next.to_string().parse().unwrap());
        }
        assert_eq!(paged, all.records, "limit {limit}");
        assert!(pages >= 7_usize.div_ceil(limit), "limit {limit}: {pages}");
    }
}

#[test]
fn a_text_that_is_no_cursor_is_malformed() {
    for text in ["", "5", ".", "a.1", "1.-1", "1.1000001"] {
        let error = text.parse::<PageCursor>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{text}");
        assert!(
            error.to_string().contains(&format!("\"{text}\"")),
            "{error}"
        );
    }
}

#[test]
fn decisions_have_the_status_of_their_operation_if_it_is_asked_for() {
    let state = StateDirectory::new("outcomes");
    for with_outcomes in [false, true] {
        let query = CallQuery {
            with_outcomes,
            ..query(10)
        };
        let page = list(&state.journal(), &query).unwrap();
        for record in &page.records {
            let members = record.members().unwrap();
            let is_denied = members["decision"] == "deny";
            let expect = (with_outcomes && !is_denied).then_some("Success");
            assert_eq!(members.get("status").and_then(Value::as_str), expect);
        }
    }
}

#[test]
fn a_page_as_data_holds_the_records_as_they_were_written() {
    let state = StateDirectory::new("data");
    let page = list(&state.journal(), &query(2)).unwrap();
    let text = serde_json::to_string(&page).unwrap();
    for record in &page.records {
        assert!(text.contains(std::str::from_utf8(record.body()).unwrap()));
    }
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["next"], page.next.unwrap().to_string());
    assert_eq!(value["skipped"], 0);
}

#[test]
fn kinds_are_counted_with_the_time_of_the_latest() {
    let state = StateDirectory::new("kinds");
    let counts = count_kinds(&state.journal()).unwrap();
    let count = |kind| {
        counts
            .kinds
            .iter()
            .find(|count| count.kind == kind)
            .unwrap()
    };
    assert_eq!(count(RecordKind::Decisions).records, 7);
    assert_eq!(count(RecordKind::Operations).records, 6);
    assert_eq!(
        count(RecordKind::Operations).latest,
        "2026-11-21T03:38:14.123Z"
    );
    assert_eq!(count(RecordKind::Auth).latest, "");
    assert_eq!(counts.skipped, 0);
}

#[test]
fn unreadable_lines_are_counted() {
    let state = StateDirectory::new("skipped");
    let mut paths = fs::read_dir(state.journal())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let path = paths.find(is_segment).unwrap();
    let bytes = [fs::read(&path).unwrap(), b"\xff\xff\n".to_vec()].concat();
    fs::write(&path, bytes).unwrap();
    let page = list(&state.journal(), &query(10)).unwrap();
    assert_eq!((page.records.len(), page.skipped), (7, 1));
}

#[test]
fn a_feed_has_the_records_that_are_written_after_it_was_opened() {
    let state = StateDirectory::new("feed");
    let mut feed = RecordFeed::open(&state.journal(), &RecordKind::Decisions.filter()).unwrap();
    let mut seen = Vec::new();
    feed.poll(&mut |record| seen.push(record)).unwrap();
    assert_eq!(seen, []);
    let journal = state.open();
    let decision = Decision {
        op: OpId(99),
        tool_name: Some("later"),
        ..Decision::default()
    };
    journal
        .append(NOW_MS + 70_000, &Written::Decision(&decision))
        .unwrap();
    journal.close(NOW_MS + 80_000, "stopped").unwrap();
    feed.poll(&mut |record| seen.push(record)).unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(member(&seen[0], "tool_name"), "later");
}

#[test]
fn a_journal_that_was_never_begun_is_not_found() {
    let path = PathBuf::from("/nowhere/journal");
    let errors = [
        check_journal(&path).unwrap_err(),
        list(&path, &query(1)).unwrap_err(),
        count_kinds(&path).unwrap_err(),
        RecordFeed::open(&path, &Filter::default()).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains("/nowhere/journal"), "{error}");
    }
}
