//! Start of runs, and the view of jobs for clients.

use std::collections::BTreeSet;
use std::time::Duration;

use pbpk::model::Model;
use pbpk::population::{PopulationPlan, run_chunk};
use pbpk::run::{OspVersion, RunOptions};
use pbpk::watch::{Interrupt, Watch};
use serde_json::{Value, json};
use toolkit::jobs::{Job, JobId, JobState, NewJob, Recovery};
use toolkit::server::Args;

use super::progress::{progress, sentence};
use crate::CONTRACT;
use crate::fault::Fault;
use crate::figures::whole;
use crate::jobs::{KIND_POPULATION, KIND_RUN, ResultKeeper, RunWork};
use crate::models::QuantitySelection;
use crate::population::{Aggregate, CohortRecord};
use crate::service::CallContext;
use crate::session::{LoadedSimulation, locked};

/// Interval of progress for a waiting caller.
const TOLD: Duration = Duration::from_millis(250);
/// How long a caller that cancels a job waits for it to stop.
pub(super) const STOP_TOLD: Duration = Duration::from_millis(500);

pub(super) fn run(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let selection = match strings(args.get("outputs")) {
        paths if paths.is_empty() => QuantitySelection::File,
        paths => QuantitySelection::Paths(paths),
    };
    let work = work(context, args, selection, None)?;
    let job = submit(context, args, KIND_RUN, &work)?;
    Ok(json!({
        "jobId": job.id.as_str(), "status": job.state.label(), "queuedAt": seconds(job.submitted_ms),
        "attempts": job.attempts, "maxRetries": job.retries_max, "timeoutSeconds": timeout(&job),
    }))
}

pub(super) fn run_population(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let cohort = cohort(args)?;
    // What cannot be drawn or computed is refused before anything is started.
    CohortRecord {
        size: 1,
        ..cohort.clone()
    }
    .draw(&Watch::default())?;
    for name in &cohort.aggregates {
        Aggregate::from_name(name)?;
    }
    let chosen: Option<Vec<String>> = cohort.time_series.iter().map(path_of).collect();
    let selection = match chosen {
        None => {
            let wrong = "each of outputs.timeSeries needs a path";
            return Err(Fault::input("outputs.timeSeries", wrong).code("missing"));
        }
        Some(paths) if paths.is_empty() => QuantitySelection::File,
        Some(paths) => QuantitySelection::Paths(paths),
    };
    let work = work(context, args, selection, Some(cohort))?;
    if let Ok(model) = args.text("modelPath") {
        let named = context
            .service
            .folders
            .resolve(model)
            .map_err(|fault| Fault::input("modelPath", fault.message))?;
        if named != work.model.path {
            let wrong = "modelPath is another file than the one that was loaded";
            return Err(Fault::input("modelPath", wrong));
        }
    }
    let job = submit(context, args, KIND_POPULATION, &work)?;
    let mut answer = json!({
        "jobId": job.id.as_str(), "simulationId": work.simulation_id, "status": job.state.label(),
        "queuedAt": seconds(job.submitted_ms), "timeoutSeconds": timeout(&job), "maxRetries": job.retries_max,
    });
    let alike = work.cohort.as_ref().and_then(CohortRecord::alike);
    if let (Some(warning), Some(members)) = (alike, answer.as_object_mut()) {
        members.insert("warnings".into(), json!([warning]));
    }
    Ok(answer)
}

/// Most individuals that are run to see whether a cohort can be.
pub(super) const SMOKE_SUBJECTS_MAX: u64 = 5;

/// Runs a few individuals of a cohort here; gives what is wrong with them.
pub(super) fn smoke(
    context: &CallContext<'_>,
    loaded: &LoadedSimulation,
    asked: &Value,
    osp_version: OspVersion,
) -> Result<Vec<String>, Fault> {
    let size = asked
        .get("size")
        .and_then(Value::as_u64)
        .unwrap_or(SMOKE_SUBJECTS_MAX);
    let covariates = asked.get("covariates").and_then(Value::as_array);
    let cohort = CohortRecord {
        size: size.clamp(1, SMOKE_SUBJECTS_MAX),
        sampling: asked
            .get("sampling")
            .and_then(Value::as_str)
            .map(str::to_owned),
        seed: asked.get("seed").and_then(Value::as_i64),
        covariates: covariates.cloned().unwrap_or_default(),
        aggregates: Vec::new(),
        time_series: Vec::new(),
        metadata: Value::Null,
    };
    let cancel = &context.cancel;
    let ask = || cancel.is_cancelled().then_some(Interrupt::Cancelled);
    let watch = Watch::new(Some(&ask));
    let population = cohort.draw(&watch)?;
    let (plan, unknown) = PopulationPlan::with_watch(loaded.instance.clone(), &population, &watch)?;
    let mut wrong: Vec<String> = unknown
        .into_iter()
        .map(|path| format!("{path}: no such quantity"))
        .collect();
    let options = RunOptions {
        interrupt: Some(&ask),
        osp_version,
        ..RunOptions::default()
    };
    let ran = run_chunk(
        &plan,
        &population,
        0..population.len(),
        &options,
        |outcome| {
            if let Err(why) = outcome.result {
                wrong.push(format!("individual {}: {why}", outcome.id));
            }
        },
    );
    ran?;
    Ok(wrong)
}

fn cohort(args: Args<'_>) -> Result<CohortRecord, Fault> {
    let empty = json!({});
    let asked = args.get("cohort").unwrap_or(&empty);
    let outputs = args.get("outputs").unwrap_or(&empty);
    let list = |of: &Value, name: &str| {
        of.get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    Ok(CohortRecord {
        size: asked.get("size").and_then(whole).ok_or_else(|| {
            Fault::input("cohort.size", "cohort.size must be an integer of 1 or more")
                .code("value_error")
        })?,
        sampling: asked
            .get("sampling")
            .and_then(Value::as_str)
            .map(str::to_owned),
        seed: asked.get("seed").and_then(Value::as_i64),
        covariates: list(asked, "covariates"),
        aggregates: strings(outputs.get("aggregates")),
        time_series: list(outputs, "timeSeries"),
        metadata: args.get("metadata").cloned().unwrap_or(empty),
    })
}

/// Returns the path that a member of `outputs.timeSeries` names.
fn path_of(wanted: &Value) -> Option<String> {
    let names = ["path", "parameter", "outputPath", "parameterPath", "name"];
    let found = names.iter().find_map(|name| wanted.get(name)?.as_str());
    found.map(str::to_owned)
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let members = list.and_then(Value::as_array).into_iter().flatten();
    members
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Everything that a run needs, as it is now.
pub(super) fn work(
    context: &CallContext<'_>,
    args: Args<'_>,
    selection: QuantitySelection,
    cohort: Option<CohortRecord>,
) -> Result<RunWork, Fault> {
    let shared = context.simulation(args)?;
    let loaded = locked(&shared);
    let model = loaded.structure().model();
    // Absent outputs are reported now and not by a failed job.
    let outputs = match &selection {
        QuantitySelection::File => loaded.structure().outputs().len(),
        QuantitySelection::Paths(paths) => {
            let mut found = Vec::new();
            for path in paths {
                let more = pbpk::path::find(model, path);
                found.extend(more.map_err(|error| Fault::missing("outputs", error.to_string()))?);
            }
            found.sort_unstable();
            found.dedup();
            found.len()
        }
    };
    if let Some(cohort) = &cohort {
        fit(model, cohort)?;
    }
    let results_id = match args.text("runId") {
        Ok(id) => id.to_owned(),
        Err(_) => context
            .service
            .name(if cohort.is_some() { "pop" } else { "run" })?,
    };
    Ok(RunWork {
        op: context.op.map(|op| op.to_string()),
        simulation_id: loaded.id.clone(),
        results_id,
        model: loaded.model.clone(),
        metadata: loaded.metadata(None),
        changed: loaded
            .changed
            .iter()
            .map(|(path, one)| (path.clone(), one.value))
            .collect(),
        numbers: model
            .grid
            .sorted(pbpk::model::TimePrecision::default())
            .len()
            * outputs,
        selection,
        cohort,
        osp_version: Some(context.osp_version(args)?.name().to_owned()),
    })
}

/// Whether the model has each parameter that differs, once, and in its unit.
fn fit(model: &Model, cohort: &CohortRecord) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for (at, column) in cohort.columns().enumerate() {
        let field = format!("cohort.covariates[{at}]");
        let position = pbpk::path::find_one(model, &column.path)
            .map_err(|error| Fault::missing("cohort.covariates", error.to_string()))?;
        if !seen.insert(position) {
            let wrong = format!("'{}' is named twice", column.path);
            return Err(Fault::input(&field, wrong).code("value_error"));
        }
        let quantity = model.quantities.get(position);
        let unit = Some(column.unit.as_str()).filter(|unit| !unit.is_empty());
        if let Some(Err(error)) = quantity.map(|quantity| pbpk::path::to_base(quantity, 1.0, unit))
        {
            let wrong = error.to_string();
            return Err(Fault::input(&format!("{field}.unit"), wrong).code("unit"));
        }
    }
    Ok(())
}

/// Submits the job. The arguments alone identify a request, even if the simulation has changed meanwhile.
pub(super) fn submit(
    context: &CallContext<'_>,
    args: Args<'_>,
    kind: &'static str,
    work: &RunWork,
) -> Result<Job, Fault> {
    let keeper = context.service.keeper()?;
    let timeout_ms = args
        .number("timeoutSeconds")
        .map_or(context.service.configured.job_timeout_ms, milliseconds);
    let mut arguments = args.members().clone();
    for name in ["idempotencyKey", "confirm"] {
        arguments.remove(name);
    }
    let request = serde_json::to_value(work)
        .map_err(|error| Fault::new(crate::fault::Kind::InternalError, error.to_string()))?;
    let retries = args
        .count("maxRetries")
        .unwrap_or(context.service.configured.retries);
    let new = NewJob {
        caller: context.caller.to_string(),
        kind,
        request,
        timeout_ms: Some(timeout_ms),
        retries_max: u32::try_from(retries).unwrap_or(u32::MAX),
        recovery: Recovery::Retry,
        idempotency_key: args.text("idempotencyKey").ok().map(str::to_owned),
    };
    let submitted =
        keeper
            .jobs
            .submit_as(new, &plain(&Value::Object(arguments)), context.now_ms)?;
    if submitted.is_new {
        keeper.wake();
    }
    Ok(submitted.job)
}

/// Returns the arguments in one spelling: null is absent, and 10.0 is 10.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let said = members.iter().filter(|(_, value)| !value.is_null());
            said.map(|(name, value)| (name.clone(), plain(value)))
                .collect()
        }
        Value::Array(members) => members.iter().map(plain).collect(),
        // Integers stay what they are: two large ones are one as floats.
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(|| value.clone(), whole_or_not)
        }
        _ => value.clone(),
    }
}

/// A number as an integer if both forms hold it exactly.
#[expect(
    clippy::cast_possible_truncation,
    reason = "only numbers below 2^53 are cast"
)]
fn whole_or_not(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        return Value::from(number as i64);
    }
    Value::from(number)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the schema bounds it to a week; a cast from float to integer saturates"
)]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

/// Seconds since 1970.
#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds since 1970 are far below 2^53"
)]
fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a week in milliseconds is far below 2^53"
)]
fn timeout(job: &Job) -> Option<f64> {
    job.timeout_ms.map(|ms| ms as f64 / 1000.0)
}

pub(super) fn status(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let id = JobId::of(args.text("jobId")?);
    let mut job = keeper.jobs.get(context.caller, &id)?;
    if let Ok(wait) = args.number("waitSeconds") {
        let wait = Duration::from_secs_f64(wait.clamp(0.0, 240.0));
        job = wait_for(context, &keeper, &id, wait, &|job| {
            let said = sentence(job, context.service.now_ms());
            context.progress(job.progress.done, job.progress.total, &said);
        })?;
    }
    let mut told = job_value(&job);
    if let (Some(progress), Some(members)) = (
        progress(&job, context.service.now_ms()),
        told.as_object_mut(),
    ) {
        members.insert("progress".into(), progress);
    }
    Ok(told)
}

/// Waits for the end of a job, at most so long; `tell` gets its state on the way.
pub(super) fn wait_for(
    context: &CallContext<'_>,
    keeper: &ResultKeeper,
    id: &JobId,
    wait: Duration,
    tell: &dyn Fn(&Job),
) -> Result<Job, Fault> {
    let mut watch = keeper.jobs.watch(context.caller, id)?;
    let runtime = tokio::runtime::Handle::current();
    let until = std::time::Instant::now() + wait;
    loop {
        let job = keeper.jobs.get(context.caller, id)?;
        tell(&job);
        let left = until.saturating_duration_since(std::time::Instant::now());
        if job.state.is_end() || left.is_zero() || context.cancel.is_cancelled() {
            return Ok(job);
        }
        runtime.block_on(async {
            tokio::select! {
                _ = watch.changed() => {}
                () = context.cancel.cancelled() => {}
                () = tokio::time::sleep(left.min(TOLD)) => {}
            }
        });
    }
}

pub(super) fn cancel(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let id = JobId::of(args.text("jobId")?);
    let mut job = keeper.jobs.cancel(context.caller, &id, context.now_ms)?;
    if !job.state.is_end() {
        // The solver asks every few steps; the answer says how it ended.
        job = wait_for(context, &keeper, &id, STOP_TOLD, &|_| {})?;
    }
    Ok(json!({"jobId": job.id.as_str(), "status": job.state.label()}))
}

/// Returns a job for clients.
pub(super) fn job_value(job: &Job) -> Value {
    let results = job
        .result
        .as_ref()
        .and_then(|result| result.get("resultsId"));
    let results = (job.state == JobState::Succeeded)
        .then_some(results)
        .flatten();
    let error = job.fault.as_ref().filter(|_| job.state.is_end());
    let error = error.map(|fault| json!({"message": fault.message}));
    let mut inner = json!({
        "jobId": job.id.as_str(), "status": job.state.label(),
        "submittedAt": seconds(job.submitted_ms),
        "startedAt": job.started_ms.map(seconds),
        "finishedAt": job.finished_ms.map(seconds),
        "attempts": job.attempts, "maxRetries": job.retries_max, "timeoutSeconds": timeout(job),
        "cancelRequested": job.cancel_requested, "resultId": results, "error": error,
        "externalJobId": null,
    });
    let mut outer = inner.clone();
    if let Some(members) = outer.as_object_mut() {
        members.insert("tool".into(), "get_job_status".into());
        members.insert("contractVersion".into(), CONTRACT.into());
        members.insert(
            "resultHandle".into(),
            results.map_or(Value::Null, |id| json!({"resultsId": id})),
        );
        members.insert("job".into(), inner.take());
    }
    outer
}
