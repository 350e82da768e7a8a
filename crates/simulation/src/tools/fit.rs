//! Parameters from observed data.
//!
//! The fit works on a copy of the simulation as it is at the call; concurrent reads and changes of parameters are
//! unaffected. With `apply` the estimates are set at the end, all or none.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pbpk::compile::{Instance, Structure};
use pbpk::fit::{
    FitError, FitParameter, FitProblem, FitResult, IntervalMethod, LikelihoodOptions,
    LikelihoodSummary, Observation, ResidualModel, fit,
};
use pbpk::path;
use pbpk::watch::{Interrupt, Question, Watch};
use serde_json::{Value, json};
use toolkit::server::Args;

use super::observed::{ObservedOutput, read};
use crate::fault::{Fault, Kind};
use crate::figures::{number, unit};
use crate::models::QuantitySelection;
use crate::service::CallContext;
use crate::session::{LoadedSimulation, UpdateMode, apply, locked};

/// Most parameters of one fit.
const PARAMETERS_MAX: usize = 32;

/// A parameter that is to be fitted.
struct VariedParameter {
    path: String,
    low: f64,
    high: f64,
}

pub(super) fn run(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    if context.service.over_r().is_some() {
        let wrong =
            "parameters are fitted by the native engine, and this server solves models over R";
        return Err(Fault::new(Kind::EnvironmentMissing, wrong));
    }
    let varied = varied(args)?;
    let observed = read(args, "observations")?;
    let errors =
        ResidualModel::from_name(args.text("errors").unwrap_or("log")).ok_or_else(|| {
            let names = ResidualModel::ALL.map(ResidualModel::name).join(", ");
            Fault::input("errors", format!("errors is one of {names}")).code("value_error")
        })?;
    let options = likelihood_options(args)?;
    let until = Instant::now() + Duration::from_millis(context.service.configured.job_timeout_ms);
    let cancel = &context.cancel;
    let ask = || match cancel.is_cancelled() {
        true => Some(Interrupt::Cancelled),
        false => (Instant::now() >= until).then_some(Interrupt::Deadline),
    };
    let shared = context.simulation(args)?;
    let start = locked(&shared).clone();
    let individual = individual(context, &start, &observed, &ask)?;
    let structure = Arc::clone(individual.structure());
    let observations = observations(&individual, &observed)?;
    let parameters = parameters(&individual, &varied)?;
    let problem = FitProblem::new(
        &individual,
        parameters.clone(),
        observations.clone(),
        errors,
    );
    let mut problem = problem.map_err(|error| Fault::input("parameters", error.to_string()))?;
    problem.set_watch(&ask);
    let osp_version = context.osp_version(args)?;
    problem.with_release(osp_version);
    problem.with_likelihood(options);
    let found = fit(&problem).map_err(fit_fault)?;
    let applied = args.is_set("apply");
    if applied {
        let mut loaded = locked(&shared);
        let mut trial = loaded.clone();
        for (one, estimate) in varied.iter().zip(&found.estimates) {
            trial.set(
                &one.path,
                estimate.value,
                None,
                UpdateMode::Absolute,
                context.now_ms,
            )?;
        }
        *loaded = trial;
    }
    let mut answer = json!({
        "simulationId": start.id,
        "estimates": estimates(&individual, &parameters, &found), "ospVersion": osp_version.name(),
        "sumOfSquares": number(found.sum_of_squares), "sigma": number(found.sigma),
        "observations": observations.len(), "degreesOfFreedom": found.degrees,
        "runs": found.runs, "converged": found.converged, "applied": applied,
        "fitted": compare_outputs(&structure, &observations, &found),
    });
    if let (Some(found), Some(members)) = (&found.likelihood, answer.as_object_mut()) {
        let described = describe_likelihood(&structure, found);
        members.insert("likelihood".to_owned(), described);
    }
    Ok(answer)
}

fn likelihood_options(args: Args<'_>) -> Result<LikelihoodOptions, Fault> {
    let count = |name: &str, none: u64| args.get(name).and_then(Value::as_u64).unwrap_or(none);
    let intervals = match args.text("intervals").unwrap_or("profile") {
        "profile" => IntervalMethod::Profile,
        "hessian" => IntervalMethod::Hessian,
        _ => {
            let wrong = "intervals is profile or hessian";
            return Err(Fault::input("intervals", wrong).code("value_error"));
        }
    };
    Ok(LikelihoodOptions {
        // The schema has the bound.
        starts: usize::try_from(count("starts", 1)).unwrap_or(1),
        seed: count("seed", 0),
        intervals,
    })
}

/// Returns criteria, standard deviations and starts of a fit by likelihood.
fn describe_likelihood(structure: &Structure, found: &LikelihoodSummary) -> Value {
    let sigmas = found.sigmas.iter().map(|sigma| {
        let position = structure.outputs().get(sigma.output);
        let path = position.map_or("", |position| path_and_unit(structure, *position).0);
        json!({"output": path, "kind": sigma.kind, "value": number(sigma.value)})
    });
    let hessian = found.hessian.iter();
    let hessian = hessian.map(|(low, high)| json!({"low": number(*low), "high": number(*high)}));
    let starts = found.starts.iter().map(|objective| number(*objective));
    json!({
        "objective": number(found.objective), "aic": number(found.aic), "bic": number(found.bic),
        "sigmas": sigmas.collect::<Vec<_>>(), "hessian": hessian.collect::<Vec<_>>(),
        "starts": starts.collect::<Vec<_>>(), "warnings": found.warnings,
    })
}

fn varied(args: Args<'_>) -> Result<Vec<VariedParameter>, Fault> {
    let listed = args.get("parameters").and_then(Value::as_array);
    let listed: Vec<&Value> = listed.into_iter().flatten().collect();
    if listed.len() > PARAMETERS_MAX {
        let wrong = format!("{} parameters are more than {PARAMETERS_MAX}", listed.len());
        return Err(Fault::input("parameters", wrong).code("value_error"));
    }
    let one = |one: &Value| {
        let bound = |name: &str, none: f64| one.get(name).and_then(Value::as_f64).unwrap_or(none);
        let path = one.get("path").and_then(Value::as_str);
        let path = path.ok_or_else(|| {
            Fault::input("parameters.path", "each parameter needs a path").code("missing")
        })?;
        Ok(VariedParameter {
            path: path.to_owned(),
            low: bound("min", f64::NEG_INFINITY),
            high: bound("max", f64::INFINITY),
        })
    };
    listed.into_iter().map(one).collect()
}

/// Returns the simulation as it is, compiled for the outputs that were observed.
fn individual(
    context: &CallContext<'_>,
    start: &LoadedSimulation,
    observed: &[ObservedOutput],
    ask: Question<'_>,
) -> Result<Instance, Fault> {
    let mut outputs: Vec<String> = observed.iter().map(|one| one.output.clone()).collect();
    for output in &outputs {
        path::find_one(start.structure().model(), output)
            .map_err(|error| Fault::missing("observations.output", error.to_string()))?;
    }
    outputs.sort_unstable();
    outputs.dedup();
    let watch = Watch::new(Some(ask));
    let library = &context.service.library;
    let structure = library.open(&start.model, &QuantitySelection::Paths(outputs), &watch)?;
    let mut individual = Instance::with_watch(&structure, &watch)?;
    let changed = start.changed.iter();
    apply(
        &mut individual,
        changed.map(|(path, one)| (path.as_str(), one.value)),
    )?;
    Ok(individual)
}

/// Returns the measured values in base units, each with the position of its output.
fn observations(
    individual: &Instance,
    observed: &[ObservedOutput],
) -> Result<Vec<Observation>, Fault> {
    let structure = individual.structure();
    let outputs = structure.outputs().iter().enumerate();
    let places: HashMap<usize, usize> = outputs.map(|(at, position)| (*position, at)).collect();
    let mut all = Vec::new();
    for one in observed {
        let position = path::find_one(structure.model(), &one.output)?;
        let Some(output) = places.get(&position) else {
            return Err(Fault::missing(
                "observations.output",
                format!("'{}' is not an output", one.output),
            ));
        };
        for (time, value) in &one.points {
            all.push(Observation {
                output: *output,
                time: *time,
                value: one.of_quantity(*value, individual, position)?,
                weight: one.weight,
                is_censored: one.limit.is_some_and(|limit| *value <= limit),
            });
        }
    }
    Ok(all)
}

fn parameters(
    individual: &Instance,
    varied: &[VariedParameter],
) -> Result<Vec<FitParameter>, Fault> {
    let one = |one: &VariedParameter| {
        let position = path::find_one(individual.structure().model(), &one.path)?;
        Ok(FitParameter {
            position,
            low: one.low,
            high: one.high,
        })
    };
    varied.iter().map(one).collect()
}

fn fit_fault(error: FitError) -> Fault {
    match error {
        FitError::Problem(error) => Fault::input("parameters", error.to_string()),
        FitError::Run(error) => Fault::from(&error),
        FitError::Interrupted(cause) => {
            let kind = match cause {
                Interrupt::Cancelled => Kind::Cancelled,
                Interrupt::Deadline => Kind::Timeout,
            };
            Fault::new(kind, format!("{cause} while parameters were fitted"))
        }
    }
}

/// Path and unit of a quantity.
fn path_and_unit(structure: &Structure, position: usize) -> (&str, &str) {
    let quantity = structure.model().quantities.get(position);
    quantity.map_or(("", ""), |one| (one.path.as_str(), unit(&one.unit)))
}

fn estimates(individual: &Instance, parameters: &[FitParameter], found: &FitResult) -> Vec<Value> {
    let pairs = parameters.iter().zip(&found.estimates);
    let told = pairs.map(|(parameter, estimate)| {
        let (path, unit) = path_and_unit(individual.structure(), parameter.position);
        json!({
            "path": path, "unit": unit,
            "start": individual.value(parameter.position).map(number),
            "value": number(estimate.value), "low": number(estimate.low),
            "high": number(estimate.high), "atBound": estimate.at_bound,
        })
    });
    told.collect()
}

/// Returns the observed values beside those of the fitted model, for each output.
fn compare_outputs(
    structure: &Structure,
    observations: &[Observation],
    found: &FitResult,
) -> Vec<Value> {
    let outputs = structure.outputs().iter().enumerate();
    let told = outputs.map(|(at, position)| {
        let (path, unit) = path_and_unit(structure, *position);
        let pairs = observations.iter().zip(&found.fitted);
        let points = pairs.filter(|(one, _)| one.output == at).map(|(one, fitted)| {
            json!({"time": number(one.time), "observed": number(one.value), "fitted": number(*fitted)})
        });
        json!({"output": path, "unit": unit, "points": points.collect::<Vec<_>>()})
    });
    told.collect()
}
