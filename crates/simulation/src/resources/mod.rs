//! Results as resources: `sim://results/…`, listed and read by their caller alone. Each is what a tool gives as well,
//! so that a client may hand a result on by its name. `sim://audit/events` is not listed: it is for one group of
//! callers.

mod read;
mod templates;
mod uri;

use std::sync::Arc;

use toolkit::server::{
    Body, Contents, Failure, Resource, ResourceAnswer, ResourceAsked, ResourceCall, ResourceFault,
    ToolDef,
};

use crate::audit;
use crate::fault::{Fault, Kind};
use crate::results::{ListCursor, StoredResult};
use crate::service::SimulationService;
pub use templates::TEMPLATES;
use uri::ResultUri;

/// Resources of one page of the list.
const PAGE: usize = 100;
const JSON: &str = "application/json";

/// Answers a request about resources.
///
/// # Errors
/// [`ResourceFault`].
pub fn answer(
    service: &SimulationService,
    definitions: &[ToolDef],
    call: &ResourceCall,
) -> Result<ResourceAnswer, ResourceFault> {
    let caller = call.caller();
    match call.asked() {
        ResourceAsked::List { cursor } => list(service, caller, cursor.as_deref()),
        ResourceAsked::Read { uri } if audit::is_named(uri) => {
            events(service, call.is_of(audit::GROUP), uri).map(ResourceAnswer::Contents)
        }
        ResourceAsked::Read { uri } => {
            let uri = ResultUri::read(uri).map_err(ResourceFault::Unfit)?;
            read::read(service, definitions, caller, uri).map(ResourceAnswer::Contents)
        }
    }
}

/// Returns the events of this server's calls; callers outside of its group do not even learn of the URI.
fn events(
    service: &SimulationService,
    is_member: bool,
    uri: &str,
) -> Result<Contents, ResourceFault> {
    if !is_member {
        return Err(resource_fault(audit::forbidden()));
    }
    let asked = audit::EventQuery::read(uri).map_err(ResourceFault::Unfit)?;
    let told = service.events(&asked).map_err(resource_fault)?;
    Ok(Contents {
        media_type: JSON,
        body: Body::Text(told.to_string()),
    })
}

/// Returns the newest results first.
fn list(
    service: &SimulationService,
    caller: &Arc<str>,
    cursor: Option<&str>,
) -> Result<ResourceAnswer, ResourceFault> {
    let unknown = || {
        let wrong = "params.cursor was not issued here; begin again without one";
        ResourceFault::Unfit(wrong.to_owned())
    };
    let after = match cursor {
        Some(cursor) => Some(ListCursor::read(cursor).ok_or_else(unknown)?),
        None => None,
    };
    let keeper = service.keeper().map_err(resource_fault)?;
    let page = keeper
        .index
        .recent(caller, after, keeper.now_ms(), PAGE)
        .map_err(|error| resource_fault(error.into()))?;
    Ok(ResourceAnswer::Page {
        resources: page.results.iter().map(resource_of).collect(),
        next: page.next.map(|place| place.to_text()),
    })
}

fn resource_of(kept: &StoredResult) -> Resource {
    let kind = match kept.population.is_null() {
        true => "run",
        false => "population",
    };
    let made = gate::journal::format_utc(kept.generated_ms);
    Resource {
        uri: uri::of_result(&kept.results_id),
        name: kept.results_id.clone(),
        title: format!("{kind} of {} at {made}", kept.simulation_id),
        media_type: JSON,
    }
}

fn resource_fault(fault: Fault) -> ResourceFault {
    match fault.kind {
        Kind::NotFound => ResourceFault::Missing(fault.message),
        Kind::InvalidInput => ResourceFault::Unfit(fault.message),
        _ => ResourceFault::Failed(Failure::from(fault)),
    }
}
