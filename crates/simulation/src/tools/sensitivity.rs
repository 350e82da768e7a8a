//! One-at-a-time local sensitivity analysis.
//!
//! Each scenario is a job of its own on the parameters as they were at the call: concurrent reads and changes of
//! parameters are unaffected, and a scenario that fails leaves nothing behind.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Map, Value, json};
use toolkit::jobs::{Job, JobId, JobState};
use toolkit::server::Args;

use super::facts::loads_itself;
use super::jobs::{STOP_TOLD, submit, wait_for, work};
use crate::fault::{Fault, Kind};
use crate::figures::{number, unit};
use crate::jobs::{KIND_RUN, ResultKeeper, RunWork};
use crate::models::QuantitySelection;
use crate::results::{Columns, metrics};
use crate::service::CallContext;
use crate::session::{LoadedSimulation, locked};

/// Most scenarios of one call.
const SCENARIOS_MAX: usize = 90;
/// Default limit of one scenario's time, in seconds.
const SECONDS_MAX: f64 = 300.0;

/// One change of one parameter.
struct ParameterScenario {
    id: String,
    simulation: String,
    path: Option<String>,
    delta: f64,
    value: Option<f64>,
    work: RunWork,
}

pub(super) fn run(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let named = args.text("simulationId")?;
    if loads_itself(context.service, context.caller, named) {
        let load = json!({"filePath": args.text("modelPath")?, "simulationId": named});
        let members = load.as_object().cloned().unwrap_or_default();
        super::models::load(context, Args::new(&members))?;
    }
    let shared = context.simulation(args)?;
    let model = context.service.folders.resolve(args.text("modelPath")?);
    let model = model.map_err(|fault| Fault::input("modelPath", fault.message))?;
    if model != locked(&shared).model.path {
        let wrong = "modelPath is another file than the one that was loaded";
        return Err(Fault::input("modelPath", wrong));
    }
    let has_baseline = args.get("includeBaseline") != Some(&Value::Bool(false));
    if !has_baseline {
        let wrong = "without the baseline there is nothing to compare with";
        return Err(Fault::input("includeBaseline", wrong).code("value_error"));
    }
    let scenarios = scenarios(context, args)?;
    let keeper = context.service.keeper()?;
    let jobs = begin_jobs(context, args, &keeper, &scenarios)?;
    let ended = wait(context, args, &keeper, &jobs)?;
    let mut told = Vec::new();
    for (scenario, job) in scenarios.iter().zip(ended) {
        let columns = match job.state {
            JobState::Succeeded => results(context, &keeper, &job)?,
            _ => None,
        };
        told.push((scenario, job, columns));
    }
    let report = report(context, args, &told)?;
    let csv = csv(&report);
    let stem = gate::journal::format_utc(context.now_ms);
    let stem: String = stem
        .chars()
        .filter(|c| !matches!(c, '-' | ':'))
        .take(15)
        .collect();
    let filename = format!("{}-{stem}Z.csv", args.text("simulationId")?);
    Ok(json!({
        "report": report,
        "csv": {
            "path": format!("var/reports/sensitivity/{filename}"),
            "filename": filename,
            "contentType": "text/csv",
            "data": base64::engine::general_purpose::STANDARD.encode(csv),
        },
    }))
}

/// Returns a job for each scenario; all are cancelled if one cannot be started.
fn begin_jobs(
    context: &CallContext<'_>,
    args: Args<'_>,
    keeper: &ResultKeeper,
    scenarios: &[ParameterScenario],
) -> Result<Vec<Job>, Fault> {
    let mut jobs: Vec<Job> = Vec::new();
    for one in scenarios {
        match submit(context, args, KIND_RUN, &one.work) {
            Ok(job) => jobs.push(job),
            Err(fault) => {
                for job in &jobs {
                    cancelled(context, keeper, &job.id)?;
                }
                return Err(fault);
            }
        }
    }
    Ok(jobs)
}

/// Returns the baseline and every change, each with all that its run needs.
fn scenarios(context: &CallContext<'_>, args: Args<'_>) -> Result<Vec<ParameterScenario>, Fault> {
    let simulation = args.text("simulationId")?;
    let base = work(context, args, QuantitySelection::File, None)?;
    let mut all = vec![ParameterScenario {
        id: "baseline".to_owned(),
        simulation: simulation.to_owned(),
        path: None,
        delta: 0.0,
        value: None,
        work: RunWork {
            results_id: format!("sens-baseline-{simulation}"),
            ..base.clone()
        },
    }];
    let shared = context.simulation(args)?;
    let loaded = locked(&shared);
    let asked = args.get("parameters").and_then(Value::as_array);
    for (at, one) in asked.into_iter().flatten().enumerate() {
        let field = format!("parameters[{at}]");
        let path = one.get("path").and_then(Value::as_str).unwrap_or_default();
        let position = pbpk::path::find_one(loaded.structure().model(), path)?;
        // Set values are under the whole path, and a change has to replace them.
        let whole = loaded.structure().model().quantities.get(position);
        let whole = whole.map_or(path, |quantity| quantity.path.as_str());
        let (baseline, bounds) = around(&loaded, position, one, &field)?;
        let deltas = one.get("deltas").and_then(Value::as_array);
        for delta in deltas.into_iter().flatten().filter_map(Value::as_f64) {
            let value = baseline * (1.0 + delta);
            let value = bounds.map_or(value, |[least, most]| value.clamp(least, most));
            if !(value.is_finite() && (1000.0 * delta).is_finite()) {
                let wrong = format!("{delta} changes the value to no number");
                return Err(Fault::input(&format!("{field}.deltas"), wrong).code("value_error"));
            }
            // A value that the model does not take is refused before anything runs.
            loaded.instance.clone().set(position, value)?;
            let id = free(&all, scenario_id(path, delta));
            let mut changed = base.changed.clone();
            changed.insert(whole.to_owned(), value);
            all.push(ParameterScenario {
                simulation: format!("{simulation}__sens_{}", all.len()),
                path: Some(path.to_owned()),
                delta,
                value: Some(value),
                work: RunWork {
                    results_id: format!("sens-{id}"),
                    changed,
                    ..base.clone()
                },
                id,
            });
        }
    }
    if all.len() > SCENARIOS_MAX {
        let wrong = format!("{} scenarios are more than {SCENARIOS_MAX}", all.len());
        return Err(Fault::input("parameters", wrong));
    }
    Ok(all)
}

/// Returns the value that is changed, and the bounds of the changed ones if there are any.
fn around(
    loaded: &LoadedSimulation,
    position: usize,
    asked: &Value,
    field: &str,
) -> Result<(f64, Option<[f64; 2]>), Fault> {
    let quantity = loaded.structure().model().quantities.get(position);
    let unit = asked.get("unit").and_then(Value::as_str);
    let base_of = |value: f64| {
        let base = quantity.map_or(Ok(value), |of| pbpk::path::to_base(of, value, unit));
        base.map_err(|error| Fault::input(&format!("{field}.unit"), error.to_string()).code("unit"))
    };
    // Also where no value is given in it.
    base_of(1.0)?;
    let present = loaded.instance.value(position).unwrap_or(f64::NAN);
    let stated = asked.get("baselineValue").and_then(Value::as_f64);
    let baseline = stated.map_or(Ok(present), base_of)?;
    let listed = asked.get("bounds").and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(Value::as_f64);
    let bounds: Vec<f64> = listed.map(base_of).collect::<Result<_, _>>()?;
    match bounds.as_slice() {
        [least, most] if least <= most => Ok((baseline, Some([*least, *most]))),
        [] => Ok((baseline, None)),
        _ => {
            let wrong = "bounds are the least and the greatest value, in this order";
            Err(Fault::input(&format!("{field}.bounds"), wrong).code("value_error"))
        }
    }
}

/// Returns the id, or the same with a number if an earlier scenario has it: ids have thousandths only.
fn free(all: &[ParameterScenario], id: String) -> String {
    let is_taken = |id: &str| all.iter().any(|one| one.id == id);
    let mut count = 1;
    let mut free = id.clone();
    while is_taken(&free) {
        count += 1;
        free = format!("{id}-{count}");
    }
    free
}

/// `A|B` and -0.1 as `A_B_-100`.
fn scenario_id(path: &str, delta: f64) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let path: String = path.chars().map(plain).collect();
    format!("{path}_{:.0}", (1000.0 * delta).trunc())
}

/// Waits until all have ended. If the caller has gone, or the time is over, the rest is cancelled.
fn wait(
    context: &CallContext<'_>,
    args: Args<'_>,
    keeper: &ResultKeeper,
    jobs: &[Job],
) -> Result<Vec<Job>, Fault> {
    let seconds = args
        .number("jobTimeoutSeconds")
        .unwrap_or(SECONDS_MAX)
        .min(SECONDS_MAX);
    let mut ended = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let until = Instant::now() + Duration::from_secs_f64(seconds.max(0.0));
        let left = until.saturating_duration_since(Instant::now());
        let mut job = wait_for(context, keeper, &job.id, left, &|_| {})?;
        if !job.state.is_end() {
            cancelled(context, keeper, &job.id)?;
            job = wait_for(context, keeper, &job.id, STOP_TOLD, &|_| {})?;
        }
        ended.push(job);
        if context.cancel.is_cancelled() {
            for rest in jobs.iter().skip(at + 1) {
                cancelled(context, keeper, &rest.id)?;
            }
            return Err(Fault::new(
                Kind::Cancelled,
                "nobody waits for the analysis any more",
            ));
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "at most a few hundred scenarios"
        )]
        context.progress((at + 1) as f64, Some(jobs.len() as f64), "scenarios");
    }
    Ok(ended)
}

fn cancelled(context: &CallContext<'_>, keeper: &ResultKeeper, id: &JobId) -> Result<Job, Fault> {
    Ok(keeper.jobs.cancel(context.caller, id, context.now_ms)?)
}

/// Returns the numbers of a job's own run, even if the name of its result has another run by now.
fn results(
    context: &CallContext<'_>,
    keeper: &ResultKeeper,
    job: &Job,
) -> Result<Option<Columns>, Fault> {
    let handles = job.result.as_ref().and_then(|result| result.get("handles"));
    match handles.and_then(|handles| handles.get(0)?.as_str()) {
        Some(handle) => Ok(Some(keeper.columns(context.caller, handle)?)),
        None => Ok(None),
    }
}

/// Highest value, its time and area of every output, by its path.
fn measure_outputs(columns: &Columns) -> BTreeMap<&str, (&str, [f64; 3])> {
    columns
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let found = metrics(&columns.times, columns.column(at));
            (column.parameter.as_str(), (unit(&column.unit), found))
        })
        .collect()
}

fn told_metrics(columns: Option<&Columns>) -> Vec<Value> {
    let all = columns.map(measure_outputs).unwrap_or_default();
    let one = |(path, (unit, [cmax, tmax, auc])): (&str, (&str, [f64; 3]))| json!({"parameter": path, "unit": unit, "cmax": number(cmax), "tmax": number(tmax), "auc": number(auc)});
    all.into_iter().map(one).collect()
}

/// In per cent of the baseline; null if that is 0.
fn percent(value: f64, baseline: f64) -> Value {
    if baseline == 0.0 {
        return Value::Null;
    }
    number(100.0 * (value - baseline) / baseline)
}

fn report(
    context: &CallContext<'_>,
    args: Args<'_>,
    told: &[(&ParameterScenario, Job, Option<Columns>)],
) -> Result<Value, Fault> {
    let baseline = told.first().and_then(|(_, _, columns)| columns.as_ref());
    let reference = baseline.map(measure_outputs).unwrap_or_default();
    let mut failures = Vec::new();
    let mut scenarios = Vec::new();
    for (scenario, job, columns) in told {
        let error = job.fault.as_ref().map(|fault| fault.message.clone());
        if job.state != JobState::Succeeded {
            let why = error
                .clone()
                .unwrap_or_else(|| job.state.label().to_owned());
            failures.push(format!("{}: {why}", scenario.id));
        }
        let mut deltas = Map::new();
        for (path, (_, found)) in columns.as_ref().map(measure_outputs).unwrap_or_default() {
            if let Some((_, base)) = reference.get(path) {
                let [cmax, tmax, auc] = [0, 1, 2].map(|at| match (found.get(at), base.get(at)) {
                    (Some(value), Some(base)) => percent(*value, *base),
                    _ => Value::Null,
                });
                deltas.insert(
                    path.to_owned(),
                    json!({"cmax": cmax, "tmax": tmax, "auc": auc}),
                );
            }
        }
        let succeeded = job.state == JobState::Succeeded;
        scenarios.push(json!({
            "scenario_id": scenario.id, "simulation_id": scenario.simulation,
            "parameter_path": scenario.path, "percent_change": number(scenario.delta),
            "absolute_value": scenario.value.map(number), "job_id": job.id.as_str(),
            "job_status": job.state.label(), "run_id": scenario.work.results_id,
            "results_id": succeeded.then_some(&scenario.work.results_id), "error": error,
            "metrics": told_metrics(columns.as_ref()), "delta_percent": deltas,
        }));
    }
    let shared = context.simulation(args)?;
    let model_path = locked(&shared).model.path.to_string_lossy().into_owned();
    Ok(json!({
        "simulation_id": args.text("simulationId")?, "model_path": model_path,
        "baseline_metrics": told_metrics(baseline), "scenarios": scenarios, "failures": failures,
    }))
}

const COLUMNS: &str = "scenario_id,parameter_path,percent_change,absolute_value,job_status,error,metric,unit,cmax,tmax,auc,delta_cmax_percent,delta_tmax_percent,delta_auc_percent";

/// Returns one row for each scenario and output; one with empty figures if there are none.
fn csv(report: &Value) -> String {
    let mut text = format!("{COLUMNS}\n");
    let scenarios = report.get("scenarios").and_then(Value::as_array);
    for scenario in scenarios.into_iter().flatten() {
        let names = [
            "scenario_id",
            "parameter_path",
            "percent_change",
            "absolute_value",
            "job_status",
            "error",
        ];
        let about: Vec<String> = names.iter().map(|name| cell(scenario.get(*name))).collect();
        let metrics = scenario
            .get("metrics")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let metrics = if metrics.is_empty() {
            vec![Value::Null]
        } else {
            metrics
        };
        for metric in metrics {
            let path = metric
                .get("parameter")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let deltas = scenario
                .get("delta_percent")
                .and_then(|deltas| deltas.get(path));
            let figures =
                ["parameter", "unit", "cmax", "tmax", "auc"].map(|name| cell(metric.get(name)));
            let deltas =
                ["cmax", "tmax", "auc"].map(|name| cell(deltas.and_then(|all| all.get(name))));
            let row: Vec<String> = about.iter().cloned().chain(figures).chain(deltas).collect();
            text.push_str(&row.join(","));
            text.push('\n');
        }
    }
    text
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if text.contains(['"', ',', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_named_as_the_bridge_names_them() {
        for (path, delta, id) in [
            ("A|B", -0.1, "A_B_-100"),
            (
                "Organism|Weight (tissue)",
                0.1,
                "Organism_Weight__tissue__100",
            ),
            ("x-y_z", 0.0015, "x-y_z_1"),
            ("x", 0.0, "x_0"),
        ] {
            assert_eq!(scenario_id(path, delta), id);
        }
        assert_eq!(percent(1.1, 0.0), Value::Null);
    }
}
