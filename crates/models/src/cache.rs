//! Whole replies that are remembered and given again to the same request of the same caller.
//!
//! A request is the same where its endpoint, the model as it was asked for, every member of its body but `stream`, and the headers that go to
//! the provider are the same, byte by byte. What one caller was told is given to no other, unless both are users of one tenant and the
//! configuration says that they share. A caller who has brought a key of a provider shares with nobody and nothing is remembered.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gate::{Caller, closed_set};
use http::HeaderMap;
use http::header::CACHE_CONTROL;
use wire::model::{Endpoint, Tokens, members, written_of};

use crate::request::ModelRequest;

/// Longest reply that is remembered, in bytes.
const REPLY_BYTES_MAX: usize = 1024 * 1024;
/// What an entry takes beside its reply, about, in bytes.
const ENTRY_BYTES: usize = 256;
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

/// The name of a request and whoever asks it.
pub(crate) type Name = [u8; 32];

/// A reply that is remembered.
#[derive(Debug, Clone)]
pub(crate) struct Remembered {
    /// What the provider said, before anything was looked for in it.
    pub body: Bytes,
    /// `PROVIDER/MODEL` of who said it.
    pub target: String,
    until_ms: i64,
}

impl Remembered {
    fn bytes(&self) -> usize {
        self.body.len() + self.target.len() + ENTRY_BYTES
    }
}

#[derive(Debug, Default)]
struct Kept {
    replies: HashMap<Name, Remembered>,
    /// In the order in which they came.
    order: VecDeque<Name>,
    bytes: usize,
}

/// What is remembered.
#[derive(Debug)]
pub(crate) struct Cache {
    options: CacheOptions,
    kept: Mutex<Kept>,
}

impl Cache {
    pub fn new(options: CacheOptions) -> Self {
        Self {
            options,
            kept: Mutex::default(),
        }
    }

    /// The name of a request of a caller; `None` where its reply is not to be remembered.
    pub fn name(
        &self,
        request: &ModelRequest,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Option<Name> {
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
        Some(*hasher.finalize().as_bytes())
    }

    /// The reply to a request, where one is remembered.
    pub fn find(&self, name: &Name, now_ms: i64) -> Option<Remembered> {
        let kept = self.lock();
        let found = kept.replies.get(name)?;
        (found.until_ms > now_ms).then(|| found.clone())
    }

    /// Remembers a reply, unless it says nothing or is an error.
    pub fn keep(
        &self,
        name: Name,
        endpoint: Endpoint,
        (body, target): (&Bytes, String),
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
        if !says_something || is_error || body.len() > REPLY_BYTES_MAX {
            return;
        }
        let ttl_ms = i64::try_from(self.options.ttl_ms).unwrap_or(i64::MAX);
        let reply = Remembered {
            body: body.clone(),
            target,
            until_ms: now_ms.saturating_add(ttl_ms),
        };
        let bytes_max = usize::try_from(self.options.bytes_max).unwrap_or(usize::MAX);
        let mut kept = self.lock();
        kept.bytes += reply.bytes();
        match kept.replies.insert(name, reply) {
            Some(before) => kept.bytes -= before.bytes(),
            None => kept.order.push_back(name),
        }
        while kept.bytes > bytes_max {
            let Some(oldest) = kept.order.pop_front() else {
                break;
            };
            if let Some(gone) = kept.replies.remove(&oldest) {
                kept.bytes -= gone.bytes();
            }
        }
    }

    /// Forgets what is remembered for long enough.
    pub fn tidy(&self, now_ms: i64) {
        let mut kept = self.lock();
        while let Some(oldest) = kept.order.front().copied() {
            // One that was renewed stands where it was, and holds up those behind it for a while.
            if kept
                .replies
                .get(&oldest)
                .is_some_and(|own| own.until_ms > now_ms)
            {
                return;
            }
            kept.order.pop_front();
            if let Some(gone) = kept.replies.remove(&oldest) {
                kept.bytes -= gone.bytes();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn named(cache: &Cache, body: &str, subject: &str, groups: &[&str]) -> Option<Name> {
        let request =
            ModelRequest::read(Endpoint::Chat, body.as_bytes(), &HeaderMap::new()).unwrap();
        let caller = Caller {
            subject: subject.into(),
            groups: groups.iter().map(|group| (*group).into()).collect(),
            ..Caller::default()
        };
        cache.name(&request, &caller, &HeaderMap::new())
    }

    #[test]
    fn every_member_the_model_and_the_caller_make_the_name() {
        let cache = Cache::new(CacheOptions::default());
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
        let shared = Cache::new(CacheOptions {
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
    fn what_is_remembered_is_bounded_in_time_and_size_and_says_something() {
        let options = CacheOptions {
            ttl_ms: 1_000,
            bytes_max: 2_000,
            ..CacheOptions::default()
        };
        let cache = Cache::new(options);
        let reply = |text: &str| {
            Bytes::from(format!(
                r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]}}"#
            ))
        };
        let keep = |name: u8, body: &Bytes, now| {
            cache.keep([name; 32], Endpoint::Chat, (body, "a/b".into()), now);
        };
        let has = |name: u8, now| cache.find(&[name; 32], now).is_some();
        keep(1, &reply("hi"), 0);
        assert_eq!(cache.find(&[1; 32], 999).unwrap().body, reply("hi"));
        assert!(!has(1, 1_000));
        for empty in [
            reply(""),
            Bytes::from_static(b"{}"),
            Bytes::from(r#"{"error":{"message":"x"},"choices":[{"message":{"content":"x"}}]}"#),
        ] {
            keep(2, &empty, 0);
            assert!(!has(2, 0), "{empty:?}");
        }
        let long = reply(&"x".repeat(900));
        keep(3, &long, 0);
        keep(4, &long, 0);
        assert!(!has(1, 0) && !has(3, 0) && has(4, 0), "the oldest goes");
        cache.tidy(2_000);
        assert_eq!(cache.lock().bytes, 0);
        assert!(cache.lock().order.is_empty() && cache.lock().replies.is_empty());
    }
}
