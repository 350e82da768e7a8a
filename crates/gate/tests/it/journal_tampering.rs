//! Every way of changing a journal that verification must find, each a named test.

use std::fs;

use crate::journal_support::forging::{bodies, edit, lines, replace, rewrite, segment, write};
use crate::journal_support::{NOW_MS, Place, calls, decision, forge, operation, random};
use gate::effect::Effect;
use gate::journal::audit::{AuditError, Note, Problem, VerifyReport, verify};
use gate::journal::{Cadence, JournalOptions, Keys, Line, OpId, Record};

/// A closed journal of one segment: header, checkpoint, `2 * ops` records, closing record.
fn closed(name: &str, ops: u128) -> Place {
    let place = Place::new(name);
    let journal = place.open();
    calls(&journal, 1..ops + 1);
    journal.close(NOW_MS, "stopped").unwrap();
    place
}

fn report(place: &Place) -> VerifyReport {
    verify(&place.directory, &[place.keys.public()]).unwrap()
}

fn problems(place: &Place) -> Vec<Problem> {
    report(place)
        .findings
        .into_iter()
        .map(|finding| finding.problem)
        .collect()
}

#[test]
fn a_changed_record_is_found() {
    let place = closed("changed", 3);
    edit(&place.files()[0], |lines| {
        replace(&mut lines[4], "/tmp/a", "/tmp/b")
    });
    assert_eq!(problems(&place), [Problem::Changed { sequence: 4 }]);
}

#[test]
fn a_changed_hash_is_found() {
    let place = closed("hash", 3);
    edit(&place.files()[0], |lines| {
        let at = lines[4]
            .windows(13)
            .position(|window| window == b"\"entry_hash\":")
            .unwrap()
            + 20;
        lines[4][at] = if lines[4][at] == b'0' { b'1' } else { b'0' };
    });
    assert_eq!(problems(&place), [Problem::Changed { sequence: 4 }]);
}

#[test]
fn deleted_records_are_found() {
    let place = closed("deleted", 3);
    edit(&place.files()[0], |lines| drop(lines.drain(3..5)));
    assert_eq!(
        problems(&place)[..1],
        [Problem::Deleted { first: 3, last: 4 }]
    );
}

#[test]
fn a_gap_too_long_to_search_is_found() {
    let place = closed("gap", 3_000);
    edit(&place.files()[0], |lines| drop(lines.drain(20..5_900)));
    let problems = problems(&place);
    assert!(
        problems.contains(&Problem::Deleted {
            first: 20,
            last: 5_899
        }),
        "{problems:?}"
    );
}

#[test]
fn an_inserted_record_is_found() {
    let place = closed("inserted", 3);
    let path = &place.files()[0];
    let inserted = {
        let lines = lines(path);
        let before = Line::parse(lines[3].trim_ascii_end()).unwrap();
        let own = Line::parse(lines[4].trim_ascii_end()).unwrap();
        forge(segment(path), 4, before.entry, own.body)
    };
    edit(path, |lines| lines.insert(5, inserted.clone()));
    assert_eq!(problems(&place), [Problem::Inserted { sequence: 4 }]);
    // Put first, the forged record takes the place and the true one looks inserted; the chain behind it still tells.
    edit(path, |lines| {
        lines.remove(5);
        let body = Line::parse(lines[5].trim_ascii_end())
            .unwrap()
            .body
            .to_vec();
        let previous = Line::parse(lines[3].trim_ascii_end()).unwrap().entry;
        lines.insert(4, forge(segment(path), 4, previous, &body));
    });
    let problems = problems(&place);
    assert!(
        problems.contains(&Problem::Inserted { sequence: 4 }),
        "{problems:?}"
    );
    assert!(
        problems.contains(&Problem::BrokenLink { sequence: 5 }),
        "{problems:?}"
    );
}

#[test]
fn a_repeated_record_is_found() {
    let place = closed("repeated", 3);
    edit(&place.files()[0], |lines| lines.insert(4, lines[3].clone()));
    assert!(problems(&place).contains(&Problem::Inserted { sequence: 3 }));
}

#[test]
fn reordered_records_are_found() {
    let place = closed("reordered", 3);
    edit(&place.files()[0], |lines| lines.swap(3, 5));
    let problems = problems(&place);
    assert!(
        problems.contains(&Problem::Reordered { sequence: 4 }),
        "{problems:?}"
    );
    assert!(
        problems.contains(&Problem::Reordered { sequence: 3 }),
        "{problems:?}"
    );
    assert!(
        !problems
            .iter()
            .any(|problem| matches!(problem, Problem::Deleted { .. })),
        "{problems:?}"
    );
}

#[test]
fn a_sequence_gap_under_right_hashes_is_found() {
    let place = closed("sequence", 2);
    let path = &place.files()[0];
    edit(path, |lines| {
        let before = Line::parse(lines[4].trim_ascii_end()).unwrap().entry;
        let body = Line::parse(lines[5].trim_ascii_end())
            .unwrap()
            .body
            .to_vec();
        lines.truncate(5);
        lines.push(forge(segment(path), 9, before, &body));
    });
    assert_eq!(problems(&place), [Problem::Deleted { first: 5, last: 8 }]);
}

#[test]
fn a_line_that_is_none_is_found() {
    let place = closed("garbage", 3);
    edit(&place.files()[0], |lines| {
        lines[4] = b"\xff\xfe not a record\n".to_vec()
    });
    assert_eq!(problems(&place), [Problem::Malformed]);
}

#[test]
fn a_line_beyond_the_bound_is_found() {
    let place = closed("long", 3);
    edit(&place.files()[0], |lines| {
        let mut long = vec![b'x'; gate::journal::LINE_BYTES_MAX + 1];
        long.push(b'\n');
        lines[4] = long;
    });
    assert_eq!(problems(&place), [Problem::LineTooLong]);
}

#[test]
fn a_changed_header_is_found() {
    let place = closed("header", 3);
    edit(&place.files()[0], |lines| {
        replace(&mut lines[0], "\"version\":\"", "\"version\":\"9")
    });
    assert_eq!(problems(&place)[0], Problem::Changed { sequence: 0 });
}

#[test]
fn a_renamed_segment_is_found() {
    let place = closed("renamed", 3);
    let path = &place.files()[0];
    let segment = segment(path);
    fs::rename(
        path,
        place
            .directory
            .join(format!("20261121T000000000Z-{}.jsonl", "ab".repeat(16))),
    )
    .unwrap();
    assert_eq!(problems(&place), [Problem::Misnamed { segment }]);
}

#[test]
fn a_copied_segment_is_found() {
    let place = closed("copied", 3);
    let path = &place.files()[0];
    let segment = segment(path);
    fs::copy(
        path,
        place
            .directory
            .join(format!("20991121T000000000Z-{segment}.jsonl")),
    )
    .unwrap();
    assert!(problems(&place).contains(&Problem::Duplicate { segment }));
}

#[test]
fn something_behind_the_closing_record_is_found() {
    let place = closed("behind", 1);
    edit(&place.files()[0], |lines| {
        lines.push(b"{\"sequence\":".to_vec())
    });
    assert!(problems(&place).contains(&Problem::AfterClose));
}

#[test]
fn a_torn_last_line_is_named_and_no_tampering() {
    let place = Place::new("torn");
    let journal = place.open();
    calls(&journal, 1..4);
    drop(journal);
    let path = &place.files()[0];
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 7]).unwrap();
    let report = report(&place);
    assert!(report.is_intact(), "{report:?}");
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    let torn_bytes = lines(path).last().unwrap().len() as u64;
    assert_eq!(
        report.notes[0],
        Note::TornTail {
            file,
            last_good_sequence: Some(6),
            torn_bytes
        }
    );
}

#[test]
fn an_overwritten_line_end_is_no_torn_tail() {
    let place = Place::new("end");
    let journal = place.open();
    calls(&journal, 1..4);
    drop(journal);
    let path = &place.files()[0];
    let mut bytes = fs::read(path).unwrap();
    *bytes.last_mut().unwrap() = b' ';
    fs::write(path, bytes).unwrap();
    assert_eq!(problems(&place), [Problem::Malformed]);
}

#[test]
fn a_bad_checkpoint_signature_is_found() {
    let place = closed("signature", 3);
    let path = &place.files()[0];
    rewrite(path, |sequence, body| {
        if sequence == 1 {
            let at = body.find("\"signature\":\"").unwrap() + 13;
            let digit = if body.as_bytes()[at] == b'0' {
                "1"
            } else {
                "0"
            };
            body.replace_range(at..=at, digit);
        }
    });
    let problems = problems(&place);
    assert!(
        problems.contains(&Problem::SignatureBad { sequence: 1 }),
        "{problems:?}"
    );
}

#[test]
fn a_consistent_rewrite_without_the_key_is_found() {
    let place = closed("rewrite", 3);
    rewrite(&place.files()[0], |_, body| {
        *body = body.replace("/tmp/a", "/tmp/b")
    });
    let problems = problems(&place);
    assert_eq!(problems, [Problem::SignatureBad { sequence: 8 }]);
}

#[test]
fn a_consistent_rewrite_with_another_key_is_found() {
    let (place, other) = (closed("other-key", 3), Keys::ephemeral(&mut random()));
    let report = verify(&place.directory, &[other.public()]).unwrap();
    let problems: Vec<_> = report
        .findings
        .into_iter()
        .map(|finding| finding.problem)
        .collect();
    assert_eq!(
        problems,
        [Problem::KeyUntrusted {
            public_key: place.keys.public().to_string()
        }]
    );
    assert!(matches!(
        verify(&place.directory, &[]),
        Err(AuditError::NoKey)
    ));
}

#[test]
fn checkpoints_taken_out_are_missed() {
    let place = Place::new("checkpoints");
    let checkpoints = Cadence {
        records_max: 10,
        ..Cadence::default()
    };
    let journal = place.open_with(JournalOptions {
        checkpoints,
        ..Place::options()
    });
    calls(&journal, 1..31);
    drop(journal);
    assert!(report(&place).is_intact(), "{:?}", report(&place));
    let path = &place.files()[0];
    // Everything is written anew without the later checkpoints, hashes right.
    let bodies: Vec<_> = bodies(path);
    let mut kept: Vec<_> = bodies.clone();
    let mut seen = 0;
    kept.retain(|body| {
        seen += usize::from(body.contains("\"checkpoint\""));
        seen < 2 || !body.contains("\"checkpoint\"")
    });
    assert!(kept.len() < bodies.len());
    write(path, &kept);
    assert_eq!(
        problems(&place)[..1],
        [Problem::CheckpointMissing { sequence: 12 }]
    );
    // Without the first one, too.
    kept.remove(1);
    write(path, &kept);
    assert_eq!(
        problems(&place)[..1],
        [Problem::CheckpointMissing { sequence: 1 }]
    );
}

#[test]
fn a_checkpoint_made_a_closing_record_is_found() {
    let place = Place::new("false-close");
    let journal = place.open();
    calls(&journal, 1..3);
    drop(journal);
    let path = &place.files()[0];
    let mut bodies = bodies(path);
    bodies.truncate(2);
    bodies[1] = bodies[1].replace(
        "\"checkpoint\"",
        "\"segment_closed\",\"reason\":\"stopped\"",
    );
    write(path, &bodies);
    assert_eq!(problems(&place), [Problem::SignatureBad { sequence: 1 }]);
}

/// Two segments, the second continuing the first.
fn two(name: &str) -> Place {
    let place = closed(name, 2);
    let journal = place.open_with_later(1_000);
    calls(&journal, 10..12);
    journal.close(NOW_MS + 2_000, "stopped").unwrap();
    assert!(
        report(&place).is_intact() && report(&place).notes.is_empty(),
        "{:?}",
        report(&place)
    );
    assert_eq!(place.files().len(), 2);
    place
}

#[test]
fn a_missing_continued_segment_is_found() {
    let place = two("missing");
    let segment = segment(&place.files()[0]);
    fs::remove_file(&place.files()[0]).unwrap();
    assert_eq!(problems(&place), [Problem::ContinuedMissing { segment }]);
}

#[test]
fn a_replaced_continued_segment_is_found() {
    let place = two("replaced");
    let path = &place.files()[0];
    rewrite(path, |_, body| *body = body.replace("/tmp/a", "/tmp/b"));
    let problems = problems(&place);
    let differs = |problem: &Problem| matches!(problem, Problem::ContinuedDiffers { segment: id, sequence: 6, .. } if *id == segment(path));
    assert!(problems.iter().any(differs), "{problems:?}");
}

#[test]
fn a_shortened_continued_segment_is_found() {
    let place = two("shortened");
    edit(&place.files()[0], |lines| drop(lines.pop()));
    assert!(matches!(
        problems(&place)[..],
        [Problem::ContinuedDiffers { sequence: 6, .. }]
    ));
}

#[test]
fn a_fork_is_found() {
    let place = two("fork");
    let files = place.files();
    let first = segment(&files[0]);
    // The second is hidden while a third is started, which continues the first as well.
    let hidden = place.directory.join("hidden");
    fs::rename(&files[1], &hidden).unwrap();
    place
        .open_with_later(5_000)
        .close(NOW_MS + 6_000, "stopped")
        .unwrap();
    fs::rename(&hidden, &files[1]).unwrap();
    let other = files[1].file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(
        problems(&place),
        [Problem::Fork {
            segment: first,
            other
        }]
    );
}

#[test]
fn one_file_alone_says_what_was_not_looked_at() {
    let place = two("alone");
    let files = place.files();
    let report = verify(&files[1], &[place.keys.public()]).unwrap();
    let file = files[1].file_name().unwrap().to_string_lossy().into_owned();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(
        report.notes,
        [Note::ContinuedElsewhere {
            file,
            segment: segment(&files[0])
        }]
    );
}

#[test]
fn decisions_without_an_outcome_are_told_and_no_tampering() {
    let place = Place::new("outcome");
    let journal = place.open();
    calls(&journal, 1..3);
    for op in [7, 5] {
        journal
            .append(NOW_MS, &Record::Decision(&decision(op)))
            .unwrap();
    }
    let mut refused = decision(9);
    refused.decision = Effect::Deny;
    journal.append(NOW_MS, &Record::Decision(&refused)).unwrap();
    let mut unanswered = decision(10);
    unanswered.decision = Effect::Hitl;
    unanswered.hitl_outcome = Some("timeout");
    journal
        .append(NOW_MS, &Record::Decision(&unanswered))
        .unwrap();
    let mut approved = decision(11);
    approved.decision = Effect::Hitl;
    approved.hitl_outcome = Some("user_allowed");
    journal
        .append(NOW_MS, &Record::Decision(&approved))
        .unwrap();
    journal.close(NOW_MS, "stopped").unwrap();
    let report = report(&place);
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(
        report.notes,
        [Note::MissingOutcome {
            count: 3,
            ops: vec![OpId(5), OpId(7), OpId(11)]
        }]
    );
}

#[test]
fn an_outcome_without_a_decision_is_found() {
    let place = Place::new("undecided");
    let journal = place.open();
    calls(&journal, 1..3);
    journal
        .append(NOW_MS, &Record::Operation(&operation(4)))
        .unwrap();
    journal.close(NOW_MS, "stopped").unwrap();
    assert_eq!(
        problems(&place),
        [Problem::OperationWithoutDecision {
            op: OpId(4),
            sequence: 6
        }]
    );
}

#[test]
fn an_outcome_may_follow_in_the_next_segment() {
    let place = Place::new("across");
    let journal = place.open();
    journal
        .append(NOW_MS, &Record::Decision(&decision(1)))
        .unwrap();
    journal.close(NOW_MS, "stopped").unwrap();
    let journal = place.open_with_later(1_000);
    journal
        .append(NOW_MS, &Record::Operation(&operation(1)))
        .unwrap();
    journal.close(NOW_MS, "stopped").unwrap();
    let report = report(&place);
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
}

#[test]
fn segments_that_continue_one_another_in_a_circle_are_found() {
    let place = two("circle");
    let files = place.files();
    let last = Line::parse(lines(&files[1]).last().unwrap().trim_ascii_end())
        .map(|line| (line.sequence, line.entry))
        .unwrap();
    let mut bodies = bodies(&files[0]);
    let forged = format!(
        "{{\"segment\":\"{}\",\"sequence\":{},\"hash\":\"{}\"}}",
        segment(&files[1]),
        last.0,
        last.1
    );
    bodies[0] = bodies[0].replace("\"continues\":null", &format!("\"continues\":{forged}"));
    write(&files[0], &bodies);
    assert!(problems(&place).contains(&Problem::Circle));
}

#[test]
fn a_gap_of_retention_is_anchored_by_a_signed_record() {
    let place = Place::new("retention");
    let options = JournalOptions {
        segment_bytes_max: 8 << 10,
        retain_bytes_max: Some(20 << 10),
        ..Place::options()
    };
    let journal = place.open_with(options);
    calls(&journal, 1..200);
    journal.close(NOW_MS, "stopped").unwrap();
    let kept = place.files();
    assert!((2..6).contains(&kept.len()), "{kept:?}");
    let report = report(&place);
    assert!(report.is_intact(), "{report:?}");
    let retired = |note: &Note| matches!(note, Note::Retired { .. });
    assert_eq!(
        report.notes.iter().filter(|note| retired(note)).count(),
        1,
        "{report:?}"
    );
    // What goes beyond what was recorded is missed.
    let segment = segment(&kept[0]);
    fs::remove_file(&kept[0]).unwrap();
    let problems = problems(&place);
    assert!(
        problems.contains(&Problem::ContinuedMissing { segment }),
        "{problems:?}"
    );
}
