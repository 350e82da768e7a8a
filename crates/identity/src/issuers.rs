//! The issuers that are trusted, with their keys and the tokens that were verified.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use gate::caller::Caller;
use gate::identity::{Authenticate, Credential, IdentityFault, TokenFault};

use crate::cache::{CachedToken, TokenCache};
use crate::claims::VerifiedToken;
use crate::jwks::VerifyingKey;
use crate::logout;
use crate::metadata::IssuerMetadata;
use crate::options::{IdentityOptions, IssuerOptions};
use crate::resource::ResourceServer;
use crate::token::{TokenKind, UnverifiedToken};
use crate::upstream::{self, FetchFault};

/// Shortest time between two fetches that unknown key ids cause.
const COOLDOWN: Duration = Duration::from_secs(30);
/// The same while no key is known at all.
const COOLDOWN_WITHOUT_KEYS: Duration = Duration::from_secs(3);
/// Age at which keys are fetched again, in milliseconds.
const REFRESH_MS: i64 = 10 * 60_000;
/// Most sessions at issuers that are remembered as ended.
const ENDED_MAX: usize = 10_000;

/// The issuers that are trusted.
#[derive(Debug)]
pub struct Issuers {
    options: IdentityOptions,
    resource: ResourceServer,
    issuers: Vec<TrustedIssuer>,
    cache: TokenCache,
    ended: Mutex<EndedSessions>,
}

/// Sessions that have ended at their issuer, oldest first, and callers who are not revoked for it yet.
#[derive(Debug, Default)]
struct EndedSessions {
    sessions: VecDeque<(usize, Arc<str>)>,
    gone: Vec<Arc<str>>,
}

#[derive(Debug)]
struct TrustedIssuer {
    options: IssuerOptions,
    keys: RwLock<Arc<KeySet>>,
    /// When the keys were fetched, in milliseconds since 1970; the minimum before the first time.
    fetched_ms: AtomicI64,
    fetch: tokio::sync::Mutex<FetchState>,
}

/// Keys of an issuer at one time.
#[derive(Debug, Default)]
struct KeySet {
    keys: Vec<VerifyingKey>,
    /// Grows with each change of the keys.
    generation: u64,
}

#[derive(Debug, Default)]
struct FetchState {
    tried: Option<Instant>,
    metadata: Option<IssuerMetadata>,
}

/// An issuer that contradicts the configuration.
#[derive(Debug)]
pub struct StartFault {
    /// Issuer.
    pub issuer: String,
    /// Reason.
    pub fault: FetchFault,
}

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the issuer {}: {}", self.issuer, self.fault)
    }
}

impl Issuers {
    /// Returns the issuers of the configuration; nothing is fetched yet.
    #[must_use]
    pub fn new(options: IdentityOptions) -> Self {
        let trusted = |issuer: &IssuerOptions| TrustedIssuer {
            options: issuer.clone(),
            keys: RwLock::default(),
            fetched_ms: AtomicI64::new(i64::MIN),
            fetch: tokio::sync::Mutex::default(),
        };
        Self {
            issuers: options.issuers.iter().map(trusted).collect(),
            resource: ResourceServer::of(&options),
            options,
            cache: TokenCache::default(),
            ended: Mutex::default(),
        }
    }

    /// Returns what clients are shown of the protected resources.
    #[must_use]
    pub fn resource(&self) -> &ResourceServer {
        &self.resource
    }

    /// Fetches metadata and keys of all issuers at the start. An unreachable issuer is a warning: its keys are fetched when
    /// they are needed.
    ///
    /// # Errors
    /// [`StartFault`] if the metadata contradicts the configuration.
    pub async fn start(&self, now_ms: i64) -> Result<(), StartFault> {
        for issuer in &self.issuers {
            let mut state = issuer.fetch.lock().await;
            let fetched = issuer.fetch(&mut state, now_ms).await;
            // An unknown key id right after the start is fetched without a wait.
            state.tried = None;
            if let Err(fault) = fetched {
                if fault.is_lasting() {
                    return Err(StartFault {
                        issuer: issuer.options.issuer.clone(),
                        fault,
                    });
                }
                tracing::warn!(
                    "the issuer {} cannot be reached, tokens of it are refused until it can: {fault}",
                    issuer.options.issuer
                );
            }
        }
        Ok(())
    }

    /// Fetches the keys that this token needs and that are not known; returns whether keys were fetched. Fetches of one issuer
    /// are single-flight and at least 30 s apart.
    pub async fn fetch_for(&self, token: &str, now_ms: i64) -> bool {
        let Ok(unverified) = UnverifiedToken::read(token, TokenKind::Access) else {
            return false;
        };
        match unverified.issuer().ok().and_then(|own| self.find(own)) {
            Some((_, issuer)) => self.fetch_missing(issuer, &unverified, now_ms).await,
            None => false,
        }
    }

    async fn fetch_missing(
        &self,
        issuer: &TrustedIssuer,
        unverified: &UnverifiedToken<'_>,
        now_ms: i64,
    ) -> bool {
        let mut state = issuer.fetch.lock().await;
        let known = issuer.keys();
        if unverified.has_key(&known.keys) && !self.is_stale(issuer, now_ms) {
            // Another request has fetched it meanwhile.
            return true;
        }
        let cooldown = match known.keys.is_empty() {
            true => COOLDOWN_WITHOUT_KEYS,
            false => COOLDOWN,
        };
        if state.tried.is_some_and(|tried| tried.elapsed() < cooldown) {
            return false;
        }
        issuer.fetch_or_warn(&mut state, now_ms).await
    }

    /// Fetches old keys again, issuer by issuer, without a wait for them. To be called now and then.
    pub fn refresh_if_due(self: &Arc<Self>, now_ms: i64) {
        for (at, issuer) in self.issuers.iter().enumerate() {
            let fetched_ms = issuer.fetched_ms.load(Ordering::Relaxed);
            if fetched_ms == i64::MIN || now_ms.saturating_sub(fetched_ms) < REFRESH_MS {
                continue;
            }
            let own = Arc::clone(self);
            tokio::spawn(async move {
                let Some(issuer) = own.issuers.get(at) else {
                    return;
                };
                // Who holds it fetches already.
                let Ok(mut state) = issuer.fetch.try_lock() else {
                    return;
                };
                if state.tried.is_none_or(|tried| tried.elapsed() >= COOLDOWN) {
                    issuer.fetch_or_warn(&mut state, now_ms).await;
                }
            });
        }
    }

    /// Ends the session that a logout token of an issuer names (OpenID Connect Back-Channel Logout 1.0).
    ///
    /// # Errors
    /// [`TokenFault`]; nothing has ended then.
    pub async fn end_session_by(&self, token: &str, now_ms: i64) -> Result<(), TokenFault> {
        let unverified = UnverifiedToken::read(token, TokenKind::Logout)?;
        let found = self.find(unverified.issuer()?);
        let (_, issuer) = found.ok_or(TokenFault::IssuerUnknown)?;
        if !unverified.has_key(&issuer.keys().keys) {
            self.fetch_missing(issuer, &unverified, now_ms).await;
        }
        let known = issuer.keys();
        if known.keys.is_empty() {
            return Err(TokenFault::IssuerUnreachable);
        }
        let options = &issuer.options;
        let claims = unverified.verify(&known.keys, &options.algorithms)?;
        let times = (now_ms, self.options.skew_ms);
        let sid = logout::read_session(&claims, options.client_id.as_deref(), times)?;
        self.end_session(&options.issuer, sid);
        Ok(())
    }

    /// Ends a session at its issuer: no token of it counts from now on.
    pub fn end_session(&self, issuer: &str, sid: &str) {
        let Some((at, _)) = self.find(issuer) else {
            return;
        };
        let mut ended = self.lock_ended();
        if ended.sessions.len() >= ENDED_MAX {
            ended.sessions.pop_front();
        }
        ended.sessions.push_back((at, sid.into()));
        drop(ended);
        // After the session is noted: a token that is verified meanwhile is found here, or refused where it is cached.
        let gone = self.cache.drop_where(|cached| {
            let sign_in = cached.token.caller.sign_in.as_deref();
            cached.issuer == at && sign_in.is_some_and(|own| own.sid.as_deref() == Some(sid))
        });
        self.lock_ended().gone.extend(gone);
    }

    fn find(&self, issuer: &str) -> Option<(usize, &TrustedIssuer)> {
        let mut all = self.issuers.iter().enumerate();
        all.find(|(_, own)| own.options.issuer == issuer)
    }

    fn is_stale(&self, issuer: &TrustedIssuer, now_ms: i64) -> bool {
        let fetched_ms = issuer.fetched_ms.load(Ordering::Relaxed);
        now_ms.saturating_sub(fetched_ms) > self.options.keys_ms_max
    }

    /// Returns what is known of a token: from the cache, else by its signature.
    fn find_or_verify(&self, token: &str, now_ms: i64) -> Result<Arc<CachedToken>, TokenFault> {
        if token.len() > crate::TOKEN_BYTES_MAX {
            return Err(TokenFault::TooLong);
        }
        let digest = TokenCache::digest(token);
        if let Some(cached) = self.cache.get(&digest)
            && let Some(issuer) = self.issuers.get(cached.issuer)
            && issuer.keys().generation == cached.generation
        {
            return match self.is_stale(issuer, now_ms) {
                true => Err(TokenFault::IssuerUnreachable),
                false => Ok(cached),
            };
        }
        let cached = Arc::new(self.verify(token, now_ms)?);
        self.cache.insert(digest, Arc::clone(&cached));
        // Once more: the session may have ended between the check and the insertion.
        self.check_session(cached.issuer, &cached.token)
            .inspect_err(|_| self.cache.remove(&digest))?;
        Ok(cached)
    }

    fn verify(&self, token: &str, now_ms: i64) -> Result<CachedToken, TokenFault> {
        let unverified = UnverifiedToken::read(token, TokenKind::Access)?;
        let found = self.find(unverified.issuer()?);
        let (at, issuer) = found.ok_or(TokenFault::IssuerUnknown)?;
        let known = issuer.keys();
        if known.keys.is_empty() || self.is_stale(issuer, now_ms) {
            return Err(TokenFault::IssuerUnreachable);
        }
        let claims = unverified.verify(&known.keys, &issuer.options.algorithms)?;
        let token = VerifiedToken::of(&claims, &issuer.options, &self.options, now_ms)?;
        self.check_session(at, &token)?;
        Ok(CachedToken {
            token,
            issuer: at,
            generation: known.generation,
        })
    }

    fn lock_ended(&self) -> MutexGuard<'_, EndedSessions> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_session(&self, issuer: usize, token: &VerifiedToken) -> Result<(), TokenFault> {
        let sign_in = token.caller.sign_in.as_deref();
        let Some(sid) = sign_in.and_then(|own| own.sid.as_deref()) else {
            return Ok(());
        };
        let ended = self.lock_ended();
        let has_ended = |(at, own): &(usize, Arc<str>)| *at == issuer && **own == *sid;
        match ended.sessions.iter().any(has_ended) {
            true => Err(TokenFault::SessionEnded),
            false => Ok(()),
        }
    }

    #[cfg(test)]
    pub(crate) fn with_keys(self, issuer: &str, jwks: &[u8], now_ms: i64) -> Self {
        if let Some((_, issuer)) = self.find(issuer) {
            issuer.replace(crate::jwks::read(jwks).unwrap(), now_ms);
        }
        self
    }

    #[cfg(test)]
    pub(crate) fn replace_keys(&self, issuer: &str, jwks: &[u8], now_ms: i64) {
        let (_, issuer) = self.find(issuer).unwrap();
        issuer.replace(crate::jwks::read(jwks).unwrap(), now_ms);
    }

    #[cfg(test)]
    pub(crate) fn cached_count(&self) -> usize {
        self.cache.len()
    }
}

impl TrustedIssuer {
    fn keys(&self) -> Arc<KeySet> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn fetch_or_warn(&self, state: &mut FetchState, now_ms: i64) -> bool {
        let fetched = self.fetch(state, now_ms).await;
        if let Err(fault) = &fetched {
            tracing::warn!(
                "the keys of the issuer {} were not fetched, those that are known count on: {fault}",
                self.options.issuer
            );
        }
        fetched.is_ok()
    }

    async fn fetch(&self, state: &mut FetchState, now_ms: i64) -> Result<(), FetchFault> {
        state.tried = Some(Instant::now());
        let authorities = self.options.authorities.as_ref();
        let metadata = match &state.metadata {
            Some(metadata) => metadata.clone(),
            None => upstream::metadata(&self.options.issuer, authorities).await?,
        };
        let keys = upstream::keys(&metadata, authorities).await;
        // Metadata that leads to no keys is fetched again with the next try.
        state.metadata = keys.is_ok().then_some(metadata);
        self.replace(keys?, now_ms);
        Ok(())
    }

    fn replace(&self, keys: Vec<VerifyingKey>, now_ms: i64) {
        let mut known = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if known.keys != keys {
            *known = Arc::new(KeySet {
                keys,
                generation: known.generation + 1,
            });
        }
        self.fetched_ms.store(now_ms, Ordering::Relaxed);
    }
}

impl Authenticate for Issuers {
    fn identify(&self, shown: &Credential<'_>, now_ms: i64) -> Result<Caller, IdentityFault> {
        let text = shown.text().ok_or(IdentityFault::Missing)?;
        let cached = self
            .find_or_verify(text, now_ms)
            .map_err(IdentityFault::Token)?;
        let token = &cached.token;
        let checked = token
            .check_time(now_ms, self.options.skew_ms)
            .and_then(|()| {
                if token.audiences.is_none() {
                    return Ok(());
                }
                let resource = shown.path().and_then(|path| self.resource.canonical(path));
                token.check_audience(resource.as_deref())
            });
        checked.map_err(IdentityFault::Token)?;
        Ok(token.caller.clone())
    }

    fn take_revoked(&self, _now_ms: i64) -> Vec<Arc<str>> {
        std::mem::take(&mut self.lock_ended().gone)
    }
}
