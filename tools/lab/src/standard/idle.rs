//! What `durward run` costs while nothing happens: memory, and the time from its start to its first answer.

use super::workspace::{MockServer, RuleSet, StandardWorkspace};
use crate::driver::{self, ProtocolRevision, VariantConnection};
use crate::error::LabError;
use crate::stats::Interval;
use crate::variant::Variant;
use crate::{processes, wall_clock};
use serde::Serialize;
use std::time::Duration;

/// How long the process rests before its memory is read.
const REST: Duration = Duration::from_millis(500);
/// Calls before the rest, so that what is made lazily is there.
const CALLS: usize = 20;
/// Launches in which memory is read.
const MEMORY_LAUNCHES_MAX: u32 = 3;
const TIMEOUT_MS: u64 = 10_000;

/// Start and rest of the guarded file server.
#[derive(Debug, Serialize)]
pub(super) struct IdleFigures {
    /// From the spawn of `durward run` to its answer to `initialize`, in microseconds.
    pub(super) start_us: Interval,
    /// The same for the server by itself.
    pub(super) start_direct_us: Interval,
    /// Resident memory of the `durward run` process, the largest of all launches, in KiB.
    pub(super) resident_kib: u64,
    /// Resident memory of its helper processes (the watcher), shared pages counted again, in KiB.
    pub(super) helpers_kib: u64,
    pub(super) launches: usize,
}

/// Measures with `launches` fresh starts, in turns with the server by itself.
pub(super) fn measure(
    workspace: &StandardWorkspace,
    launches: u32,
    confidence: f64,
) -> Result<IdleFigures, LabError> {
    let direct = workspace.direct(MockServer::Files);
    let guarded = workspace.guard_server(MockServer::Files, RuleSet::Mixed(50))?;
    let question = workspace.read().question(ProtocolRevision::Legacy);
    let (mut starts, mut direct_starts) = (Vec::new(), Vec::new());
    let (mut resident_kib, mut helpers_kib) = (0, 0);
    for number in 0..launches {
        let (connection, start_us) = start(&direct)?;
        direct_starts.push(start_us);
        connection.close();
        let (mut connection, start_us) = start(&guarded)?;
        starts.push(start_us);
        // The memory of a few launches is enough.
        if number < MEMORY_LAUNCHES_MAX {
            for _ in 0..CALLS {
                connection.ask(&question)?;
            }
            let (own, helpers) = resting_memory(&connection);
            resident_kib = resident_kib.max(own);
            helpers_kib = helpers_kib.max(helpers);
        }
        connection.close();
    }
    Ok(IdleFigures {
        start_us: Interval::over_launches(&starts, confidence),
        start_direct_us: Interval::over_launches(&direct_starts, confidence),
        resident_kib,
        helpers_kib,
        launches: starts.len(),
    })
}

fn start(arm: &Variant) -> Result<(VariantConnection, f64), LabError> {
    let mut connection = VariantConnection::new(driver::spawn(arm, TIMEOUT_MS)?);
    let nanoseconds = connection.open(ProtocolRevision::Legacy)?;
    Ok((connection, nanoseconds as f64 / 1_000.0))
}

/// Memory of the variant's own process, and of all others of its tree but the server, in KiB.
fn resting_memory(connection: &VariantConnection) -> (u64, u64) {
    wall_clock::pause(REST);
    let pid = connection.process().pid();
    let (mut own, mut helpers) = (0, 0);
    for member in processes::tree(pid) {
        if member.pid == pid {
            own = member.resident_kib;
        } else if !processes::is_mock(&member.command) {
            helpers += member.resident_kib;
        }
    }
    (own, helpers)
}
