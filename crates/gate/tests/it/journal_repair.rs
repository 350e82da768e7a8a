//! A journal that was changed: a start finds it, and a repair sets what is broken aside.

use std::fs;
use std::path::{Path, PathBuf};

use crate::journal_support::forging::{edit, replace};
use crate::journal_support::{NOW_MS, Place, calls, random};
use gate::journal::audit::{
    Anchors, ClosedSegments, Note, Problem, Verdict, VerifyReport, verify_against,
};
use gate::journal::{
    HEAD_FILE, JournalOptions, Repair, RepairError, RepairPaths, Surroundings, repair,
};

/// A journal of this many closed segments, of one chain, with its keys and head kept beside it.
fn closed(name: &str, segments: i64) -> Place {
    let place = Place::kept(name);
    for number in 0..segments {
        let journal = place.open_with_later(number * 20_000);
        let first = u128::try_from(number).unwrap() * 10 + 1;
        calls(&journal, first..first + 3);
        journal.close(NOW_MS + number * 20_000, "stopped").unwrap();
    }
    place
}

/// Verifies every closed segment, newest first; returns what is wrong.
fn problems(place: &Place) -> Vec<Problem> {
    let keys = vec![place.keys.public()];
    let mut rest = ClosedSegments::open(&place.directory, &place.head(), keys).unwrap();
    let mut found = Vec::new();
    while rest.next_bytes().is_some() {
        let verified = rest.verify_next().unwrap();
        found.extend(verified.into_iter().flat_map(|segment| segment.findings));
    }
    found.into_iter().map(|finding| finding.problem).collect()
}

fn report(place: &Place) -> VerifyReport {
    let head = place.head();
    let anchors = Anchors {
        head: Some(&head),
        witness: None,
    };
    verify_against(&place.directory, &[place.keys.public()], &anchors).unwrap()
}

fn evidence(place: &Place) -> PathBuf {
    place.directory.with_extension("aside")
}

fn repaired(place: &Place) -> Result<Option<Repair>, RepairError> {
    let (keys, evidence) = (place.keys_directory(), evidence(place));
    let paths = RepairPaths {
        journal: &place.directory,
        keys: &keys,
        witness: None,
        evidence: &evidence,
    };
    let surroundings = Surroundings {
        random: &mut random(),
        waiting: &mut |_| {},
        witness: None,
        steps: None,
    };
    let own = ([9; 16], NOW_MS + 900_000);
    repair(
        paths,
        &place.keys,
        JournalOptions::default(),
        own,
        surroundings,
    )
}

fn change(path: &Path) {
    edit(path, |lines| replace(&mut lines[4], "/tmp/a", "/tmp/b"));
}

#[test]
fn closed_segments_that_are_as_written_pass_one_by_one() {
    let place = closed("passes", 4);
    assert_eq!(problems(&place), []);
}

#[test]
fn a_change_is_found_in_whichever_closed_segment() {
    for at in 0..3 {
        let place = closed("whichever", 3);
        change(&place.files()[at]);
        assert_eq!(problems(&place), [Problem::Changed { sequence: 4 }]);
    }
}

#[test]
fn a_closed_segment_that_was_cut_or_emptied_is_found() {
    for (at, keep) in [(0, 4), (1, 0), (2, 4)] {
        let place = closed("cut", 3);
        edit(&place.files()[at], |lines| lines.truncate(keep));
        let problems = problems(&place);
        let is_found = |problem: &Problem| matches!(problem, Problem::ContinuedDiffers { .. });
        assert!(problems.iter().any(is_found), "{at}: {problems:?}");
    }
}

#[test]
fn a_segment_whose_writer_died_is_compared_with_the_record_of_its_end() {
    let place = Place::kept("died");
    let journal = place.open_with_later(0);
    calls(&journal, 1..4);
    journal.settle(NOW_MS).unwrap();
    drop(journal);
    let next = place.open_with_later(20_000);
    next.close(NOW_MS + 20_000, "stopped").unwrap();
    assert_eq!(problems(&place), []);
    let last = place.files().remove(0);
    edit(&last, |lines| drop(lines.pop()));
    assert!(matches!(
        problems(&place)[..],
        [Problem::ContinuedDiffers { .. }]
    ));
}

#[test]
fn a_segment_that_is_being_written_is_passed_over() {
    let place = closed("written", 1);
    let journal = place.open_with_later(40_000);
    calls(&journal, 50..60);
    assert_eq!(problems(&place), []);
    journal.close(NOW_MS + 40_000, "stopped").unwrap();
}

#[test]
fn a_repair_moves_what_is_broken_alone_and_the_rest_is_sound() {
    for at in 0..4 {
        let place = closed("alone", 4);
        let files = place.files();
        change(&files[at]);
        assert_eq!(report(&place).verdict(), Verdict::Tampered);
        let done = repaired(&place).unwrap().unwrap();
        assert!(!done.before.is_intact());
        let moved = evidence(&place).join(files[at].file_name().unwrap());
        assert_eq!(done.moved, std::slice::from_ref(&moved), "{at}");
        assert!(moved.exists() && !files[at].exists());
        let after = report(&place);
        assert_eq!(after.verdict(), Verdict::Sound, "{at}: {after:?}");
        assert_eq!(after.segments, 4, "three that stay and the new one");
        let continues = |note: &Note| matches!(note, Note::SetAside { .. });
        assert_eq!(after.notes.iter().any(continues), at < 3, "{after:?}");
        let newest = fs::read_to_string(place.files().pop().unwrap()).unwrap();
        assert!(
            newest.contains("\"event\":\"segment_set_aside\""),
            "{newest}"
        );
        assert!(newest.contains("\"continues\":null"), "a chain of its own");
        assert!(newest.contains("record 4 was changed"), "{newest}");
        // What comes next continues it, and stays sound.
        let journal = place.open_with_later(950_000);
        calls(&journal, 80..83);
        journal.close(NOW_MS + 950_000, "stopped").unwrap();
        assert_eq!(report(&place).verdict(), Verdict::Sound);
        assert!(repaired(&place).unwrap().is_none(), "nothing is left to do");
    }
}

#[test]
fn a_repair_names_what_is_missing_and_takes_over_a_lost_head() {
    let place = closed("missing", 4);
    fs::remove_file(&place.files()[1]).unwrap();
    let done = repaired(&place).unwrap().unwrap();
    assert_eq!((done.moved.len(), done.missing.len()), (0, 1));
    assert_eq!(report(&place).verdict(), Verdict::Sound);

    let place = closed("headless", 3);
    fs::write(place.head(), "{}").unwrap();
    let done = repaired(&place).unwrap().unwrap();
    assert_eq!(done.moved, [evidence(&place).join(HEAD_FILE)]);
    let after = report(&place);
    assert_eq!(after.verdict(), Verdict::Open, "{after:?}");
    assert_eq!(after.segments, 4, "every segment stays: {after:?}");
}

#[test]
fn a_journal_in_use_is_not_repaired_and_one_without_faults_is_left_alone() {
    let place = closed("used", 2);
    assert!(repaired(&place).unwrap().is_none());
    let files = place.files();
    let journal = place.open_with_later(60_000);
    change(&files[0]);
    assert!(matches!(repaired(&place), Err(RepairError::InUse { .. })));
    assert!(files[0].exists() && !evidence(&place).exists());
    journal.close(NOW_MS + 60_000, "stopped").unwrap();
    assert!(repaired(&place).unwrap().is_some());
}
