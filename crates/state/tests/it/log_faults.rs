//! What a log does when its file or its disk fails it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use state::log::{Contents, Medium, Named, Stamp};
use state::{FileLog, Log, LogError, SyncPolicy, directory};

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("log-{name}-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        directory::create_private(&path).unwrap();
        Place(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("log")
    }

    fn log(&self) -> FileLog {
        FileLog::create(&self.file(), SyncPolicy::Never).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn root(error: &LogError) -> LogError {
    error.root().clone()
}

/// After `first`, every append and check says that the log has failed, and why.
fn stays_failed(log: &FileLog, first: &LogError) {
    for _ in 0..2 {
        let later = log.append(b"later\n").unwrap_err();
        assert!(matches!(later, LogError::Poisoned { .. }), "{later:?}");
        assert_eq!(root(&later), root(first));
    }
    assert_eq!(root(&log.check().unwrap_err()), root(first));
    assert_eq!(root(&log.failure().unwrap()), root(first));
}

#[test]
fn files_and_directories_are_private() {
    let place = Place::new("private");
    let _log = place.log();
    let nested = place.0.join("a/b");
    directory::create_private(&nested).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.file()), 0o600);
    for path in [place.0.clone(), place.0.join("a"), nested] {
        assert_eq!(mode(&path), 0o700, "{path:?}");
    }
    directory::write_private(&place.0.join("secret"), b"x").unwrap();
    assert_eq!(mode(&place.0.join("secret")), 0o600);
}

#[test]
fn records_follow_one_another_and_a_reopened_log_continues() {
    let place = Place::new("order");
    let log = place.log();
    assert_eq!(log.append(b"one\n").unwrap(), 4);
    assert_eq!(log.append(b"two\n").unwrap(), 8);
    log.close().unwrap();
    log.close().unwrap();
    drop(log);
    let log = FileLog::open(&place.file(), SyncPolicy::Every).unwrap();
    assert_eq!(log.append(b"three\n").unwrap(), 14);
    assert_eq!(fs::read(place.file()).unwrap(), b"one\ntwo\nthree\n");
}

#[test]
fn a_second_writer_is_refused() {
    let place = Place::new("locked");
    let _log = place.log();
    assert_eq!(
        FileLog::open(&place.file(), SyncPolicy::Never).unwrap_err(),
        LogError::Locked
    );
    assert!(matches!(
        FileLog::create(&place.file(), SyncPolicy::Never),
        Err(LogError::Io { action: "open", .. })
    ));
}

#[test]
fn a_record_beyond_the_bound_is_refused_and_the_log_goes_on() {
    let place = Place::new("large");
    let log = place.log();
    let large = vec![b'x'; state::log::RECORD_BYTES_MAX + 1];
    assert!(matches!(log.append(&large), Err(LogError::TooLarge { .. })));
    log.append(&large[1..]).unwrap();
    assert_eq!(
        fs::metadata(place.file()).unwrap().len(),
        state::log::RECORD_BYTES_MAX as u64
    );
}

#[test]
fn what_a_failed_composition_added_is_dropped() {
    let place = Place::new("compose");
    let log = place.log();
    let failed: Result<(), LogError> = log.append_with(|batch| {
        batch.extend_from_slice(b"half a rec");
        Err(LogError::Full)
    });
    assert_eq!(failed, Err(LogError::Full));
    log.append(b"whole\n").unwrap();
    assert_eq!(fs::read(place.file()).unwrap(), b"whole\n");
}

#[test]
fn an_unlinked_file_is_noticed_before_the_next_write() {
    let place = Place::new("unlinked");
    let log = place.log();
    log.append(b"one\n").unwrap();
    fs::remove_file(place.file()).unwrap();
    let error = log.append(b"two\n").unwrap_err();
    assert_eq!(error, LogError::Unlinked);
    stays_failed(&log, &error);
}

#[test]
fn a_file_that_is_removed_between_writes_that_come_together_is_noticed_within_a_millisecond() {
    let place = Place::new("unlinked-between");
    let log = place.log();
    for _ in 0..20 {
        log.append(b"one\n").unwrap();
    }
    fs::remove_file(place.file()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1));
    let error = log.append(b"two\n").unwrap_err();
    assert_eq!(error, LogError::Unlinked);
    stays_failed(&log, &LogError::Unlinked);
}

#[test]
fn a_moved_directory_is_noticed_within_a_millisecond() {
    let place = Place::new("moved");
    let inner = place.0.join("inner");
    directory::create_private(&inner).unwrap();
    let log = FileLog::create(&inner.join("log"), SyncPolicy::Never).unwrap();
    log.append(b"one\n").unwrap();
    fs::rename(&inner, place.0.join("elsewhere")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert_eq!(log.append(b"two\n").unwrap_err(), LogError::Unlinked);
    assert_eq!(fs::read(place.0.join("elsewhere/log")).unwrap(), b"one\n");
}

#[test]
fn a_replaced_file_is_noticed_and_left_alone() {
    let place = Place::new("replaced");
    let log = place.log();
    log.append(b"one\n").unwrap();
    fs::rename(place.file(), place.0.join("aside")).unwrap();
    fs::write(place.file(), b"one\n").unwrap();
    let error = log.append(b"two\n").unwrap_err();
    assert_eq!(error, LogError::Replaced);
    stays_failed(&log, &error);
    assert_eq!(fs::read(place.file()).unwrap(), b"one\n");
    assert_eq!(fs::read(place.0.join("aside")).unwrap(), b"one\n");
}

#[test]
fn a_truncated_file_is_noticed() {
    let place = Place::new("truncated");
    let log = place.log();
    log.append(b"one\n").unwrap();
    OpenOptions::new()
        .write(true)
        .open(place.file())
        .unwrap()
        .set_len(2)
        .unwrap();
    let error = log.append(b"two\n").unwrap_err();
    assert_eq!(
        error,
        LogError::Truncated {
            expected_bytes: 4,
            found_bytes: 2
        }
    );
    stays_failed(&log, &error);
}

/// The file's contents, as its only writer remembers them.
struct Remembered(PathBuf, Vec<u8>);

impl Contents for Remembered {
    fn hold(&self, len_bytes: u64, _: &[u8]) -> Option<bool> {
        assert_eq!(len_bytes, self.1.len() as u64);
        Some(fs::read(&self.0).unwrap() == self.1)
    }
}

#[test]
fn an_edit_that_keeps_the_length_is_noticed_and_a_new_link_is_let_be() {
    for edited in [false, true] {
        let place = Place::new("edited");
        let remembered = Remembered(place.file(), b"one\n".to_vec());
        let log = place.log().with_contents(Box::new(remembered));
        log.append(b"one\n").unwrap();
        // Time enough for the clock that older kernels stamp files with.
        std::thread::sleep(std::time::Duration::from_millis(20));
        if edited {
            let file = OpenOptions::new().write(true).open(place.file()).unwrap();
            file.write_all_at(b"eno", 0).unwrap();
            let error = log.append(b"two\n").unwrap_err();
            assert_eq!(error, LogError::Edited);
            stays_failed(&log, &error);
        } else {
            fs::hard_link(place.file(), place.0.join("backup")).unwrap();
            log.check().unwrap();
            log.append(b"two\n").unwrap();
        }
    }
}

#[test]
fn an_edit_behind_writes_that_came_together_is_noticed_once_the_log_has_settled() {
    let place = Place::new("edited-burst");
    let all = b"one\ntwo\nthree\n";
    let log = place
        .log()
        .with_contents(Box::new(Remembered(place.file(), all.to_vec())));
    for record in all.split_inclusive(|byte| *byte == b'\n') {
        log.append(record).unwrap();
    }
    log.sync().unwrap();
    // Time enough for the clock that older kernels stamp files with.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let file = OpenOptions::new().write(true).open(place.file()).unwrap();
    file.write_all_at(b"eerht", 8).unwrap();
    assert_eq!(log.append(b"four\n").unwrap_err(), LogError::Edited);
}

#[test]
fn a_foreign_append_is_noticed() {
    let place = Place::new("grown");
    let log = place.log();
    log.append(b"one\n").unwrap();
    OpenOptions::new()
        .append(true)
        .open(place.file())
        .unwrap()
        .write_all(b"!")
        .unwrap();
    let error = log.append(b"two\n").unwrap_err();
    assert_eq!(
        error,
        LogError::Grown {
            expected_bytes: 4,
            found_bytes: 5
        }
    );
    stays_failed(&log, &error);
}

#[test]
fn a_quiet_log_notices_on_a_check() {
    let place = Place::new("check");
    let log = place.log();
    log.append(b"one\n").unwrap();
    log.check().unwrap();
    fs::remove_file(place.file()).unwrap();
    assert_eq!(log.check().unwrap_err(), LogError::Unlinked);
    stays_failed(&log, &LogError::Unlinked);
}

#[test]
fn a_record_of_what_is_over_is_written_unlooked_and_the_next_finds_the_file_gone() {
    let place = Place::new("over");
    let log = place.log();
    log.append(b"one\n").unwrap();
    fs::remove_file(place.file()).unwrap();
    let over = |batch: &mut Vec<u8>| {
        batch.extend_from_slice(b"over\n");
        Ok::<_, LogError>(())
    };
    log.append_later_with(over).unwrap();
    let error = log.append(b"two\n").unwrap_err();
    assert_eq!(error, LogError::Unlinked);
    assert!(log.append_later_with(over).is_err());
    stays_failed(&log, &error);
}

/// A medium in memory that fails on demand.
#[derive(Default)]
struct Faulty {
    bytes: Mutex<Vec<u8>>,
    /// Bytes that still fit.
    room: Mutex<Option<usize>>,
    truncation_fails: AtomicBool,
    sync_fails: AtomicBool,
    syncs: AtomicUsize,
    writes: AtomicUsize,
}

#[derive(Clone, Default)]
struct Shared(Arc<Faulty>);

impl Medium for Shared {
    fn inspect_path(&self) -> io::Result<Named> {
        Ok(Named::Ours {
            len_bytes: self.0.bytes.lock().unwrap().len() as u64,
            touched: None,
        })
    }

    fn accept(&self, _: Stamp) {}

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        let mut room = self.0.room.lock().unwrap();
        let fits = room.map_or(bytes.len(), |room| room.min(bytes.len()));
        if fits == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if let Some(room) = room.as_mut() {
            *room -= fits;
        }
        self.0
            .bytes
            .lock()
            .unwrap()
            .extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        if self.0.truncation_fails.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Other.into());
        }
        self.0.bytes.lock().unwrap().truncate(len_bytes as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.syncs.fetch_add(1, Ordering::Relaxed);
        if self.0.sync_fails.load(Ordering::Relaxed) {
            Err(io::ErrorKind::Other.into())
        } else {
            Ok(())
        }
    }
}

#[test]
fn a_short_write_is_cut_back_to_the_last_whole_record_and_ends_the_log() {
    let medium = Shared::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SyncPolicy::Never).unwrap();
    log.append(b"one\n").unwrap();
    *medium.0.room.lock().unwrap() = Some(2);
    let error = log.append(b"two\n").unwrap_err();
    assert_eq!(error, LogError::Full);
    assert_eq!(*medium.0.bytes.lock().unwrap(), b"one\n");
    *medium.0.room.lock().unwrap() = None;
    stays_failed(&log, &error);
    assert_eq!(*medium.0.bytes.lock().unwrap(), b"one\n");
}

#[test]
fn a_refused_write_ends_the_log() {
    let medium = Shared::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SyncPolicy::Never).unwrap();
    *medium.0.room.lock().unwrap() = Some(0);
    let error = log.append(b"one\n").unwrap_err();
    assert_eq!(error, LogError::Full);
    stays_failed(&log, &error);
}

#[test]
fn a_part_that_cannot_be_cut_off_is_said_to_be_torn() {
    let medium = Shared::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SyncPolicy::Never).unwrap();
    *medium.0.room.lock().unwrap() = Some(2);
    medium.0.truncation_fails.store(true, Ordering::Relaxed);
    let error = log.append(b"one\n").unwrap_err();
    assert_eq!(
        error,
        LogError::Torn {
            cause: Arc::new(LogError::Full)
        }
    );
    stays_failed(&log, &error);
}

#[test]
fn a_failed_sync_refuses_the_append_that_waits_for_it() {
    let medium = Shared::default();
    medium.0.sync_fails.store(true, Ordering::Relaxed);
    let log = FileLog::on_medium(Box::new(medium.clone()), SyncPolicy::Every).unwrap();
    let error = log.append(b"one\n").unwrap_err();
    assert!(
        matches!(error, LogError::Io { action: "sync", .. }),
        "{error:?}"
    );
    stays_failed(&log, &error);
}

#[test]
fn a_failed_sync_at_an_interval_ends_the_log() {
    let medium = Shared::default();
    medium.0.sync_fails.store(true, Ordering::Relaxed);
    let log = FileLog::on_medium(
        Box::new(medium.clone()),
        SyncPolicy::Interval { interval_ms: 1 },
    )
    .unwrap();
    log.append(b"one\n").unwrap();
    while log.failure().is_none() {
        std::thread::yield_now();
    }
    stays_failed(
        &log,
        &LogError::Io {
            action: "sync",
            kind: io::ErrorKind::Other,
            code: None,
        },
    );
}

#[test]
fn every_append_is_covered_by_a_sync_and_an_interval_syncs_once() {
    let medium = Shared::default();
    let log = FileLog::on_medium(Box::new(medium.clone()), SyncPolicy::Every).unwrap();
    for appends in 1..=3 {
        log.append(b"one\n").unwrap();
        assert_eq!(medium.0.syncs.load(Ordering::Relaxed), appends);
    }
    let medium = Shared::default();
    let log = FileLog::on_medium(
        Box::new(medium.clone()),
        SyncPolicy::Interval {
            interval_ms: 600_000,
        },
    )
    .unwrap();
    for _ in 0..100 {
        log.append(b"one\n").unwrap();
    }
    assert_eq!(medium.0.syncs.load(Ordering::Relaxed), 0);
    log.close().unwrap();
    assert!(medium.0.syncs.load(Ordering::Relaxed) >= 1);
}

fn race(log: &Arc<FileLog>, threads: usize, each: usize) -> Vec<Result<u64, LogError>> {
    let start = Arc::new(Barrier::new(threads));
    let appenders: Vec<_> = (0..threads)
        .map(|thread| {
            let (log, start) = (Arc::clone(log), Arc::clone(&start));
            std::thread::spawn(move || {
                start.wait();
                (0..each)
                    .map(|at| log.append(format!("{thread} {at}\n").as_bytes()))
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    appenders
        .into_iter()
        .flat_map(|appender| appender.join().unwrap())
        .collect()
}

#[test]
fn concurrent_appends_are_all_there_each_thread_s_in_order() {
    for policy in [
        SyncPolicy::Never,
        SyncPolicy::Every,
        SyncPolicy::Interval { interval_ms: 1 },
    ] {
        let medium = Shared::default();
        let log = Arc::new(FileLog::on_medium(Box::new(medium.clone()), policy).unwrap());
        let mut ends: Vec<_> = race(&log, 16, 200)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let text = String::from_utf8(medium.0.bytes.lock().unwrap().clone()).unwrap();
        let mut next = [0; 16];
        let mut offset = 0;
        ends.sort_unstable();
        for (line, end) in text.split_inclusive('\n').zip(&ends) {
            let (thread, at) = line.trim_end().split_once(' ').unwrap();
            let next = &mut next[thread.parse::<usize>().unwrap()];
            assert_eq!(at.parse(), Ok(*next), "{policy:?}");
            *next += 1;
            offset += line.len() as u64;
            assert_eq!(offset, *end, "{policy:?}");
        }
        assert_eq!(next, [200; 16], "{policy:?}");
        assert!(medium.0.writes.load(Ordering::Relaxed) <= 3_200);
    }
}

#[test]
fn when_the_room_ends_among_many_writers_exactly_the_acknowledged_records_are_there() {
    for room in [1, 37, 500, 5_000] {
        let medium = Shared::default();
        *medium.0.room.lock().unwrap() = Some(room);
        let log =
            Arc::new(FileLog::on_medium(Box::new(medium.clone()), SyncPolicy::Never).unwrap());
        let results = race(&log, 16, 200);
        let acknowledged = results.iter().filter(|result| result.is_ok()).count();
        let bytes = medium.0.bytes.lock().unwrap().clone();
        assert!(
            bytes.is_empty() || bytes.ends_with(b"\n"),
            "half a record at {room}"
        );
        assert_eq!(
            bytes.iter().filter(|byte| **byte == b'\n').count(),
            acknowledged,
            "{room}"
        );
        assert!(results.iter().any(Result::is_err));
        assert!(
            results
                .iter()
                .filter_map(|result| result.as_ref().err())
                .all(|error| root(error) == LogError::Full)
        );
    }
}

/// A tiny file system of its own, where mounting is allowed.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(at: &Path) -> Option<Tiny> {
        fs::create_dir_all(at).ok()?;
        let done = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(at)
            .stderr(std::process::Stdio::null())
            .status();
        done.is_ok_and(|status| status.success())
            .then(|| Tiny(at.to_path_buf()))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

/// Where mounting is refused, [`a_file_size_limit_is_a_full_disk`] still tests a real refusal of the kernel.
#[test]
fn a_full_disk_ends_the_log_on_a_whole_record() {
    let place = Place::new("full");
    let Some(tiny) = Tiny::mount(&place.0.join("tiny")) else {
        return;
    };
    let path = tiny.0.join("log");
    let log = FileLog::create(&path, SyncPolicy::Never).unwrap();
    let record = [vec![b'x'; 996], b"end\n".to_vec()].concat();
    let mut whole = 0;
    let error = loop {
        match log.append(&record) {
            Ok(_) => whole += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, LogError::Full);
    assert!(whole > 10);
    assert_eq!(fs::metadata(&path).unwrap().size(), 1_000 * whole);
    stays_failed(&log, &error);
    drop(log);
}

/// The writer that [`a_file_size_limit_is_a_full_disk`] starts under a limit; on its own it does nothing.
#[test]
fn under_a_limit() {
    let Some(path) = std::env::args()
        .skip_while(|argument| argument != "--skip")
        .nth(1)
    else {
        return;
    };
    let Some(path) = path.strip_prefix("path=") else {
        return;
    };
    let log = FileLog::create(Path::new(path), SyncPolicy::Never).unwrap();
    let record = [vec![b'x'; 996], b"end\n".to_vec()].concat();
    let error = (0..100).find_map(|_| log.append(&record).err()).unwrap();
    assert_eq!(error, LogError::Full);
    stays_failed(&log, &error);
}

#[test]
fn a_file_size_limit_is_a_full_disk() {
    let place = Place::new("limit");
    let path = place.file();
    // 20 blocks of 512 bytes: ten whole records of 1,000 bytes and a part. The signal that comes with it is ignored, as a
    // program must that wants the error instead.
    let script = format!(
        "trap '' XFSZ; ulimit -f 20; exec '{}' --exact log_faults::under_a_limit --skip 'path={}' >/dev/null",
        std::env::current_exe().unwrap().display(),
        path.display()
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(fs::metadata(&path).unwrap().size(), 10_000);
}
