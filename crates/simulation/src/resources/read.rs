//! Reading one resource, by the tool that gives the same.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolkit::server::{
    Args, Body, Content, Contents, ReplySink, ResourceFault, ToolDef, read_arguments,
};

use super::uri::{ResultUri, UriPart};
use super::{JSON, resource_fault};
use crate::fault::{Fault, Kind};
use crate::service::{CallContext, SimulationService};
use crate::tools;

/// Points of curves in one reading if its URI does not limit the series; as JSON within a text they stay below the
/// limit of a message.
const POINTS_MAX: usize = 40_000;

/// Reads one.
///
/// # Errors
/// [`ResourceFault`].
pub(super) fn read(
    service: &SimulationService,
    definitions: &[ToolDef],
    caller: &Arc<str>,
    mut uri: ResultUri,
) -> Result<Contents, ResourceFault> {
    let keeper = service.keeper().map_err(resource_fault)?;
    let found = keeper.index.result(caller, &uri.results_id);
    let kept = found
        .map_err(|error| resource_fault(error.into()))?
        .ok_or_else(|| {
            ResourceFault::Missing(format!("there are no results '{}'", uri.results_id))
        })?;
    let of_run = kept.population.is_null();
    let named = match &uri.part {
        UriPart::Whole if of_run => "get_results",
        UriPart::Whole if uri.query.is_empty() => "get_population_results",
        UriPart::Whole => {
            let wrong = "these are results of a population: read them without a query, and their curves chunk by chunk";
            return Err(ResourceFault::Unfit(wrong.to_owned()));
        }
        UriPart::Parameters => "calculate_pk_parameters",
        UriPart::Plot => "plot_results",
        UriPart::Chunk(_) => "get_population_chunk",
    };
    if named == "get_results" && !uri.query.contains_key("limit") {
        let first = kept.handles.first();
        let columns = first.map(|handle| keeper.columns(caller, handle));
        let rows = columns
            .transpose()
            .map_err(resource_fault)?
            .map_or(1, |columns| columns.times.len());
        let limit = (POINTS_MAX / rows.max(1)).clamp(1, 10_000);
        uri.query.insert("limit".to_owned(), limit.into());
    }
    let result = tool(service, definitions, caller, named, &uri)?;
    match &uri.part {
        UriPart::Plot => picture(named, &result),
        _ => {
            let text = paged(result, &uri).to_string();
            Ok(Contents {
                media_type: JSON,
                body: Body::Text(text),
            })
        }
    }
}

/// Calls a tool with the members of a URI.
fn tool(
    service: &SimulationService,
    definitions: &[ToolDef],
    caller: &Arc<str>,
    named: &str,
    uri: &ResultUri,
) -> Result<Value, ResourceFault> {
    let known = tools::tool(named).zip(definitions.iter().find(|known| known.name == named));
    let (tool, definition) = known.ok_or_else(|| {
        resource_fault(Fault::new(
            Kind::InternalError,
            format!("there is no tool {named}"),
        ))
    })?;
    let mut asked = uri.query.clone();
    asked.insert("resultsId".to_owned(), uri.results_id.as_str().into());
    if let UriPart::Chunk(chunk) = &uri.part {
        asked.insert("chunkId".to_owned(), chunk.as_str().into());
    }
    let asked: Map<String, Value> =
        read_arguments(Some(&Value::Object(asked).to_string()), &definition.input)
            .map_err(|unfit| ResourceFault::Unfit(unfit.to_string()))?;
    let (reply, _) = ReplySink::new(false, toolkit::Cancel::default());
    let context = CallContext::new(service, caller, reply);
    (tool.run)(&context, Args::new(&asked)).map_err(resource_fault)
}

/// Returns a page with the URI of the next one, if there is one.
fn paged(mut result: Value, uri: &ResultUri) -> Value {
    let count = |name: &str| result.get(name).and_then(Value::as_u64);
    if let (Some(page), Some(limit), Some(total)) = (count("page"), count("limit"), count("total"))
        && page.saturating_mul(limit) < total
    {
        let mut next = uri.clone();
        next.query.insert("page".to_owned(), (page + 1).into());
        next.query.insert("limit".to_owned(), limit.into());
        if let Some(members) = result.as_object_mut() {
            members.insert("next".to_owned(), next.to_text().into());
        }
    }
    result
}

fn picture(named: &str, result: &Value) -> Result<Contents, ResourceFault> {
    let shown = tools::tool(named).and_then(|tool| tool.shown);
    let content = shown.map(|shown| shown(result)).transpose();
    let content = content.map_err(resource_fault)?.unwrap_or_default();
    let image = content.into_iter().find_map(|one| match one {
        Content::Image { base64, media_type } => Some(Contents {
            media_type,
            body: Body::Base64(base64),
        }),
        _ => None,
    });
    image.ok_or_else(|| resource_fault(Fault::new(Kind::InternalError, "no picture was drawn")))
}
