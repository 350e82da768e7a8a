//! Prints a schema of the data of an operation: `schemas NAME`.

use std::io::{self, Write as _};

use schemars::{Schema, schema_for};

/// Version of the schemas: it changes when a member disappears or gets another meaning.
const VERSION: u32 = 1;

fn schema(name: &str) -> Option<Schema> {
    Some(match name {
        "calls" => schema_for!(admin::calls::CallPage),
        "call-kinds" => schema_for!(Vec<admin::calls::KindCount>),
        "approval" => schema_for!(admin::approvals::WaitingCall),
        "approval-answer" => schema_for!(admin::approvals::AnsweredCall),
        "approval-event" => schema_for!(admin::approvals::InstanceEvent),
        "status" => schema_for!(admin::status::InstallationStatus),
        "segments" => schema_for!(admin::journal::SegmentPage),
        "witness" => schema_for!(admin::journal::WitnessState),
        "key" => schema_for!(admin::keys::KeyEntry),
        "issued-key" => schema_for!(admin::keys::IssuedKey),
        "caller" => schema_for!(admin::keys::CallerEntry),
        "group" => schema_for!(admin::keys::GroupEntry),
        "pins" => schema_for!(admin::pins::PinnedServers),
        "pin-changes" => schema_for!(admin::pins::WaitingDefinitions),
        "pin-classes" => schema_for!(admin::pins::ProposedClasses),
        "reload" => schema_for!(Vec<admin::reload::InstanceReload>),
        "model-route" => schema_for!(admin::models::ModelRoute),
        "resting-key" => schema_for!(admin::models::InstanceRestingKey),
        "limits" => schema_for!(admin::limits::LimitsEntry),
        "server" => schema_for!(admin::servers::ServerEntry),
        "archived-server" => schema_for!(admin::servers::ArchivedServer),
        "restored-server" => schema_for!(admin::servers::RestoredServer),
        "server-tools" => schema_for!(admin::tools::ServerTools),
        "grant" => schema_for!(admin::approvals::GrantedCall),
        "policy-rules" => schema_for!(admin::policy::PolicyRules),
        "policy-check" => schema_for!(admin::policy::PolicyCheck),
        "policy-version" => schema_for!(admin::policy::PolicyVersion),
        "explanation" => schema_for!(admin::policy::Explanation),
        "policy-case" => schema_for!(admin::policy::CaseReport),
        "replay-difference" => schema_for!(admin::policy::ReplayDifference),
        "replay-summary" => schema_for!(admin::policy::ReplaySummary),
        "spend" => schema_for!(admin::spend::SpendReport),
        _ => return None,
    })
}

fn main() -> io::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(mut schema) = schema(&name) else {
        return Err(io::Error::other(format!("no schema is named \"{name}\"")));
    };
    schema.insert("version".to_owned(), VERSION.into());
    writeln!(io::stdout(), "{:#}", schema.to_value())
}
