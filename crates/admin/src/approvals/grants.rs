//! Calls that are allowed for a while: list and forget them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::control::Request;
use crate::control::client::{self, Found, NoAnswer};
use crate::error::AdminError;

/// A call that is allowed for a while, as its instance describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct GrantedCall {
    /// Control socket of the instance.
    pub socket: PathBuf,
    /// Id of the question that was answered.
    pub id: String,
    /// Caller.
    pub subject_id: String,
    /// Server.
    pub backend_id: String,
    /// Method of the protocol.
    pub mcp_method: String,
    /// Tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// URI of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// First path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Arguments on one line, cut if they are long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Session to which the grant is limited; absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How long the grant still holds, in milliseconds.
    pub remaining_ms: u64,
    /// Who allowed it, where and when, by which rule, and members of a later version.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// Grants of running instances of this user.
#[derive(Debug, Default)]
pub struct GrantList {
    /// The one that ends first first, within an instance.
    pub grants: Vec<GrantedCall>,
    /// How many instances run.
    pub instances: usize,
    /// Sentences about instances that could not be asked.
    pub warnings: Vec<String>,
}

/// Returns the grants in the instances of these runtime directories.
#[must_use]
pub fn list_grants(runtime: &[PathBuf]) -> GrantList {
    read_grants(&mut client::instances(runtime))
}

fn read_grants(found: &mut Found) -> GrantList {
    let mut list = GrantList {
        instances: found.instances.len(),
        warnings: std::mem::take(&mut found.warnings),
        ..GrantList::default()
    };
    for instance in &mut found.instances {
        let socket = instance.socket.clone();
        let grants = &mut list.grants;
        let asked = instance.ask(&Request::Grants, |item| {
            if let Ok(grant) = serde_json::from_value::<GrantedCall>(item) {
                grants.push(GrantedCall {
                    socket: socket.clone(),
                    ..grant
                });
            }
        });
        if let Err(error) = asked {
            list.warnings.push(format!("{}: {error}", socket.display()));
        }
    }
    list
}

/// Which grants are ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantSelection {
    /// The one with this id, or beginning of an id.
    Id(String),
    /// All of every instance.
    All,
}

/// Grants that were ended.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ForgottenGrants {
    /// Number of grants.
    pub forgotten: u64,
}

/// Result of ending grants.
#[derive(Debug)]
pub struct ForgetReport {
    /// How many were ended, or why none was.
    pub outcome: Result<ForgottenGrants, AdminError>,
    /// Sentences about instances that could not be asked.
    pub warnings: Vec<String>,
}

/// Ends grants: the next call of the same kind asks a person again.
#[must_use]
pub fn forget_grants(runtime: &[PathBuf], selection: &GrantSelection) -> ForgetReport {
    let mut found = client::instances(runtime);
    let list = read_grants(&mut found);
    let mut warnings = list.warnings;
    let holder = match selection {
        GrantSelection::All => None,
        GrantSelection::Id(id) => {
            let mut fitting: Vec<&GrantedCall> = list
                .grants
                .iter()
                .filter(|grant| grant.id.starts_with(id.as_str()))
                .collect();
            fitting.dedup_by(|a, b| (&a.socket, &a.id) == (&b.socket, &b.id));
            match fitting.as_slice() {
                [] => {
                    let outcome = Err(AdminError::NoGrant(id.clone()));
                    return ForgetReport { outcome, warnings };
                }
                [grant] => Some((grant.socket.clone(), grant.id.clone())),
                several => {
                    let ids = several.iter().map(|grant| grant.id.clone()).collect();
                    let outcome = Err(AdminError::AmbiguousGrant(ids));
                    return ForgetReport { outcome, warnings };
                }
            }
        }
    };
    let request = Request::Forget {
        id: holder.as_ref().map(|(_, id)| id.clone()),
    };
    let mut forgotten = 0_u64;
    let mut refusal = None;
    for instance in &mut found.instances {
        let socket = &instance.socket;
        if holder.as_ref().is_some_and(|(holder, _)| holder != socket) {
            continue;
        }
        let name = socket.display().to_string();
        match instance.ask(&request, |_| {}) {
            Ok(reply) => {
                let reply = serde_json::from_value::<ForgottenGrants>(reply);
                forgotten = forgotten.saturating_add(reply.unwrap_or_default().forgotten);
            }
            Err(NoAnswer::Refused { label, message }) => {
                refusal = Some(AdminError::Refused { label, message });
            }
            Err(NoAnswer::Io(error)) => warnings.push(format!("{name}: {error}")),
        }
    }
    let outcome = match refusal {
        Some(error) => Err(error),
        None => Ok(ForgottenGrants { forgotten }),
    };
    ForgetReport { outcome, warnings }
}
