//! Names for results: nobody can guess one, it is good for its caller only, and it ends.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use state::KvError;
use state::kv::{Durability, Table, Transaction, View};

use crate::store::{Store, key, time_key};

/// By digest of the handle: the [`Target`].
const HANDLES: Table = Table("handles");
/// By end and digest.
const BY_END: Table = Table("handles_by_end");
/// By caller, end and digest.
const BY_CALLER: Table = Table("handles_by_caller");

/// Longest name of what a handle leads to, in bytes.
pub const TARGET_BYTES_MAX: usize = 4_096;
/// Longest handle that is looked for, in bytes.
const HANDLE_BYTES_MAX: usize = 128;
/// Most handles that one sweep ends.
const SWEPT_MAX: usize = 1_000;

/// How many handles there may be, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandleBounds {
    /// Most handles of one caller; the one that ends first makes room.
    pub per_caller_max: usize,
    /// How long a handle is good, in milliseconds.
    pub kept_ms: u64,
}

impl Default for HandleBounds {
    fn default() -> Self {
        Self {
            per_caller_max: 1_000,
            kept_ms: 7 * 24 * 60 * 60 * 1000,
        }
    }
}

/// What a handle leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// What sort of thing it is; a word of whoever granted the handle.
    pub kind: String,
    /// Its name there.
    pub name: String,
    /// Whose it is.
    pub caller: String,
    /// When the handle ends, in milliseconds since 1970.
    pub until_ms: i64,
}

/// A target whose handle has ended.
pub type Expired = Target;

/// Why a handle does not lead anywhere.
#[derive(Debug)]
pub enum HandleError {
    /// There is none like it: never granted, ended, or another caller's.
    Unknown,
    /// What it is to lead to has too long a name.
    TooLong,
    /// The database.
    Store(KvError),
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => {
                f.write_str("there is no such handle; it may have ended, make a new one")
            }
            Self::TooLong => write!(f, "a handle leads to at most {TARGET_BYTES_MAX} bytes"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HandleError {}

impl From<KvError> for HandleError {
    fn from(error: KvError) -> Self {
        Self::Store(error)
    }
}

/// All handles of a store.
#[derive(Debug)]
pub struct Handles {
    store: Arc<Store>,
    bounds: HandleBounds,
}

impl Handles {
    /// The handles of this store.
    #[must_use]
    pub fn new(store: &Arc<Store>, bounds: HandleBounds) -> Self {
        Self {
            store: Arc::clone(store),
            bounds,
        }
    }

    /// A handle for something of a caller's; with it, what had to make room.
    ///
    /// # Errors
    /// [`HandleError::TooLong`] or [`HandleError::Store`].
    pub fn grant(
        &self,
        caller: &str,
        kind: &str,
        name: &str,
        now_ms: i64,
    ) -> Result<(String, Vec<Expired>), HandleError> {
        if kind.len() + name.len() > TARGET_BYTES_MAX {
            return Err(HandleError::TooLong);
        }
        let handle = self.store.name(kind);
        let kept_ms = i64::try_from(self.bounds.kept_ms).unwrap_or(i64::MAX);
        let target = Target {
            kind: kind.to_owned(),
            name: name.to_owned(),
            caller: caller.to_owned(),
            until_ms: now_ms.saturating_add(kept_ms),
        };
        let digest = self.digest(&handle);
        let bytes = serde_json::to_vec(&target).map_err(|_| HandleError::TooLong)?;
        let displaced = self.store.kv().write(Durability::Synced, |t| {
            let owned = key(caller, &[]);
            let held = t.scan_prefix(BY_CALLER, &owned, self.bounds.per_caller_max.max(1))?;
            let mut displaced = Vec::new();
            if let (true, Some((first, _))) = (
                held.len() >= self.bounds.per_caller_max.max(1),
                held.first(),
            ) {
                let digest = first.get(owned.len() + 8..).unwrap_or_default();
                displaced.extend(end(t, digest)?);
            }
            let at = time_key(target.until_ms);
            t.put(HANDLES, &digest, &bytes)?;
            t.put(BY_END, &[at.as_slice(), &digest].concat(), b"")?;
            t.put(BY_CALLER, &key(caller, &[&at, &digest]), b"")?;
            Ok::<_, HandleError>(displaced)
        })?;
        Ok((handle, displaced))
    }

    /// What a caller's handle leads to.
    ///
    /// # Errors
    /// [`HandleError::Unknown`] or [`HandleError::Store`].
    pub fn resolve(&self, caller: &str, handle: &str, now_ms: i64) -> Result<Target, HandleError> {
        if handle.len() > HANDLE_BYTES_MAX {
            return Err(HandleError::Unknown);
        }
        let digest = self.digest(handle);
        let found = self.store.kv().read(|s| load(s, &digest))?;
        found
            .filter(|target| target.caller == caller && now_ms < target.until_ms)
            .ok_or(HandleError::Unknown)
    }

    /// Ends a caller's handle before its time.
    ///
    /// # Errors
    /// As [`Handles::resolve`].
    pub fn revoke(&self, caller: &str, handle: &str, now_ms: i64) -> Result<Target, HandleError> {
        let target = self.resolve(caller, handle, now_ms)?;
        let digest = self.digest(handle);
        self.store
            .kv()
            .write(Durability::Synced, |t| end(t, &digest))?;
        Ok(target)
    }

    /// Everything of a kind that a handle leads to.
    pub(crate) fn targets(&self, kind: &str) -> Result<Vec<Target>, HandleError> {
        let mut found = Vec::new();
        let mut from = Vec::new();
        loop {
            let read = self
                .store
                .kv()
                .read(|s| s.scan(HANDLES, &from, None, SWEPT_MAX));
            let read: Vec<(Vec<u8>, Vec<u8>)> =
                read.map_err(|error: KvError| HandleError::Store(error))?;
            let Some((last, _)) = read.last() else {
                return Ok(found);
            };
            from.clone_from(last);
            from.push(0);
            let targets = read
                .iter()
                .filter_map(|(_, bytes)| serde_json::from_slice::<Target>(bytes).ok());
            found.extend(targets.filter(|target| target.kind == kind));
        }
    }

    /// Ends the handles whose time is up, and tells what they led to.
    ///
    /// # Errors
    /// [`HandleError::Store`].
    pub fn sweep(&self, now_ms: i64) -> Result<Vec<Expired>, HandleError> {
        let to = time_key(now_ms.saturating_add(1));
        let due = self
            .store
            .kv()
            .read(|s| s.scan(BY_END, b"", Some(&to), SWEPT_MAX));
        let due: Vec<(Vec<u8>, Vec<u8>)> =
            due.map_err(|error: KvError| HandleError::Store(error))?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        self.store.kv().write(Durability::Synced, |t| {
            let mut expired = Vec::new();
            for (key, _) in due {
                expired.extend(end(t, key.get(8..).unwrap_or_default())?);
            }
            Ok(expired)
        })
    }

    /// Only this is stored: who reads the database has no handles.
    fn digest(&self, handle: &str) -> [u8; 32] {
        *self.store.sign("handle", &[handle.as_bytes()]).as_bytes()
    }
}

fn load(view: &impl View, digest: &[u8]) -> Result<Option<Target>, HandleError> {
    let bytes = view.get(HANDLES, digest)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn end(t: &Transaction, digest: &[u8]) -> Result<Option<Target>, HandleError> {
    let Some(target) = load(t, digest)? else {
        return Ok(None);
    };
    let at = time_key(target.until_ms);
    t.remove(HANDLES, digest)?;
    t.remove(BY_END, &[at.as_slice(), digest].concat())?;
    t.remove(BY_CALLER, &key(&target.caller, &[&at, digest]))?;
    Ok(Some(target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Place;

    const NOW: i64 = 1_795_232_289_123;
    const SMALL: HandleBounds = HandleBounds {
        per_caller_max: 2,
        kept_ms: 1_000,
    };

    fn unknown<T: fmt::Debug>(result: Result<T, HandleError>) -> bool {
        matches!(result, Err(HandleError::Unknown))
    }

    #[test]
    fn a_handle_is_good_for_its_caller_until_it_ends() {
        let place = Place::new();
        let handles = Handles::new(&place.open(), SMALL);
        let (handle, _) = handles.grant("ada", "output", "o1", NOW).unwrap();
        assert!(handle.starts_with("output_") && handle.len() >= 7 + 22);
        drop(handles);
        let handles = Handles::new(&place.open(), SMALL);
        let target = handles.resolve("ada", &handle, NOW + 999).unwrap();
        assert_eq!((&*target.kind, &*target.name), ("output", "o1"));
        assert!(unknown(handles.resolve("bob", &handle, NOW)));
        assert!(unknown(handles.resolve("ada", &handle, NOW + 1_000)));
        assert!(unknown(handles.resolve("ada", &handle[..20], NOW)));
        assert!(unknown(handles.resolve("ada", &"x".repeat(100_000), NOW)));
        assert!(unknown(handles.revoke("bob", &handle, NOW)));
        handles.revoke("ada", &handle, NOW).unwrap();
        assert!(unknown(handles.resolve("ada", &handle, NOW)));
        let long = "n".repeat(TARGET_BYTES_MAX);
        assert!(matches!(
            handles.grant("ada", "k", &long, NOW),
            Err(HandleError::TooLong)
        ));
    }

    #[test]
    fn what_has_ended_or_made_room_is_told_once() {
        let place = Place::new();
        let handles = Handles::new(&place.open(), SMALL);
        let mut granted = Vec::new();
        for number in 0..3_i64 {
            let name = format!("o{number}");
            let (handle, displaced) = handles.grant("ada", "output", &name, NOW + number).unwrap();
            let displaced: Vec<_> = displaced.into_iter().map(|target| target.name).collect();
            assert_eq!(displaced, if number < 2 { vec![] } else { vec!["o0"] });
            granted.push(handle);
        }
        assert!(
            handles
                .grant("bob", "output", "b", NOW + 500)
                .unwrap()
                .1
                .is_empty()
        );
        assert!(unknown(handles.resolve("ada", &granted[0], NOW + 3)));
        assert!(handles.sweep(NOW + 1_000).unwrap().is_empty());
        let swept: Vec<_> = handles
            .sweep(NOW + 1_002)
            .unwrap()
            .into_iter()
            .map(|t| t.name)
            .collect();
        assert_eq!(swept, ["o1", "o2"]);
        assert!(handles.sweep(NOW + 1_002).unwrap().is_empty());
    }

    #[test]
    fn the_database_holds_no_handle() {
        let place = Place::new();
        let handles = Handles::new(&place.open(), SMALL);
        let (handle, _) = handles.grant("ada", "output", "o1", NOW).unwrap();
        let secret = handle.split_once('_').unwrap().1.as_bytes();
        let file = std::fs::read(place.0.join("store.redb")).unwrap();
        assert!(!file.windows(secret.len()).any(|part| part == secret));
        assert!(file.windows(2).any(|part| part == b"o1"));
    }
}
