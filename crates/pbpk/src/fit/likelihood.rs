//! Fits by likelihood: standard deviations of the errors are estimated with the parameters.
//!
//! Values below the limit of quantification have the probability that the true value lies there: method M3 of S. L. Beal,
//! "Ways to fit a PK model with some data below the quantification limit", J. Pharmacokinet. Pharmacodyn. 28 (2001).
//! Steps are those of Fisher scoring with the damping of Levenberg and Marquardt: the expected information needs first
//! derivatives alone, and these are exact.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: rows are observations, columns parameters of one problem"
)]

use super::matrix::SymmetricMatrix;
use super::problem::{FitProblem, Observation, Prediction, ResidualModel};
use super::{FitError, FitResult, ParameterEstimate, student};
use crate::population::uniform;
use crate::run::RunError;
use crate::units::normal;
use crate::watch::Watch;

/// Steps of one search at most.
const STEPS_MAX: usize = 200;
const DAMPING_START: f64 = 1e-3;
const DAMPING_LOWER: f64 = 0.1;
const DAMPING_HIGHER: f64 = 4.0;
/// Rejected steps in a row after which the runs are no more exact than this.
const REJECTED_MAX: usize = 8;
/// Done when a step promises to lower the objective by no more than this.
const PROMISE_MIN: f64 = 1e-9;
/// Two-sided probability outside an interval.
const OUTSIDE: f64 = 0.05;
/// Searches for one end of an interval at most, and how near its objective has to come to the bound, relative to it.
const ENDS_MAX: usize = 16;
const END_NEAR: f64 = 1e-3;
/// Further starts differ from the first by a factor up to this, where a parameter has no bounds.
const START_FACTOR: f64 = 5.0;
/// Most starts of one fit.
pub const STARTS_MAX: usize = 1_000;
/// Objectives that differ by no more than this are the same optimum.
const SAME_OPTIMUM: f64 = 0.01;
/// Correlations above this are warned of.
const CORRELATION_MAX: f64 = 0.99;
/// Standard deviations lie within these factors of the largest value.
const SIGMA_RANGE: (f64, f64) = (1e-9, 1e3);

/// An estimated standard deviation of one output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SigmaEstimate {
    /// Position among the structure's outputs.
    pub output: usize,
    /// `additive` (in the output's base unit), `proportional`, or `log`.
    pub kind: &'static str,
    /// Its value.
    pub value: f64,
}

/// How an interval of 95 % is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IntervalMethod {
    /// Ends at which the profile of the likelihood falls below its bound.
    #[default]
    Profile,
    /// From the curvature at the optimum.
    Hessian,
}

/// Options of a fit by likelihood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LikelihoodOptions {
    /// Number of starts: the first from the individual's values, the others drawn.
    pub starts: usize,
    /// Seed of the further starts.
    pub seed: u64,
    /// Intervals of the estimates.
    pub intervals: IntervalMethod,
}

impl Default for LikelihoodOptions {
    fn default() -> Self {
        Self {
            starts: 1,
            seed: 0,
            intervals: IntervalMethod::Profile,
        }
    }
}

/// Criteria, standard deviations and starts of a fit by likelihood.
#[derive(Debug, Clone, PartialEq)]
pub struct LikelihoodSummary {
    /// −2 times the logarithm of the likelihood, with all constants.
    pub objective: f64,
    /// Akaike's criterion.
    pub aic: f64,
    /// The Bayesian (Schwarz's) criterion.
    pub bic: f64,
    /// Standard deviations of the errors.
    pub sigmas: Vec<SigmaEstimate>,
    /// Standard deviation of each observation.
    pub deviations: Vec<f64>,
    /// Ends of the intervals from the curvature, by parameter.
    pub hessian: Vec<(f64, f64)>,
    /// Objective that each start reached; not a number where the model could not be run.
    pub starts: Vec<f64>,
    /// How many of them reached the best.
    pub starts_at_best: usize,
    /// Doubts about the estimates.
    pub warnings: Vec<String>,
}

/// Value of the likelihood at a point, with its slope and expected information.
#[derive(Clone)]
struct LikelihoodPoint {
    at: Vec<f64>,
    /// Negative logarithm of the likelihood.
    cost: f64,
    slope: Vec<f64>,
    information: SymmetricMatrix,
    prediction: Prediction,
    deviations: Vec<f64>,
}

/// Contribution of one observation: negative logarithm of its likelihood, and that of the mean and of the logarithms of
/// the standard deviations to slope and information, each as a row of derivatives with factors.
struct ErrorTerm {
    cost: f64,
    /// Slope by the value of the model, and by the standard deviation.
    slope: (f64, f64),
    /// Information by value × value, value × deviation and deviation × deviation.
    information: (f64, f64, f64),
    deviation: f64,
}

/// Standard deviation with its derivatives by the value of the model and the logarithms of both sigmas.
struct ErrorDeviation {
    value: f64,
    by_value: f64,
    by_sigmas: [f64; 2],
}

/// A problem with the places of its sigmas behind those of its parameters.
struct SigmaLayout<'p, 'a> {
    problem: &'p FitProblem<'a>,
    errors: ResidualModel,
    /// For each output that was observed, the place of its first sigma.
    places: Vec<(usize, usize)>,
    kinds: &'static [&'static str],
    bounds: Vec<(f64, f64)>,
}

impl<'p, 'a> SigmaLayout<'p, 'a> {
    fn new(problem: &'p FitProblem<'a>, errors: ResidualModel) -> Self {
        let kinds: &[&str] = match errors {
            ResidualModel::Combined => &["additive", "proportional"],
            ResidualModel::Proportional => &["proportional"],
            ResidualModel::LogNormal => &["log"],
            _ => &["additive"],
        };
        let mut outputs: Vec<usize> = problem.observations().iter().map(|o| o.output).collect();
        outputs.sort_unstable();
        outputs.dedup();
        let mut bounds = problem.bounds();
        let first = bounds.len();
        let mut places = Vec::new();
        for (i, output) in outputs.into_iter().enumerate() {
            places.push((output, first + i * kinds.len()));
            let own = problem.observations().iter().filter(|o| o.output == output);
            let most = own.fold(f64::MIN_POSITIVE, |most, o| most.max(o.value.abs()));
            for kind in kinds {
                let scale = if *kind == "additive" { most } else { 1.0 };
                let (low, high) = SIGMA_RANGE;
                bounds.push(((low * scale).ln(), (high * scale).ln()));
            }
        }
        Self {
            problem,
            errors,
            places,
            kinds,
            bounds,
        }
    }

    fn place(&self, output: usize) -> usize {
        let known = self.places.iter().find(|(known, _)| *known == output);
        known.map_or(0, |(_, place)| *place)
    }

    /// Standard deviation of an observation, on the scale of its residual.
    fn deviation(&self, o: &Observation, value: f64, at: &[f64]) -> ErrorDeviation {
        let place = self.place(o.output);
        let first = at[place].exp() / o.weight;
        match self.errors {
            ResidualModel::Proportional => ErrorDeviation {
                value: first * value.abs(),
                by_value: first * value.signum(),
                by_sigmas: [first * value.abs(), 0.0],
            },
            ResidualModel::Combined => {
                let share = at[place + 1].exp() / o.weight;
                let second = share * value;
                let s = (first * first + second * second).sqrt();
                ErrorDeviation {
                    value: s,
                    by_value: share * second / s,
                    by_sigmas: [first * first / s, second * second / s],
                }
            }
            _ => ErrorDeviation {
                value: first,
                by_value: 0.0,
                by_sigmas: [first, 0.0],
            },
        }
    }

    fn point(&self, at: Vec<f64>) -> Result<LikelihoodPoint, FitError> {
        let parameters = self.problem.bounds().len();
        let prediction = self.problem.predict(&at[..parameters])?;
        let n = at.len();
        let mut point = LikelihoodPoint {
            cost: 0.0,
            slope: vec![0.0; n],
            information: SymmetricMatrix::zero(n),
            deviations: Vec::with_capacity(prediction.values.len()),
            prediction,
            at,
        };
        let is_log = self.errors == ResidualModel::LogNormal;
        let (mut mean, mut spread) = (vec![0.0; n], vec![0.0; n]);
        for (i, o) in self.problem.observations().iter().enumerate() {
            let value = point.prediction.values[i];
            let s = self.deviation(o, value, &point.at);
            let term = error_term(o, value, s.value, is_log);
            if !term.cost.is_finite() {
                return Err(FitError::Run(RunError::NotComparable {
                    time: o.time,
                    value,
                }));
            }
            let row = &point.prediction.jacobian[i * parameters..(i + 1) * parameters];
            for (j, d) in row.iter().enumerate() {
                mean[j] = *d;
                spread[j] = s.by_value * d;
            }
            for (k, by) in s.by_sigmas.iter().enumerate().take(self.kinds.len()) {
                spread[self.place(o.output) + k] = *by;
            }
            point.cost += term.cost;
            point.deviations.push(term.deviation);
            let (vv, vs, ss) = term.information;
            for a in 0..n {
                point.slope[a] += term.slope.0 * mean[a] + term.slope.1 * spread[a];
                for b in 0..=a {
                    let both = mean[a] * spread[b] + spread[a] * mean[b];
                    let entry = vv * mean[a] * mean[b] + vs * both + ss * spread[a] * spread[b];
                    point.information.add(a, b, entry);
                }
            }
            for k in 0..self.kinds.len() {
                spread[self.place(o.output) + k] = 0.0;
            }
        }
        Ok(point)
    }

    /// Sigmas that fit the residuals at the start of the search.
    fn start(&self, parameters: Vec<f64>) -> Result<Vec<f64>, FitError> {
        let prediction = self.problem.predict(&parameters)?;
        let mut at = parameters;
        let share = 1.0 / (self.kinds.len() as f64).sqrt();
        for (output, _) in &self.places {
            for kind in self.kinds {
                let (mut sum, mut count) = (0.0, 0_usize);
                for (o, value) in self.problem.observations().iter().zip(&prediction.values) {
                    if o.output != *output || o.is_censored {
                        continue;
                    }
                    let residual = match *kind {
                        "additive" => o.value - value,
                        "log" => o.value.ln() - value.ln(),
                        _ => (o.value - value) / value,
                    } * o.weight;
                    // A start far off makes no sigma of its own size.
                    let capped = if *kind == "additive" {
                        residual
                    } else {
                        residual.clamp(-2.0, 2.0)
                    };
                    if capped.is_finite() {
                        sum += capped * capped;
                        count += 1;
                    }
                }
                let (low, high) = self.bounds[at.len()];
                let sigma = (sum / count.max(1) as f64).sqrt() * share;
                at.push(sigma.ln().clamp(low, high));
            }
        }
        Ok(at)
    }

    /// Lowers the cost from a point on; `held` is a parameter that keeps its value.
    fn search(
        &self,
        start: LikelihoodPoint,
        held: Option<usize>,
        watch: &Watch<'_>,
    ) -> Result<(LikelihoodPoint, usize, bool), FitError> {
        let (mut point, mut damping, mut runs, mut rejected) = (start, DAMPING_START, 0, 0);
        for _ in 0..STEPS_MAX {
            watch.ask()?;
            let free = self.free(&point, held);
            let slope: Vec<f64> = free.iter().map(|i| -point.slope[*i]).collect();
            let information = point.information.part(&free);
            // What an undamped step promises.
            let promise = information.solve(&slope, watch)?.map(|step| {
                let gain = step.iter().zip(&slope).map(|(d, s)| d * s);
                gain.sum::<f64>() / 2.0
            });
            if free.is_empty() || promise.is_some_and(|promise| promise <= PROMISE_MIN) {
                return Ok((point, runs, true));
            }
            let mut damped = information;
            damped.lengthen_diagonal(1.0 + damping);
            let trial = damped.solve(&slope, watch)?.map(|step| {
                let mut at = point.at.clone();
                for (i, d) in free.iter().zip(step) {
                    at[*i] = (at[*i] + d).clamp(self.bounds[*i].0, self.bounds[*i].1);
                }
                at
            });
            let next = match trial {
                Some(at) if at != point.at => {
                    runs += 1;
                    match self.point(at) {
                        Ok(next) => Some(next),
                        Err(FitError::Run(_)) => None,
                        Err(e) => return Err(e),
                    }
                }
                _ => None,
            };
            match next {
                Some(next) if next.cost <= point.cost => {
                    point = next;
                    damping *= DAMPING_LOWER;
                    rejected = 0;
                }
                _ => {
                    damping *= DAMPING_HIGHER;
                    rejected += 1;
                    if rejected > REJECTED_MAX {
                        return Ok((point, runs, true));
                    }
                }
            }
        }
        Ok((point, runs, false))
    }

    /// Parameters that may move.
    fn free(&self, point: &LikelihoodPoint, held: Option<usize>) -> Vec<usize> {
        let is_free = |i: &usize| {
            let (low, high) = self.bounds[*i];
            let outwards = point.at[*i] <= low && point.slope[*i] > 0.0
                || point.at[*i] >= high && point.slope[*i] < 0.0;
            Some(*i) != held && !outwards
        };
        (0..point.at.len()).filter(is_free).collect()
    }
}

/// Returns what an observation adds to the negative logarithm of the likelihood.
fn error_term(o: &Observation, value: f64, deviation: f64, is_log: bool) -> ErrorTerm {
    // On the scale of the residual, with the slope of that scale by the value of the model.
    let (observed, model, scale) = match is_log {
        true => (o.value.ln(), value.ln(), 1.0 / value),
        false => (o.value, value, 1.0),
    };
    let z = (observed - model) / deviation;
    if o.is_censored {
        let cost = -normal::ln_part_below(z);
        let ratio = normal::density_ratio(z);
        // By z: −ratio, and ratio·(ratio + z).
        let (by_model, by_deviation) = (-scale / deviation, -z / deviation);
        let curvature = ratio * (ratio + z);
        return ErrorTerm {
            cost,
            slope: (-ratio * by_model, -ratio * by_deviation),
            information: (
                curvature * by_model * by_model,
                curvature * by_model * by_deviation,
                curvature * by_deviation * by_deviation,
            ),
            deviation,
        };
    }
    let jacobian = if is_log { observed } else { 0.0 };
    let variance = deviation * deviation;
    ErrorTerm {
        cost: 0.5 * (std::f64::consts::TAU.ln() + z * z) + deviation.ln() + jacobian,
        slope: (-z * scale / deviation, (1.0 - z * z) / deviation),
        information: (scale * scale / variance, 0.0, 2.0 / variance),
        deviation,
    }
}

/// Fits by likelihood.
pub(super) fn fit(problem: &FitProblem<'_>, watch: &Watch<'_>) -> Result<FitResult, FitError> {
    let layout = SigmaLayout::new(problem, problem.errors());
    let options = problem.likelihood();
    let (mut runs, mut best): (usize, Option<(LikelihoodPoint, bool)>) = (0, None);
    let mut reached = Vec::new();
    let mut failure = None;
    for start in starts(problem, options) {
        let (start, more) = approach(problem, start, watch)?;
        let begun = layout.start(start).and_then(|at| layout.point(at));
        runs += 2 + more;
        let found = begun.and_then(|point| layout.search(point, None, watch));
        let (point, more, converged) = match found {
            Ok(found) => found,
            Err(FitError::Run(error)) => {
                reached.push(f64::NAN);
                failure.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        runs += more;
        reached.push(2.0 * point.cost);
        if best.as_ref().is_none_or(|(best, _)| point.cost < best.cost) {
            best = Some((point, converged));
        }
    }
    let Some((best, converged)) = best else {
        let error = failure.unwrap_or(RunError::EmptyGrid);
        return Err(FitError::Run(error));
    };
    let mut result = summary(&layout, &best, reached, watch)?;
    (result.runs, result.converged) = (runs, converged);
    if options.intervals == IntervalMethod::Profile {
        profile(&layout, &best, &mut result, watch)?;
    }
    Ok(result)
}

/// Returns a start nearer to the data, for errors that are a share of the value: far from the data such a likelihood has
/// optima of huge shares, and one of log-normal errors has not. The start itself if logarithms cannot be compared.
fn approach(
    problem: &FitProblem<'_>,
    start: Vec<f64>,
    watch: &Watch<'_>,
) -> Result<(Vec<f64>, usize), FitError> {
    let is_share = matches!(
        problem.errors(),
        ResidualModel::Proportional | ResidualModel::Combined
    );
    if !is_share || problem.observations().iter().any(|o| o.value <= 0.0) {
        return Ok((start, 0));
    }
    let layout = SigmaLayout::new(problem, ResidualModel::LogNormal);
    let begun = layout.start(start.clone());
    let begun = begun.and_then(|at| layout.point(at));
    match begun.and_then(|point| layout.search(point, None, watch)) {
        Ok((mut point, runs, _)) => {
            point.at.truncate(start.len());
            Ok((point.at, runs + 2))
        }
        Err(FitError::Run(_)) => Ok((start, 2)),
        Err(error) => Err(error),
    }
}

/// Returns the starts: the individual's values, and draws between the bounds or around them.
fn starts(problem: &FitProblem<'_>, options: LikelihoodOptions) -> Vec<Vec<f64>> {
    let (first, bounds) = (problem.start(), problem.bounds());
    let drawn = (1..options.starts.clamp(1, STARTS_MAX)).map(|row| {
        let parameters = first.iter().zip(&bounds).enumerate();
        let draw = |(column, (start, (low, high))): (usize, (&f64, &(f64, f64)))| {
            let part = uniform(options.seed, column as u64, row as u64);
            if low.is_finite() && high.is_finite() {
                return low + (high - low) * part;
            }
            let reach = match problem.is_by_log(column) {
                true => START_FACTOR.ln(),
                false => START_FACTOR * start.abs().max(f64::MIN_POSITIVE),
            };
            (start + reach * (2.0 * part - 1.0)).clamp(*low, *high)
        };
        parameters.map(draw).collect()
    });
    std::iter::once(first.clone()).chain(drawn).collect()
}

fn summary(
    layout: &SigmaLayout<'_, '_>,
    best: &LikelihoodPoint,
    starts: Vec<f64>,
    watch: &Watch<'_>,
) -> Result<FitResult, FitError> {
    let problem = layout.problem;
    let parameters = problem.bounds().len();
    let observations = problem.observations();
    let inside = |i: &usize| {
        let (low, high) = layout.bounds[*i];
        best.at[*i] > low && best.at[*i] < high
    };
    let free: Vec<usize> = (0..best.at.len()).filter(inside).collect();
    let degrees = observations.len().saturating_sub(parameters);
    let inverse = best.information.part(&free).inverse(watch)?;
    let width = student::quantile(1.0 - OUTSIDE / 2.0, degrees) * small_sample(layout).sqrt();
    let mut warnings = Vec::new();
    let mut estimates: Vec<ParameterEstimate> = (0..parameters)
        .map(|i| ParameterEstimate {
            value: problem.value(i, best.at[i]),
            low: f64::NAN,
            high: f64::NAN,
            at_bound: true,
        })
        .collect();
    let mut correlation = vec![0.0; parameters * parameters];
    let spread = |a: usize| {
        inverse
            .as_ref()
            .map_or(f64::INFINITY, |m| m.at(a, a).sqrt())
    };
    for (a, &i) in free.iter().enumerate().filter(|(_, i)| **i < parameters) {
        let reach = width * spread(a);
        estimates[i].at_bound = false;
        estimates[i].low = problem.value(i, best.at[i] - reach);
        estimates[i].high = problem.value(i, best.at[i] + reach);
        for (b, &j) in free.iter().enumerate().filter(|(_, j)| **j < parameters) {
            let both = inverse.as_ref().map_or(f64::NAN, |m| m.at(a, b));
            let found = both / (spread(a) * spread(b));
            correlation[i * parameters + j] = found;
            if j < i && found.abs() > CORRELATION_MAX {
                warnings.push(format!(
                    "'{}' and '{}' are hardly told apart by the data: their estimates correlate by {found:.3}",
                    problem.path(j),
                    problem.path(i)
                ));
            }
        }
    }
    if inverse.is_none() {
        warnings.push(
            "the data do not determine all parameters: the information is singular".to_owned(),
        );
    }
    for (i, estimate) in estimates.iter().enumerate() {
        if estimate.at_bound {
            warnings.push(format!("'{}' lies at its bound", problem.path(i)));
        }
    }
    let objective = 2.0 * best.cost;
    let kinds = layout.kinds.iter().enumerate();
    let sigmas: Vec<SigmaEstimate> = layout
        .places
        .iter()
        .flat_map(|(output, place)| {
            let at = &best.at;
            kinds.clone().map(move |(k, kind)| SigmaEstimate {
                output: *output,
                kind,
                value: at[place + k].exp(),
            })
        })
        .collect();
    let count = best.at.len() as f64;
    let residuals = observations
        .iter()
        .zip(&best.prediction.values)
        .zip(&best.deviations);
    let is_log = layout.errors == ResidualModel::LogNormal;
    let squares = residuals
        .filter(|((o, _), _)| !o.is_censored)
        .map(|((o, value), s)| {
            let residual = if is_log {
                o.value.ln() - value.ln()
            } else {
                o.value - value
            };
            (residual / s).powi(2)
        });
    let starts_at_best = starts
        .iter()
        .filter(|reached| **reached <= objective + SAME_OPTIMUM)
        .count();
    Ok(FitResult {
        sum_of_squares: squares.sum(),
        sigma: sigmas.first().map_or(f64::NAN, |sigma| sigma.value),
        degrees,
        runs: 0,
        converged: false,
        fitted: best.prediction.values.clone(),
        correlation,
        likelihood: Some(LikelihoodSummary {
            objective,
            aic: objective + 2.0 * count,
            bic: objective + count * (observations.len() as f64).ln(),
            sigmas,
            deviations: best.deviations.clone(),
            hessian: estimates.iter().map(|e| (e.low, e.high)).collect(),
            starts,
            starts_at_best,
            warnings,
        }),
        estimates,
    })
}

/// Observations by degrees of freedom: maximum likelihood finds standard deviations that are too small by its root.
fn small_sample(layout: &SigmaLayout<'_, '_>) -> f64 {
    let n = layout.problem.observations().len() as f64;
    let parameters = layout.problem.bounds().len() as f64;
    n / (n - parameters).max(1.0)
}

/// Replaces the intervals by those of the profile of the likelihood.
fn profile(
    layout: &SigmaLayout<'_, '_>,
    best: &LikelihoodPoint,
    result: &mut FitResult,
    watch: &Watch<'_>,
) -> Result<(), FitError> {
    let n = layout.problem.observations().len() as f64;
    let t = student::quantile(1.0 - OUTSIDE / 2.0, result.degrees);
    // As far as the objective may rise; exact where the model is linear in its parameters and the errors are additive.
    let allowed = n * (t * t / result.degrees.max(1) as f64).ln_1p();
    for i in 0..result.estimates.len() {
        if result.estimates[i].at_bound {
            continue;
        }
        for is_upper in [false, true] {
            let (end, runs) = profile_end(layout, best, (i, is_upper, allowed), watch)?;
            result.runs += runs;
            let value = layout.problem.value(i, end);
            match is_upper {
                true => result.estimates[i].high = value,
                false => result.estimates[i].low = value,
            }
        }
    }
    Ok(())
}

/// Returns where the objective of parameter `i`, all others fitted, has risen by `allowed`: infinite if it does not.
fn profile_end(
    layout: &SigmaLayout<'_, '_>,
    best: &LikelihoodPoint,
    (i, is_upper, allowed): (usize, bool, f64),
    watch: &Watch<'_>,
) -> Result<(f64, usize), FitError> {
    let sign = if is_upper { 1.0 } else { -1.0 };
    let (low, high) = layout.bounds[i];
    let bound = if is_upper { high } else { low };
    let room = (bound - best.at[i]).abs();
    let curvature = best.information.at(i, i).max(f64::MIN_POSITIVE);
    // At least as far as it is with all other parameters held.
    let mut step = (allowed / curvature).sqrt().min(room);
    let (mut inner, mut outer) = (0.0_f64, f64::INFINITY);
    let mut runs = 0;
    let mut from = best.clone();
    for _ in 0..ENDS_MAX {
        let mut at = from.at.clone();
        at[i] = best.at[i] + sign * step;
        runs += 1;
        let found = match layout.point(at) {
            Ok(point) => {
                let (point, more, _) = layout.search(point, Some(i), watch)?;
                runs += more;
                Some(point)
            }
            Err(FitError::Run(_)) => None,
            Err(error) => return Err(error),
        };
        let rise = found
            .as_ref()
            .map_or(f64::INFINITY, |point| 2.0 * (point.cost - best.cost));
        if (rise - allowed).abs() <= END_NEAR * allowed {
            return Ok((best.at[i] + sign * step, runs));
        }
        if rise < allowed {
            if step >= room {
                // The likelihood does not fall that far before the bound.
                return Ok((sign * f64::INFINITY, runs));
            }
            inner = step;
            if let Some(point) = found {
                from = point;
            }
        } else {
            outer = step;
        }
        // The root of the rise grows about linearly.
        let guess = match rise.is_finite() && rise > 0.0 {
            true => step * (allowed / rise).sqrt(),
            false => step * 0.5,
        };
        let middle = match outer.is_finite() {
            true => (inner + outer) / 2.0,
            false => 2.0 * step,
        };
        let is_between = guess > inner && guess < outer.min(4.0 * step.max(f64::MIN_POSITIVE));
        step = if is_between { guess } else { middle }.min(room);
    }
    Ok((best.at[i] + sign * step, runs))
}
