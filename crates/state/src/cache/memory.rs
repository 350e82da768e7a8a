//! Cache in memory, bounded by bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{CacheEntry, CacheKey, CacheStore, VALUE_BYTES_MAX};
use crate::store::{BoxFuture, StoreUnavailable};

/// Approximate size of an entry without its value, in bytes.
const ENTRY_BYTES: usize = 256;

/// Cache of one process. Above its size, the oldest entries are removed.
#[derive(Debug)]
pub struct MemoryCache {
    bytes_max: usize,
    table: Mutex<CacheTable>,
}

#[derive(Debug, Default)]
struct CacheTable {
    entries: HashMap<CacheKey, CacheEntry>,
    /// Keys in the order in which they were first stored.
    order: VecDeque<CacheKey>,
    bytes: usize,
}

impl MemoryCache {
    /// Creates a cache of at most `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            table: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_entry(&self, key: &CacheKey, now_ms: i64) -> Option<CacheEntry> {
        let table = self.lock();
        let entry = table.entries.get(key)?;
        (entry.expires_ms > now_ms).then(|| entry.clone())
    }
}

impl CacheTable {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes = self.bytes.saturating_sub(entry_bytes(&entry));
        }
    }
}

fn entry_bytes(entry: &CacheEntry) -> usize {
    entry.value.len() + entry.source.len() + ENTRY_BYTES
}

impl CacheStore for MemoryCache {
    fn try_local(&self, key: &CacheKey, now_ms: i64) -> Option<Option<CacheEntry>> {
        Some(self.find_entry(key, now_ms))
    }

    fn get<'a>(
        &'a self,
        key: &'a CacheKey,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<Option<CacheEntry>, StoreUnavailable>> {
        Box::pin(async move { Ok(self.find_entry(key, now_ms)) })
    }

    fn insert(&self, key: CacheKey, entry: CacheEntry) {
        if entry.value.len() > VALUE_BYTES_MAX {
            return;
        }
        let mut table = self.lock();
        table.bytes += entry_bytes(&entry);
        match table.entries.insert(key, entry) {
            Some(replaced) => {
                table.bytes = table.bytes.saturating_sub(entry_bytes(&replaced));
            }
            None => table.order.push_back(key),
        }
        while table.bytes > self.bytes_max {
            let Some(oldest) = table.order.pop_front() else {
                break;
            };
            table.remove(&oldest);
        }
    }

    fn remove_expired(&self, now_ms: i64) {
        let mut table = self.lock();
        while let Some(oldest) = table.order.front().copied() {
            // An entry that was replaced keeps its position, and delays those behind it.
            let entry = table.entries.get(&oldest);
            if entry.is_some_and(|entry| entry.expires_ms > now_ms) {
                return;
            }
            table.order.pop_front();
            table.remove(&oldest);
        }
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn the_oldest_entries_are_removed_above_the_size() {
        let cache = MemoryCache::new(2_000);
        let insert = |name: u8, length: usize, expires_ms| {
            let value = Bytes::from(vec![b'x'; length]);
            let source = "a/b".to_owned();
            let entry = CacheEntry {
                value,
                source,
                expires_ms,
            };
            cache.insert(CacheKey([name; 32]), entry);
        };
        let has = |name: u8| cache.find_entry(&CacheKey([name; 32]), 0).is_some();
        insert(1, 10, 1_000);
        insert(2, 900, 1_000);
        insert(2, 950, 1_000);
        assert!(has(1) && has(2));
        insert(3, 900, 2_000);
        assert!(!has(1) && !has(2) && has(3));
        assert_eq!(cache.lock().bytes, 900 + 3 + ENTRY_BYTES);
        insert(4, VALUE_BYTES_MAX + 1, 1_000);
        assert!(!has(4) && has(3));
        cache.remove_expired(1_999);
        assert!(has(3));
        cache.remove_expired(2_000);
        let table = cache.lock();
        assert!(table.bytes == 0 && table.order.is_empty() && table.entries.is_empty());
    }

    #[test]
    fn a_printed_entry_does_not_show_its_value() {
        let entry = CacheEntry {
            value: Bytes::from_static(b"confidential"),
            source: String::new(),
            expires_ms: 0,
        };
        assert!(!format!("{entry:?}").contains("confidential"));
    }

    #[test]
    fn the_cache_in_memory_keeps_the_contract() {
        use crate::contract::{block_on, cache::check_cache_store};
        let make = || {
            let store = std::sync::Arc::new(MemoryCache::new(4 * 1024 * 1024));
            store as std::sync::Arc<dyn CacheStore>
        };
        let report = block_on(check_cache_store(make, 7)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(report.skipped, []);
    }
}
