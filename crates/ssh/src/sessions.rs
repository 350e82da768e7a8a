//! Sessions: what `ssh_connect` gives, and who may use it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use share::{ShareLimits, SharePermit, SharePool, Shortage};
use toolkit::server::{Failure, SessionRef};

use crate::command::{Command, Context};
use crate::forwards::Forwards;
use crate::hosts::{Host, Limits, Secret};
use crate::pool::Own;
use crate::random;
use crate::terminals::Terminals;

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    all: Mutex<HashMap<Arc<str>, HeldSession>>,
    permits: SharePool,
}

/// A session and its permit.
#[derive(Debug)]
struct HeldSession {
    session: Arc<Session>,
    _permit: SharePermit,
}

/// What a session is asked to be.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The password that its caller gave.
    pub password: Option<Secret>,
    /// It is to share no connection.
    pub alone: bool,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub id: Arc<str>,
    /// The client's session that it belongs to.
    owner: SessionRef,
    pub host: Arc<Host>,
    /// Its connections, where it shares none.
    pub own: Option<Own>,
    pub created_ms: u64,
    used: Mutex<Instant>,
    under_way: AtomicUsize,
    /// Its port forwards, which end with it.
    pub forwards: Forwards,
    /// Its terminals, likewise.
    pub terminals: Terminals,
    /// What `ssh_network_compare` saved, by its scope.
    pub baselines: Mutex<HashMap<&'static str, serde_json::Value>>,
}

/// A session while a call uses it.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Session>);

impl std::ops::Deref for InUse {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *lock(&self.0.used) = Instant::now();
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    /// The client's session that it belongs to.
    pub fn owner(&self) -> &SessionRef {
        &self.owner
    }

    pub fn is_in_use(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
            || self.forwards.is_in_use()
            || self.terminals.is_in_use()
    }
}

impl Sessions {
    /// Returns none yet, and at most `sessions_max` later.
    pub fn new(sessions_max: usize) -> Self {
        Self {
            all: Mutex::default(),
            permits: SharePool::new(ShareLimits::half_each(sessions_max)),
        }
    }

    /// A new session, if there is room for one.
    pub fn open(
        &self,
        owner: &SessionRef,
        host: Arc<Host>,
        asked: Asked,
        limits: &Limits,
    ) -> Result<Arc<Session>, Failure> {
        let Some(id) = random::name("sess_") else {
            return Err(Failure::new(
                "no_randomness",
                "the system gives no random numbers",
            ));
        };
        let mut all = self.all();
        self.expire(&mut all, limits);
        let permit = self.permit(owner)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let id: Arc<str> = id.into();
        let is_own = asked.alone || asked.password.is_some();
        let own = is_own.then(|| Own {
            owner: Arc::clone(&id),
            password: asked.password,
        });
        let session = Arc::new(Session {
            id,
            owner: owner.clone(),
            host,
            own,
            created_ms: since.map_or(0, |since| {
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }),
            used: Mutex::new(Instant::now()),
            under_way: AtomicUsize::new(0),
            forwards: Forwards::default(),
            terminals: Terminals::default(),
            baselines: Mutex::default(),
        });
        let held = HeldSession {
            session: Arc::clone(&session),
            _permit: permit,
        };
        all.insert(Arc::clone(&session.id), held);
        Ok(session)
    }

    /// What a session's terminal runs, whoever asks: for the facts of a call.
    pub fn in_terminal(&self, id: &str, terminal: &str) -> Option<(Command, Context)> {
        self.all().get(id)?.session.terminals.command(terminal)
    }

    /// The host of a session, whoever asks: for the facts of a call.
    pub fn host_of(&self, id: &str) -> Option<Arc<Host>> {
        self.all()
            .get(id)
            .map(|held| Arc::clone(&held.session.host))
    }

    /// A session for a call of its owner.
    pub fn take(&self, id: &str, by: &SessionRef, limits: &Limits) -> Result<InUse, Failure> {
        let mut all = self.all();
        self.expire(&mut all, limits);
        let Some(HeldSession { session, .. }) = all.get(id) else {
            let wrong = "there is no such session; it may have ended: call ssh_connect";
            return Err(Failure::new("unknown_session", wrong));
        };
        if session.owner != *by {
            return Err(Failure::new(
                "not_owned",
                "Session not owned by this client",
            ));
        }
        session.under_way.fetch_add(1, Ordering::Relaxed);
        Ok(InUse(Arc::clone(session)))
    }

    /// Ends a session of this owner's, and gives it.
    pub fn end(&self, id: &str, by: &SessionRef, limits: &Limits) -> Result<Arc<Session>, Failure> {
        let ended = Arc::clone(&self.take(id, by, limits)?.0);
        self.all().remove(id);
        Ok(ended)
    }

    /// The sessions of an owner, the oldest first.
    pub fn of(&self, owner: &SessionRef, limits: &Limits) -> Vec<Arc<Session>> {
        let mut all = self.all();
        self.expire(&mut all, limits);
        let mut mine: Vec<_> = all
            .values()
            .filter(|held| held.session.owner == *owner)
            .map(|held| Arc::clone(&held.session))
            .collect();
        mine.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        mine
    }

    /// How many there are, by host.
    pub fn by_host(&self, limits: &Limits) -> BTreeMap<String, u64> {
        let mut all = self.all();
        self.expire(&mut all, limits);
        let mut counts = BTreeMap::new();
        for HeldSession { session, .. } in all.values() {
            *counts.entry(session.host.name.clone()).or_default() += 1;
        }
        counts
    }

    /// Ends all sessions of an owner, and gives them.
    pub fn end_all(&self, owner: &SessionRef) -> Vec<Arc<Session>> {
        let mut all = self.all();
        let ended = all.extract_if(|_, held| held.session.owner == *owner);
        ended.map(|(_, held)| held.session).collect()
    }

    /// Returns a permit for one more session. A caller that has to leave room for others has half of all at most, and a quarter is
    /// reserved for callers without one.
    fn permit(&self, owner: &SessionRef) -> Result<SharePermit, Failure> {
        let caller = owner.shares.then_some(&owner.caller);
        self.permits.try_acquire(caller, 1).map_err(|shortage| {
            let wrong = match shortage {
                Shortage::Caller => format!(
                    "you have {} sessions already, which is as many as one caller may have; disconnect one",
                    self.permits.held_by(&owner.caller)
                ),
                _ => format!(
                    "there are {} sessions already; disconnect one",
                    self.permits.held()
                ),
            };
            Failure::new("too_many_sessions", wrong).retryable()
        })
    }

    fn expire(&self, all: &mut HashMap<Arc<str>, HeldSession>, limits: &Limits) {
        let idle_max = Duration::from_millis(limits.session_idle_ms_max);
        all.retain(|_, HeldSession { session, .. }| {
            session.is_in_use() || lock(&session.used).elapsed() < idle_max
        });
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, HeldSession>> {
        lock(&self.all)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_is_shared_and_comes_back() {
        let sessions = Sessions::new(12);
        let open = |caller: &Arc<str>| {
            let owner = SessionRef {
                caller: Arc::clone(caller),
                id: "s".into(),
                groups: [].into(),
                shares: true,
            };
            Box::pin(std::future::ready(sessions.permit(&owner).ok())) as _
        };
        assert_eq!(
            share::contract::check_user(&sessions.permits, 1, open),
            Ok(())
        );
    }
}
