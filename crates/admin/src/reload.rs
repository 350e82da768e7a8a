//! Reload of policy and configuration in running instances.

use serde::{Deserialize, Serialize};

use crate::control::client::{self, NoAnswer};
use crate::control::{Request, client::Instance};
use crate::error::AdminError;
use crate::status::InstanceStatus;

/// Policy that an instance has in force after a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PolicyInForce {
    /// Version of the policy.
    pub version: Option<String>,
    /// Digest of the policy.
    pub digest: Option<String>,
    /// Changed keys of the configuration that wait for a restart.
    pub needs_restart: Vec<String>,
}

/// Result of a reload of one instance.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct InstanceReload {
    /// The guarded server.
    pub server: String,
    /// Control socket.
    pub socket: String,
    /// Policy in force.
    #[serde(flatten)]
    pub outcome: ReloadAnswer,
}

/// Answer of one instance to a reload.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum ReloadAnswer {
    /// It has read its files again.
    InForce(PolicyInForce),
    /// It could not; the earlier rules and settings stay in force.
    Error(String),
}

/// Result of a reload.
#[derive(Debug)]
pub struct ReloadReport {
    /// One for each instance that was asked, or why none was.
    pub instances: Result<Vec<InstanceReload>, AdminError>,
    /// Sentences about instances that could not be asked.
    pub warnings: Vec<String>,
}

/// Asks each running instance of this user to reload, or those that guard a server.
#[must_use]
pub fn reload(runtime: &[std::path::PathBuf], server: Option<&str>) -> ReloadReport {
    let mut found = client::instances(runtime);
    let mut warnings = std::mem::take(&mut found.warnings);
    let mut instances = Vec::new();
    for instance in &mut found.instances {
        let socket = instance.socket.display().to_string();
        match server_of(instance) {
            Ok(name) if server.is_none_or(|wanted| wanted == name) => {
                let asked = instance.ask(&Request::Reload, |_| {});
                let outcome = match asked.map(serde_json::from_value) {
                    Ok(Ok(in_force)) => ReloadAnswer::InForce(in_force),
                    // It has reloaded; what it says of that is of another version.
                    Ok(Err(_)) => ReloadAnswer::InForce(PolicyInForce::default()),
                    Err(error) => ReloadAnswer::Error(error.to_string()),
                };
                instances.push(InstanceReload {
                    server: name,
                    socket,
                    outcome,
                });
            }
            Ok(_) => {}
            Err(error) => warnings.push(format!("{socket}: {error}")),
        }
    }
    let instances = match (instances.is_empty(), server) {
        (false, _) => Ok(instances),
        (true, Some(name)) => Err(AdminError::NoInstance(format!(
            "no running instance guards \"{name}\"; durward status tells which run"
        ))),
        (true, None) => Err(AdminError::NoInstance(
            "no running instance of this user was found; `durward status` lists what runs".into(),
        )),
    };
    ReloadReport {
        instances,
        warnings,
    }
}

fn server_of(instance: &mut Instance) -> Result<String, NoAnswer> {
    let status = instance.ask(&Request::Status, |_| {})?;
    let status: InstanceStatus =
        serde_json::from_value(status).map_err(|error| NoAnswer::Io(error.into()))?;
    Ok(status.server.unwrap_or_else(|| "?".to_owned()))
}
