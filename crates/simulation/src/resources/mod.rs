//! Results as resources: `sim://results/…`, listed and read by their caller alone. Each is what a tool gives as well, so
//! that a client may hand a result on by its name.

mod uri;

use std::sync::Arc;

use serde_json::{Map, Value};
use toolkit::server::{
    Args, Body, Content, Contents, Failure, ReplySink, Resource, ResourceAnswer, ResourceAsked,
    ResourceFault, Template, ToolDef, read_arguments,
};

use crate::fault::{Fault, Kind};
use crate::results::{Kept, Place};
use crate::service::{Context, Service};
use crate::tools;
use uri::{Part, ResultUri};

/// Resources of one page of the list.
const PAGE: usize = 100;
/// Points of curves in one reading where its URI does not say how many series; as JSON within a text they stay below
/// what is sent at a time.
const POINTS_MAX: usize = 40_000;

const JSON: &str = "application/json";

/// The kinds of resources.
pub const TEMPLATES: &[Template] = &[
    Template {
        uri: "sim://results/{resultsId}{?outputs*,page,limit}",
        name: "result",
        title: "Result of a run",
        about: "The curves of a run, as get_results gives them, or the figures and chunks of a population, as \
            get_population_results does. Long results come in pages; next is the URI of the next one.",
        media_type: JSON,
    },
    Template {
        uri: "sim://results/{resultsId}/pk{?outputPath}",
        name: "parameters",
        title: "Pharmacokinetic parameters of a run",
        about: "Cmax, tmax and AUC of each output, as calculate_pk_parameters gives them.",
        media_type: JSON,
    },
    Template {
        uri: "sim://results/{resultsId}/plot{?outputs*}",
        name: "plot",
        title: "Curves of a run as a picture",
        about: "The picture that plot_results draws; outputs chooses curves by pattern.",
        media_type: "image/png",
    },
    Template {
        uri: "sim://results/{resultsId}/chunks/{chunkId}{?subjects*,outputs*}",
        name: "chunk",
        title: "Curves of some individuals",
        about: "A chunk of a population, as get_population_chunk gives it; subjects and outputs choose some of its curves.",
        media_type: JSON,
    },
];

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
            read(service, definitions, caller, uri).map(ResourceAnswer::Contents)
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

/// Reads one, by the tool that gives the same.
fn read(
    service: &Service,
    definitions: &[ToolDef],
    caller: &Arc<str>,
    mut uri: ResultUri,
) -> Result<Contents, ResourceFault> {
    let keeper = service.keeper().map_err(failed)?;
    let found = keeper.index.result(caller, &uri.results_id);
    let kept = found
        .map_err(|error| failed(error.into()))?
        .ok_or_else(|| {
            ResourceFault::Missing(format!("there are no results '{}'", uri.results_id))
        })?;
    let of_run = kept.population.is_null();
    let named = match &uri.part {
        Part::Whole if of_run => "get_results",
        Part::Whole if uri.query.is_empty() => "get_population_results",
        Part::Whole => {
            let wrong = "these are results of a population: read them without a query, and their curves chunk by chunk";
            return Err(ResourceFault::Unfit(wrong.to_owned()));
        }
        Part::Parameters => "calculate_pk_parameters",
        Part::Plot => "plot_results",
        Part::Chunk(_) => "get_population_chunk",
    };
    if named == "get_results" && !uri.query.contains_key("limit") {
        let first = kept.handles.first();
        let columns = first.map(|handle| keeper.columns(caller, handle));
        let rows = columns
            .transpose()
            .map_err(failed)?
            .map_or(1, |columns| columns.times.len());
        let limit = (POINTS_MAX / rows.max(1)).clamp(1, 10_000);
        uri.query.insert("limit".to_owned(), limit.into());
    }
    let result = tool(service, definitions, caller, named, &uri)?;
    match &uri.part {
        Part::Plot => picture(named, &result),
        _ => {
            let text = paged(result, &uri).to_string();
            Ok(Contents {
                media_type: JSON,
                body: Body::Text(text),
            })
        }
    }
}

/// What a tool gives for the members of a URI.
fn tool(
    service: &Service,
    definitions: &[ToolDef],
    caller: &Arc<str>,
    named: &str,
    uri: &ResultUri,
) -> Result<Value, ResourceFault> {
    let known = tools::tool(named).zip(definitions.iter().find(|known| known.name == named));
    let (tool, definition) = known.ok_or_else(|| {
        failed(Fault::new(
            Kind::InternalError,
            format!("there is no tool {named}"),
        ))
    })?;
    let mut asked = uri.query.clone();
    asked.insert("resultsId".to_owned(), uri.results_id.as_str().into());
    if let Part::Chunk(chunk) = &uri.part {
        asked.insert("chunkId".to_owned(), chunk.as_str().into());
    }
    let asked: Map<String, Value> =
        read_arguments(Some(&Value::Object(asked).to_string()), &definition.input)
            .map_err(|unfit| ResourceFault::Unfit(unfit.to_string()))?;
    let (reply, _) = ReplySink::new(false, toolkit::Cancel::default());
    let context = Context::new(service, caller, reply);
    (tool.run)(&context, Args::new(&asked)).map_err(failed)
}

/// A page with the URI of the next one, where there is one.
fn paged(mut result: Value, uri: &ResultUri) -> Value {
    let count = |name: &str| result.get(name).and_then(Value::as_u64);
    if let (Some(page), Some(limit), Some(total)) = (count("page"), count("limit"), count("total"))
        && page.saturating_mul(limit) < total
    {
        let mut next = uri.clone();
        next.query.insert("page".to_owned(), (page + 1).into());
        next.query.insert("limit".to_owned(), limit.into());
        if let Some(members) = result.as_object_mut() {
            members.insert("next".to_owned(), next.written().into());
        }
    }
    result
}

fn picture(named: &str, result: &Value) -> Result<Contents, ResourceFault> {
    let shown = tools::tool(named).and_then(|tool| tool.shown);
    let content = shown.map(|shown| shown(result)).transpose();
    let content = content.map_err(failed)?.unwrap_or_default();
    let image = content.into_iter().find_map(|one| match one {
        Content::Image { base64, media_type } => Some(Contents {
            media_type,
            body: Body::Base64(base64),
        }),
        _ => None,
    });
    image.ok_or_else(|| failed(Fault::new(Kind::InternalError, "no picture was drawn")))
}

fn failed(fault: Fault) -> ResourceFault {
    match fault.kind {
        Kind::NotFound => ResourceFault::Missing(fault.message),
        Kind::InvalidInput => ResourceFault::Unfit(fault.message),
        _ => ResourceFault::Failed(Failure::from(fault)),
    }
}
