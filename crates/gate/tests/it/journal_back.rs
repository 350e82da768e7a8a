//! Looking back over a journal: the newest segments first, within a reach, and no further than a line that was changed.

use std::fs;
use std::path::Path;

use gate::journal::audit::{AuditError, Look, Problem, Reach, back};
use gate::journal::{JournalOptions, Line, Record};

use crate::journal_support::forging::{edit, replace};
use crate::journal_support::{NOW_MS, Place, calls, decision};

const ALL: Reach = Reach {
    bytes_max: u64::MAX,
    segments_max: usize::MAX,
};

/// Keeps what it is told.
#[derive(Default)]
struct Kept {
    records: Vec<(usize, u64, String)>,
    segments: usize,
    not_before_ms: Option<i64>,
}

impl Look for Kept {
    fn not_before_ms(&self) -> Option<i64> {
        self.not_before_ms
    }

    fn record(&mut self, segment: usize, line: &Line<'_>) -> Option<()> {
        let body: serde_json::Value = serde_json::from_slice(line.body).ok()?;
        let op = body["op"].as_str().unwrap_or_default().to_owned();
        self.records.push((segment, line.sequence, op));
        Some(())
    }

    fn segment_over(&mut self) {
        self.segments += 1;
    }
}

fn looked(directory: &Path, reach: Reach) -> (Kept, bool) {
    let mut kept = Kept::default();
    let is_all = back(directory, reach, &mut kept).unwrap();
    (kept, is_all)
}

fn problem(place: &Place) -> Problem {
    match back(&place.directory, ALL, &mut Kept::default()) {
        Err(AuditError::Altered { path, problem }) => {
            assert!(place.files().contains(&path), "{path:?}");
            problem
        }
        other => panic!("{other:?}"),
    }
}

/// A closed journal of many small segments.
fn rotated(name: &str) -> Place {
    let place = Place::new(name);
    let journal = place.open_with(JournalOptions {
        segment_bytes_max: 4 << 10,
        ..Place::options()
    });
    calls(&journal, 1..50);
    journal.close(NOW_MS, "stopped").unwrap();
    place
}

#[test]
fn segments_come_from_the_newest_on_and_the_reach_ends_it() {
    let place = rotated("back");
    let (all, is_all) = looked(&place.directory, ALL);
    let files = place.files();
    assert!(is_all && files.len() > 5 && all.segments == files.len());
    let segments: Vec<usize> = all.records.iter().map(|(segment, ..)| *segment).collect();
    assert!(segments.is_sorted_by(|a, b| a >= b), "{segments:?}");
    assert_eq!(segments.first(), Some(&(files.len() - 1)));
    let ops = |kept: &Kept| kept.records.iter().filter(|r| !r.2.is_empty()).count();
    assert_eq!(ops(&all), 2 * 49);

    let two = Reach {
        segments_max: 2,
        ..ALL
    };
    let (some, is_all) = looked(&place.directory, two);
    assert!(!is_all && some.segments == 2);
    assert_eq!(some.records[..], all.records[..some.records.len()]);

    // The end of the second newest segment, from its first whole line on.
    let newest = fs::metadata(&files[files.len() - 1]).unwrap().len();
    let part = Reach {
        bytes_max: newest + 2_000,
        ..ALL
    };
    let (part, is_all) = looked(&place.directory, part);
    assert!(!is_all && part.segments == 2);
    let of = |kept: &Kept| {
        let wanted = files.len() - 2;
        let all = kept.records.iter().filter(|r| r.0 == wanted);
        all.map(|r| r.1).collect::<Vec<u64>>()
    };
    let (whole, end) = (of(&all), of(&part));
    assert!(!end.is_empty() && end.len() < whole.len(), "{end:?}");
    assert_eq!(end[..], whole[whole.len() - end.len()..]);

    // What ended before it is wanted is passed over.
    let mut none = Kept {
        not_before_ms: Some(NOW_MS + 1),
        ..Kept::default()
    };
    assert!(back(&place.directory, ALL, &mut none).unwrap());
    assert_eq!(none.segments, 0);
}

#[test]
fn a_line_that_is_being_written_is_left_out() {
    let place = Place::new("back-torn");
    let journal = place.open();
    calls(&journal, 1..3);
    let file = place.files()[0].clone();
    let (whole, _) = looked(&place.directory, ALL);
    assert_eq!(whole.records.len(), 2 + 4);
    let mut bytes = fs::read(&file).unwrap();
    bytes.truncate(bytes.len() - 20);
    fs::write(&file, bytes).unwrap();
    let (torn, is_all) = looked(&place.directory, ALL);
    assert!(is_all);
    assert_eq!(torn.records[..], whole.records[..5]);
}

#[test]
fn what_was_changed_moved_put_in_or_taken_out_is_an_error() {
    let closed = |name: &str| {
        let place = Place::new(name);
        let journal = place.open();
        calls(&journal, 1..4);
        journal.close(NOW_MS, "stopped").unwrap();
        place
    };
    let place = closed("back-changed");
    edit(&place.files()[0], |lines| {
        replace(&mut lines[4], "/tmp/a", "/tmp/b")
    });
    assert_eq!(problem(&place), Problem::Changed { sequence: 4 });
    let place = closed("back-deleted");
    edit(&place.files()[0], |lines| drop(lines.drain(3..5)));
    assert_eq!(problem(&place), Problem::Deleted { first: 3, last: 4 });
    let place = closed("back-twice");
    edit(&place.files()[0], |lines| {
        let again = lines[3].clone();
        lines.insert(4, again);
    });
    assert_eq!(problem(&place), Problem::Inserted { sequence: 3 });
    let place = closed("back-nonsense");
    edit(&place.files()[0], |lines| lines[3] = b"nonsense".to_vec());
    assert_eq!(problem(&place), Problem::Malformed);
    let place = closed("back-headless");
    edit(&place.files()[0], |lines| drop(lines.remove(0)));
    assert_eq!(problem(&place), Problem::HeaderUnreadable);
    let place = closed("back-overwritten");
    let file = place.files()[0].clone();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() = b' ';
    fs::write(&file, bytes).unwrap();
    assert_eq!(problem(&place), Problem::Malformed);
}

#[test]
fn the_first_record_of_a_segment_follows_the_one_that_it_continues() {
    let place = Place::kept("back-continued");
    for at in 0..2_i64 {
        let journal = place.open_with_later(at);
        let record = decision(u128::try_from(at).unwrap());
        journal
            .append(NOW_MS + at, &Record::Decision(&record))
            .unwrap();
        journal.close(NOW_MS + at, "stopped").unwrap();
    }
    let (all, is_all) = looked(&place.directory, ALL);
    assert!(is_all && all.segments == 2);
}
