//! The result of the latest reload: what `status`, `/health`, `/metrics` and approvers are shown of it.

use admin::status::ReloadOutcome;
use tokio::sync::watch;

use super::Change;
use crate::local;

/// Result of the latest reload of one set of rules, shared by those who report it.
#[derive(Debug, Clone)]
pub struct ReloadState(watch::Sender<ReloadStatus>);

/// What is known of reloads at one moment.
#[derive(Debug, Clone)]
pub struct ReloadStatus {
    /// When a configuration was last taken up, the start included; milliseconds since 1970.
    pub succeeded_ms: i64,
    /// The latest reload; absent before the first one.
    last: Option<LatestReload>,
}

/// The latest reload.
#[derive(Debug, Clone)]
struct LatestReload {
    at_ms: i64,
    change: Change,
    failure: Option<ReloadFailure>,
}

/// Why the latest reload changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadFailure {
    /// The sentence that the log has.
    pub message: String,
    /// Another set of rules reads the same file and announces the same failure.
    pub is_announced_elsewhere: bool,
}

impl ReloadState {
    /// Starts with the configuration that the process was started with.
    pub fn new() -> Self {
        let status = ReloadStatus {
            succeeded_ms: local::now_ms(),
            last: None,
        };
        Self(watch::Sender::new(status))
    }

    /// Returns what is known now.
    pub fn status(&self) -> ReloadStatus {
        self.0.borrow().clone()
    }

    /// Returns a receiver that resolves at each reload.
    pub fn subscribe(&self) -> watch::Receiver<ReloadStatus> {
        self.0.subscribe()
    }

    /// Records that what the files say is in force.
    pub(super) fn succeed(&self, change: Change) {
        let now = local::now_ms();
        self.0.send_replace(ReloadStatus {
            succeeded_ms: now,
            last: Some(LatestReload {
                at_ms: now,
                change,
                failure: None,
            }),
        });
    }

    /// Records that the files could not be used.
    pub(super) fn fail(&self, change: Change, failure: ReloadFailure) {
        self.0.send_modify(|status| {
            status.last = Some(LatestReload {
                at_ms: local::now_ms(),
                change,
                failure: Some(failure),
            });
        });
    }
}

impl ReloadStatus {
    /// Returns why the latest reload failed; `None` if it did not, or if there was none.
    pub fn failure(&self) -> Option<&ReloadFailure> {
        self.last.as_ref()?.failure.as_ref()
    }

    /// Returns the latest reload; `None` before the first.
    pub fn outcome(&self) -> Option<ReloadOutcome> {
        self.last.as_ref().map(|last| ReloadOutcome {
            at: Some(gate::journal::format_utc(last.at_ms)),
            change: last.change.label().to_owned(),
            successful: last.failure.is_none(),
            message: last.failure.as_ref().map(|failure| failure.message.clone()),
        })
    }
}
