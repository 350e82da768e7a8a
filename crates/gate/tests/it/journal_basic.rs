//! A journal is written, closed, verified; a later one continues it.

use crate::journal_support::{NOW_MS, Place, calls};
use gate::journal::audit::verify;

#[test]
fn what_was_written_verifies_and_is_continued() {
    let place = Place::new("basic");
    let journal = place.open();
    calls(&journal, 1..6);
    journal.tick(NOW_MS + 1).unwrap();
    journal.close(NOW_MS + 2, "stopped").unwrap();
    let report = verify(&place.directory, &[place.keys.public()]).unwrap();
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
    assert_eq!(
        (report.segments, report.records, report.signatures),
        (1, 13, 2)
    );
    let second = place.open();
    second.close(NOW_MS + 3, "stopped").unwrap();
    let report = verify(&place.directory, &[place.keys.public()]).unwrap();
    assert!(report.is_intact() && report.notes.is_empty(), "{report:?}");
    assert_eq!((report.segments, report.records), (2, 16));
}
