//! Cache of whole replies, returned to the same request of the same caller.
//!
//! Two requests are the same if their endpoint, the requested model, every member of the body but `stream`, and the headers that go to the
//! provider are the same, byte by byte. Callers do not share replies, unless both are users of one tenant and the configuration says so. A
//! caller that has brought its own key of a provider is not cached.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use dialects::{Endpoint, Tokens, members, written_of};
use gate::{Caller, closed_set};
use http::HeaderMap;
use http::header::CACHE_CONTROL;
use state::cache::{CacheEntry, CacheKey};
use state::{CacheStore, MemoryCache};

use crate::request::ModelRequest;

/// Members of a request that refer to what the provider keeps, or that have it go on by itself: such replies are not remembered.
const STATEFUL: [&str; 4] = [
    "previous_response_id",
    "conversation",
    "thread",
    "container",
];

closed_set! {
    /// Where an answer came from that no provider was asked for.
    pub(crate) enum Source {
        Cache "served_from_cache": "the reply to the same request of the same caller was remembered";
    }
}

/// Who shares what is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CachePer {
    /// Nobody.
    #[default]
    Caller,
    /// The users of one tenant; a caller without a tenant shares with nobody.
    Tenant,
}

/// How replies are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// How long, in milliseconds.
    pub ttl_ms: u64,
    /// How much, in bytes.
    pub bytes_max: u64,
    /// Who shares it.
    pub per: CachePer,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            ttl_ms: 3_600_000,
            bytes_max: 64 * 1024 * 1024,
            per: CachePer::Caller,
        }
    }
}

/// Cache of whole replies.
pub(crate) struct ResponseCache {
    options: CacheOptions,
    store: Arc<dyn CacheStore>,
}

impl fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl ResponseCache {
    /// Creates a cache in memory.
    pub fn new(options: CacheOptions) -> Self {
        let store = Arc::new(MemoryCache::new(options.bytes_max));
        Self { options, store }
    }

    /// Returns the key of a request of a caller; `None` if its reply is not cached.
    pub fn key(
        &self,
        request: &ModelRequest,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Option<CacheKey> {
        let is_declined = headers.get_all(CACHE_CONTROL).iter().any(|value| {
            let text = value.to_str().unwrap_or_default();
            text.contains("no-cache") || text.contains("no-store")
        });
        let body = request.body();
        let is_stateful = STATEFUL.iter().any(|name| body.get(name).is_some());
        let endpoint = request.endpoint();
        let is_known = endpoint != Endpoint::CountTokens && !endpoint.is_passed_through();
        if request.streams() || request.has_own_keys() || is_declined || is_stateful || !is_known {
            return None;
        }
        let mut hasher = blake3::Hasher::new();
        let mut put = |part: &str| {
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            hasher.update(&length.to_le_bytes());
            hasher.update(part.as_bytes());
        };
        let tenant = || {
            caller
                .groups
                .iter()
                .find(|group| group.starts_with("tenant:"))
        };
        match self.options.per {
            CachePer::Tenant if tenant().is_some() => put(tenant().map_or("", AsRef::as_ref)),
            CachePer::Tenant | CachePer::Caller => {
                put("caller");
                put(&caller.subject);
            }
        }
        put(request.endpoint().path());
        put(request.model());
        let mut all: Vec<(&str, &str)> = body.members().collect();
        all.retain(|(name, _)| !matches!(*name, "model" | "stream"));
        all.sort_unstable();
        for (name, value) in all {
            put(name);
            put(value);
        }
        for (name, value) in request.own_headers() {
            put(name.as_str());
            put(&String::from_utf8_lossy(value.as_bytes()));
        }
        Some(CacheKey(*hasher.finalize().as_bytes()))
    }

    /// Returns the cached reply to a request.
    pub async fn find(&self, key: &CacheKey, now_ms: i64) -> Option<CacheEntry> {
        self.store.find(key, now_ms).await
    }

    /// Caches the reply of `target`, unless it is empty or an error.
    pub fn put(
        &self,
        key: CacheKey,
        endpoint: Endpoint,
        body: &Bytes,
        target: String,
        now_ms: i64,
    ) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let says_something = match endpoint {
            Endpoint::Embeddings => members(text).iter().any(|(own, _)| own == "data"),
            _ => written_of(endpoint, text) > 0,
        };
        let is_error = members(text)
            .iter()
            .any(|(own, value)| own == "error" && *value != "null");
        if !says_something || is_error {
            return;
        }
        let ttl_ms = i64::try_from(self.options.ttl_ms).unwrap_or(i64::MAX);
        let entry = CacheEntry {
            value: body.clone(),
            source: target,
            expires_ms: now_ms.saturating_add(ttl_ms),
        };
        self.store.insert(key, entry);
    }

    /// Removes expired replies.
    pub fn remove_expired(&self, now_ms: i64) {
        self.store.remove_expired(now_ms);
    }
}

/// What was used of a reply that is remembered: nothing more.
pub(crate) const NOTHING: Tokens = Tokens {
    input: None,
    output: None,
    cached: None,
    written: None,
    reasoning: None,
    counted: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn named(
        cache: &ResponseCache,
        body: &str,
        subject: &str,
        groups: &[&str],
    ) -> Option<CacheKey> {
        let request =
            ModelRequest::read(Endpoint::Chat, body.as_bytes(), &HeaderMap::new()).unwrap();
        let caller = Caller {
            subject: subject.into(),
            groups: groups.iter().map(|group| (*group).into()).collect(),
            ..Caller::default()
        };
        cache.key(&request, &caller, &HeaderMap::new())
    }

    #[test]
    fn every_member_the_model_and_the_caller_make_the_name() {
        let cache = ResponseCache::new(CacheOptions::default());
        let own = |body: &str| named(&cache, body, "a", &["tenant:t"]);
        let plain = r#"{"model":"m","messages":[1],"temperature":0}"#;
        assert!(own(plain).is_some());
        assert_eq!(
            own(plain),
            own(r#"{"temperature":0, "stream":false,"messages":[1],"model":"m"}"#)
        );
        for other in [
            r#"{"model":"n","messages":[1],"temperature":0}"#,
            r#"{"model":"m","messages":[2],"temperature":0}"#,
            r#"{"model":"m","messages":[1],"temperature":1}"#,
            r#"{"model":"m","messages":[1]}"#,
            r#"{"model":"m","messages":[1],"temperature":0,"response_format":{"type":"json_object"}}"#,
            r#"{"model":"m","messages":[1],"temperature":0,"tools":[]}"#,
            r#"{"model":"m","messages":[1],"temperature":0,"seed":1}"#,
        ] {
            assert_ne!(own(plain), own(other), "{other}");
        }
        assert_ne!(own(plain), named(&cache, plain, "b", &["tenant:t"]));
        assert_eq!(own(r#"{"model":"m","stream":true}"#), None);
        assert_eq!(own(r#"{"model":"m","previous_response_id":"r"}"#), None);
        let shared = ResponseCache::new(CacheOptions {
            per: CachePer::Tenant,
            ..CacheOptions::default()
        });
        let of = |subject: &str, groups: &[&str]| named(&shared, plain, subject, groups);
        assert_eq!(of("a", &["x", "tenant:t"]), of("b", &["tenant:t"]));
        assert_ne!(of("a", &["tenant:t"]), of("a", &["tenant:u"]));
        assert_ne!(of("a", &[]), of("b", &[]));
        assert_ne!(of("tenant:t", &[]), of("b", &["tenant:t"]));
    }

    #[test]
    fn a_cached_reply_expires_and_is_neither_empty_nor_an_error() {
        let options = CacheOptions {
            ttl_ms: 1_000,
            bytes_max: 2_000,
            ..CacheOptions::default()
        };
        let cache = ResponseCache::new(options);
        let reply = |text: &str| {
            Bytes::from(format!(
                r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]}}"#
            ))
        };
        let put = |name: u8, body: &Bytes, now_ms| {
            cache.put(
                CacheKey([name; 32]),
                Endpoint::Chat,
                body,
                "a/b".into(),
                now_ms,
            );
        };
        let find = |name: u8, now_ms| {
            let found = cache.store.try_local(&CacheKey([name; 32]), now_ms);
            found.unwrap().map(|entry| entry.value)
        };
        put(1, &reply("hi"), 0);
        assert_eq!(find(1, 999), Some(reply("hi")));
        assert_eq!(find(1, 1_000), None);
        for empty in [
            reply(""),
            Bytes::from_static(b"{}"),
            Bytes::from(r#"{"error":{"message":"x"},"choices":[{"message":{"content":"x"}}]}"#),
        ] {
            put(2, &empty, 0);
            assert_eq!(find(2, 0), None, "{empty:?}");
        }
        let long = reply(&"x".repeat(900));
        put(3, &long, 0);
        put(4, &long, 0);
        assert_eq!(
            [1, 3, 4].map(|name| find(name, 0).is_some()),
            [false, false, true],
            "the oldest replies are removed"
        );
    }
}
