//! Access tokens of Google: got with a credential when first needed, kept until shortly before they end.
//!
//! One refresh is under way at a time; who waits for it takes what it comes to, also where it fails. It is bounded by the caller's
//! own deadline and by [`FETCH_MS_MAX`].

mod assertion;
mod credential;
mod fetch;

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, timeout_at};

pub use credential::{CREDENTIAL_BYTES_MAX, CredentialFault, GoogleCredential};

use super::ProviderFault;
use crate::key::{Key, hidden};
use crate::provider::{Fault, Remedy, Trouble};
use fetch::Source;

/// Longest that getting a token may take, in milliseconds.
const FETCH_MS_MAX: u64 = 10_000;
/// How long before its end a token is replaced, in milliseconds: Google's own library waits as long.
const EARLY_MS: u64 = 225_000;
/// How long after a failed refresh the next one waits while the old token is good, in milliseconds.
const PAUSE_MS: u64 = 5_000;

/// A token as it was got.
struct Got {
    key: Key,
    /// How long it is good, in milliseconds.
    good_ms: u64,
}

#[derive(Clone)]
struct Kept {
    key: Key,
    /// Whether the provider has taken it.
    taken: bool,
    /// When it is to be replaced.
    renewed: Instant,
    /// When it ends.
    until: Instant,
}

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    /// The last refresh, where it failed: when, and how.
    failed: Option<(Instant, Fault)>,
}

/// The tokens of a provider.
pub(super) struct Tokens {
    source: Source,
    quota_project: Option<HeaderValue>,
    state: Mutex<State>,
    /// Whose turn it is to refresh.
    turn: Turn<()>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

/// What follows where a token was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// A new one is worth a try.
    TakeAnother,
    /// The next one may be good, but nobody knows when there is one.
    Wait,
    /// The credential itself is not taken.
    Retire,
}

impl Tokens {
    pub fn new(credential: GoogleCredential, insecure: bool) -> Result<Self, ProviderFault> {
        let quota_project = credential.quota_project().and_then(hidden);
        Ok(Self {
            source: Source::new(credential.way, insecure)?,
            quota_project,
            state: Mutex::default(),
            turn: Turn::new(()),
        })
    }

    /// The project that calls are counted for, where the credential names one.
    pub fn quota_project(&self) -> Option<&HeaderValue> {
        self.quota_project.as_ref()
    }

    /// A token that is good now.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn token(&self, until: Instant) -> Result<Key, Fault> {
        let asked = Instant::now();
        let old = match self.kept() {
            Some(kept) if asked < kept.renewed => return Ok(kept.key),
            Some(kept) if asked < kept.until => Some(kept.key),
            _ => None,
        };
        let _turn = match &old {
            // The old one is good while somebody else is at it.
            Some(key) => match self.turn.try_lock() {
                Ok(turn) if !self.has_failed_since(asked, PAUSE_MS) => turn,
                _ => return Ok(key.clone()),
            },
            None => match timeout_at(until, self.turn.lock()).await {
                Ok(turn) => turn,
                Err(_) => return Err(too_slow()),
            },
        };
        // What somebody else has got, or has failed to get, meanwhile.
        if let Some(kept) = self.kept().filter(|kept| Instant::now() < kept.renewed) {
            return Ok(kept.key);
        }
        if let Some(fault) = self.failed_after(asked) {
            return Err(fault);
        }
        let bound = Instant::now() + Duration::from_millis(FETCH_MS_MAX);
        let got = match timeout_at(until.min(bound), self.source.fetch(until.min(bound))).await {
            Ok(got) => got,
            // The next caller may have more time.
            Err(_) if until < bound => return old.ok_or_else(too_slow),
            Err(_) => Err(too_slow()),
        };
        match got {
            Ok(got) => Ok(self.keep(got)),
            Err(fault) => {
                self.state().failed = Some((Instant::now(), fault.clone()));
                old.ok_or(fault)
            }
        }
    }

    /// The provider has taken a token.
    pub fn taken(&self, key: &Key) {
        let mut state = self.state();
        let own = state.kept.as_mut().filter(|kept| !kept.taken);
        if let Some(own) = own.filter(|kept| kept.key.is_same(key)) {
            own.taken = true;
        }
    }

    /// The provider has not taken a token. One that was taken before has ended early; else a new one would help no more.
    pub fn refused(&self, key: &Key) -> Refused {
        let mut state = self.state();
        let own = state.kept.as_ref().filter(|kept| kept.key.is_same(key));
        let Some(own) = own else {
            // Another one has come meanwhile.
            return Refused::TakeAnother;
        };
        let taken = own.taken;
        state.kept = None;
        match &self.source {
            _ if taken => Refused::TakeAnother,
            Source::File(_) => Refused::Wait,
            Source::Endpoint(..) => Refused::Retire,
        }
    }

    /// Whether a token may come although there is none now: something else writes it.
    pub fn may_come_later(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    fn keep(&self, got: Got) -> Key {
        let since = Instant::now();
        // One that is good for a short time only is kept for half of it.
        let early_ms = EARLY_MS.min(got.good_ms / 2);
        let after = |ms: u64| since + Duration::from_millis(ms);
        let mut state = self.state();
        state.failed = None;
        state.kept = Some(Kept {
            key: got.key.clone(),
            taken: false,
            renewed: after(got.good_ms - early_ms),
            until: after(got.good_ms),
        });
        got.key
    }

    fn kept(&self) -> Option<Kept> {
        self.state().kept.clone()
    }

    fn failed_after(&self, asked: Instant) -> Option<Fault> {
        let state = self.state();
        let failed = state.failed.as_ref().filter(|(at, _)| *at >= asked);
        failed.map(|(_, fault)| fault.clone())
    }

    fn has_failed_since(&self, now: Instant, ms: u64) -> bool {
        let failed = self.state().failed.as_ref().map(|(at, _)| *at);
        failed.is_some_and(|at| now < at + Duration::from_millis(ms))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_slow() -> Fault {
    Fault::of(Trouble::TooSlow, Remedy::NextTarget)
}

#[cfg(test)]
mod tests;
