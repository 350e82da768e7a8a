//! State of an installation: its journal, its keys, and the instances that run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use gate::journal::CHECKPOINT_PUBLIC_FILE;

use crate::control::Request;
use crate::control::client::{self, NoAnswer};
use crate::error::AdminError;
use crate::journal::{self, SegmentFile};
use crate::state_paths::StatePaths;

/// Scope of a status, and facts that the caller knows.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusQuery {
    /// Includes instances of other state directories.
    pub all: bool,
    /// Bytes to which the journal is bounded.
    pub retain_bytes: Option<u64>,
    /// Free bytes of the journal's disk, if the system reports them.
    pub free_bytes: Option<u64>,
    /// Free bytes below which the disk counts as low.
    pub warn_below_bytes: u64,
}

/// State of an installation.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct InstallationStatus {
    /// Version of the program that reports.
    pub version: String,
    /// Directory of journal, keys and pins.
    pub state_dir: String,
    /// Directory of the configuration.
    pub config_dir: String,
    /// The journal.
    pub journal: JournalStatus,
    /// Whether the journal has a signing key.
    pub keys: bool,
    /// Number of instances that write the journal.
    pub running: usize,
    /// Segments that are not closed: of running instances, and of instances that were killed.
    pub open_segments: Vec<SegmentFile>,
    /// Instances that answered on their control sockets.
    pub instances: Vec<RunningInstance>,
    /// Number of instances of other state directories, which are left out.
    pub instances_elsewhere: usize,
    /// Sentences about what could not be read.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// The journal of an installation.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct JournalStatus {
    /// Its directory.
    pub dir: String,
    /// Number of segments.
    pub segments: usize,
    /// Their size, in bytes.
    pub size_bytes: u64,
    /// Size at which the oldest segments are removed, in bytes; null: they stay.
    pub retain_bytes: Option<u64>,
    /// Free bytes of its disk; null if the system does not report them.
    pub free_bytes: Option<u64>,
    /// Whether the operator is warned of a full disk.
    pub is_low: bool,
    /// The latest record; null if there is none.
    pub last_record: Option<Value>,
}

/// A running instance, and its control socket.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RunningInstance {
    /// Control socket.
    pub socket: String,
    /// Report of the instance about itself.
    #[serde(flatten)]
    pub status: InstanceStatus,
}

/// Report of a running instance about itself. Members that a later version adds are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct InstanceStatus {
    /// The guarded server, or the servers of `durward serve`.
    pub server: Option<String>,
    /// Directory of its state; an instance of an early version does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<String>,
    /// Process id.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// When it started, UTC.
    pub since: String,
    /// Version of the policy in force, `v1` at the start.
    pub policy_version: Option<String>,
    /// Digest of the policy in force.
    pub policy_digest: String,
    /// Number of calls that wait for a person.
    pub approvals_waiting: u64,
    /// Number of grants.
    pub approvals_remembered: u64,
    /// Whether calls are forwarded and no operator has to act.
    pub healthy: bool,
    /// Members that `durward serve` adds; null for `durward run`.
    pub serving: Option<ServingStatus>,
    /// The latest reload; null before the first.
    pub last_reload: Option<ReloadOutcome>,
    /// How far closed segments are verified; null if they are not.
    pub journal_verified: Option<VerificationProgress>,
    /// Certificates that the instance shows.
    pub certificates: Vec<CertificateStatus>,
    /// Members of a later version.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// Further report of an instance of `durward serve`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ServingStatus {
    /// Address of its clients.
    pub address: Option<String>,
    /// Number of sessions.
    pub sessions: usize,
    /// Number of server processes.
    pub processes: usize,
    /// Keys of model providers that rest.
    pub resting_keys: Vec<RestingKey>,
}

/// A key of a model provider that rests after a failure. Names its place in the configuration, never the key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RestingKey {
    /// The provider.
    pub provider: Option<String>,
    /// Number of the key among the provider's keys, from 1.
    pub key: usize,
    /// The model that it rests for; null: all.
    pub model: Option<String>,
    /// Label of the reason.
    pub reason: Option<String>,
    /// How long it still rests, in seconds.
    pub left_s: u64,
}

/// The latest reload of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ReloadOutcome {
    /// When, UTC.
    pub at: Option<String>,
    /// Label of the request for it.
    pub change: String,
    /// Whether what the files say is in force.
    pub successful: bool,
    /// Why not.
    pub message: Option<String>,
}

/// How far an instance has verified closed segments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct VerificationProgress {
    /// Whether all are verified.
    pub complete: bool,
    /// Number of verified segments.
    pub segments: u64,
    /// Their size, in bytes.
    pub size_bytes: u64,
    /// Time of the oldest verified segment, UTC.
    pub back_to: Option<String>,
    /// When the latest was verified, UTC.
    pub at: Option<String>,
    /// The first finding, if the journal was changed.
    pub finding: Option<String>,
}

/// A certificate that an instance shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CertificateStatus {
    /// Key of the configuration that names it.
    pub name: String,
    /// Its file.
    pub file: String,
    /// When it ends, UTC.
    pub not_after: String,
    /// A sentence if that is near.
    pub warning: Option<String>,
}

/// Returns the state of an installation. Takes no lock that a starting instance needs.
///
/// # Errors
/// A journal directory that cannot be read.
pub fn read_status(
    paths: &StatePaths,
    query: &StatusQuery,
) -> Result<InstallationStatus, AdminError> {
    let directory = paths.journal();
    let summary = journal::summarize(&directory)?;
    let asked = list_instances(paths, query.all);
    Ok(InstallationStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        state_dir: paths.state.display().to_string(),
        config_dir: paths.config.display().to_string(),
        running: summary.running(),
        journal: JournalStatus {
            dir: directory.display().to_string(),
            segments: summary.segments,
            size_bytes: summary.size_bytes,
            retain_bytes: query.retain_bytes,
            free_bytes: query.free_bytes,
            is_low: query
                .free_bytes
                .is_some_and(|free| free < query.warn_below_bytes),
            last_record: summary.last_record,
        },
        keys: paths.keys().join(CHECKPOINT_PUBLIC_FILE).is_file(),
        open_segments: summary.open,
        instances: asked.instances,
        instances_elsewhere: asked.elsewhere,
        warnings: asked.warnings,
    })
}

/// Running instances that answered.
#[derive(Debug, Default)]
pub struct RunningInstances {
    /// Sorted by socket.
    pub instances: Vec<RunningInstance>,
    /// Number of instances of other state directories, which are left out.
    pub elsewhere: usize,
    /// Sentences about instances that could not be asked.
    pub warnings: Vec<String>,
}

/// Asks each running instance of this user; leaves out those of another state directory unless `all` are asked for.
#[must_use]
pub fn list_instances(paths: &StatePaths, all: bool) -> RunningInstances {
    let mut found = client::instances(&paths.runtime);
    let mut out = RunningInstances {
        warnings: std::mem::take(&mut found.warnings),
        ..RunningInstances::default()
    };
    let own = paths.real_state().display().to_string();
    for instance in &mut found.instances {
        let socket = instance.socket.display().to_string();
        let asked = instance.ask(&Request::Status, |_| {});
        let asked = asked.and_then(|status| {
            serde_json::from_value::<InstanceStatus>(status)
                .map_err(|error| NoAnswer::Io(error.into()))
        });
        match asked {
            Ok(status) if !all && status.state_dir.as_ref().is_some_and(|dir| *dir != own) => {
                out.elsewhere += 1;
            }
            Ok(status) => out.instances.push(RunningInstance { socket, status }),
            Err(error) => out.warnings.push(format!("{socket}: {error}")),
        }
    }
    out
}
