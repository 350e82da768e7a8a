//! What the journal does when its files or its disk fail it: it refuses, and stays refusing.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::journal_support::{NOW_MS, Place, calls, decision, random};
use gate::journal::audit::{Note, verify};
use gate::journal::{
    CHECKPOINT_KEY_FILE, CHECKPOINT_PUBLIC_FILE, DIGEST_KEY_FILE, Journal, JournalError,
    JournalEvent, JournalOptions, Keys, KeysError, PublicKey, Record, System, SystemEvent,
};

/// Does something to the journal's file; the next append must be refused with `label`, and all later ones too.
fn check(name: &str, label: &str, harm: impl Fn(&Path)) -> Place {
    for tick in [false, true] {
        let place = Place::new(name);
        let journal = place.open();
        calls(&journal, 1..3);
        journal.healthy().unwrap();
        harm(&place.files()[0]);
        let first = if tick {
            journal.tick(NOW_MS).unwrap_err()
        } else {
            journal
                .append(NOW_MS, &Record::Decision(&decision(9)))
                .unwrap_err()
        };
        refuses(&journal, &first, label);
        if !tick {
            return place;
        }
    }
    Place::new(name)
}

fn refuses(journal: &Journal, first: &JournalError, label: &str) {
    assert_eq!(first.label(), label, "{first}");
    assert!(first.is_fatal());
    for _ in 0..2 {
        let later = journal
            .append(NOW_MS, &Record::Decision(&decision(9)))
            .unwrap_err();
        assert_eq!(later.label(), label, "{later}");
    }
    assert_eq!(journal.healthy().unwrap_err().label(), label);
    assert_eq!(journal.tick(NOW_MS).unwrap_err().label(), label);
    assert_eq!(journal.close(NOW_MS, "stopped").unwrap_err().label(), label);
}

#[test]
fn an_unlinked_segment_refuses() {
    check("unlinked", "journal_unlinked", |path| {
        fs::remove_file(path).unwrap()
    });
}

#[test]
fn a_removed_directory_refuses() {
    check("removed", "journal_unlinked", |path| {
        fs::remove_dir_all(path.parent().unwrap()).unwrap()
    });
}

#[test]
fn a_replaced_segment_refuses() {
    check("replaced", "journal_replaced", |path| {
        let aside = path.with_extension("aside");
        fs::copy(path, &aside).unwrap();
        fs::rename(&aside, path).unwrap();
    });
}

#[test]
fn a_truncated_segment_refuses() {
    check("truncated", "journal_truncated", |path| {
        OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(100)
            .unwrap();
    });
}

#[test]
fn a_foreign_append_refuses() {
    check("foreign", "journal_foreign_write", |path| {
        OpenOptions::new()
            .append(true)
            .open(path)
            .unwrap()
            .write_all(b"{}\n")
            .unwrap();
    });
}

#[test]
fn an_edit_that_keeps_the_length_refuses() {
    check("edited", "journal_edited", |path| {
        // Time enough for the clock that older kernels stamp files with.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let text = fs::read_to_string(path).unwrap();
        let at = text.find("/tmp/a").unwrap() as u64;
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(b"/tmp/b", at).unwrap();
    });
}

#[test]
fn an_edit_with_right_hashes_refuses() {
    check("forged", "journal_edited", |path| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let text = fs::read_to_string(path).unwrap();
        let mut out = Vec::new();
        let mut previous = gate::journal::EntryHash::ZERO;
        for line in text.lines() {
            let line = gate::journal::Line::parse(line.as_bytes()).unwrap();
            let body = String::from_utf8(line.body.to_vec()).unwrap();
            let body = body.replace("/tmp/a", "/tmp/b");
            let segment = path.file_stem().unwrap().to_str().unwrap();
            let segment = gate::journal::SegmentId::parse(&segment[20..]).unwrap();
            let forged =
                crate::journal_support::forge(segment, line.sequence, previous, body.as_bytes());
            previous = gate::journal::Line::parse(forged.trim_ascii_end())
                .unwrap()
                .entry;
            out.extend(forged);
        }
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&out, 0).unwrap();
    });
}

#[test]
fn a_second_link_to_a_segment_is_let_be() {
    let place = Place::new("linked");
    let journal = place.open();
    calls(&journal, 1..3);
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::hard_link(&place.files()[0], place.directory.join("backup")).unwrap();
    journal.tick(NOW_MS).unwrap();
    calls(&journal, 3..5);
    journal.close(NOW_MS, "stopped").unwrap();
}

#[test]
fn directories_that_others_may_write_in_are_refused() {
    let place = Place::new("open");
    fs::create_dir(&place.directory).unwrap();
    fs::set_permissions(&place.directory, fs::Permissions::from_mode(0o777)).unwrap();
    let opened = Journal::open(
        &place.directory,
        &place.keys,
        Place::options(),
        [7; 16],
        NOW_MS,
        &mut random(),
    );
    let error = opened.unwrap_err();
    assert_eq!(error.label(), "journal_directory");
    assert!(
        error.to_string().contains("(mode 0777); run chmod 700"),
        "{error}"
    );
    let error = Keys::open(&place.directory, &mut random()).unwrap_err();
    assert!(
        error.to_string().contains("(mode 0777); run chmod 700"),
        "{error}"
    );
}

/// The writer that the test below starts under a file size limit; on its own it does nothing.
#[test]
fn under_a_limit() {
    let Some(place) = Place::handed_over() else {
        return;
    };
    let journal = place.open();
    let error = (1..1_000)
        .find_map(|op| {
            journal
                .append(NOW_MS, &Record::Decision(&decision(op)))
                .err()
        })
        .unwrap();
    refuses(&journal, &error, "journal_full");
}

#[test]
fn a_full_disk_refuses_and_leaves_whole_records() {
    let place = Place::new("full");
    let script = format!(
        "trap '' XFSZ; ulimit -f 20; exec {}",
        place.hand_over("journal_faults::under_a_limit")
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report = verify(&place.directory, &[place.kept_keys().public()]).unwrap();
    assert!(report.is_intact() && report.records > 10, "{report:?}");
    assert!(
        !report
            .notes
            .iter()
            .any(|note| matches!(note, Note::TornTail { .. })),
        "{report:?}"
    );
}

#[test]
fn a_rotation_that_fails_refuses() {
    let place = Place::new("rotation");
    let journal = place.open_with(JournalOptions {
        segment_bytes_max: 4 << 10,
        ..Place::options()
    });
    calls(&journal, 1..3);
    let lock = place.directory.join(".lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let error = (10..100)
        .find_map(|op| {
            journal
                .append(NOW_MS, &Record::Decision(&decision(op)))
                .err()
        })
        .unwrap();
    assert_eq!(error.label(), "journal_directory", "{error}");
    let later = journal
        .append(NOW_MS, &Record::Decision(&decision(1)))
        .unwrap_err();
    assert!(
        later.is_fatal() && matches!(later, JournalError::Failed { .. }),
        "{later}"
    );
    assert!(journal.healthy().is_err());
}

#[test]
fn records_that_cannot_be_written_are_refused_and_the_journal_goes_on() {
    let place = Place::new("record");
    let journal = place.open();
    let message = "x".repeat(gate::journal::BODY_BYTES_MAX);
    let large = System {
        message: Some(&message),
        ..System::of(SystemEvent::ServeStarted)
    };
    let error = journal.append(NOW_MS, &Record::System(&large)).unwrap_err();
    assert!(
        matches!(error, JournalError::TooLarge { .. }) && !error.is_fatal(),
        "{error}"
    );
    for event in JournalEvent::ALL {
        let error = journal
            .append(NOW_MS, &Record::System(&System::of(*event)))
            .unwrap_err();
        assert!(
            matches!(error, JournalError::ReservedEvent) && !error.is_fatal(),
            "{error}"
        );
    }
    calls(&journal, 1..3);
    journal.close(NOW_MS, "stopped").unwrap();
    let closed = journal
        .append(NOW_MS, &Record::Decision(&decision(9)))
        .unwrap_err();
    assert!(matches!(closed, JournalError::Closed));
    journal.close(NOW_MS, "again").unwrap();
    let report = verify(&place.directory, &[place.keys.public()]).unwrap();
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
}

#[test]
fn journal_and_keys_are_private_and_survive() {
    let place = Place::new("private");
    let directory = place.directory.join("keys");
    let keys = Keys::open(&directory, &mut random()).unwrap();
    let again = Keys::open(&directory, &mut random()).unwrap();
    assert_eq!(keys.public(), again.public());
    assert_eq!(keys.digest(b"x"), again.digest(b"x"));
    assert_ne!(keys.digest(b"x"), keys.digest(b"y"));
    assert_ne!(keys.digest(b"x"), place.keys.digest(b"x"));
    assert_eq!(keys.digest(b"x").to_string().len(), 32);
    assert_eq!(
        PublicKey::read(&directory.join(CHECKPOINT_PUBLIC_FILE)).unwrap(),
        keys.public()
    );
    assert_eq!(format!("{keys:?}"), "Keys(secret)");
    let _journal = place.open();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.files()[0]), 0o600);
    assert_eq!((mode(&place.directory), mode(&directory)), (0o700, 0o700));
    for file in [CHECKPOINT_KEY_FILE, DIGEST_KEY_FILE] {
        assert_eq!(mode(&directory.join(file)), 0o600);
    }
}

#[test]
fn keys_that_others_can_read_or_that_are_none_are_refused() {
    let place = Place::new("keys");
    let directory = place.directory.join("keys");
    Keys::open(&directory, &mut random()).unwrap();
    let key = directory.join(CHECKPOINT_KEY_FILE);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let error = Keys::open(&directory, &mut random()).unwrap_err();
    assert!(
        matches!(error, KeysError::Exposed { .. }) && error.to_string().contains("chmod 600"),
        "{error}"
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    for wrong in [&b""[..], b"xyz\n", &[b'A'; 64], &[b'a'; 65], &[0xff; 4_000]] {
        fs::write(&key, wrong).unwrap();
        let error = Keys::open(&directory, &mut random()).unwrap_err();
        assert!(matches!(error, KeysError::Malformed { .. }), "{error}");
    }
}
