//! Fits of parameters to observed data.

use std::collections::HashMap;

use pyo3::prelude::*;
use solver::compile::{Instance, Structure};
use solver::fit::{FitParameter, FitProblem, Observation, ResidualModel};
use solver::path;
use solver::run::OspVersion;
use solver::watch::{Question, Watch};
use std::sync::Arc;

use crate::errors::raised;
use crate::signals::interruptible;
use crate::simulation::{Simulation, release};

/// A fitted parameter.
#[pyclass(module = "pbpk", frozen)]
pub(crate) struct Estimate {
    /// Its path.
    #[pyo3(get)]
    path: String,
    /// Its value, in base units.
    #[pyo3(get)]
    value: f64,
    /// Lower end of the 95 % interval.
    #[pyo3(get)]
    low: f64,
    /// Upper end of the 95 % interval.
    #[pyo3(get)]
    high: f64,
    /// Whether a bound holds it.
    #[pyo3(get)]
    at_bound: bool,
}

#[pymethods]
impl Estimate {
    fn __repr__(&self) -> String {
        format!(
            "Estimate('{}', {} in {} to {})",
            self.path, self.value, self.low, self.high
        )
    }
}

/// Bounds of a parameter by path, if it has any.
type Bounds = HashMap<String, Option<(f64, f64)>>;

/// Fits parameters, given with their bounds or None, to data: for each output path the times in minutes and the values in
/// base units; values below the limit that `lloq` gives for a path are censored. `error` is "log" (errors that grow with the value) or "absolute"; `osp_version` as in `Simulation.run`. The
/// simulation keeps its values.
#[pyfunction]
#[pyo3(signature = (simulation, data, parameters, error="log", osp_version=None, lloq=None))]
pub(crate) fn fit(
    py: Python<'_>,
    simulation: &Simulation,
    data: HashMap<String, (Vec<f64>, Vec<f64>)>,
    parameters: Bounds,
    error: &str,
    osp_version: Option<&str>,
    lloq: Option<HashMap<String, f64>>,
) -> PyResult<Vec<Estimate>> {
    let release = release(osp_version)?;
    let errors = match error {
        "log" => ResidualModel::Log,
        "absolute" => ResidualModel::Absolute,
        other => {
            return Err(raised(format!(
                "error is 'log' or 'absolute', not '{other}'"
            )));
        }
    };
    let lloq = lloq.unwrap_or_default();
    if let Some(unknown) = lloq.keys().find(|path| !data.contains_key(*path)) {
        return Err(raised(format!("lloq names '{unknown}', which has no data")));
    }
    let data = (data, lloq);
    interruptible(py, |ask| {
        fitted(simulation, data, parameters, (errors, release), ask)
    })
}

fn fitted(
    simulation: &Simulation,
    (data, lloq): (HashMap<String, (Vec<f64>, Vec<f64>)>, HashMap<String, f64>),
    parameters: Bounds,
    (errors, release): (ResidualModel, OspVersion),
    ask: Question<'_>,
) -> PyResult<Vec<Estimate>> {
    let model = simulation.model();
    // Dictionaries come in any order; the fit always sees the same one.
    let mut data: Vec<_> = data.into_iter().collect();
    data.sort_by(|a, b| a.0.cmp(&b.0));
    let mut parameters: Vec<_> = parameters.into_iter().collect();
    parameters.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut outputs, mut observations) = (Vec::new(), Vec::new());
    for (name, (times, values)) in &data {
        if times.len() != values.len() {
            return Err(raised(format!(
                "'{name}': times and values must be equally many"
            )));
        }
        outputs.push(path::find_one(model, name).map_err(raised)?);
        let output = outputs.len() - 1;
        let limit = lloq.get(name).copied().unwrap_or(f64::NEG_INFINITY);
        observations.extend(times.iter().zip(values).map(|(time, value)| Observation {
            output,
            time: *time,
            value: value.max(limit),
            weight: 1.0,
            is_censored: *value < limit,
        }));
    }
    let mut varied = Vec::new();
    for (name, bounds) in &parameters {
        let (low, high) = bounds.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let position = path::find_one(model, name).map_err(raised)?;
        varied.push(FitParameter {
            position,
            low,
            high,
        });
    }
    let watch = Watch::new(Some(ask));
    let structure = Structure::with_watch(Arc::new(model.clone()), outputs, &watch);
    let mut individual =
        Instance::with_watch(&structure.map_err(raised)?, &watch).map_err(raised)?;
    for (q, value) in simulation.set() {
        individual.set(*q, *value).map_err(raised)?;
    }
    let mut problem = FitProblem::new(&individual, varied, observations, errors).map_err(raised)?;
    problem.set_watch(ask);
    problem.with_release(release);
    let found = solver::fit::fit(&problem).map_err(raised)?;
    let named = parameters.into_iter().zip(found.estimates);
    let estimates = named.map(|((path, _), e)| Estimate {
        path,
        value: e.value,
        low: e.low,
        high: e.high,
        at_bound: e.at_bound,
    });
    Ok(estimates.collect())
}
