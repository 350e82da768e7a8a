//! Tables of bytes with transactions, in one file.
//!
//! [`Kv`] is the embedded database of a process: keys and values are bytes, tables have names, and a
//! transaction is whole or not at all, also over `kill -9` and a loss of power. One process has the file
//! open at a time. Reads see the last committed state and do not wait for a writer; writers wait for each
//! other. Calls block on the disk: do not make them on a thread that serves others.

mod error;
#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use redb::{ReadableDatabase as _, TableDefinition};

use crate::directory;
pub use error::KvError;

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most entries that one scan gives.
pub const SCAN_ENTRIES_MAX: usize = 10_000;
/// Pages kept in memory, in bytes.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// A table, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table(pub &'static str);

impl Table {
    fn definition(self) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
        TableDefinition::new(self.0)
    }
}

/// Durability of a committed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A loss of power: the commit returns when the disk has it.
    Synced,
    /// Nothing until the next synced commit: for what can be lost, as progress can.
    Deferred,
}

/// An entry of a table.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Reading, inside a transaction or beside one.
pub trait View {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// [`KvError`] if the database cannot be read.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, KvError>;

    /// Returns at most `entries_max` entries (and [`SCAN_ENTRIES_MAX`]) with keys in `from..to`, by key; an absent
    /// `to` means the end.
    ///
    /// # Errors
    /// [`KvError`] if the database cannot be read.
    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: Option<&[u8]>,
        entries_max: usize,
    ) -> Result<Vec<Entry>, KvError>;

    /// Returns entries as [`View::scan`] does, over the keys that begin with `prefix`.
    ///
    /// # Errors
    /// [`KvError`] if the database cannot be read.
    fn scan_prefix(
        &self,
        table: Table,
        prefix: &[u8],
        entries_max: usize,
    ) -> Result<Vec<Entry>, KvError> {
        let to = after_prefix(prefix);
        self.scan(table, prefix, to.as_deref(), entries_max)
    }

    /// Returns the number of entries in a table.
    ///
    /// # Errors
    /// [`KvError`] if the database cannot be read.
    fn count(&self, table: Table) -> Result<u64, KvError>;
}

/// The database.
pub struct Kv {
    database: redb::Database,
    path: PathBuf,
}

impl std::fmt::Debug for Kv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kv({})", self.path.display())
    }
}

/// The last committed state, as a transaction sees it.
pub struct Snapshot(redb::ReadTransaction);

/// A transaction that has not been committed.
pub struct Transaction(redb::WriteTransaction);

impl Kv {
    /// Opens the database, or creates an empty one (`0600`, in a directory `0700`). Undoes incomplete transactions of a crash
    /// first, and checks the file.
    ///
    /// # Errors
    /// [`KvError::Busy`], [`KvError::Corrupt`], [`KvError::Io`] or [`KvError::Directory`].
    pub fn open(path: &Path) -> Result<Self, KvError> {
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            directory::create_private(parent)?;
        }
        let io = |error| KvError::Io {
            action: "open",
            error,
        };
        // Created here, so that no other user can read it; the storage layer finds it empty and fills it.
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        let mut builder = redb::Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        builder.set_check_integrity_on_open(true);
        let database = builder.create(path).map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => KvError::Busy { path: path.into() },
            redb::DatabaseError::Storage(redb::StorageError::Io(error))
                if error.kind() != io::ErrorKind::InvalidData
                    && error.kind() != io::ErrorKind::UnexpectedEof =>
            {
                io(error)
            }
            other => KvError::Corrupt {
                path: path.into(),
                detail: other.to_string(),
            },
        })?;
        Ok(Self {
            database,
            path: path.into(),
        })
    }

    /// Reads the last committed state.
    ///
    /// # Errors
    /// The error of `f`, and [`KvError`] if no transaction can be begun.
    pub fn read<T, E: From<KvError>>(
        &self,
        f: impl FnOnce(&Snapshot) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.database.begin_read();
        let transaction = transaction.map_err(|error| self.begin_error(error))?;
        f(&Snapshot(transaction))
    }

    /// Runs a transaction and commits it if `f` succeeds; else nothing of it remains.
    ///
    /// # Errors
    /// The error of `f`, and [`KvError`] if the transaction cannot be begun or committed.
    pub fn write<T, E: From<KvError>>(
        &self,
        durability: Durability,
        f: impl FnOnce(&Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.database.begin_write();
        let mut transaction = transaction.map_err(|error| self.begin_error(error))?;
        let wanted = match durability {
            Durability::Synced => redb::Durability::Immediate,
            Durability::Deferred => redb::Durability::None,
        };
        transaction
            .set_durability(wanted)
            .map_err(|error| self.corrupt(error.to_string()))?;
        let transaction = Transaction(transaction);
        let given = f(&transaction)?;
        transaction.0.commit().map_err(|error| match error {
            redb::CommitError::Storage(error) => error::storage("commit to")(error),
            other => self.corrupt(other.to_string()),
        })?;
        Ok(given)
    }

    fn begin_error(&self, error: redb::TransactionError) -> KvError {
        match error {
            redb::TransactionError::Storage(error) => {
                error::storage("begin a transaction in")(error)
            }
            other => self.corrupt(other.to_string()),
        }
    }

    fn corrupt(&self, detail: String) -> KvError {
        KvError::Corrupt {
            path: self.path.clone(),
            detail,
        }
    }
}

impl Transaction {
    /// Stores a value under a key, in place of the one that was there.
    ///
    /// # Errors
    /// [`KvError::TooLong`], or an error if the database cannot be written.
    pub fn put(&self, table: Table, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        check_length("key", key, KEY_BYTES_MAX)?;
        check_length("value", value, VALUE_BYTES_MAX)?;
        let mut open = self
            .0
            .open_table(table.definition())
            .map_err(error::table("write"))?;
        open.insert(key, value).map_err(error::storage("write"))?;
        Ok(())
    }

    /// Removes a key; returns whether it existed.
    ///
    /// # Errors
    /// [`KvError`] if the database cannot be written.
    pub fn remove(&self, table: Table, key: &[u8]) -> Result<bool, KvError> {
        let mut open = self
            .0
            .open_table(table.definition())
            .map_err(error::table("write"))?;
        let removed = open.remove(key).map_err(error::storage("write"))?;
        Ok(removed.is_some())
    }
}

impl View for Transaction {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        let open = self.0.open_table(table.definition());
        get_in(&open.map_err(error::table("read"))?, key)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: Option<&[u8]>,
        entries_max: usize,
    ) -> Result<Vec<Entry>, KvError> {
        let open = self.0.open_table(table.definition());
        scan_in(&open.map_err(error::table("read"))?, from, to, entries_max)
    }

    fn count(&self, table: Table) -> Result<u64, KvError> {
        use redb::ReadableTableMetadata as _;
        let open = self.0.open_table(table.definition());
        let open = open.map_err(error::table("read"))?;
        open.len().map_err(error::storage("read"))
    }
}

impl Snapshot {
    /// Returns the table, if anything was ever stored in it.
    #[expect(
        clippy::type_complexity,
        reason = "a type of the storage layer, named once"
    )]
    fn open(
        &self,
        table: Table,
    ) -> Result<Option<redb::ReadOnlyTable<&'static [u8], &'static [u8]>>, KvError> {
        match self.0.open_table(table.definition()) {
            Ok(open) => Ok(Some(open)),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error::table("read")(error)),
        }
    }
}

impl View for Snapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        match self.open(table)? {
            Some(open) => get_in(&open, key),
            None => Ok(None),
        }
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: Option<&[u8]>,
        entries_max: usize,
    ) -> Result<Vec<Entry>, KvError> {
        match self.open(table)? {
            Some(open) => scan_in(&open, from, to, entries_max),
            None => Ok(Vec::new()),
        }
    }

    fn count(&self, table: Table) -> Result<u64, KvError> {
        use redb::ReadableTableMetadata as _;
        match self.open(table)? {
            Some(open) => open.len().map_err(error::storage("read")),
            None => Ok(0),
        }
    }
}

fn get_in(
    open: &impl redb::ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, KvError> {
    let found = open.get(key).map_err(error::storage("read"))?;
    Ok(found.map(|value| value.value().to_vec()))
}

fn scan_in(
    open: &impl redb::ReadableTable<&'static [u8], &'static [u8]>,
    from: &[u8],
    to: Option<&[u8]>,
    entries_max: usize,
) -> Result<Vec<Entry>, KvError> {
    if to.is_some_and(|to| to <= from) {
        return Ok(Vec::new());
    }
    let end = to.map_or(Bound::Unbounded, Bound::Excluded);
    let range = open.range::<&[u8]>((Bound::Included(from), end));
    let mut entries = Vec::new();
    for entry in range
        .map_err(error::storage("read"))?
        .take(entries_max.min(SCAN_ENTRIES_MAX))
    {
        let (key, value) = entry.map_err(error::storage("read"))?;
        entries.push((key.value().to_vec(), value.value().to_vec()));
    }
    Ok(entries)
}

/// Returns the first key after all that begin with `prefix`; `None` if that is the end.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut after = prefix.to_vec();
    while let Some(last) = after.pop() {
        if last < u8::MAX {
            after.push(last + 1);
            return Some(after);
        }
    }
    None
}

fn check_length(what: &'static str, bytes: &[u8], bytes_max: usize) -> Result<(), KvError> {
    if bytes.len() <= bytes_max {
        return Ok(());
    }
    Err(KvError::TooLong {
        what,
        bytes: bytes.len(),
        bytes_max,
    })
}
