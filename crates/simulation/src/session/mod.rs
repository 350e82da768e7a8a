//! Simulations that callers have loaded. A caller sees only its own.

mod loaded;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use loaded::{ChangedValue, LoadedSimulation, UpdateMode, apply};

use gate::caller::CALLERS_MAX;

use crate::fault::{Fault, Kind};

/// Longest id of a simulation, in characters.
pub const ID_CHARS_MAX: usize = 64;

/// A simulation that a caller has loaded.
pub type Shared = Arc<Mutex<LoadedSimulation>>;

/// All simulations.
#[derive(Debug)]
pub struct SessionStore {
    callers: Mutex<HashMap<Arc<str>, CallerSessions>>,
    /// Most simulations of one caller.
    per_caller_max: usize,
    /// How long a caller's simulations are kept unused, in milliseconds.
    idle_ms_max: i64,
}

#[derive(Debug, Default)]
struct CallerSessions {
    simulations: BTreeMap<String, Shared>,
    used_ms: i64,
}

/// Returns a simulation's lock, also if its holder has panicked: each change is whole or not made.
pub fn locked(shared: &Shared) -> MutexGuard<'_, LoadedSimulation> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionStore {
    /// Nothing loaded yet.
    #[must_use]
    pub fn new(per_caller_max: usize, idle_ms_max: i64) -> Self {
        Self {
            callers: Mutex::default(),
            per_caller_max,
            idle_ms_max,
        }
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<Arc<str>, CallerSessions>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a caller may load one more simulation under this id.
    ///
    /// # Errors
    /// [`Kind::Conflict`] if the id is taken, [`Kind::Busy`] if too many are loaded.
    pub fn room(&self, caller: &str, id: &str) -> Result<(), Fault> {
        let callers = self.callers();
        let Some(own) = callers.get(caller) else {
            return Ok(());
        };
        self.fits(own, id)
    }

    fn fits(&self, own: &CallerSessions, id: &str) -> Result<(), Fault> {
        if own.simulations.contains_key(id) {
            let taken = format!("the simulation '{id}' is loaded already");
            return Err(Fault::of(Kind::Conflict, "simulationId", taken)
                .hint("choose another simulationId"));
        }
        if own.simulations.len() >= self.per_caller_max {
            let full = format!(
                "{} simulations are loaded, which is as many as may be",
                self.per_caller_max
            );
            return Err(Fault::of(Kind::Busy, "simulationId", full));
        }
        Ok(())
    }

    /// Keeps a simulation.
    ///
    /// # Errors
    /// As [`SessionStore::room`].
    pub fn insert(
        &self,
        caller: &Arc<str>,
        loaded: LoadedSimulation,
        now_ms: i64,
    ) -> Result<(), Fault> {
        let mut callers = self.callers();
        if !callers.contains_key(caller) && callers.len() >= CALLERS_MAX {
            let oldest = callers.iter().min_by_key(|(_, own)| own.used_ms);
            if let Some(oldest) = oldest.map(|(caller, _)| Arc::clone(caller)) {
                callers.remove(&oldest);
            }
        }
        let own = callers.entry(Arc::clone(caller)).or_default();
        self.fits(own, &loaded.id)?;
        own.used_ms = now_ms;
        own.simulations
            .insert(loaded.id.clone(), Arc::new(Mutex::new(loaded)));
        Ok(())
    }

    /// Puts a simulation in place of the one of the same id, if there is one.
    ///
    /// # Errors
    /// [`Kind::Busy`] if too many are loaded.
    pub fn replace(
        &self,
        caller: &Arc<str>,
        loaded: LoadedSimulation,
        now_ms: i64,
    ) -> Result<(), Fault> {
        if let Some(own) = self.callers().get_mut(caller) {
            own.simulations.remove(&loaded.id);
        }
        self.insert(caller, loaded, now_ms)
    }

    /// Returns a caller's simulation.
    ///
    /// # Errors
    /// [`Kind::NotFound`].
    pub fn get(&self, caller: &str, id: &str, now_ms: i64) -> Result<Shared, Fault> {
        let mut callers = self.callers();
        let own = callers.get_mut(caller);
        let found = own.and_then(|own| {
            own.used_ms = now_ms;
            own.simulations.get(id).map(Arc::clone)
        });
        found.ok_or_else(|| {
            Fault::missing("simulationId", format!("no simulation '{id}' is loaded"))
                .hint("load it with load_simulation")
        })
    }

    /// Forgets a caller's simulation.
    ///
    /// # Errors
    /// [`Kind::NotFound`].
    pub fn remove(&self, caller: &str, id: &str, now_ms: i64) -> Result<(), Fault> {
        self.get(caller, id, now_ms)?;
        if let Some(own) = self.callers().get_mut(caller) {
            own.simulations.remove(id);
        }
        Ok(())
    }

    /// Returns a caller's simulation, where somebody only wants to know of it.
    #[must_use]
    pub fn peek(&self, caller: &str, id: &str) -> Option<Shared> {
        let callers = self.callers();
        callers.get(caller)?.simulations.get(id).map(Arc::clone)
    }

    /// Returns all of a caller's simulations, by id.
    #[must_use]
    pub fn all(&self, caller: &str) -> Vec<Shared> {
        let callers = self.callers();
        let own = callers.get(caller);
        own.map_or_else(Vec::new, |own| {
            own.simulations.values().map(Arc::clone).collect()
        })
    }

    /// Forgets the callers that have not asked for anything in a long time.
    pub fn sweep(&self, now_ms: i64) {
        let idle_ms_max = self.idle_ms_max;
        self.callers()
            .retain(|_, own| now_ms.saturating_sub(own.used_ms) <= idle_ms_max);
    }
}
