//! Accounts that outlive the process: what was settled is appended to a file before anybody is told.
//!
//! One line an account and settlement: `ACCOUNT TAB WINDOW TAB USED`. The lines of an account's last window add
//! up. `kill -9` loses nothing that was settled; a loss of power may lose what the system had not written yet.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ledger::Ledger;
use super::{Budget, Counter, Held, Reservation, Settle, Spend, Stop};
use crate::directory;
use crate::log::{FileLog, Log as _, LogError, SyncPolicy};

/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Beyond this length the file is written anew with one line an account, in bytes.
const GROWN_BYTES: u64 = 8 * 1024 * 1024;

/// Why accounts cannot be kept.
#[derive(Debug)]
pub enum CounterError {
    /// The file cannot be read or written.
    Io(PathBuf, io::Error),
    /// The file cannot be appended to.
    Log(PathBuf, LogError),
    /// A line is none of ours.
    Line(PathBuf, usize),
    /// The file is longer than may be read.
    TooLong(PathBuf),
}

impl fmt::Display for CounterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Log(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Line(path, line) => {
                write!(
                    f,
                    "{}:{line}: this is not an account; is it another file?",
                    path.display()
                )
            }
            Self::TooLong(path) => {
                write!(f, "{}: longer than {FILE_BYTES_MAX} bytes", path.display())
            }
        }
    }
}

impl std::error::Error for CounterError {}

/// A counter whose accounts are kept in a file.
#[derive(Debug)]
pub struct FileCounter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    kept: Mutex<Kept>,
}

struct Kept {
    ledger: Ledger,
    /// Absent after a write that failed.
    log: Option<FileLog>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

impl FileCounter {
    /// Reads what was used before, and goes on from there.
    ///
    /// # Errors
    /// [`CounterError`].
    pub fn open(path: &Path) -> Result<Self, CounterError> {
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            directory::create_private(parent).map_err(|error| {
                CounterError::Io(path.to_path_buf(), io::Error::other(error.to_string()))
            })?;
        }
        // Whoever else keeps these accounts still holds the file.
        let held = match path.exists() {
            true => Some(FileLog::open(path, SyncPolicy::Never)),
            false => None,
        };
        let held = held.transpose();
        let held = held.map_err(|error| CounterError::Log(path.to_path_buf(), error))?;
        let mut ledger = Ledger::default();
        read(path, &mut ledger)?;
        let log = begun(path, &ledger)?;
        drop(held);
        let kept = Kept {
            ledger,
            log: Some(log),
        };
        Ok(Self(Arc::new(Shared {
            path: path.to_path_buf(),
            kept: Mutex::new(kept),
        })))
    }

    /// Whether the file can be read, or is not there yet. Makes and locks nothing.
    ///
    /// # Errors
    /// [`CounterError`], as [`FileCounter::open`] gives it.
    pub fn check(path: &Path) -> Result<(), CounterError> {
        read(path, &mut Ledger::default())
    }
}

fn read(path: &Path, ledger: &mut Ledger) -> Result<(), CounterError> {
    let io = |error| CounterError::Io(path.to_path_buf(), error);
    match fs::metadata(path) {
        Ok(found) if found.len() > FILE_BYTES_MAX => {
            return Err(CounterError::TooLong(path.to_path_buf()));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    }
    let text = fs::read_to_string(path).map_err(io)?;
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let whole = line.strip_suffix('\n');
        match (whole.and_then(parse), lines.peek()) {
            (Some((name, window, used)), _) => ledger.add(name, window, used),
            // The process ended in the middle of it: nobody was told.
            (None, None) if whole.is_none() => {}
            (None, _) => return Err(CounterError::Line(path.to_path_buf(), at + 1)),
        }
    }
    Ok(())
}

fn parse(line: &str) -> Option<(&str, i64, u64)> {
    let mut parts = line.split('\t');
    let found = (
        parts.next()?,
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
    );
    parts.next().is_none().then_some(found)
}

/// Writes the file anew, one line an account, and opens it to go on.
fn begun(path: &Path, ledger: &Ledger) -> Result<FileLog, CounterError> {
    let io = |error| CounterError::Io(path.to_path_buf(), error);
    let log = |error| CounterError::Log(path.to_path_buf(), error);
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        Ok(()) | Err(_) => {}
    }
    // Made by the log, so that nobody else may read it.
    drop(FileLog::create(&new, SyncPolicy::Never).map_err(log)?);
    let mut file = fs::OpenOptions::new().append(true).open(&new).map_err(io)?;
    let mut text = String::new();
    for (account, window, used) in ledger.used() {
        text.push_str(&format!("{account}\t{window}\t{used}\n"));
    }
    file.write_all(text.as_bytes()).map_err(io)?;
    file.sync_data().map_err(io)?;
    drop(file);
    fs::rename(&new, path).map_err(io)?;
    FileLog::open(path, SyncPolicy::Never).map_err(log)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settle for Shared {
    fn settle(&self, held: &[Held], cost: Spend, used: Spend) {
        let mut kept = self.lock();
        kept.ledger.settle(held, cost, used);
        if used != Spend::default() {
            self.write_down(&mut kept, held, used);
        }
    }
}

impl Shared {
    fn write_down(&self, kept: &mut Kept, held: &[Held], used: Spend) {
        let Some(log) = &kept.log else {
            return;
        };
        let mut lines = String::new();
        for (account, window, unit) in held {
            let used = used.of(*unit);
            if used > 0 {
                lines.push_str(&format!("{account}\t{window}\t{used}\n"));
            }
        }
        if lines.is_empty() {
            return;
        }
        match log.append(lines.as_bytes()) {
            // What cannot be written down is the last that is given out.
            Err(_) => kept.log = None,
            Ok(length) if length > GROWN_BYTES => {
                kept.log = None;
                kept.log = begun(&self.path, &kept.ledger).ok();
            }
            Ok(_) => {}
        }
    }
}

impl Counter for FileCounter {
    fn reserve(&self, budgets: &[Budget], cost: Spend, now_ms: i64) -> Result<Reservation, Stop> {
        let mut kept = self.0.lock();
        if kept.log.is_none() && !budgets.is_empty() {
            return Err(Stop::Failed);
        }
        let (held, left) = kept.ledger.reserve(budgets, cost, now_ms)?;
        let settle = Arc::clone(&self.0) as Arc<dyn Settle>;
        Ok(Reservation::new(settle, held, cost, left))
    }

    fn charge(&self, held: &[Held], used: Spend) {
        let mut kept = self.0.lock();
        kept.ledger.charge(held, used);
        self.0.write_down(&mut kept, held, used);
    }

    fn used(&self, budget: &Budget, now_ms: i64) -> u64 {
        self.0.lock().ledger.taken(budget, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("counter-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }

        fn file(&self) -> PathBuf {
            self.0.join("budgets")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn own() -> [Budget; 1] {
        [Budget {
            account: "each key:a".into(),
            unit: super::super::Unit::Tokens,
            most: 100,
            window_ms: 1_000,
        }]
    }

    #[test]
    fn what_was_settled_is_there_after_a_restart_and_what_was_open_is_not() {
        let scratch = Scratch::new("restart");
        let counter = FileCounter::open(&scratch.file()).unwrap();
        counter
            .reserve(&own(), Spend::tokens(50), 0)
            .unwrap()
            .settle(Spend::tokens(30));
        counter
            .reserve(&own(), Spend::tokens(50), 0)
            .unwrap()
            .settle(Spend::tokens(12));
        std::mem::forget(counter.reserve(&own(), Spend::tokens(50), 0).unwrap());
        assert_eq!(counter.used(&own()[0], 0), 92);
        drop(counter);
        // The forgotten reservation still holds the first file open; a killed process would not.
        let copy = scratch.0.join("copy");
        fs::copy(scratch.file(), &copy).unwrap();
        let counter = FileCounter::open(&copy).unwrap();
        assert_eq!(counter.used(&own()[0], 999), 42);
        assert_eq!(counter.used(&own()[0], 1_000), 0, "another window");
        assert_eq!(fs::read_to_string(&copy).unwrap(), "each key:a\t0\t42\n");
    }

    #[test]
    fn a_torn_line_at_the_end_is_forgotten_and_one_elsewhere_is_a_fault() {
        let scratch = Scratch::new("torn");
        fs::write(scratch.file(), "each key:a\t0\t7\neach key:a\t0\t9").unwrap();
        let counter = FileCounter::open(&scratch.file()).unwrap();
        assert_eq!(counter.used(&own()[0], 0), 7);
        drop(counter);
        fs::write(scratch.file(), "oops\neach key:a\t0\t9\n").unwrap();
        let wrong = FileCounter::open(&scratch.file()).unwrap_err();
        assert!(matches!(wrong, CounterError::Line(_, 1)), "{wrong}");
        for odd in ["a\tb\t1\n", "a\t1\t-1\n", "a\t1\t1\t1\n"] {
            fs::write(scratch.file(), odd).unwrap();
            assert!(FileCounter::open(&scratch.file()).is_err(), "{odd}");
        }
    }

    #[test]
    fn where_nothing_can_be_written_down_nothing_is_given_out() {
        let scratch = Scratch::new("failed");
        let counter = FileCounter::open(&scratch.file()).unwrap();
        let held = counter.reserve(&own(), Spend::tokens(10), 0).unwrap();
        fs::remove_file(scratch.file()).unwrap();
        held.settle(Spend::tokens(5));
        assert_eq!(
            counter.reserve(&own(), Spend::tokens(1), 0).unwrap_err(),
            Stop::Failed
        );
        assert!(counter.reserve(&[], Spend::tokens(1), 0).is_ok());
    }

    #[test]
    fn one_process_keeps_the_accounts() {
        let scratch = Scratch::new("locked");
        let first = FileCounter::open(&scratch.file()).unwrap();
        let second = FileCounter::open(&scratch.file()).unwrap_err();
        assert!(
            matches!(second, CounterError::Log(_, LogError::Locked)),
            "{second}"
        );
        first
            .reserve(&own(), Spend::tokens(50), 0)
            .unwrap()
            .settle(Spend::tokens(30));
        drop(first);
        let next = FileCounter::open(&scratch.file()).unwrap();
        assert_eq!(next.used(&own()[0], 0), 30);
    }
}
