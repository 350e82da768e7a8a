//! A journal that is written in a state directory of the test.

use std::fs;
use std::sync::atomic::AtomicBool;

use gate::journal::audit::Filter;
use gate::journal::{Journal, JournalOptions, Keys, Record, Surroundings, System, SystemEvent};

use super::*;
use crate::{AdminError, ErrorKind, OperationWatch, StatePaths};

const NOW_MS: i64 = 1_700_000_000_000;

/// A state directory with a journal; removed when dropped.
struct Installation {
    paths: StatePaths,
}

impl Installation {
    fn new(name: &str) -> Self {
        let state =
            std::env::temp_dir().join(format!("admin-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&state);
        let paths = StatePaths {
            state,
            ..StatePaths::default()
        };
        Self { paths }
    }

    /// Writes a closed segment with records of `number` sessions.
    fn write(&self, number: u64) -> Journal {
        let mut next = 7_u8;
        let mut random = |bytes: &mut [u8]| {
            for byte in bytes {
                next = next.wrapping_mul(31).wrapping_add(11);
                *byte = next;
            }
        };
        let keys = Keys::open(&self.paths.keys(), &mut random).unwrap();
        let surroundings = Surroundings {
            random: &mut random,
            waiting: &mut |_| {},
            witness: None,
            steps: None,
        };
        let own = ([1; 16], NOW_MS);
        let directory = self.paths.journal();
        let journal = Journal::open_in(
            &directory,
            &keys,
            JournalOptions::default(),
            own,
            surroundings,
        )
        .unwrap();
        for _ in 0..number {
            let record = System {
                backend_id: Some("files"),
                ..System::of(SystemEvent::SessionStarted)
            };
            journal.append(NOW_MS, &Record::System(&record)).unwrap();
        }
        journal
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.paths.state);
    }
}

#[test]
fn segments_name_their_server_and_whether_an_instance_writes_them() {
    let installation = Installation::new("segments");
    assert_eq!(
        summarize(&installation.paths.journal()).unwrap().segments,
        0
    );
    let journal = installation.write(1);
    let summary = summarize(&installation.paths.journal()).unwrap();
    assert_eq!((summary.segments, summary.running()), (1, 1));
    assert_eq!(summary.open[0].server.as_deref(), Some("files"));
    let page = list_segments(&installation.paths.journal(), 10).unwrap();
    assert_eq!((page.total, page.segments[0].closed), (1, false));
    journal.close(NOW_MS, "ended").unwrap();
    drop(journal);
    let summary = summarize(&installation.paths.journal()).unwrap();
    assert_eq!((summary.segments, summary.open.len()), (1, 0));
    let page = list_segments(&installation.paths.journal(), 10).unwrap();
    assert!(page.segments[0].closed);
}

#[test]
fn a_verification_reports_each_segment_and_can_be_cancelled() {
    let installation = Installation::new("verify");
    let paths = &installation.paths;
    let request = VerifyRequest::default();
    let error = verify(&request, paths, &mut OperationWatch::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    installation.write(3).close(NOW_MS, "ended").unwrap();
    let mut steps = Vec::new();
    let mut report = |progress: crate::OperationProgress| steps.push(progress);
    let mut watch = OperationWatch::default().with_report(&mut report);
    let verified = verify(&request, paths, &mut watch).unwrap();
    assert_eq!(verified.status, VerificationStatus::Sound);
    assert_eq!(steps.len(), 1);
    assert_eq!((steps[0].done, steps[0].total), (0, Some(1)));
    let cancel = AtomicBool::new(true);
    let mut watch = OperationWatch::default().with_cancel(&cancel);
    let error = verify(&request, paths, &mut watch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn a_journal_that_an_instance_writes_is_not_repaired() {
    let installation = Installation::new("repair");
    let paths = &installation.paths;
    installation.write(3).close(NOW_MS, "ended").unwrap();
    let segment = fs::read_dir(paths.journal()).unwrap().next().unwrap();
    let segment = segment.unwrap().path();
    let running = installation.write(1);
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replacen("files", "filed", 1)).unwrap();
    let repair = || {
        let request = RepairRequest {
            now_ms: NOW_MS,
            random: &|bytes| {
                bytes.fill(9);
                Ok(())
            },
            waiting: &mut |_| {},
        };
        super::repair(request, paths, &mut OperationWatch::default())
    };
    let error = repair().unwrap_err();
    assert!(matches!(error, AdminError::Repair(_)), "{error}");
    assert_eq!(error.kind(), ErrorKind::InUse);
    running.close(NOW_MS, "ended").unwrap();
    drop(running);
    let repaired = repair().unwrap();
    assert_eq!(repaired.repair.unwrap().moved, 1);
    assert_eq!(repaired.verification.status, VerificationStatus::Sound);
}

#[test]
fn an_export_has_each_record_as_it_was_written() {
    let installation = Installation::new("export");
    installation.write(3).close(NOW_MS, "ended").unwrap();
    let mut out = Vec::new();
    let filter = Filter::default();
    let mut watch = OperationWatch::default();
    let report = export(&installation.paths.journal(), &filter, &mut out, &mut watch).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(report.records, text.lines().count() as u64);
    assert_eq!(text.matches("session_started").count(), 3);
    let mut full = FullDisk;
    let error = export(
        &installation.paths.journal(),
        &filter,
        &mut full,
        &mut watch,
    )
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReadable);
}

/// An output that takes nothing.
struct FullDisk;

impl std::io::Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_witness_counts_whole_heads() {
    let file = std::env::temp_dir().join(format!("admin-witness-{}", std::process::id()));
    let _ = fs::remove_file(&file);
    assert!(!read_witness(&file).unwrap().exists);
    fs::write(&file, "{}\n{}\n{").unwrap();
    let state = read_witness(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!((state.exists, state.heads, state.size_bytes), (true, 2, 7));
}
