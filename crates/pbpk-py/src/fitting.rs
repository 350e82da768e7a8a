//! Fits of parameters to observed data.

use std::collections::HashMap;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use solver::compile::{Instance, Structure};
use solver::fit::{
    FitParameter, FitProblem, IntervalMethod, LikelihoodOptions, LikelihoodSummary, Observation,
    ResidualModel, STARTS_MAX,
};
use solver::path;
use solver::run::OspVersion;
use solver::watch::{Question, Watch};
use std::sync::Arc;

use crate::errors::raised;
use crate::signals::interruptible;
use crate::simulation::{Simulation, release};

/// A fitted parameter.
#[pyclass(module = "pbpk", frozen)]
#[derive(Clone)]
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

/// Estimates of a fit, in the order of their paths: a sequence of them with what was found besides.
#[pyclass(module = "pbpk", frozen)]
pub(crate) struct FitResult {
    estimates: Vec<Estimate>,
    /// Whether the attempts did not run out.
    #[pyo3(get)]
    converged: bool,
    /// Runs of the model.
    #[pyo3(get)]
    runs: usize,
    /// -2 log likelihood; None for least squares.
    #[pyo3(get)]
    objective: Option<f64>,
    /// Akaike's criterion.
    #[pyo3(get)]
    aic: Option<f64>,
    /// Bayesian criterion.
    #[pyo3(get)]
    bic: Option<f64>,
    /// Estimated standard deviations: tuples (output, kind, value).
    #[pyo3(get)]
    sigmas: Vec<(String, String, f64)>,
    /// Objective that each start reached.
    #[pyo3(get)]
    starts: Vec<f64>,
    /// Doubts about the estimates.
    #[pyo3(get)]
    warnings: Vec<String>,
}

#[pymethods]
impl FitResult {
    fn __len__(&self) -> usize {
        self.estimates.len()
    }

    fn __getitem__(&self, at: isize) -> PyResult<Estimate> {
        let count = self.estimates.len();
        let place = if at < 0 { at + count as isize } else { at };
        let found = usize::try_from(place)
            .ok()
            .and_then(|at| self.estimates.get(at));
        found
            .cloned()
            .ok_or_else(|| PyIndexError::new_err("no such estimate"))
    }

    fn __repr__(&self) -> String {
        format!(
            "FitResult({} estimates, {} runs)",
            self.estimates.len(),
            self.runs
        )
    }
}

/// Bounds of a parameter by path, if it has any.
type Bounds = HashMap<String, Option<(f64, f64)>>;

/// Fits parameters, given with their bounds or None, to data: for each output path the times in minutes and the values in
/// base units; values below the limit that `lloq` gives for a path are censored. `error` is "log" (errors that grow with the
/// value) or "absolute" for least squares, or "additive", "proportional", "combined" or "log-normal" for a likelihood with
/// standard deviations that are estimated; then `starts` is the number of starts and `intervals` "profile" or "hessian".
/// `osp_version` as in `Simulation.run`. The
/// simulation keeps its values.
#[pyfunction]
#[pyo3(signature = (simulation, data, parameters, error="log", osp_version=None, lloq=None, starts=1, seed=0, intervals="profile"))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn fit(
    py: Python<'_>,
    simulation: &Simulation,
    data: HashMap<String, (Vec<f64>, Vec<f64>)>,
    parameters: Bounds,
    error: &str,
    osp_version: Option<&str>,
    lloq: Option<HashMap<String, f64>>,
    starts: usize,
    seed: u64,
    intervals: &str,
) -> PyResult<FitResult> {
    let release = release(osp_version)?;
    let errors = ResidualModel::from_name(error).ok_or_else(|| {
        let names = ResidualModel::ALL.map(ResidualModel::name).join(", ");
        raised(format!("error is one of {names}, not '{error}'"))
    })?;
    let likelihood = LikelihoodOptions {
        starts: starts.clamp(1, STARTS_MAX),
        seed,
        intervals: match intervals {
            "profile" => IntervalMethod::Profile,
            "hessian" => IntervalMethod::Hessian,
            other => {
                let wrong = format!("intervals is 'profile' or 'hessian', not '{other}'");
                return Err(raised(wrong));
            }
        },
    };
    let lloq = lloq.unwrap_or_default();
    if let Some(unknown) = lloq.keys().find(|path| !data.contains_key(*path)) {
        return Err(raised(format!("lloq names '{unknown}', which has no data")));
    }
    let data = (data, lloq);
    interruptible(py, |ask| {
        fitted(
            simulation,
            data,
            parameters,
            (errors, release, likelihood),
            ask,
        )
    })
}

fn fitted(
    simulation: &Simulation,
    (data, lloq): (HashMap<String, (Vec<f64>, Vec<f64>)>, HashMap<String, f64>),
    parameters: Bounds,
    (errors, release, likelihood): (ResidualModel, OspVersion, LikelihoodOptions),
    ask: Question<'_>,
) -> PyResult<FitResult> {
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
    problem.with_likelihood(likelihood);
    let found = solver::fit::fit(&problem).map_err(raised)?;
    let named = parameters.into_iter().zip(found.estimates);
    let estimates = named.map(|((path, _), e)| Estimate {
        path,
        value: e.value,
        low: e.low,
        high: e.high,
        at_bound: e.at_bound,
    });
    let likelihood = found.likelihood.as_ref();
    let number = |of: fn(&LikelihoodSummary) -> f64| likelihood.map(of);
    let sigmas = likelihood.iter().flat_map(|found| &found.sigmas);
    Ok(FitResult {
        estimates: estimates.collect(),
        converged: found.converged,
        runs: found.runs,
        objective: number(|found| found.objective),
        aic: number(|found| found.aic),
        bic: number(|found| found.bic),
        sigmas: sigmas
            .map(|sigma| {
                let path = data.get(sigma.output).map_or("", |(path, _)| path.as_str());
                (path.to_owned(), sigma.kind.to_owned(), sigma.value)
            })
            .collect(),
        starts: likelihood.map_or_else(Vec::new, |found| found.starts.clone()),
        warnings: likelihood.map_or_else(Vec::new, |found| found.warnings.clone()),
    })
}
