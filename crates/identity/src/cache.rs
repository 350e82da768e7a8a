//! Cache of verified tokens by digest.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::claims::VerifiedToken;

/// Most tokens; the older half goes when there are more.
pub const TOKENS_MAX: usize = 10_000;

/// A token with the keys that verified it.
#[derive(Debug)]
pub struct CachedToken {
    /// The verified token.
    pub token: VerifiedToken,
    /// Place of its issuer among the issuers.
    pub issuer: usize,
    /// Generation of the keys that verified it.
    pub generation: u64,
}

/// Digest of a token.
pub type TokenDigest = [u8; 32];

/// Two halves of the cache: the older is dropped when the younger is full.
#[derive(Debug, Default)]
struct Halves {
    young: HashMap<TokenDigest, Arc<CachedToken>>,
    old: HashMap<TokenDigest, Arc<CachedToken>>,
}

/// Cache of verified tokens. It holds digests, not tokens.
#[derive(Debug, Default)]
pub struct TokenCache(RwLock<Halves>);

impl TokenCache {
    /// Returns the digest of a token.
    pub fn digest(token: &str) -> TokenDigest {
        *blake3::hash(token.as_bytes()).as_bytes()
    }

    /// Returns what is known of a token.
    pub fn get(&self, digest: &TokenDigest) -> Option<Arc<CachedToken>> {
        let halves = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = halves.young.get(digest).or_else(|| halves.old.get(digest));
        found.cloned()
    }

    /// Keeps a token.
    pub fn insert(&self, digest: TokenDigest, token: Arc<CachedToken>) {
        let mut halves = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if halves.young.len() >= TOKENS_MAX / 2 {
            halves.old = std::mem::take(&mut halves.young);
        }
        halves.old.remove(&digest);
        halves.young.insert(digest, token);
    }

    /// Removes one token.
    pub fn remove(&self, digest: &TokenDigest) {
        let mut halves = self.0.write().unwrap_or_else(PoisonError::into_inner);
        halves.young.remove(digest);
        halves.old.remove(digest);
    }

    /// Drops the tokens that `is_dropped` names; returns the subjects of their callers.
    pub fn drop_where(&self, is_dropped: impl Fn(&CachedToken) -> bool) -> Vec<Arc<str>> {
        let mut halves = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut subjects = Vec::new();
        let Halves { young, old } = &mut *halves;
        for half in [young, old] {
            half.retain(|_, cached| {
                let goes = is_dropped(cached);
                if goes {
                    subjects.push(Arc::clone(&cached.token.caller.subject));
                }
                !goes
            });
        }
        subjects.sort_unstable();
        subjects.dedup();
        subjects
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        let halves = self.0.read().unwrap_or_else(PoisonError::into_inner);
        halves.young.len() + halves.old.len()
    }
}
