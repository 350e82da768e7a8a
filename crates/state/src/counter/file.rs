//! Accounts that outlive the process: each settlement is appended to a file before it returns.
//!
//! A line is `ACCOUNT TAB WINDOW TAB USED`; the lines of an account's latest window add up. `kill -9` loses nothing
//! that was settled; a loss of power may lose data that the system had not written yet.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ledger::AccountLedger;
use super::{
    AccountBudget, AccountQuota, AccountUsage, CounterStore, Reservation, ReservationRecord,
    ReserveError, ReserveRequest, SettleOutcome, SettleStore, SpendAmount,
};
use crate::directory;
use crate::log::{FileLog, Log as _, LogError, SyncPolicy};
use crate::store::{BoxFuture, StoreUnavailable};

/// Maximum length of the file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Length above which the file is rewritten with one line per account, in bytes.
const REWRITE_BYTES: u64 = 8 * 1024 * 1024;

/// Error of the file of a [`FileCounter`].
#[derive(Debug)]
pub enum CounterFileError {
    /// The file cannot be read or written.
    Io(PathBuf, io::Error),
    /// The file cannot be appended to.
    Log(PathBuf, LogError),
    /// A line is not an account.
    InvalidLine(PathBuf, usize),
    /// The file is longer than may be read.
    TooLong(PathBuf),
}

impl fmt::Display for CounterFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Log(path, error) => write!(f, "{}: {error}", path.display()),
            Self::InvalidLine(path, line) => {
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

impl std::error::Error for CounterFileError {}

/// Counter that keeps its accounts in a file.
#[derive(Debug)]
pub struct FileCounter(Arc<FileAccounts>);

#[derive(Debug)]
struct FileAccounts {
    path: PathBuf,
    state: Mutex<FileState>,
}

struct FileState {
    ledger: AccountLedger,
    /// `None` after a failed write.
    log: Option<FileLog>,
}

impl fmt::Debug for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileState")
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

impl FileCounter {
    /// Opens the file, or creates it, and reads the earlier use.
    ///
    /// # Errors
    /// [`CounterFileError`].
    pub fn open(path: &Path) -> Result<Self, CounterFileError> {
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            directory::create_private(parent).map_err(|error| {
                CounterFileError::Io(path.to_path_buf(), io::Error::other(error.to_string()))
            })?;
        }
        // Fails if another process has the file.
        let lock = match path.exists() {
            true => Some(FileLog::open(path, SyncPolicy::Never)),
            false => None,
        };
        let lock = lock.transpose();
        let lock = lock.map_err(|error| CounterFileError::Log(path.to_path_buf(), error))?;
        let mut ledger = AccountLedger::default();
        read_file(path, &mut ledger)?;
        let log = rewrite_file(path, &ledger)?;
        drop(lock);
        let state = FileState {
            ledger,
            log: Some(log),
        };
        Ok(Self(Arc::new(FileAccounts {
            path: path.to_path_buf(),
            state: Mutex::new(state),
        })))
    }

    /// Checks that the file can be read, or does not exist. Creates and locks nothing.
    ///
    /// # Errors
    /// [`CounterFileError`], as [`FileCounter::open`].
    pub fn check(path: &Path) -> Result<(), CounterFileError> {
        read_file(path, &mut AccountLedger::default())
    }

    fn reserve_now(&self, request: &ReserveRequest<'_>) -> Result<Reservation, ReserveError> {
        self.reserve_locked(&mut self.0.lock(), request, &[])
    }

    /// Reserves within quotas that a store elsewhere has granted, one for each budget. Returns `None` if a quota does
    /// not cover the cost. Never waits.
    ///
    /// # Errors
    /// [`ReserveError`]; nothing is reserved then.
    pub fn reserve_within(
        &self,
        request: &ReserveRequest<'_>,
        quotas: &[AccountQuota],
    ) -> Result<Option<Reservation>, ReserveError> {
        let mut state = self.0.lock();
        if !state.ledger.is_within(request, quotas) {
            return Ok(None);
        }
        self.reserve_locked(&mut state, request, quotas).map(Some)
    }

    fn reserve_locked(
        &self,
        state: &mut FileState,
        request: &ReserveRequest<'_>,
        quotas: &[AccountQuota],
    ) -> Result<Reservation, ReserveError> {
        if state.log.is_none() && !request.budgets.is_empty() {
            return Err(ReserveError::Unavailable(self.0.write_failure()));
        }
        let (record, remaining) = state.ledger.reserve(request, quotas)?;
        let store = Arc::clone(&self.0) as Arc<dyn SettleStore>;
        Ok(Reservation::new(store, record, remaining))
    }

    /// Returns the use of an account in one window.
    #[must_use]
    pub fn account_usage(&self, account: &str, window: i64) -> AccountUsage {
        self.0.lock().ledger.account_usage(account, window)
    }

    /// Returns the settled use of each account in its latest window.
    #[must_use]
    pub fn settled_accounts(&self) -> Vec<(Arc<str>, i64, u64)> {
        let state = self.0.lock();
        let accounts = state.ledger.settled_usage();
        let accounts = accounts.map(|(name, window, used)| (name.into(), window, used));
        accounts.collect()
    }
}

fn read_file(path: &Path, ledger: &mut AccountLedger) -> Result<(), CounterFileError> {
    let io = |error| CounterFileError::Io(path.to_path_buf(), error);
    match fs::metadata(path) {
        Ok(found) if found.len() > FILE_BYTES_MAX => {
            return Err(CounterFileError::TooLong(path.to_path_buf()));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    }
    let text = fs::read_to_string(path).map_err(io)?;
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let complete = line.strip_suffix('\n');
        match (complete.and_then(parse_line), lines.peek()) {
            (Some((name, window, used)), _) => ledger.add(name, window, used),
            // The process ended while it wrote the line: the settlement had not returned.
            (None, None) if complete.is_none() => {}
            (None, _) => return Err(CounterFileError::InvalidLine(path.to_path_buf(), at + 1)),
        }
    }
    Ok(())
}

fn parse_line(line: &str) -> Option<(&str, i64, u64)> {
    let mut parts = line.split('\t');
    let found = (
        parts.next()?,
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
    );
    parts.next().is_none().then_some(found)
}

/// Rewrites the file with one line per account, and opens it to append to.
fn rewrite_file(path: &Path, ledger: &AccountLedger) -> Result<FileLog, CounterFileError> {
    let io = |error| CounterFileError::Io(path.to_path_buf(), error);
    let log = |error| CounterFileError::Log(path.to_path_buf(), error);
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        Ok(()) | Err(_) => {}
    }
    // Created by the log, so that no other user can read it.
    drop(FileLog::create(&new, SyncPolicy::Never).map_err(log)?);
    let mut file = fs::OpenOptions::new().append(true).open(&new).map_err(io)?;
    let mut text = String::new();
    for (account, window, used) in ledger.settled_usage() {
        text.push_str(&format!("{account}\t{window}\t{used}\n"));
    }
    file.write_all(text.as_bytes()).map_err(io)?;
    file.sync_data().map_err(io)?;
    drop(file);
    fs::rename(&new, path).map_err(io)?;
    FileLog::open(path, SyncPolicy::Never).map_err(log)
}

impl FileAccounts {
    fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_failure(&self) -> StoreUnavailable {
        StoreUnavailable::new(format!("{} cannot be written", self.path.display()))
    }

    fn append_usage(&self, state: &mut FileState, record: &ReservationRecord, used: SpendAmount) {
        let Some(log) = &state.log else {
            return;
        };
        let mut lines = String::new();
        for own in &record.accounts {
            let used = used.of(own.unit);
            if used > 0 {
                lines.push_str(&format!("{}\t{}\t{used}\n", own.account, own.window));
            }
        }
        if lines.is_empty() {
            return;
        }
        match log.append(lines.as_bytes()) {
            // Use that cannot be recorded ends all reservations.
            Err(_) => state.log = None,
            Ok(length) if length > REWRITE_BYTES => {
                state.log = None;
                state.log = rewrite_file(&self.path, &state.ledger).ok();
            }
            Ok(_) => {}
        }
    }
}

impl SettleStore for FileAccounts {
    fn settle(&self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome {
        let mut state = self.lock();
        let outcome = state.ledger.settle(record, used);
        if outcome != SettleOutcome::Repeated && used != SpendAmount::default() {
            self.append_usage(&mut state, record, used);
        }
        outcome
    }
}

impl SettleStore for FileCounter {
    fn settle(&self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome {
        self.0.settle(record, used)
    }
}

impl CounterStore for FileCounter {
    fn try_local(&self, request: &ReserveRequest<'_>) -> Option<Result<Reservation, ReserveError>> {
        Some(self.reserve_now(request))
    }

    fn reserve<'a>(
        &'a self,
        request: ReserveRequest<'a>,
    ) -> BoxFuture<'a, Result<Reservation, ReserveError>> {
        Box::pin(async move { self.reserve_now(&request) })
    }

    fn local_usage(&self, budget: &AccountBudget, now_ms: i64) -> Option<u64> {
        let ledger = &mut self.0.lock().ledger;
        ledger.release_expired(now_ms);
        Some(ledger.usage(budget, now_ms))
    }

    fn usage<'a>(
        &'a self,
        budget: &'a AccountBudget,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<u64, StoreUnavailable>> {
        Box::pin(async move { Ok(self.local_usage(budget, now_ms).unwrap_or(0)) })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        let result = match self.0.lock().log {
            Some(_) => Ok(()),
            None => Err(self.0.write_failure()),
        };
        Box::pin(async { result })
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

    fn own() -> [AccountBudget; 1] {
        [AccountBudget {
            account: "each key:a".into(),
            unit: crate::counter::BudgetUnit::Tokens,
            limit: 100,
            window_ms: 1_000,
        }]
    }

    fn reserve(
        counter: &FileCounter,
        budgets: &[AccountBudget],
        tokens: u64,
    ) -> Result<Reservation, ReserveError> {
        counter.reserve_now(&ReserveRequest::new(
            budgets,
            SpendAmount::tokens(tokens),
            0,
        ))
    }

    fn usage(counter: &FileCounter, now_ms: i64) -> u64 {
        counter.local_usage(&own()[0], now_ms).unwrap()
    }

    #[test]
    fn settled_use_survives_a_restart_and_open_reservations_do_not() {
        let scratch = Scratch::new("restart");
        let counter = FileCounter::open(&scratch.file()).unwrap();
        reserve(&counter, &own(), 50)
            .unwrap()
            .settle(SpendAmount::tokens(30));
        reserve(&counter, &own(), 50)
            .unwrap()
            .settle(SpendAmount::tokens(12));
        std::mem::forget(reserve(&counter, &own(), 50).unwrap());
        assert_eq!(usage(&counter, 0), 92);
        drop(counter);
        // The forgotten reservation still holds the first file open; a killed process would not.
        let copy = scratch.0.join("copy");
        fs::copy(scratch.file(), &copy).unwrap();
        let counter = FileCounter::open(&copy).unwrap();
        assert_eq!(usage(&counter, 999), 42);
        assert_eq!(usage(&counter, 1_000), 0, "another window");
        assert_eq!(fs::read_to_string(&copy).unwrap(), "each key:a\t0\t42\n");
    }

    #[test]
    fn a_torn_last_line_is_ignored_and_an_invalid_line_is_an_error() {
        let scratch = Scratch::new("torn");
        fs::write(scratch.file(), "each key:a\t0\t7\neach key:a\t0\t9").unwrap();
        let counter = FileCounter::open(&scratch.file()).unwrap();
        assert_eq!(usage(&counter, 0), 7);
        drop(counter);
        fs::write(scratch.file(), "oops\neach key:a\t0\t9\n").unwrap();
        let wrong = FileCounter::open(&scratch.file()).unwrap_err();
        assert!(
            matches!(wrong, CounterFileError::InvalidLine(_, 1)),
            "{wrong}"
        );
        for odd in ["a\tb\t1\n", "a\t1\t-1\n", "a\t1\t1\t1\n"] {
            fs::write(scratch.file(), odd).unwrap();
            assert!(FileCounter::open(&scratch.file()).is_err(), "{odd}");
        }
    }

    #[test]
    fn nothing_is_reserved_once_use_cannot_be_recorded() {
        let scratch = Scratch::new("failed");
        let counter = FileCounter::open(&scratch.file()).unwrap();
        let held = reserve(&counter, &own(), 10).unwrap();
        fs::remove_file(scratch.file()).unwrap();
        held.settle(SpendAmount::tokens(5));
        let error = reserve(&counter, &own(), 1).unwrap_err();
        assert!(matches!(error, ReserveError::Unavailable(_)), "{error:?}");
        assert!(reserve(&counter, &[], 1).is_ok());
    }

    #[test]
    fn a_reservation_of_an_earlier_process_is_settled_once() {
        let scratch = Scratch::new("earlier");
        let counter = FileCounter::open(&scratch.file()).unwrap();
        let held = reserve(&counter, &own(), 50).unwrap();
        let record = Arc::clone(held.record());
        std::mem::forget(held);
        let copy = scratch.0.join("copy");
        fs::copy(scratch.file(), &copy).unwrap();
        let counter = FileCounter::open(&copy).unwrap();
        let outcomes = [20, 20].map(|used| counter.settle(&record, SpendAmount::tokens(used)));
        assert_eq!(outcomes, [SettleOutcome::Late, SettleOutcome::Repeated]);
        assert_eq!(usage(&counter, 0), 20);
        assert_eq!(fs::read_to_string(&copy).unwrap(), "each key:a\t0\t20\n");
    }

    #[test]
    fn only_one_process_opens_the_accounts() {
        let scratch = Scratch::new("locked");
        let first = FileCounter::open(&scratch.file()).unwrap();
        let second = FileCounter::open(&scratch.file()).unwrap_err();
        assert!(
            matches!(second, CounterFileError::Log(_, LogError::Locked)),
            "{second}"
        );
        reserve(&first, &own(), 50)
            .unwrap()
            .settle(SpendAmount::tokens(30));
        drop(first);
        let next = FileCounter::open(&scratch.file()).unwrap();
        assert_eq!(usage(&next, 0), 30);
    }
}
