//! Starting the server or reaching it: over HTTP first where both are given.

use std::sync::Arc;

use gate::{Gate, PeerId};
use mcp::upstream::Upstream;
use mcp::upstream::http::{HttpSession, HttpUpstream, Link};

use super::Failure;
use super::plan::Plan;
use crate::means::{Command, Means};
use crate::places::Places;

/// Starts or reaches the server of the plan.
pub(super) async fn reach(
    plan: &Plan,
    gate: &Arc<Gate>,
    places: &Places,
    err: &mut dyn std::io::Write,
) -> Result<Upstream, Failure> {
    match &plan.server {
        Means::Command(command) => start(command, plan, places),
        Means::Http(reached) => Ok(linked(&plan.name, &reached.upstream, gate)),
        Means::Either(reached, command) => {
            if reached.is_there(command, gate, err).await? {
                Ok(linked(&plan.name, &reached.upstream, gate))
            } else {
                start(command, plan, places)
            }
        }
    }
}

fn start(command: &Command, plan: &Plan, places: &Places) -> Result<Upstream, Failure> {
    Upstream::start(&command.spec(places, plan.policy.as_deref()), &plan.name).map_err(|e| {
        Failure::other(format!(
            "cannot start {}: {e}",
            command.program.to_string_lossy()
        ))
    })
}

fn linked(name: &str, upstream: &Arc<HttpUpstream>, gate: &Arc<Gate>) -> Upstream {
    let id = PeerId::server(name);
    let session = HttpSession::new(id, Arc::clone(upstream), Arc::clone(gate));
    Upstream::over_http(Link::new(Arc::new(session)))
}
