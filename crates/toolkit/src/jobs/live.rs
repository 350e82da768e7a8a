//! What is known of jobs only while the process lives: who runs them, and who watches them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::job::{Job, JobId};
use crate::cancel::Cancel;

/// Most jobs that are watched at a time.
pub const WATCHED_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Live {
    running: Mutex<HashMap<JobId, Cancel>>,
    watched: Mutex<HashMap<JobId, watch::Sender<u64>>>,
}

/// Sees that a job has changed.
#[derive(Debug)]
pub struct Watch {
    versions: watch::Receiver<u64>,
}

impl Watch {
    /// Returns when the job has changed since the last time, or since the watch was made. `false` where nobody
    /// will tell any more.
    pub async fn changed(&mut self) -> bool {
        self.versions.changed().await.is_ok()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// Notes that a worker has a job; what is returned is set when it is to stop.
    pub(super) fn begun(&self, id: &JobId) -> Cancel {
        let cancel = Cancel::default();
        if let Some(before) = locked(&self.running).insert(id.clone(), cancel.clone()) {
            before.cancel();
        }
        cancel
    }

    /// Tells the worker of a job to stop.
    pub(super) fn cancel(&self, id: &JobId) {
        if let Some(cancel) = locked(&self.running).get(id) {
            cancel.cancel();
        }
    }

    pub(super) fn changed(&self, job: &Job) {
        if !matches!(job.state, super::JobState::Running) {
            let worker = locked(&self.running).remove(&job.id);
            // Whoever still works on it does so for nobody.
            if let Some(worker) = worker {
                worker.cancel();
            }
        }
        let mut watched = locked(&self.watched);
        if let Some(sender) = watched.get(&job.id) {
            sender.send_replace(job.version);
            if job.state.is_end() || sender.receiver_count() == 0 {
                watched.remove(&job.id);
            }
        }
    }

    pub(super) fn watch(&self, id: &JobId) -> Option<Watch> {
        let mut watched = locked(&self.watched);
        if !watched.contains_key(id) && watched.len() >= WATCHED_MAX {
            watched.retain(|_, sender| sender.receiver_count() > 0);
            if watched.len() >= WATCHED_MAX {
                return None;
            }
        }
        let sender = watched
            .entry(id.clone())
            .or_insert_with(|| watch::Sender::new(0));
        Some(Watch {
            versions: sender.subscribe(),
        })
    }
}
