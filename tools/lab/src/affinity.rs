//! Pinning this thread, and with it every child it starts, to one core.

use crate::error::LabError;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// This thread runs on one core until this is dropped.
#[derive(Debug)]
pub(crate) struct CorePin {
    before: CpuSet,
}

impl CorePin {
    /// Pins the calling thread. Children started from it inherit the core.
    pub(crate) fn to(core: usize) -> Result<Self, LabError> {
        let before = allowed()?;
        let mut only = CpuSet::new();
        if core >= CpuSet::MAX_CPU || !before.is_set(core) {
            let cores: Vec<String> = cores(&before).map(|core| core.to_string()).collect();
            return Err(LabError::Usage(format!(
                "core {core} cannot be used here; --pin takes one of {}",
                cores.join(", ")
            )));
        }
        only.set(core);
        sched_setaffinity(None, &only).map_err(|error| LabError::System {
            what: "pin to a core",
            source: error.into(),
        })?;
        Ok(Self { before })
    }
}

impl Drop for CorePin {
    fn drop(&mut self) {
        // A thread that stays pinned is slower, not wrong.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// The last core this thread may use: the one with the least interrupts on most machines.
pub(crate) fn last_core() -> Option<usize> {
    cores(&allowed().ok()?).last()
}

fn allowed() -> Result<CpuSet, LabError> {
    sched_getaffinity(None).map_err(|error| LabError::System {
        what: "read the allowed cores",
        source: error.into(),
    })
}

fn cores(set: &CpuSet) -> impl Iterator<Item = usize> + '_ {
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core))
}
