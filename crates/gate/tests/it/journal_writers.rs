//! Many writers, in one process and in several; segments that follow one another; writers that are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::journal_support::{self, NOW_MS, Place, calls, decision, operation};
use gate::journal::audit::{Filter, Follower, Kind, Note, VerifyReport, latest, verify};
use gate::journal::{Cadence, JournalOptions, Keys, OpId, PublicKey, Record, SyncPolicy};

fn report(place: &Place, key: PublicKey) -> VerifyReport {
    verify(&place.directory, &[key]).unwrap()
}

#[test]
fn sixteen_threads_write_one_dense_chain() {
    for sync in [
        SyncPolicy::Never,
        SyncPolicy::Every,
        SyncPolicy::Interval { interval_ms: 1 },
    ] {
        let place = Place::new("threads");
        let checkpoints = Cadence {
            records_max: 100,
            ..Cadence::default()
        };
        let journal = Arc::new(place.open_with(JournalOptions {
            sync,
            checkpoints,
            ..Place::options()
        }));
        let writers: Vec<_> = (0..16_u128)
            .map(|writer| {
                let journal = Arc::clone(&journal);
                std::thread::spawn(move || {
                    (0..100_u128)
                        .flat_map(|at| {
                            let op = writer * 1_000 + at;
                            let first = journal
                                .append(NOW_MS, &Record::Decision(&decision(op)))
                                .unwrap();
                            let second = journal
                                .append(NOW_MS, &Record::Operation(&operation(op)))
                                .unwrap();
                            assert!(first.sequence < second.sequence);
                            [first.sequence, second.sequence]
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let sequences: BTreeSet<_> = writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect();
        assert_eq!(sequences.len(), 3_200);
        journal.close(NOW_MS, "stopped").unwrap();
        let report = report(&place, place.keys.public());
        assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
        // The header, the first checkpoint, one before every hundredth record but the first, the closing record.
        assert_eq!(report.records, 3_200 + 2 + 31 + 1);
    }
}

#[test]
fn sixteen_threads_rotate_without_a_gap() {
    let place = Place::new("rotate");
    let journal = Arc::new(place.open_with(JournalOptions {
        segment_bytes_max: 16 << 10,
        ..Place::options()
    }));
    let writers: Vec<_> = (0..16_u128)
        .map(|writer| {
            let journal = Arc::clone(&journal);
            std::thread::spawn(move || calls(&journal, writer * 1_000..writer * 1_000 + 50))
        })
        .collect();
    writers
        .into_iter()
        .for_each(|writer| writer.join().unwrap());
    journal.close(NOW_MS, "stopped").unwrap();
    let files = place.files();
    assert!(files.len() > 20, "{}", files.len());
    for file in &files {
        assert!(std::fs::metadata(file).unwrap().len() <= 16 << 10);
    }
    let report = report(&place, place.keys.public());
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
    let (operations, unreadable) = latest(
        &place.directory,
        &Filter {
            kind: Some(Kind::Operation),
            ..Filter::default()
        },
        usize::MAX,
    )
    .unwrap();
    assert_eq!((operations.len(), unreadable), (800, 0));
}

#[test]
fn p01_the_latest_records_of_instances_that_run_at_once_are_in_the_order_of_time() {
    let place = Place::kept("order");
    // The second instance began later; the first writes on beside it.
    let journals: Vec<_> = (0..3).map(|at| place.open_with_later(at)).collect();
    let mut expected = Vec::new();
    for op in 1..=60_u128 {
        let at = NOW_MS + 1_000 + i64::try_from(op).unwrap() * 10;
        let journal = &journals[(op * 7 % 11 % 3) as usize];
        let record = decision(op);
        journal.append(at, &Record::Decision(&record)).unwrap();
        expected.push(record.op.to_string());
    }
    let wanted = Filter {
        kind: Some(Kind::Decision),
        ..Filter::default()
    };
    for limit in [1, 2, 7, 59, 60, 61] {
        let (bodies, unreadable) = latest(&place.directory, &wanted, limit).unwrap();
        let ops: Vec<String> = bodies
            .iter()
            .map(|body| {
                let body: serde_json::Value = serde_json::from_slice(body).unwrap();
                body["op"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(unreadable, 0);
        assert_eq!(ops, expected[60_usize.saturating_sub(limit)..], "{limit}");
    }
}

#[test]
fn a_segment_smaller_than_a_record_still_takes_one() {
    let place = Place::new("small");
    let journal = place.open_with(JournalOptions {
        segment_bytes_max: 1,
        ..Place::options()
    });
    calls(&journal, 1..4);
    journal.close(NOW_MS, "stopped").unwrap();
    assert_eq!(place.files().len(), 6);
    let report = report(&place, place.keys.public());
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
}

#[test]
fn checkpoints_come_by_time_and_on_a_tick() {
    let place = Place::new("time");
    let journal = place.open();
    journal.tick(NOW_MS + 120_000).unwrap();
    calls(&journal, 1..2);
    journal.tick(NOW_MS + 59_999).unwrap();
    journal.tick(NOW_MS + 60_000).unwrap();
    journal.tick(NOW_MS + 180_000).unwrap();
    journal
        .append(NOW_MS, &Record::Decision(&decision(2)))
        .unwrap();
    // No tick came in time: the record brings its checkpoint along.
    journal
        .append(NOW_MS + 60_000, &Record::Operation(&operation(2)))
        .unwrap();
    journal.close(NOW_MS + 60_000, "stopped").unwrap();
    let report = report(&place, place.keys.public());
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
    assert_eq!((report.records, report.signatures), (9, 4));
}

#[test]
fn a_segment_that_was_not_closed_is_not_continued() {
    let place = Place::new("unclosed");
    let journal = place.open();
    calls(&journal, 1..3);
    drop(journal);
    place
        .open_with_later(1_000)
        .close(NOW_MS + 1_000, "stopped")
        .unwrap();
    let report = report(&place, place.keys.public());
    assert!(report.is_intact(), "{report:?}");
    assert!(matches!(
        report.notes[..],
        [Note::NotClosed {
            last_sequence: Some(5),
            uncovered_records: 4,
            ..
        }]
    ));
    let text = std::fs::read_to_string(&place.files()[1]).unwrap();
    assert!(text.contains("\"continues\":null"));
}

#[test]
fn a_segment_of_another_key_is_not_continued() {
    let place = Place::new("foreign-key");
    place.open().close(NOW_MS, "stopped").unwrap();
    let other = Keys::ephemeral(&mut journal_support::random());
    let journal = gate::journal::Journal::open(
        &place.directory,
        &other,
        Place::options(),
        [1; 16],
        NOW_MS + 1,
        &mut journal_support::random(),
    )
    .unwrap();
    journal.close(NOW_MS + 1, "stopped").unwrap();
    assert!(
        std::fs::read_to_string(&place.files()[1])
            .unwrap()
            .contains("\"continues\":null")
    );
    let report = verify(&place.directory, &[place.keys.public(), other.public()]).unwrap();
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
}

#[test]
fn a_follower_sees_what_comes_across_segments() {
    let place = Place::new("follow");
    let journal = place.open_with(JournalOptions {
        segment_bytes_max: 4 << 10,
        ..Place::options()
    });
    calls(&journal, 1..5);
    let decisions = Filter {
        kind: Some(Kind::Decision),
        ..Filter::default()
    };
    let mut follower = Follower::new(&place.directory, decisions).unwrap();
    let mut seen = Vec::new();
    for op in 5..60 {
        calls(&journal, op..op + 1);
        if op % 7 == 0 {
            follower
                .poll(&mut |body| seen.push(String::from_utf8(body.to_vec()).unwrap()))
                .unwrap();
        }
    }
    let skipped = follower
        .poll(&mut |body| seen.push(String::from_utf8(body.to_vec()).unwrap()))
        .unwrap();
    assert_eq!(skipped, 0);
    assert!(place.files().len() > 3);
    let ops: Vec<_> = seen
        .iter()
        .map(|body| body.split("\"op\":\"").nth(1).unwrap()[..32].to_owned())
        .collect();
    assert_eq!(
        ops,
        (5..60).map(|op| OpId(op).to_string()).collect::<Vec<_>>()
    );
}

/// The writer that the tests below start in processes of their own; by itself it does nothing. Each acknowledged call is told
/// on standard output.
#[test]
fn writer_process() {
    let Some(place) = Place::handed_over() else {
        return;
    };
    let journal = place.open_with(JournalOptions {
        segment_bytes_max: 64 << 10,
        ..JournalOptions::default()
    });
    let mut out = std::io::stdout();
    for op in 1.. {
        let appended = journal
            .append(NOW_MS, &Record::Decision(&decision(op)))
            .unwrap();
        writeln!(
            out,
            "decided {op} {} {}",
            appended.segment, appended.sequence
        )
        .unwrap();
        journal
            .append(NOW_MS, &Record::Operation(&operation(op)))
            .unwrap();
    }
}

fn start(place: &Place, test: &str) -> Child {
    let script = format!("exec {}", place.hand_over(test));
    Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_writer_leaves_whole_records_or_a_torn_tail_and_all_that_was_acknowledged() {
    for moment in 0..40_usize {
        let place = Place::new("killed");
        let mut child = start(&place, "journal_writers::writer_process");
        // The moment is a number of acknowledged calls, so a slow machine does not change what is tested.
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (mut line, mut acknowledged) = (String::new(), Vec::new());
        while acknowledged.len() < moment * 37 % 500 {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0);
            acknowledged.extend(
                line.starts_with("decided")
                    .then(|| line.trim_end().to_owned()),
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        while {
            line.clear();
            output.read_line(&mut line).unwrap() > 0
        } {
            acknowledged.extend(
                (line.starts_with("decided") && line.ends_with('\n'))
                    .then(|| line.trim_end().to_owned()),
            );
        }
        if place.files().is_empty() {
            assert!(acknowledged.is_empty());
            continue;
        }
        let report = report(&place, place.kept_keys().public());
        assert!(report.is_intact(), "{report:?}");
        // The call under way has no outcome, and the last segment no end, unless the moment was that between two segments.
        let left = |note: &Note| {
            matches!(
                note,
                Note::NotClosed { .. }
                    | Note::TornTail { .. }
                    | Note::MissingOutcome { count: 1, .. }
            )
        };
        assert!(report.notes.iter().all(left), "{report:?}");
        let found: BTreeMap<_, _> = records(&place);
        for line in acknowledged {
            let mut parts = line.split(' ').skip(1);
            let op: u128 = parts.next().unwrap().parse().unwrap();
            let at = (
                parts.next().unwrap().to_owned(),
                parts.next().unwrap().parse::<u64>().unwrap(),
            );
            assert!(found[&at].contains(&OpId(op).to_string()), "{line}");
        }
    }
}

/// Bodies by segment and sequence.
fn records(place: &Place) -> BTreeMap<(String, u64), String> {
    let mut found = BTreeMap::new();
    for file in place.files() {
        let segment = file
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .rsplit_once('-')
            .unwrap()
            .1
            .to_owned();
        let bytes = std::fs::read(&file).unwrap();
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter_map(gate::journal::Line::parse)
        {
            found.insert(
                (segment.clone(), line.sequence),
                String::from_utf8(line.body.to_vec()).unwrap(),
            );
        }
    }
    found
}

/// Opens and closes the journal ten times; started by the test below.
#[test]
fn claiming_process() {
    let Some(place) = Place::handed_over() else {
        return;
    };
    for round in 0..10 {
        let journal = place.open_with_later(round);
        calls(&journal, 1..3);
        journal.close(NOW_MS + round, "stopped").unwrap();
    }
}

#[test]
fn processes_that_start_at_once_never_continue_the_same_segment() {
    let place = Place::new("claims");
    let children: Vec<_> = (0..4)
        .map(|_| start(&place, "journal_writers::claiming_process"))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    let report = report(&place, place.kept_keys().public());
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
    assert_eq!(report.segments, 40);
    // Closed segments were taken up, not left lying.
    let continued = place
        .files()
        .iter()
        .filter(|file| {
            !std::fs::read_to_string(file)
                .unwrap()
                .contains("\"continues\":null")
        })
        .count();
    assert!(continued >= 36, "{continued}");
}
