//! The Legacy sessions of a server.

use super::session::HttpSession;
use crate::server::ProtocolMachine;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many sessions there are at most; the one unused for longest makes room.
const SESSIONS_MAX: usize = 4096;

/// Sessions by their ids.
#[derive(Default)]
pub(super) struct SessionTable {
    table: Mutex<HashMap<String, Arc<HttpSession>>>,
    /// Counts uses, which orders them.
    clock: AtomicU64,
    /// Random source of ids: keyed hashes are random enough for a mock.
    seeds: [RandomState; 2],
}

impl SessionTable {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a session under a new id.
    pub(super) fn add(
        &self,
        version: String,
        machine: Box<dyn ProtocolMachine>,
    ) -> Arc<HttpSession> {
        let now = self.tick();
        let id: String = self
            .seeds
            .iter()
            .map(|seed| format!("{:016x}", seed.hash_one(now)))
            .collect();
        let session = HttpSession::legacy(id.clone(), version, machine);
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

    /// Returns the session with this id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<HttpSession>> {
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

    /// Returns all sessions.
    pub(super) fn all(&self) -> Vec<Arc<HttpSession>> {
        self.table().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::MachineAction;

    struct MuteMachine;

    impl ProtocolMachine for MuteMachine {
        fn handle(&mut self, _frame: &[u8], _actions: &mut Vec<MachineAction>) {}
    }

    #[test]
    fn the_session_unused_for_longest_makes_room() {
        let sessions = SessionTable::default();
        let add = || {
            sessions
                .add("2025-11-25".into(), Box::new(MuteMachine))
                .id
                .clone()
        };
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
