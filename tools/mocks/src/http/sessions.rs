//! The Legacy sessions of a server.

use super::session::Session;
use crate::server::Machine;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many sessions there are at most; the one unused for longest makes room.
const SESSIONS_MAX: usize = 4096;

/// Sessions by their ids.
#[derive(Default)]
pub(super) struct Sessions {
    table: Mutex<HashMap<String, Arc<Session>>>,
    /// Counts uses, which orders them.
    clock: AtomicU64,
    /// Where the randomness of ids comes from: keyed hashes are random enough for a mock.
    seeds: [RandomState; 2],
}

impl Sessions {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a session under a new id.
    pub(super) fn add(&self, version: String, machine: Box<dyn Machine>) -> Arc<Session> {
        let now = self.tick();
        let id: String = self
            .seeds
            .iter()
            .map(|seed| format!("{:016x}", seed.hash_one(now)))
            .collect();
        let session = Session::legacy(id.clone(), version, machine);
        session.used.store(now, Ordering::Relaxed);
        let mut table = self.table();
        if table.len() >= SESSIONS_MAX {
            let oldest = table
                .values()
                .min_by_key(|session| session.used.load(Ordering::Relaxed))
                .map(|session| session.id.clone());
            if let Some(session) = oldest.and_then(|id| table.remove(&id)) {
                session.close();
            }
        }
        table.insert(id, Arc::clone(&session));
        session
    }

    /// The session with this id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.table().get(id).cloned()?;
        session.used.store(self.tick(), Ordering::Relaxed);
        Some(session)
    }

    /// Ends a session; whether there was one.
    pub(super) fn remove(&self, id: &str) -> bool {
        let removed = self.table().remove(id);
        if let Some(session) = &removed {
            session.close();
        }
        removed.is_some()
    }

    /// All sessions.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.table().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Action;

    struct Mute;

    impl Machine for Mute {
        fn handle(&mut self, _frame: &[u8], _actions: &mut Vec<Action>) {}
    }

    #[test]
    fn the_session_unused_for_longest_makes_room() {
        let sessions = Sessions::default();
        let add = || sessions.add("2025-11-25".into(), Box::new(Mute)).id.clone();
        let (first, second) = (add(), add());
        for _ in 2..SESSIONS_MAX {
            add();
        }
        assert!(sessions.get(&first).is_some());
        add();
        assert!(sessions.get(&first).is_some());
        assert!(sessions.get(&second).is_none());
        assert!(sessions.remove(&first));
        assert!(!sessions.remove(&first));
    }
}
