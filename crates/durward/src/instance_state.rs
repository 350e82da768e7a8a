//! What a running instance reports of itself beside its calls: its latest reload, the verification of its
//! journal, and its certificates.

use admin::status::InstanceStatus;
use toolkit::measure::{Measure, Measured};

use crate::certificates::Certificates;
use crate::journal_check::JournalCheck;
use crate::reload::ReloadState;

/// State of one set of rules in an instance, shared by `status`, `/health` and `/metrics`.
#[derive(Debug, Clone)]
pub struct InstanceState {
    pub reloads: ReloadState,
    pub journal: JournalCheck,
    pub certificates: Certificates,
}

impl InstanceState {
    /// Returns why an operator has to act although calls are forwarded; `None` if nothing is wrong. Names no path: everybody
    /// may ask for the health.
    pub fn detail(&self) -> Option<&'static str> {
        if self.journal.finding().is_some() {
            return Some("a closed segment of the journal was changed; durward status says which");
        }
        if self.certificates.has_ended() {
            return Some("a certificate has expired; durward status says which");
        }
        let failure = self.reloads.status();
        failure.failure().map(|_| {
            "the latest reload failed; the earlier rules and settings are in force; durward status says why"
        })
    }

    /// Adds the latest reload, the verification of the journal and the certificates to the status of an instance.
    pub fn add_to(&self, status: &mut InstanceStatus) {
        status.last_reload = self.reloads.status().outcome();
        status.journal_verified = self.journal.verified();
        status.certificates = self.certificates.statuses();
    }
}

/// Returns the measures of all sets of rules, each the worst of them.
pub fn measures(states: &[InstanceState]) -> Vec<Measure> {
    let reloads: Vec<_> = states.iter().map(|state| state.reloads.status()).collect();
    let Some(succeeded_ms) = reloads.iter().map(|status| status.succeeded_ms).min() else {
        return Vec::new();
    };
    let is_reloaded = reloads.iter().all(|status| status.failure().is_none());
    let is_altered = states.iter().any(|state| state.journal.finding().is_some());
    let level = |name, about, value| Measure::new(name, about, &[], Measured::Level(value));
    let mut measures = vec![
        level(
            "durward_config_last_reload_successful",
            "1 if the latest reload of configuration and rules succeeded or there was none, else 0",
            u64::from(is_reloaded),
        ),
        level(
            "durward_config_last_reload_success_timestamp_seconds",
            "When configuration and rules were last taken up, the start included, in seconds since 1970",
            u64::try_from(succeeded_ms / 1_000).unwrap_or(0),
        ),
        level(
            "durward_journal_altered",
            "1 if a closed segment of the journal is not as it was written, else 0",
            u64::from(is_altered),
        ),
    ];
    // All sets of rules of an instance have the same.
    let certificates = states.first().map(|state| state.certificates.measures());
    measures.extend(certificates.into_iter().flatten());
    measures
}
