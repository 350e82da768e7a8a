//! What is told of results.

use pbpk::path::Pattern;
use pbpk::pk::{Curve, Dosing, analyse};
use serde_json::{Map, Value, json};
use toolkit::server::Args;

use super::page::Page;
use crate::fault::{Fault, Kind};
use crate::jobs::Keeper;
use crate::population::{Chunk, Cohort};
use crate::results::{Columns, Kept, metrics, number, series};
use crate::service::Context;
use crate::session::unit;
use crate::{BACKEND, CONTRACT};

/// Most series of one answer where nobody says how many.
const SERIES_MAX: u64 = 10_000;

fn kept(context: &Context<'_>, keeper: &Keeper, args: Args<'_>) -> Result<Kept, Fault> {
    let id = args.text("resultsId")?;
    let found = keeper.index.result(context.caller, id)?;
    found.ok_or_else(|| Fault::new(Kind::NotFound, format!("there are no results '{id}'")))
}

/// The numbers of a single run.
fn columns(context: &Context<'_>, keeper: &Keeper, kept: &Kept) -> Result<Columns, Fault> {
    match kept.handles.as_slice() {
        [handle] if kept.population.is_null() => keeper.columns(context.caller, handle),
        _ => Err(Fault::input(
            "resultsId",
            "these are results of a population; read them with get_population_results",
        )),
    }
}

pub(super) fn get(context: &Context<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept = kept(context, &keeper, args)?;
    let columns = columns(context, &keeper, &kept)?;
    let patterns: Vec<Pattern> = {
        let asked = args
            .get("outputs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        asked
            .filter_map(Value::as_str)
            .map(|text| Pattern::new(text, '|'))
            .collect()
    };
    let chosen = columns.columns.iter().enumerate().filter(|(_, column)| {
        patterns.is_empty()
            || patterns
                .iter()
                .any(|pattern| pattern.matches(&column.parameter))
    });
    let chosen: Vec<usize> = chosen.map(|(at, _)| at).collect();
    let page = Page::of(args, SERIES_MAX);
    let total = chosen.len();
    let shown = page.of_list(chosen);
    let told: Vec<Value> = shown.iter().map(|at| series(&columns, *at)).collect();
    let mut metadata = kept.metadata.clone();
    if let Some(members) = metadata.as_object_mut() {
        members.insert("backend".into(), BACKEND.into());
    }
    let mut answer = json!({
        "tool": "get_results", "contractVersion": CONTRACT, "resultsId": kept.results_id,
        "simulationId": kept.simulation_id, "backend": BACKEND,
        "generatedAt": gate::journal::format_utc(kept.generated_ms),
        "metadata": metadata, "series": told,
    });
    if page.was_asked() || total > shown.len() {
        page.tell(&mut answer, total);
    }
    Ok(answer)
}

pub(super) fn pk(context: &Context<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept =
        kept(context, &keeper, args).map_err(|fault| Fault::input("resultsId", fault.message))?;
    let columns = columns(context, &keeper, &kept)?;
    let wanted = args.text("outputPath").ok();
    let catalogue = args.is_set("catalogue");
    let mut told = Vec::new();
    for (at, column) in columns.columns.iter().enumerate() {
        if wanted.is_some_and(|wanted| wanted != column.parameter) {
            continue;
        }
        let [cmax, tmax, auc] = metrics(&columns.times, columns.column(at));
        let mut one = json!({
            "parameter": column.parameter, "unit": unit(&column.unit),
            "cmax": number(cmax), "tmax": number(tmax), "auc": number(auc),
        });
        if catalogue && let Some(members) = one.as_object_mut() {
            members.insert("catalogue".into(), all(&columns.times, columns.column(at)));
        }
        told.push(one);
    }
    if let (Some(wanted), true) = (wanted, told.is_empty()) {
        let wrong = format!("the results have no output '{wanted}'");
        let paths = columns
            .columns
            .iter()
            .map(|column| column.parameter.as_str());
        let near = pbpk::path::nearest(wanted, paths, 3);
        let fault = Fault::input("resultsId", wrong);
        return Err(match near.is_empty() {
            true => fault,
            false => fault.hint(format!("did you mean {}?", near.join(" or "))),
        });
    }
    Ok(json!({"resultsId": kept.results_id, "simulationId": kept.simulation_id, "metrics": told}))
}

/// Every parameter of the catalogue, in base units; what needs a dose is null.
fn all(times: &[f64], values: &[f64]) -> Value {
    let Ok(curve) = Curve::new(times, values) else {
        return json!({});
    };
    let found = analyse(curve, &Dosing::default());
    let named = found
        .values
        .iter()
        .map(|one| (one.parameter.name.to_owned(), number(one.value)));
    Value::Object(named.collect::<Map<_, _>>())
}

pub(super) fn population(context: &Context<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept = kept(context, &keeper, args)?;
    let damaged = || Fault::new(Kind::InternalError, "the kept result cannot be read");
    let read = |name: &str| kept.population.get(name).cloned();
    let Some(cohort) = read("cohort") else {
        let wrong = "these are results of a single run; read them with get_results";
        return Err(Fault::input("resultsId", wrong));
    };
    let cohort: Cohort = serde_json::from_value(cohort).map_err(|_| damaged())?;
    let chunks: Vec<Chunk> =
        serde_json::from_value(read("chunks").unwrap_or_default()).map_err(|_| damaged())?;
    let mut metadata = json!({
        "outputs": {"time_series": cohort.time_series, "aggregates": cohort.aggregates},
    });
    if let (Some(members), Some(asked)) = (metadata.as_object_mut(), cohort.metadata.as_object()) {
        members.extend(asked.clone());
    }
    let told: Vec<Value> = chunks
        .iter()
        .map(|chunk| chunk.told(&kept.results_id))
        .collect();
    Ok(json!({
        "resultsId": kept.results_id,
        "simulationId": kept.simulation_id,
        "generatedAt": gate::journal::format_utc(kept.generated_ms),
        "cohort": {
            "size": cohort.size, "sampling": cohort.sampling, "seed": cohort.seed,
            "covariates": cohort.covariates,
        },
        "aggregates": read("aggregates"),
        "chunks": told,
        "metadata": metadata,
    }))
}
