//! Cache of values on a Redis server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use state::cache::{CacheEntry, CacheKey, VALUE_BYTES_MAX};
use state::{BoxFuture, CacheStore, StoreUnavailable};
use tokio::sync::{mpsc, oneshot};

use super::link::RedisServer;
use crate::quota::LeaseClock;
use crate::thread::StoreThread;

/// Entries that wait to be stored, at most.
const QUEUE_MAX: usize = 1_024;
/// Bytes of the values that wait to be stored, at most.
const QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Time that an entry is kept if only the caller's clock says when it expires, in milliseconds.
const CALLER_KEEP_MS: u64 = 3_600_000;
/// Bytes before the source of a stored entry: its end and the length of the source.
const HEADER_BYTES: usize = 12;

/// Cache that replicas share. An entry that the server has lost is missing.
pub struct RedisCache {
    server: Arc<RedisServer>,
    thread: Arc<StoreThread>,
    clock: LeaseClock,
    queue: mpsc::Sender<CacheMessage>,
    queued_bytes: Arc<AtomicUsize>,
}

enum CacheMessage {
    Insert {
        key: String,
        entry: Vec<u8>,
        keep_ms: u64,
    },
    /// Answered when everything before it is stored or dropped.
    Flush(oneshot::Sender<Result<(), StoreUnavailable>>),
}

impl RedisCache {
    /// Creates the cache. Connects to nothing yet.
    #[must_use]
    pub fn new(server: Arc<RedisServer>, thread: Arc<StoreThread>, clock: LeaseClock) -> Self {
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let writer = store_entries(Arc::clone(&server), messages, Arc::clone(&queued_bytes));
        thread.handle().spawn(writer);
        Self {
            server,
            thread,
            clock,
            queue,
            queued_bytes,
        }
    }

    fn key(&self, key: &CacheKey) -> String {
        let mut text = format!("{}:cache:", self.server.prefix);
        for byte in key.0 {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }

    /// Returns the time for which the server keeps an entry; `None` if it has expired.
    fn keep_ms(&self, expires_ms: i64) -> Option<u64> {
        if self.clock == LeaseClock::Caller {
            return Some(CALLER_KEEP_MS);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let now = i64::try_from(now.as_millis()).ok()?;
        u64::try_from(expires_ms.checked_sub(now)?)
            .ok()
            .filter(|left| *left > 0)
    }
}

async fn store_entries(
    server: Arc<RedisServer>,
    mut messages: mpsc::Receiver<CacheMessage>,
    queued_bytes: Arc<AtomicUsize>,
) {
    let mut failure = None;
    while let Some(message) = messages.recv().await {
        match message {
            CacheMessage::Insert {
                key,
                entry,
                keep_ms,
            } => {
                let mut set = redis::cmd("SET");
                set.arg(&key).arg(entry.as_slice()).arg("PX").arg(keep_ms);
                if let Err(error) = server.query::<()>(&set).await {
                    failure = Some(error);
                }
                queued_bytes.fetch_sub(entry.len(), Ordering::Relaxed);
            }
            CacheMessage::Flush(done) => {
                let _ = done.send(failure.take().map_or(Ok(()), Err));
            }
        }
    }
}

fn encode(entry: &CacheEntry) -> Vec<u8> {
    let source = entry.source.as_bytes();
    let length = u32::try_from(source.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEADER_BYTES + source.len() + entry.value.len());
    bytes.extend_from_slice(&entry.expires_ms.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(source);
    bytes.extend_from_slice(&entry.value);
    bytes
}

/// Returns the entry of stored bytes; `None` if they are none.
fn decode(bytes: Vec<u8>) -> Option<CacheEntry> {
    let expires_ms = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    let length = u32::from_be_bytes(bytes.get(8..HEADER_BYTES)?.try_into().ok()?);
    let value_at = HEADER_BYTES.checked_add(usize::try_from(length).ok()?)?;
    let source = std::str::from_utf8(bytes.get(HEADER_BYTES..value_at)?).ok()?;
    let source = source.to_owned();
    let mut value = bytes;
    value.drain(..value_at);
    Some(CacheEntry {
        value: value.into(),
        source,
        expires_ms,
    })
}

impl CacheStore for RedisCache {
    fn try_local(&self, _: &CacheKey, _: i64) -> Option<Option<CacheEntry>> {
        None
    }

    fn get<'a>(
        &'a self,
        key: &'a CacheKey,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<Option<CacheEntry>, StoreUnavailable>> {
        let (server, key) = (Arc::clone(&self.server), self.key(key));
        let task = self.thread.run(async move {
            let mut get = redis::cmd("GET");
            let found: Option<Vec<u8>> = server.query(get.arg(key)).await?;
            let entry = found.and_then(decode);
            Ok(entry.filter(|entry| entry.expires_ms > now_ms))
        });
        Box::pin(task)
    }

    fn insert(&self, key: CacheKey, entry: CacheEntry) {
        let Some(keep_ms) = self.keep_ms(entry.expires_ms) else {
            return;
        };
        if entry.value.len() > VALUE_BYTES_MAX {
            return;
        }
        let entry = encode(&entry);
        let length = entry.len();
        let queued = self.queued_bytes.fetch_add(length, Ordering::Relaxed);
        let message = CacheMessage::Insert {
            key: self.key(&key),
            entry,
            keep_ms,
        };
        if queued.saturating_add(length) > QUEUE_BYTES_MAX || self.queue.try_send(message).is_err()
        {
            self.queued_bytes.fetch_sub(length, Ordering::Relaxed);
        }
    }

    fn remove_expired(&self, _: i64) {}

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        Box::pin(async move {
            let ended = |()| StoreUnavailable::new("it ends");
            let (done, flushed) = oneshot::channel();
            let message = CacheMessage::Flush(done);
            self.queue.send(message).await.map_err(|_| ended(()))?;
            flushed.await.map_err(|_| ended(()))?
        })
    }
}

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCache")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
