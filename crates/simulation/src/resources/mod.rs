//! Results as resources: `sim://results/…`, listed and read by their caller alone. Each is what a tool gives as well, so
//! that a client may hand a result on by its name.

mod read;
mod templates;
mod uri;

use std::sync::Arc;

use toolkit::server::{Failure, Resource, ResourceAnswer, ResourceAsked, ResourceFault, ToolDef};

use crate::fault::{Fault, Kind};
use crate::results::{Kept, Place};
use crate::service::Service;
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
    service: &Service,
    definitions: &[ToolDef],
    caller: &Arc<str>,
    asked: &ResourceAsked,
) -> Result<ResourceAnswer, ResourceFault> {
    match asked {
        ResourceAsked::List { cursor } => list(service, caller, cursor.as_deref()),
        ResourceAsked::Read { uri } => {
            let uri = ResultUri::read(uri).map_err(ResourceFault::Unfit)?;
            read::read(service, definitions, caller, uri).map(ResourceAnswer::Contents)
        }
    }
}

/// The newest results first.
fn list(
    service: &Service,
    caller: &Arc<str>,
    cursor: Option<&str>,
) -> Result<ResourceAnswer, ResourceFault> {
    let unknown = || {
        let wrong = "params.cursor was not issued here; begin again without one";
        ResourceFault::Unfit(wrong.to_owned())
    };
    let after = match cursor {
        Some(cursor) => Some(Place::read(cursor).ok_or_else(unknown)?),
        None => None,
    };
    let keeper = service.keeper().map_err(failed)?;
    let page = keeper
        .index
        .recent(caller, after, keeper.now_ms(), PAGE)
        .map_err(|error| failed(error.into()))?;
    Ok(ResourceAnswer::Page {
        resources: page.results.iter().map(listed).collect(),
        next: page.next.map(|place| place.written()),
    })
}

fn listed(kept: &Kept) -> Resource {
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

fn failed(fault: Fault) -> ResourceFault {
    match fault.kind {
        Kind::NotFound => ResourceFault::Missing(fault.message),
        Kind::InvalidInput => ResourceFault::Unfit(fault.message),
        _ => ResourceFault::Failed(Failure::from(fault)),
    }
}
