//! Revocation flags of identified callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::caller::{CALLERS_MAX, Caller};
use crate::revocation::RevocationFlag;

/// Flags of all callers that an authenticator identifies, by subject.
#[derive(Debug, Default)]
pub struct RevocationTable(Mutex<FlagTable>);

#[derive(Debug, Default)]
struct FlagTable {
    flags: HashMap<Arc<str>, RevocationFlag>,
    /// How often callers were revoked.
    revocations: u64,
    /// Flags from which on unused ones are removed; at least [`CALLERS_MAX`].
    swept_at: usize,
}

impl RevocationTable {
    /// Returns the caller that `find` identifies, with the flag that [`Self::revoke`] sets. If callers were revoked
    /// meanwhile, `find` identifies it again: no caller has a fresh flag and a revoked credential.
    ///
    /// # Errors
    /// Those of `find`.
    pub fn identify<E>(&self, find: impl Fn() -> Result<Caller, E>) -> Result<Caller, E> {
        loop {
            let before = self.lock().revocations;
            let mut caller = find()?;
            let mut table = self.lock();
            if table.revocations == before {
                caller.revocation = table.flag_of(&caller.subject);
                return Ok(caller);
            }
        }
    }

    /// Revokes these callers. One that is identified later has a new flag.
    pub fn revoke(&self, callers: &[Arc<str>]) {
        if callers.is_empty() {
            return;
        }
        let mut table = self.lock();
        table.revocations += 1;
        let flags = callers.iter();
        let flags: Vec<_> = flags
            .filter_map(|caller| table.flags.remove(caller))
            .collect();
        drop(table);
        for flag in flags {
            flag.revoke();
        }
    }

    fn lock(&self) -> MutexGuard<'_, FlagTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlagTable {
    fn flag_of(&mut self, caller: &Arc<str>) -> RevocationFlag {
        if self.flags.len() >= self.swept_at.max(CALLERS_MAX) {
            self.flags.retain(|_, flag| !flag.is_unused());
            // In proportion to what is in use, so that a sweep is paid for by as many new callers.
            self.swept_at = 2 * self.flags.len();
        }
        self.flags.entry(Arc::clone(caller)).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn caller(subject: &str) -> Result<Caller, ()> {
        Ok(Caller::local(subject))
    }

    #[test]
    fn a_caller_that_is_identified_after_a_revocation_has_a_new_flag() {
        let table = RevocationTable::default();
        let [one, again] = [(); 2].map(|()| table.identify(|| caller("one")).unwrap());
        let other = table.identify(|| caller("other")).unwrap();
        table.revoke(&["one".into(), "unknown".into()]);
        assert!(one.is_revoked() && again.is_revoked() && !other.is_revoked());
        assert!(!table.identify(|| caller("one")).unwrap().is_revoked());
    }

    #[test]
    fn a_caller_that_is_revoked_while_it_is_identified_is_identified_again() {
        let (table, found) = (RevocationTable::default(), AtomicUsize::new(0));
        let refused = table.identify(|| match found.fetch_add(1, Ordering::AcqRel) {
            0 => {
                table.revoke(&["one".into()]);
                caller("one")
            }
            _ => Err(()),
        });
        assert!(refused.is_err());
        assert_eq!(found.load(Ordering::Acquire), 2);
    }

    #[test]
    fn flags_that_are_unused_are_removed_and_those_in_use_stay() {
        let table = RevocationTable::default();
        let held: Vec<_> = (0..CALLERS_MAX / 2)
            .map(|n| table.identify(|| caller(&format!("held{n}"))).unwrap())
            .collect();
        for n in 0..10 * CALLERS_MAX {
            drop(table.identify(|| caller(&n.to_string())));
            assert!(table.lock().flags.len() <= CALLERS_MAX);
        }
        let subjects: Vec<_> = held.iter().map(|one| Arc::clone(&one.subject)).collect();
        table.revoke(&subjects);
        assert!(held.iter().all(Caller::is_revoked));
    }
}
