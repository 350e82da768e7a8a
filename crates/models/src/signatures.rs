//! Signatures of thoughts that were given out: a caller of chat completions sends the thought back, and the provider wants its
//! signature with it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dialects::translate::{SignatureLookup, SignedThought};
use gate::Gate;
use gate::journal::Digest;

/// How long signatures are kept, in milliseconds.
const KEPT_MS: i64 = 3_600_000;
/// Most replies that are kept.
const KEPT_MAX: usize = 4_096;
/// Most bytes of all of them together.
const BYTES_MAX: usize = 32 * 1024 * 1024;

struct KeptThoughts {
    thoughts: Vec<SignedThought>,
    until_ms: i64,
    bytes: usize,
}

#[derive(Default)]
struct KeptReplies {
    by_digest: HashMap<Digest, KeptThoughts>,
    /// In the order in which they came.
    order: VecDeque<Digest>,
    bytes: usize,
}

impl KeptReplies {
    fn drop_first(&mut self) {
        let first = self.order.pop_front();
        if let Some(gone) = first.and_then(|digest| self.by_digest.remove(&digest)) {
            self.bytes = self.bytes.saturating_sub(gone.bytes);
        }
    }
}

/// Signatures that were given out, each found again by its caller with the very thought.
pub(crate) struct SignatureStore {
    gate: Arc<Gate>,
    kept: Mutex<KeptReplies>,
}

impl std::fmt::Debug for SignatureStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignatureStore")
    }
}

impl SignatureStore {
    pub fn new(gate: Arc<Gate>) -> Self {
        Self {
            gate,
            kept: Mutex::default(),
        }
    }

    /// Keeps the thoughts of a reply to a caller.
    pub fn keep(&self, caller: &str, thoughts: Vec<SignedThought>) {
        if thoughts.is_empty() {
            return;
        }
        let text: String = thoughts.iter().map(|own| own.text.as_str()).collect();
        let sizes = thoughts.iter();
        let bytes = sizes
            .map(|own| own.text.len() + own.signature.len())
            .sum::<usize>();
        if bytes > BYTES_MAX / 16 || text.is_empty() {
            return;
        }
        let digest = self.digest(caller, &text);
        let kept = KeptThoughts {
            thoughts,
            until_ms: self.gate.wall_ms().saturating_add(KEPT_MS),
            bytes,
        };
        let mut all = self.all();
        if let Some(old) = all.by_digest.insert(digest, kept) {
            all.bytes = all.bytes.saturating_sub(old.bytes);
        } else {
            all.order.push_back(digest);
        }
        all.bytes += bytes;
        while all.order.len() > KEPT_MAX || all.bytes > BYTES_MAX {
            all.drop_first();
        }
    }

    /// Time has passed: what was kept for long goes.
    pub fn tidy(&self) {
        let now_ms = self.gate.wall_ms();
        let mut all = self.all();
        while let Some(first) = all.order.front() {
            let is_over = |kept: &KeptThoughts| kept.until_ms <= now_ms;
            if !all.by_digest.get(first).is_none_or(is_over) {
                break;
            }
            all.drop_first();
        }
    }

    fn digest(&self, caller: &str, text: &str) -> Digest {
        let keyed = format!("thought\0{caller}\0{text}");
        self.gate.digest(keyed.as_bytes())
    }

    fn all(&self) -> MutexGuard<'_, KeptReplies> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The signatures that were given to one caller.
#[derive(Debug, Clone)]
pub(crate) struct CallerSignatures {
    pub store: Arc<SignatureStore>,
    pub caller: Arc<str>,
}

impl SignatureLookup for CallerSignatures {
    fn find(&self, thought: &str) -> Option<Vec<SignedThought>> {
        let digest = self.store.digest(&self.caller, thought);
        let now_ms = self.store.gate.wall_ms();
        let all = self.store.all();
        let kept = all.by_digest.get(&digest);
        let kept = kept.filter(|kept| kept.until_ms > now_ms)?;
        Some(kept.thoughts.clone())
    }
}
