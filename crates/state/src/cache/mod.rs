//! Cache of values that expire.
//!
//! [`CacheStore`] is the seam, [`MemoryCache`] the embedded implementation. A cache may lose any entry at any time; it
//! never returns an expired one, or the value of another key.

mod memory;

pub use memory::MemoryCache;

use bytes::Bytes;

use crate::store::{BoxFuture, StoreUnavailable};

/// Maximum length of a value, in bytes. A longer one is not stored.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024;

/// Key of an entry: a digest of all that the value depends on, its owner included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey(pub [u8; 32]);

/// Entry of a cache. The value is not printed: it may be confidential.
#[derive(Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// Value.
    pub value: Bytes,
    /// Source of the value, in the words of the caller.
    pub source: String,
    /// Time from which on the entry is not returned, in milliseconds since 1970.
    pub expires_ms: i64,
}

impl std::fmt::Debug for CacheEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheEntry")
            .field("bytes", &self.value.len())
            .field("source", &self.source)
            .field("expires_ms", &self.expires_ms)
            .finish()
    }
}

/// Store of cached values.
pub trait CacheStore: Send + Sync {
    /// Looks an entry up without waiting. Returns `None` if only [`CacheStore::get`] can answer, and `Some(None)` if
    /// there is no entry.
    fn try_local(&self, key: &CacheKey, now_ms: i64) -> Option<Option<CacheEntry>>;

    /// Returns the entry of a key, unless it has expired.
    fn get<'a>(
        &'a self,
        key: &'a CacheKey,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<Option<CacheEntry>, StoreUnavailable>>;

    /// Stores an entry in place of an earlier one. Never waits: a shared store queues a bounded number of entries, and
    /// drops those that exceed it.
    fn insert(&self, key: CacheKey, entry: CacheEntry);

    /// Removes expired entries. Called once a second.
    fn remove_expired(&self, now_ms: i64);

    /// Resolves when every entry stored so far can be read, or is dropped.
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>>;
}

impl dyn CacheStore + '_ {
    /// Returns the entry of a key, and waits only if the store has no local answer. An unavailable store has no
    /// entries.
    pub async fn find(&self, key: &CacheKey, now_ms: i64) -> Option<CacheEntry> {
        match self.try_local(key, now_ms) {
            Some(entry) => entry,
            None => self.get(key, now_ms).await.unwrap_or_default(),
        }
    }
}
