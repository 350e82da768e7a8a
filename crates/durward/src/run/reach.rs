//! Starting or reaching the server.

use std::sync::Arc;
use std::time::Duration;

use gate::Gate;
use mcp::frames::{Failure as Fault, UpstreamFault};
use mcp::upstream::http::{HttpSession, HttpUpstream, Link};
use mcp::upstream::{ServerCommand, Upstream};

use super::Failure;
use super::plan::{Command, Means, Plan};
use crate::places::{self, Places};

/// How long is waited before the second and the third try to reach a server, in milliseconds.
const RETRY_WAITS_MS: [u64; 2] = [2_000, 4_000];

/// Starts or reaches the server of the plan.
pub(super) async fn reach(
    plan: &Plan,
    gate: &Arc<Gate>,
    places: &Places,
    err: &mut dyn std::io::Write,
) -> Result<Upstream, Failure> {
    match &plan.server {
        Means::Command(command) => start(command, plan, places),
        Means::Http(reached) => Ok(linked(&reached.upstream, gate)),
        Means::Either(reached, command) => {
            let upstream = &reached.upstream;
            match probe(upstream, gate).await {
                Ok(()) => {
                    let _ = writeln!(
                        err,
                        "durward: the server is reached at {}",
                        upstream.place()
                    );
                    Ok(linked(upstream, gate))
                }
                Err(fault) if may_fall_back(fault.fault) => {
                    let _ = writeln!(
                        err,
                        "durward: no server at {} ({}); starting {}",
                        upstream.place(),
                        told(&fault),
                        command.program.to_string_lossy()
                    );
                    start(command, plan, places)
                }
                Err(fault) => Err(Failure::other(format!(
                    "the server at {} is there, but cannot be used: {}\n  hint: --transport stdio starts the command instead",
                    upstream.place(),
                    told(&fault)
                ))),
            }
        }
    }
}

fn start(command: &Command, plan: &Plan, places: &Places) -> Result<Upstream, Failure> {
    let server = ServerCommand {
        program: command.program.clone(),
        args: command.arguments.clone(),
        environment: net::environment::for_child(places::environment(), &command.environment),
        directory: command.directory.clone(),
        watcher: places.own_binary.clone(),
    };
    Upstream::start(&server, &plan.name).map_err(|e| {
        Failure::other(format!(
            "cannot start {}: {e}",
            command.program.to_string_lossy()
        ))
    })
}

fn linked(upstream: &Arc<HttpUpstream>, gate: &Arc<Gate>) -> Upstream {
    let session = HttpSession::new(Arc::clone(upstream), Arc::clone(gate));
    Upstream::over_http(Link::new(Arc::new(session)))
}

async fn probe(upstream: &Arc<HttpUpstream>, gate: &Arc<Gate>) -> Result<(), Fault> {
    let mut outcome = upstream.probe(gate).await;
    for wait_ms in RETRY_WAITS_MS {
        match &outcome {
            Err(fault) if may_fall_back(fault.fault) => {
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                outcome = upstream.probe(gate).await;
            }
            _ => break,
        }
    }
    outcome
}

/// Whether nobody seems to be there. A server that is there but refuses us, or cannot prove who it
/// is, is a mistake to be told of, not to be passed over by starting another server.
fn may_fall_back(fault: UpstreamFault) -> bool {
    match fault {
        UpstreamFault::Unreachable
        | UpstreamFault::Timeout
        | UpstreamFault::Broken
        | UpstreamFault::Died
        | UpstreamFault::NoAnswer
        | UpstreamFault::Busy => true,
        UpstreamFault::Garbage
        | UpstreamFault::Oversize
        | UpstreamFault::TooLarge
        | UpstreamFault::NoPlace
        | UpstreamFault::Tls
        | UpstreamFault::Unauthorized
        | UpstreamFault::Overloaded
        | UpstreamFault::HttpStatus
        | UpstreamFault::Redirected
        | UpstreamFault::UnfitReply
        | UpstreamFault::SessionLost
        | UpstreamFault::EraMismatch => false,
    }
}

fn told(fault: &Fault) -> String {
    match &fault.detail {
        Some(detail) => detail.clone(),
        None => fault.fault.sentence().to_owned(),
    }
}
