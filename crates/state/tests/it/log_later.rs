//! Records of what is over: written with the next one, or soon.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, thread};

use state::log::{LATER_BYTES_MAX, Medium, Named, Stamp};
use state::{FileLog, Log as _, LogError, SyncPolicy};

/// Longest that a test waits for what has to come, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// A sync that no test waits for.
const SELDOM: SyncPolicy = SyncPolicy::Interval {
    interval_ms: 3_600_000,
};

/// A medium in memory that counts.
#[derive(Default)]
struct Memory {
    bytes: Mutex<Vec<u8>>,
    writes: AtomicUsize,
    syncs: AtomicUsize,
    is_full: AtomicBool,
}

#[derive(Clone, Default)]
struct Counting(Arc<Memory>);

impl Counting {
    fn text(&self) -> String {
        String::from_utf8(self.0.bytes.lock().unwrap().clone()).unwrap()
    }

    fn writes(&self) -> usize {
        self.0.writes.load(Ordering::Acquire)
    }
}

impl Medium for Counting {
    fn inspect_path(&self) -> io::Result<Named> {
        Ok(Named::Ours {
            len_bytes: self.0.bytes.lock().unwrap().len() as u64,
            touched: None,
        })
    }

    fn accept(&self, _: Stamp) {}

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.is_full.load(Ordering::Acquire) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.bytes.lock().unwrap().extend_from_slice(bytes);
        self.0.writes.fetch_add(1, Ordering::AcqRel);
        Ok(bytes.len())
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        self.0.bytes.lock().unwrap().truncate(len_bytes as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.syncs.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

fn later(log: &FileLog, record: &str) -> Result<(), LogError> {
    log.append_later_with(|batch| {
        batch.extend_from_slice(record.as_bytes());
        Ok(())
    })
}

fn soon(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_is_over_is_written_in_its_place_and_soon() {
    for policy in [SELDOM, SyncPolicy::Every, SyncPolicy::Never] {
        let medium = Counting::default();
        let log = FileLog::on_medium(Box::new(medium.clone()), policy).unwrap();
        let mut expected = String::new();
        for round in 0..20 {
            log.append(b"decision\n").unwrap();
            later(&log, "operation\n").unwrap();
            expected += "decision\noperation\n";
            if round % 5 == 0 {
                soon("nobody wrote what waits", || medium.text() == expected);
            }
        }
        log.check().unwrap();
        log.close().unwrap();
        soon("nobody wrote what waits", || medium.text() == expected);
        // Where somebody comes in time, two records are one write.
        let writes = medium.writes();
        assert!(policy == SyncPolicy::Never || writes < 40, "{writes}");
    }
}

#[test]
fn a_log_that_is_closed_or_synced_holds_what_waited() {
    let medium = Counting::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SELDOM).unwrap();
    later(&log, "one\n").unwrap();
    log.sync().unwrap();
    assert_eq!(medium.text(), "one\n");
    later(&log, "two\n").unwrap();
    log.close().unwrap();
    assert_eq!(medium.text(), "one\ntwo\n");
    drop(log);
    let log = FileLog::on_medium(Box::new(medium.clone()), SELDOM).unwrap();
    later(&log, "three\n").unwrap();
    drop(log);
    assert_eq!(medium.text(), "one\ntwo\nthree\n");
}

#[test]
fn under_every_what_is_over_is_synced_as_well() {
    let medium = Counting::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SyncPolicy::Every).unwrap();
    log.append(b"one\n").unwrap();
    let syncs = medium.0.syncs.load(Ordering::Acquire);
    later(&log, "two\n").unwrap();
    soon("it was not synced", || {
        medium.0.syncs.load(Ordering::Acquire) > syncs && log.progress() == (8, 8)
    });
}

#[test]
fn records_that_are_begun_together_share_one_write_and_under_every_one_sync() {
    for (policy, most) in [(SyncPolicy::Every, 1), (SELDOM, 0)] {
        let medium = Counting::default();
        let log = FileLog::on_medium(Box::new(medium.clone()), policy).unwrap();
        let begin = |record: &str| {
            log.begin_with(|batch| {
                batch.extend_from_slice(record.as_bytes());
                Ok::<_, LogError>(())
            })
        };
        let begun: Vec<_> = (0..32).map(|_| begin("decision\n").unwrap().1).collect();
        assert_eq!(medium.writes(), 0);
        for composed in begun {
            log.finish(composed).unwrap();
            // All of them, from the first that is finished.
            assert_eq!(medium.text(), "decision\n".repeat(32));
        }
        let syncs = medium.0.syncs.load(Ordering::Acquire);
        assert_eq!((medium.writes(), syncs), (1, most));
    }
}

#[test]
fn a_failure_to_write_what_is_over_meets_the_next_one() {
    let medium = Counting::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SELDOM).unwrap();
    log.append(b"one\n").unwrap();
    medium.0.is_full.store(true, Ordering::Release);
    later(&log, "two\n").unwrap();
    soon("the failure is not seen", || log.failure().is_some());
    let error = log.append(b"three\n").unwrap_err();
    assert_eq!(*error.root(), LogError::Full);
    assert_eq!(*later(&log, "four\n").unwrap_err().root(), LogError::Full);
    assert_eq!(medium.text(), "one\n");
}

#[test]
fn what_waits_is_bounded() {
    let medium = Counting::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SELDOM).unwrap();
    let record = "x".repeat(1_023) + "\n";
    let count = 4 * LATER_BYTES_MAX / record.len();
    for _ in 0..count {
        later(&log, &record).unwrap();
        let written = medium.0.bytes.lock().unwrap().len();
        let waiting = log.len_bytes() as usize - written;
        assert!(waiting <= LATER_BYTES_MAX + record.len(), "{waiting}");
    }
    assert!(medium.writes() >= 3);
}

#[test]
fn many_threads_keep_the_order_in_which_they_were_taken() {
    let medium = Counting::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SyncPolicy::default()).unwrap();
    let next = AtomicUsize::new(0);
    let compose = |batch: &mut Vec<u8>| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        batch.extend_from_slice(format!("{number}\n").as_bytes());
        Ok::<_, LogError>(())
    };
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    log.append_with(compose).unwrap();
                    log.append_later_with(compose).unwrap();
                }
            });
        }
    });
    log.close().unwrap();
    let expected: String = (0..24_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(medium.text(), expected);
}
