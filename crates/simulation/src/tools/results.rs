//! View of results for clients.

use std::borrow::Cow;

use pbpk::compile::Instance;
use pbpk::path::PathPattern;
use pbpk::pk::{Curve, Dosing, analyse_all};
use pbpk::watch::{Interrupt, Watch};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolkit::jobs::JobId;
use toolkit::server::Args;

use super::page::ListPage;
use crate::fault::{Fault, Kind};
use crate::figures::{number, unit};
use crate::jobs::{ResultKeeper, RunWork};
use crate::models::QuantitySelection;
use crate::population::{CohortRecord, PopulationChunk, failures};
use crate::results::{Columns, StoredResult, metrics, series};
use crate::service::CallContext;
use crate::session::apply;
use crate::{BACKEND, CONTRACT};

/// Default limit of series of one answer.
const SERIES_MAX: u64 = 10_000;

pub(super) fn find_result(
    context: &CallContext<'_>,
    keeper: &ResultKeeper,
    args: Args<'_>,
) -> Result<StoredResult, Fault> {
    let id = args.text("resultsId")?;
    let found = keeper.index.result(context.caller, id)?;
    found.ok_or_else(|| Fault::new(Kind::NotFound, format!("there are no results '{id}'")))
}

/// Returns the numbers of a single run.
pub(super) fn columns(
    context: &CallContext<'_>,
    keeper: &ResultKeeper,
    kept: &StoredResult,
) -> Result<Columns, Fault> {
    match kept.handles.as_slice() {
        [handle] if kept.population.is_null() => keeper.columns(context.caller, handle),
        _ => Err(Fault::input(
            "resultsId",
            "these are results of a population; read them with get_population_results",
        )),
    }
}

/// Returns the positions of the columns that the argument `outputs` chooses: all if it is absent.
pub(super) fn choose_columns(columns: &Columns, args: Args<'_>) -> Vec<usize> {
    let asked = args
        .get("outputs")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let patterns: Vec<PathPattern> = asked
        .filter_map(Value::as_str)
        .map(|text| PathPattern::new(text, '|'))
        .collect();
    let named = columns.columns.iter().enumerate().filter(|(_, column)| {
        patterns.is_empty()
            || patterns
                .iter()
                .any(|pattern| pattern.matches(&column.parameter))
    });
    named.map(|(at, _)| at).collect()
}

pub(super) fn get(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept = find_result(context, &keeper, args)?;
    let columns = columns(context, &keeper, &kept)?;
    let chosen = choose_columns(&columns, args);
    let page = ListPage::of(args, SERIES_MAX);
    let total = chosen.len();
    let shown = page.of_list(chosen);
    let told: Vec<Value> = shown.iter().map(|at| series(&columns, *at)).collect();
    let mut metadata = kept.metadata.clone();
    let engine = kept
        .metadata
        .pointer("/solver/engine")
        .and_then(Value::as_str)
        .unwrap_or(BACKEND);
    if let Some(members) = metadata.as_object_mut() {
        members.insert("backend".into(), engine.into());
    }
    let mut answer = json!({
        "tool": "get_results", "contractVersion": CONTRACT, "resultsId": kept.results_id,
        "simulationId": kept.simulation_id, "backend": engine,
        "generatedAt": gate::journal::format_utc(kept.generated_ms),
        "metadata": metadata, "series": told,
    });
    put_solver(&mut answer, &kept.metadata);
    if page.was_asked() || total > shown.len() {
        page.tell(&mut answer, total);
    }
    Ok(answer)
}

pub(super) fn pk(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept = find_result(context, &keeper, args)
        .map_err(|fault| Fault::input("resultsId", fault.message))?;
    let columns = columns(context, &keeper, &kept)?;
    let wanted = args.text("outputPath").ok();
    let dosing = match args.is_set("catalogue") {
        true => Some(dosing(context, &keeper, &kept)?),
        false => None,
    };
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
        if let (Some(dosing), Some(members)) = (&dosing, one.as_object_mut()) {
            let all = all(&columns.times, columns.column(at), dosing);
            members.insert("catalogue".into(), all);
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

/// Returns the applications of the model as it ran.
fn dosing(
    context: &CallContext<'_>,
    keeper: &ResultKeeper,
    kept: &StoredResult,
) -> Result<Dosing, Fault> {
    let cancel = &context.cancel;
    let ask = || cancel.is_cancelled().then_some(Interrupt::Cancelled);
    let watch = Watch::new(Some(&ask));
    let job = keeper.jobs.get(context.caller, &JobId::of(&kept.job_id))?;
    let work: RunWork = serde_json::from_value(job.request)
        .map_err(|_| Fault::new(Kind::InternalError, "the job of the result cannot be read"))?;
    let library = &context.service.library;
    let structure = library.open(&work.model, &QuantitySelection::File, &watch)?;
    let mut instance = Instance::with_watch(&structure, &watch)?;
    let changed = work.changed.iter();
    apply(
        &mut instance,
        changed.map(|(path, value)| (path.as_str(), *value)),
    )?;
    let quantities = structure.model().quantities.iter().zip(instance.values());
    let constants = quantities.map(|(quantity, value)| (quantity.path.as_str(), *value));
    Dosing::from_constants(constants)
        .map_err(|error| Fault::new(Kind::ModelInvalid, error.to_string()))
}

/// Returns every parameter of the catalogue that is defined for these applications, in base units.
fn all(times: &[f64], values: &[f64], dosing: &Dosing) -> Value {
    let Ok(curve) = Curve::new(times, values) else {
        return json!({});
    };
    let found = analyse_all(curve, dosing);
    let named = found
        .iter()
        .map(|one| (one.parameter.name.to_owned(), number(one.value)));
    Value::Object(named.collect::<Map<_, _>>())
}

pub(super) fn population(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept = find_result(context, &keeper, args)?;
    let damaged = || Fault::new(Kind::InternalError, "the kept result cannot be read");
    let read = |name: &str| kept.population.get(name).cloned();
    let Some(cohort) = read("cohort") else {
        let wrong = "these are results of a single run; read them with get_results";
        return Err(Fault::input("resultsId", wrong));
    };
    let cohort: CohortRecord = serde_json::from_value(cohort).map_err(|_| damaged())?;
    let chunks: Vec<PopulationChunk> =
        serde_json::from_value(read("chunks").unwrap_or_default()).map_err(|_| damaged())?;
    let mut metadata = json!({
        "outputs": {"time_series": cohort.time_series, "aggregates": cohort.aggregates},
    });
    if let (Some(members), Some(asked)) = (metadata.as_object_mut(), cohort.metadata.as_object()) {
        members.extend(asked.clone());
        let solver = kept.metadata.get("solver").cloned();
        members.extend(solver.map(|solver| ("solver".to_owned(), solver)));
        members.extend(failures(&chunks).map(|failures| ("failures".to_owned(), failures)));
    }
    let told: Vec<Value> = chunks
        .iter()
        .map(|chunk| chunk.to_value(&kept.results_id))
        .collect();
    let mut answer = json!({
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
    });
    put_solver(&mut answer, &kept.metadata);
    Ok(answer)
}

/// Adds to an answer the release of OSP that the run followed, and the run's warnings.
fn put_solver(answer: &mut Value, metadata: &Value) {
    let solver = |name: &str| metadata.get("solver")?.get(name).cloned();
    if let Some(members) = answer.as_object_mut() {
        for name in ["ospVersion", "warnings"] {
            members.extend(solver(name).map(|value| (name.to_owned(), value)));
        }
    }
}

/// Returns the chunk of a population that the arguments name, and how many individuals there are in all.
pub(crate) fn find_chunk(
    keeper: &ResultKeeper,
    caller: &str,
    results_id: &str,
    chunk_id: &str,
) -> Result<(PopulationChunk, u64), Fault> {
    let found = keeper
        .index
        .part_of_result(caller, results_id, |json| among(json, chunk_id))?;
    found.ok_or_else(|| {
        Fault::missing(
            "chunkId",
            format!("the results '{results_id}' have no chunk '{chunk_id}'"),
        )
    })
}

/// Returns a chunk in a result as it is kept, and how many individuals the population has. The others are not taken
/// apart.
fn among(result: &[u8], chunk_id: &str) -> Option<(PopulationChunk, u64)> {
    #[derive(Deserialize)]
    struct PartialResult<'a> {
        #[serde(borrow)]
        population: PartialPopulation<'a>,
    }
    #[derive(Deserialize)]
    struct PartialPopulation<'a> {
        #[serde(borrow)]
        chunks: Vec<&'a RawValue>,
        cohort: CohortSize,
    }
    #[derive(Deserialize)]
    struct CohortSize {
        size: u64,
    }
    #[derive(Deserialize)]
    struct ChunkName<'a> {
        #[serde(borrow)]
        chunk_id: Cow<'a, str>,
    }
    let PartialResult { population } = serde_json::from_slice(result).ok()?;
    let named = |chunk: &&&RawValue| {
        serde_json::from_str::<ChunkName<'_>>(chunk.get())
            .is_ok_and(|name| name.chunk_id == chunk_id)
    };
    let chunk = population.chunks.iter().find(named)?;
    let chunk = serde_json::from_str(chunk.get()).ok()?;
    Some((chunk, population.cohort.size))
}

pub(super) fn chunk(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let (results_id, chunk_id) = (args.text("resultsId")?, args.text("chunkId")?);
    let (chunk, size) = find_chunk(&keeper, context.caller, results_id, chunk_id)?;
    let subjects: Option<Vec<i64>> = args
        .get("subjects")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_i64).collect());
    let patterns: Vec<PathPattern> = {
        let asked = args
            .get("outputs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        asked
            .filter_map(Value::as_str)
            .map(|text| PathPattern::new(text, '|'))
            .collect()
    };
    let series = match &subjects {
        // Without individuals no number is read; the chunk is still checked, so that the record of a call is right.
        Some(none) if none.is_empty() => {
            let now_ms = keeper.now_ms();
            keeper
                .outputs
                .stream(context.caller, &chunk.handle, 0, now_ms)?;
            Vec::new()
        }
        subjects => {
            let columns = keeper.columns(context.caller, &chunk.handle)?;
            let wanted = |at: usize| {
                let column = columns.columns.get(at);
                column.is_some_and(|column| {
                    let subject = column.subject.unwrap_or(-1);
                    let of = subjects.as_ref().is_none_or(|all| all.contains(&subject));
                    of && (patterns.is_empty()
                        || patterns.iter().any(|p| p.matches(&column.parameter)))
                })
            };
            chunk_series(&columns, wanted)
        }
    };
    Ok(json!({
        "resultsId": results_id, "chunkId": chunk_id, "series": series, "totalSubjects": size,
    }))
}

/// Returns the curves of a chunk; each names its output if there are several.
pub(crate) fn chunk_series(columns: &Columns, wanted: impl Fn(usize) -> bool) -> Vec<Value> {
    let first = columns
        .columns
        .first()
        .map(|column| column.parameter.as_str());
    let several = columns
        .columns
        .iter()
        .any(|column| Some(column.parameter.as_str()) != first);
    let list = |values: &[f64]| -> Vec<Value> { values.iter().copied().map(number).collect() };
    let times = list(&columns.times);
    let mut told = Vec::new();
    for (at, column) in columns
        .columns
        .iter()
        .enumerate()
        .filter(|(at, _)| wanted(*at))
    {
        let mut one = json!({
            "subjectId": column.subject, "time": times, "concentration": list(columns.column(at)),
        });
        if let (true, Some(members)) = (several, one.as_object_mut()) {
            members.insert("parameter".into(), column.parameter.as_str().into());
        }
        told.push(one);
    }
    told
}
