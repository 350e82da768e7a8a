//! The head: what it lets a verification find, that it raises no false alarm, and what a crash between any two steps leaves.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::journal_support::{NOW_MS, Place, calls, decision, random};
use gate::journal::audit::{Anchors, Note, Unproven, Verdict, VerifyReport, verify_against};
use gate::journal::head::Steps;
use gate::journal::{
    FileWitness, Journal, JournalOptions, Record, Step, Surroundings, SyncPolicy, Witness,
};

fn look(place: &Place) -> VerifyReport {
    let head = place.head();
    let anchors = Anchors {
        head: Some(&head),
        witness: None,
    };
    verify_against(&place.directory, &[place.keys.public()], &anchors).unwrap()
}

#[track_caller]
fn expect(place: &Place, verdict: Verdict) -> VerifyReport {
    let report = look(place);
    assert_eq!(report.verdict(), verdict, "{report:#?}");
    report
}

#[test]
fn a_journal_that_was_closed_is_sound_over_many_starts() {
    let place = Place::kept("starts");
    for start in 0..4 {
        let journal = place.open_with_later(start * 1_000);
        calls(&journal, 1..4);
        journal.close(NOW_MS + start * 1_000, "stopped").unwrap();
        let report = expect(&place, Verdict::Sound);
        assert_eq!(report.notes, []);
    }
    assert_eq!(place.files().len(), 4);
}

#[test]
fn an_instance_that_runs_is_open_and_names_what_no_signature_covers() {
    let place = Place::kept("runs");
    let journal = place.open();
    calls(&journal, 1..4);
    let report = expect(&place, Verdict::Open);
    let [
        open @ Unproven::Tail {
            uncovered_records: 6,
            since,
            ..
        },
    ] = &report.unproven[..]
    else {
        panic!("{report:#?}");
    };
    assert_eq!(since, "2026-11-21T03:38:09.123Z");
    let segment = place.files()[0].to_string_lossy()[..].to_owned();
    let segment = segment
        .trim_end_matches(".jsonl")
        .rsplit('-')
        .next()
        .unwrap();
    assert_eq!(
        open.to_string(),
        format!(
            "open since {since}: the last 6 records of segment {segment} are not yet covered by a signature; whether one of them was changed, or more were cut off behind them, cannot be told"
        )
    );
    // Ticks bring the head up to date on a thread of its own.
    journal.tick(NOW_MS + 499).unwrap();
    journal.settle(NOW_MS + 600).unwrap();
    let report = expect(&place, Verdict::Open);
    assert!(
        matches!(
            report.unproven[..],
            [Unproven::Tail {
                uncovered_records: 0,
                ..
            }]
        ),
        "{report:#?}"
    );
    journal.close(NOW_MS + 700, "stopped").unwrap();
    expect(&place, Verdict::Sound);
}

#[test]
fn ticks_have_the_head_follow_within_a_second_and_a_quiet_journal_leaves_it_alone() {
    let place = Place::kept("ticks");
    let journal = place.open();
    calls(&journal, 1..2);
    let serial = look(&place).head;
    journal.tick(NOW_MS + 250).unwrap();
    assert_eq!(look(&place).head, serial);
    journal.tick(NOW_MS + 500).unwrap();
    // The tick that had it brought is over before the thread is: wait for the thread, bounded by the test's own patience.
    for _ in 0..10_000 {
        if look(&place).head > serial {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(look(&place).head, serial.map(|serial| serial + 1));
    for tick in 3..20 {
        journal.tick(NOW_MS + tick * 250).unwrap();
    }
    drop(journal);
    assert_eq!(look(&place).head, serial.map(|serial| serial + 1));
}

/// What waited when the clock was set back would wait until the clock is there again, and with it all that comes after.
#[test]
fn a_clock_that_is_set_back_holds_neither_head_nor_signatures_up() {
    const DAY_MS: i64 = 86_400_000;
    let place = Place::kept("set-back");
    let journal = place.open();
    calls(&journal, 1..2);
    let before = look(&place);
    journal.tick(NOW_MS + 250 - DAY_MS).unwrap();
    for _ in 0..10_000 {
        if look(&place).head > before.head {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let after = look(&place);
    assert!(
        after.head > before.head,
        "the head is not brought up to date"
    );
    assert_eq!(after.signatures, before.signatures + 1);
    journal.close(NOW_MS + 500 - DAY_MS, "stopped").unwrap();
    expect(&place, Verdict::Sound);
}

#[test]
fn a_refusal_and_a_persons_answer_are_under_a_signature_within_a_second() {
    use gate::effect::Effect as Decided;
    for (verdict, at_ms) in [
        (Decided::Deny, 500),
        (Decided::Hitl, 500),
        (Decided::Allow, 60_000),
    ] {
        let place = Place::new("refusal");
        let journal = place.open();
        let mut refused = decision(1);
        refused.decision = verdict;
        journal.append(NOW_MS, &Record::Decision(&refused)).unwrap();
        let signatures = || look_alone(&place).signatures;
        assert_eq!(signatures(), 1);
        for tick in (0..at_ms).step_by(250) {
            journal.tick(NOW_MS + tick).unwrap();
            assert_eq!(signatures(), 1, "{verdict:?} at {tick}");
        }
        journal.tick(NOW_MS + at_ms).unwrap();
        assert_eq!(signatures(), 2, "{verdict:?}");
    }
    // Where no tick came, the next record brings the checkpoint along; one that lacks it is missed.
    let place = Place::new("late");
    let journal = place.open();
    let mut refused = decision(1);
    refused.decision = Decided::Deny;
    journal.append(NOW_MS, &Record::Decision(&refused)).unwrap();
    journal
        .append(NOW_MS + 1_000, &Record::Decision(&decision(2)))
        .unwrap();
    assert_eq!(look_alone(&place).signatures, 2);
}

fn look_alone(place: &Place) -> VerifyReport {
    gate::journal::audit::verify(&place.directory, &[place.keys.public()]).unwrap()
}

#[test]
fn the_end_of_a_killed_instance_is_stated_by_the_next_one() {
    for covered in [true, false] {
        let place = Place::kept("killed");
        let journal = place.open();
        calls(&journal, 1..4);
        if covered {
            journal.settle(NOW_MS + 500).unwrap();
        }
        // Dropping writes nothing: the segment ends as a kill leaves it.
        drop(journal);
        expect(&place, Verdict::Open);
        place
            .open_with_later(1_000)
            .close(NOW_MS + 1_000, "stopped")
            .unwrap();
        let uncovered = if covered { 0 } else { 6 };
        let report = look(&place);
        assert!(
            report.notes.iter().any(|note| matches!(note, Note::Abandoned { uncovered_records, .. } if *uncovered_records == uncovered)),
            "{report:#?}"
        );
        if covered {
            assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
        } else {
            assert_eq!(report.verdict(), Verdict::Open, "{report:#?}");
            assert!(
                report.unproven[0]
                    .to_string()
                    .contains("the last 6 records of segment"),
                "{report:#?}"
            );
        }
        // The start after it finds nothing left to do.
        place
            .open_with_later(2_000)
            .close(NOW_MS + 2_000, "stopped")
            .unwrap();
        assert_eq!(look(&place).verdict(), report.verdict());
    }
}

#[test]
fn a_killed_segment_that_was_changed_is_not_vouched_for_by_the_next_start() {
    let place = Place::kept("unvouched");
    let journal = place.open();
    calls(&journal, 1..4);
    journal.settle(NOW_MS + 500).unwrap();
    drop(journal);
    let path = &place.files()[0];
    let text = fs::read_to_string(path).unwrap();
    let kept: Vec<&str> = text.split_inclusive('\n').take(5).collect();
    fs::write(path, kept.concat()).unwrap();
    expect(&place, Verdict::Tampered);
    for later in [1_000, 2_000] {
        place
            .open_with_later(later)
            .close(NOW_MS + later, "stopped")
            .unwrap();
        expect(&place, Verdict::Tampered);
    }
}

#[test]
fn a_head_that_is_taken_away_or_changed_while_it_is_kept_ends_the_journal() {
    type Harm = fn(&Path, &[u8]);
    let harms: [(&str, Harm, &str); 3] = [
        (
            "removed",
            |head, _| fs::remove_file(head).unwrap(),
            "cannot be read",
        ),
        (
            "changed",
            |head, _| fs::write(head, b"{}").unwrap(),
            "is damaged",
        ),
        (
            "older",
            |head, before| fs::write(head, before).unwrap(),
            "older state",
        ),
    ];
    for (name, harm, words) in harms {
        let place = Place::kept(name);
        let before = fs::read(place.head()).unwrap();
        let journal = place.open();
        calls(&journal, 1..2);
        harm(&place.head(), &before);
        let error = journal.settle(NOW_MS + 500).unwrap_err();
        assert!(
            error.is_fatal() && error.to_string().contains(words),
            "{error}"
        );
        let later = journal.append(NOW_MS, &Record::Decision(&decision(9)));
        assert!(later.unwrap_err().to_string().contains(words));
    }
}

#[test]
fn a_start_with_a_damaged_head_is_refused_and_one_without_a_head_says_so_ever_after() {
    let place = Place::kept("start");
    place.open().close(NOW_MS, "stopped").unwrap();
    let good = fs::read(place.head()).unwrap();
    fs::write(place.head(), b"nothing").unwrap();
    let opened = Journal::open(
        &place.directory,
        &place.keys,
        Place::options(),
        [7; 16],
        NOW_MS,
        &mut random(),
    );
    let error = opened.unwrap_err();
    assert_eq!(error.label(), "journal_head");
    fs::write(place.head(), &good).unwrap();
    expect(&place, Verdict::Sound);
    fs::remove_file(place.head()).unwrap();
    expect(&place, Verdict::Tampered);
    place
        .open_with_later(1_000)
        .close(NOW_MS + 1_000, "stopped")
        .unwrap();
    // What was there before the head was lost is no longer vouched for, also when all else is well.
    fs::remove_file(&place.files()[0]).unwrap();
    let report = expect(&place, Verdict::Open);
    assert!(
        matches!(&report.unproven[..], [Unproven::HeadLate { since }] if since == "2026-11-21T03:38:10.123Z"),
        "{report:#?}"
    );
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Copies journal and keys at every step, as a crash there would leave them.
fn copying(place: &Place, start: i64, seen: &Arc<Mutex<Vec<(Step, PathBuf)>>>) -> Steps {
    let (journal, keys) = (place.directory.clone(), place.keys_directory());
    let seen = Arc::clone(seen);
    Arc::new(move |step| {
        let mut seen = seen.lock().unwrap();
        // Each step a few times: the first segments of a start, and those after a retention.
        if seen.iter().filter(|(of, _)| *of == step).count() >= 4 {
            return;
        }
        let to = PathBuf::from(format!(
            "{}-crash-{start}-{}",
            journal.display(),
            seen.len()
        ));
        copy(&journal, &to);
        copy(&keys, &to.with_extension("keys"));
        seen.push((step, to));
    })
}

fn open_watched(place: &Place, options: JournalOptions, later_ms: i64, steps: Steps) -> Journal {
    let surroundings = Surroundings {
        random: &mut random(),
        waiting: &mut |_| {},
        witness: None,
        steps: Some(steps),
    };
    let own = ([7; 16], NOW_MS + later_ms);
    Journal::open_in(&place.directory, &place.keys, options, own, surroundings).unwrap()
}

/// Opens, writes, rotates, retires, dies, opens again, adopts and closes, with a copy of the disk at each step on the way.
/// None of the copies may look tampered with, neither as it is nor after a further start.
#[test]
fn a_crash_at_any_step_raises_no_false_alarm() {
    let place = Place::kept("crash");
    let mut seen = Vec::new();
    let options = JournalOptions {
        segment_bytes_max: 6 << 10,
        retain_bytes_max: Some(16 << 10),
        ..Place::options()
    };
    for start in 0..3 {
        let own = Arc::new(Mutex::new(Vec::new()));
        let steps = copying(&place, start, &own);
        let journal = open_watched(&place, options, start * 10_000, steps);
        calls(&journal, 1..3);
        journal.settle(NOW_MS + start * 10_000 + 500).unwrap();
        calls(&journal, 3..25);
        if start == 1 {
            drop(journal);
        } else {
            journal.close(NOW_MS + start * 10_000, "stopped").unwrap();
        }
        seen.append(&mut own.lock().unwrap());
    }
    let steps: BTreeSet<Step> = seen.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps.len(), 9, "{steps:?}");
    for (at, (step, directory)) in seen.iter().enumerate() {
        let head = directory
            .with_extension("keys")
            .join(gate::journal::HEAD_FILE);
        let verified = |when: &str| {
            let anchors = Anchors {
                head: Some(&head),
                witness: None,
            };
            match verify_against(directory, &[place.keys.public()], &anchors) {
                // Nothing has been begun yet.
                Err(error) => assert!(error.to_string().contains("no journal segment"), "{error}"),
                Ok(report) => {
                    assert!(report.is_intact(), "{at} {step:?} {when}: {report:#?}");
                }
            }
        };
        verified("as it is");
        let mut random = random();
        let keys =
            gate::journal::Keys::open(&directory.with_extension("keys"), &mut random).unwrap();
        let now_ms = NOW_MS + 100_000;
        let again = Journal::open(directory, &keys, options, [8; 16], now_ms, &mut random).unwrap();
        verified("while it runs again");
        calls(&again, 100..104);
        again.close(now_ms, "stopped").unwrap();
        verified("after a further start");
        fs::remove_dir_all(directory).unwrap();
        fs::remove_dir_all(directory.with_extension("keys")).unwrap();
    }
}

#[test]
fn what_follows_a_segment_that_is_still_held_stays_as_long_as_that() {
    let place = Place::kept("held");
    let journal = place.open_with(JournalOptions {
        segment_bytes_max: 8 << 10,
        retain_bytes_max: Some(20 << 10),
        ..Place::options()
    });
    calls(&journal, 1..20);
    let first = place.files().remove(0);
    // As a thread holds it that has not let go of it since it was rotated.
    let held = state::FileLog::open(&first, SyncPolicy::Never).unwrap();
    calls(&journal, 20..120);
    expect(&place, Verdict::Open);
    assert!(first.exists());
    drop(held);
    calls(&journal, 120..160);
    assert!(!first.exists());
    assert!(place.files().len() < 8, "{:?}", place.files());
    journal.close(NOW_MS, "stopped").unwrap();
    expect(&place, Verdict::Sound);
}

/// Batches of five calls that each of the sixteen writers adds during one look: 96 KiB or so together.
const BATCHES_PER_LOOK: usize = 2;

#[test]
fn a_journal_is_verified_while_sixteen_threads_write_it() {
    for retain_bytes_max in [None, Some(256 << 10)] {
        let place = Place::kept("live");
        let journal = Arc::new(place.open_with(JournalOptions {
            segment_bytes_max: 32 << 10,
            retain_bytes_max,
            sync: SyncPolicy::Interval { interval_ms: 1 },
            ..JournalOptions::default()
        }));
        let (ended, now) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        // Each look lets every writer add a bounded number of calls, so that retention can't remove the files of one look
        // faster than any machine reads them.
        let looks = Arc::new(AtomicUsize::new(0));
        let ticker = {
            let (journal, ended, now) =
                (Arc::clone(&journal), Arc::clone(&ended), Arc::clone(&now));
            std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let later = now.fetch_add(250, Ordering::Relaxed) as i64;
                    journal.tick(NOW_MS + later).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            })
        };
        let writers: Vec<_> = (0..16_u128)
            .map(|writer| {
                let journal = Arc::clone(&journal);
                let (ended, looks) = (Arc::clone(&ended), Arc::clone(&looks));
                std::thread::spawn(move || {
                    let (mut op, mut batches, mut look) = (writer << 32, 0, 0);
                    while !ended.load(Ordering::Relaxed) {
                        let now = looks.load(Ordering::Relaxed);
                        if now != look {
                            // What it did not come to write in earlier ones is not made up for.
                            (look, batches) = (now, 0);
                        }
                        if batches >= BATCHES_PER_LOOK {
                            std::thread::sleep(std::time::Duration::from_micros(200));
                            continue;
                        }
                        calls(&journal, op..op + 5);
                        op += 5;
                        batches += 1;
                    }
                })
            })
            .collect();
        let mut heads = BTreeSet::new();
        // Until the head was seen to follow, however slow the machine is.
        for round in 0..5_000 {
            if round >= 25 && heads.len() > 2 {
                break;
            }
            looks.fetch_add(1, Ordering::Relaxed);
            let report = look(&place);
            assert!(report.is_intact(), "round {round}: {report:#?}");
            heads.extend(report.head);
        }
        ended.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|of| of.join().unwrap());
        ticker.join().unwrap();
        let later = now.load(Ordering::Relaxed) as i64;
        journal.close(NOW_MS + later, "stopped").unwrap();
        expect(&place, Verdict::Sound);
        assert!(heads.len() > 2, "the head followed: {heads:?}");
    }
}

#[test]
fn instances_that_run_at_once_keep_one_head() {
    let place = Place::kept("many");
    let journals: Vec<_> = (0..5).map(|at| place.open_with_later(at)).collect();
    for (at, journal) in journals.iter().enumerate() {
        calls(journal, 1..3);
        journal.settle(NOW_MS + 500 + at as i64).unwrap();
    }
    let report = expect(&place, Verdict::Open);
    assert_eq!(report.unproven.len(), 5, "{report:#?}");
    for (at, journal) in journals.iter().enumerate() {
        journal.close(NOW_MS + 600 + at as i64, "stopped").unwrap();
    }
    expect(&place, Verdict::Sound);
    // Any of the five ends is missed.
    for path in place.files() {
        let aside = path.with_extension("aside");
        fs::rename(&path, &aside).unwrap();
        expect(&place, Verdict::Tampered);
        fs::rename(&aside, &path).unwrap();
    }
    expect(&place, Verdict::Sound);
}

/// A witness that can be out of reach.
struct Fickle(FileWitness, AtomicBool);

impl Witness for Fickle {
    fn take(&self, head: &[u8]) -> std::io::Result<()> {
        if self.1.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("out of reach"));
        }
        self.0.take(head)
    }

    fn name(&self) -> String {
        self.0.name()
    }
}

#[test]
fn a_witness_is_given_heads_and_its_absence_is_written_down() {
    let place = Place::kept("witness");
    let file = place.keys_directory().join("witness.jsonl");
    let witness = Arc::new(Fickle(FileWitness::new(&file), AtomicBool::new(true)));
    let open = || {
        let surroundings = Surroundings {
            random: &mut random(),
            waiting: &mut |_| {},
            witness: Some(Arc::clone(&witness) as Arc<dyn Witness>),
            steps: None,
        };
        let own = ([7; 16], NOW_MS);
        Journal::open_in(
            &place.directory,
            &place.keys,
            Place::options(),
            own,
            surroundings,
        )
    };
    let error = open().unwrap_err();
    assert_eq!(error.label(), "journal_witness");
    assert!(error.to_string().contains("out of reach"), "{error}");
    witness.1.store(false, Ordering::Relaxed);
    let journal = open().unwrap();
    for (gone, later) in [(true, 500), (true, 1_000), (false, 1_500), (false, 2_000)] {
        witness.1.store(gone, Ordering::Relaxed);
        calls(&journal, later..later + 1);
        journal.settle(NOW_MS + later as i64).unwrap();
    }
    journal.close(NOW_MS + 3_000, "stopped").unwrap();
    let text = place
        .files()
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect::<String>();
    assert_eq!(
        text.matches("\"event\":\"witness_failed\"").count(),
        1,
        "{text}"
    );
    assert_eq!(text.matches("\"event\":\"witness_returned\"").count(), 1);
    let head = place.head();
    let anchors = Anchors {
        head: Some(&head),
        witness: Some(&file),
    };
    let report = verify_against(&place.directory, &[place.keys.public()], &anchors).unwrap();
    // The start that the witness refused left a segment without an end.
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.witness_heads, Some(4));
}
