//! Parameters from observed data: nonlinear least squares by Levenberg and Marquardt on exact derivatives, or maximum
//! likelihood with standard deviations that are estimated ([`ResidualModel::is_likelihood`]).
//!
//! Source: J. J. Moré, "The Levenberg-Marquardt algorithm", LNM 630 (1978); intervals from the linearised model at the
//! end (D. M. Bates, D. G. Watts, "Nonlinear regression analysis", 1988, §2.3). Parameters that are positive are fitted
//! by their logarithms, so that a step never makes one negative and its interval lies above 0.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: rows are observations, columns parameters of one problem"
)]

mod likelihood;
mod matrix;
mod problem;
mod student;

pub use likelihood::{
    IntervalMethod, LikelihoodOptions, LikelihoodSummary, STARTS_MAX, SigmaEstimate,
};
use matrix::SymmetricMatrix;
pub use problem::{FitParameter, FitProblem, Observation, ProblemError, ResidualModel};

use crate::run::RunError;
use crate::watch::{Interrupt, Watch};

/// Products that make a unit of work.
const PRODUCTS_OF_A_UNIT: usize = 1024;

/// Attempts to lower the sum of squares, in all.
const ATTEMPTS_MAX: usize = 200;
/// Most runs of the model that a fit takes.
pub const RUNS_MAX: usize = ATTEMPTS_MAX + 1;
/// Damping at the beginning, its factors after success and failure, and its last value.
const DAMPING_START: f64 = 1e-3;
const DAMPING_LOWER: f64 = 0.1;
const DAMPING_HIGHER: f64 = 4.0;
const DAMPING_MAX: f64 = 1e10;
/// Done when a step lowers the sum of squares by no more than this part of it.
const DECREASE_MIN: f64 = 1e-8;
/// Two-sided probability outside an interval.
const OUTSIDE: f64 = 0.05;

/// One fitted parameter, in base units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterEstimate {
    /// Its value.
    pub value: f64,
    /// 95 % interval; not a number at a bound, infinite if the data do not determine the parameter.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the value lies at a bound.
    pub at_bound: bool,
}

/// Result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitResult {
    /// In the order of the problem's parameters.
    pub estimates: Vec<ParameterEstimate>,
    /// Sum of the squared, weighted residuals.
    pub sum_of_squares: f64,
    /// Standard deviation of the residuals.
    pub sigma: f64,
    /// Observations less parameters that are free.
    pub degrees: usize,
    /// Runs of the model.
    pub runs: usize,
    /// Whether the sum of squares could not be lowered any more; else the attempts ran out.
    pub converged: bool,
    /// Values of the model, in the order of the observations.
    pub fitted: Vec<f64>,
    /// Correlations of the free parameters' estimates, row by row over all parameters; 0 for those at a bound.
    pub correlation: Vec<f64>,
    /// Criteria and standard deviations of a fit by likelihood.
    pub likelihood: Option<LikelihoodSummary>,
}

/// Why a fit failed.
#[derive(Debug)]
pub enum FitError {
    /// The problem makes no sense.
    Problem(ProblemError),
    /// The model cannot be run at the start.
    Run(RunError),
    /// The caller asked to stop.
    Interrupted(Interrupt),
}

impl std::fmt::Display for FitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Problem(e) => e.fmt(f),
            Self::Run(e) => e.fmt(f),
            Self::Interrupted(cause) => write!(f, "{cause} while parameters were fitted"),
        }
    }
}

impl std::error::Error for FitError {}

impl From<Interrupt> for FitError {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted(cause)
    }
}

/// Residuals and their derivatives at a point.
struct ResidualPoint {
    at: Vec<f64>,
    residuals: Vec<f64>,
    /// Row by row, one for each residual.
    jacobian: Vec<f64>,
    fitted: Vec<f64>,
    cost: f64,
}

impl ResidualPoint {
    fn new(problem: &FitProblem<'_>, at: Vec<f64>) -> Result<Self, FitError> {
        let (fitted, residuals, jacobian) = problem.residuals(&at)?;
        let cost = residuals.iter().map(|r| r * r).sum();
        Ok(Self {
            at,
            residuals,
            jacobian,
            fitted,
            cost,
        })
    }

    /// `JᵀJ`.
    fn normal_matrix(&self, watch: &Watch<'_>) -> Result<SymmetricMatrix, Interrupt> {
        let n = self.at.len();
        let mut matrix = SymmetricMatrix::zero(n);
        for row in self.jacobian.chunks_exact(n.max(1)) {
            watch.work(1 + n * n / PRODUCTS_OF_A_UNIT)?;
            for i in 0..n {
                for j in 0..=i {
                    matrix.add(i, j, row[i] * row[j]);
                }
            }
        }
        Ok(matrix)
    }

    /// `Jᵀr`.
    fn slope(&self) -> Vec<f64> {
        let n = self.at.len();
        let mut slope = vec![0.0; n];
        for (row, r) in self.jacobian.chunks_exact(n.max(1)).zip(&self.residuals) {
            for (s, d) in slope.iter_mut().zip(row) {
                *s += d * r;
            }
        }
        slope
    }
}

/// Fits the parameters of a problem, from the values of its individual on.
///
/// # Errors
/// [`FitError`]. A run that fails on the way only shortens the step.
pub fn fit(problem: &FitProblem<'_>) -> Result<FitResult, FitError> {
    problem.check().map_err(FitError::Problem)?;
    let watch = Watch::new(problem.interrupt());
    watch.ask()?;
    if problem.errors().is_likelihood() {
        return likelihood::fit(problem, &watch);
    }
    let bounds = problem.bounds();
    let mut point = ResidualPoint::new(problem, problem.start())?;
    let (mut damping, mut runs, mut converged) = (DAMPING_START, 1, point.cost == 0.0);
    for _ in 0..ATTEMPTS_MAX {
        if converged {
            break;
        }
        let slope = point.slope();
        let free = free(&point.at, &slope, &bounds);
        let mut matrix = point.normal_matrix(&watch)?.part(&free);
        matrix.lengthen_diagonal(1.0 + damping);
        let wanted: Vec<f64> = free.iter().map(|i| -slope[*i]).collect();
        let trial = matrix.solve(&wanted, &watch)?.map(|step| {
            let mut at = point.at.clone();
            for (i, d) in free.iter().zip(step) {
                at[*i] = (at[*i] + d).clamp(bounds[*i].0, bounds[*i].1);
            }
            at
        });
        let trial = match trial {
            Some(at) if at != point.at => {
                runs += 1;
                match ResidualPoint::new(problem, at) {
                    Ok(next) => Some(next),
                    Err(FitError::Run(_)) => None,
                    Err(e) => return Err(e),
                }
            }
            _ => None,
        };
        match trial {
            Some(next) if next.cost < point.cost => {
                converged = point.cost - next.cost <= DECREASE_MIN * point.cost;
                point = next;
                damping *= DAMPING_LOWER;
            }
            _ => {
                damping *= DAMPING_HIGHER;
                converged = damping > DAMPING_MAX;
            }
        }
    }
    Ok(summary(
        problem,
        &point,
        &bounds,
        (runs, converged),
        &watch,
    )?)
}

/// Parameters that may move: not those at a bound beyond which the sum of squares is lower.
fn free(at: &[f64], slope: &[f64], bounds: &[(f64, f64)]) -> Vec<usize> {
    let held = |i: &usize| {
        let (low, high) = bounds[*i];
        at[*i] <= low && slope[*i] > 0.0 || at[*i] >= high && slope[*i] < 0.0
    };
    (0..at.len()).filter(|i| !held(i)).collect()
}

fn summary(
    problem: &FitProblem<'_>,
    point: &ResidualPoint,
    bounds: &[(f64, f64)],
    (runs, converged): (usize, bool),
    watch: &Watch<'_>,
) -> Result<FitResult, Interrupt> {
    let n = point.at.len();
    let inside = |i: &usize| point.at[*i] > bounds[*i].0 && point.at[*i] < bounds[*i].1;
    let free: Vec<usize> = (0..n).filter(inside).collect();
    let degrees = point.residuals.len().saturating_sub(free.len());
    let sigma = (point.cost / degrees.max(1) as f64).sqrt();
    let inverse = point.normal_matrix(watch)?.part(&free).inverse(watch)?;
    let width = student::quantile(1.0 - OUTSIDE / 2.0, degrees) * sigma;
    let mut estimates: Vec<ParameterEstimate> = (0..n)
        .map(|i| ParameterEstimate {
            value: problem.value(i, point.at[i]),
            low: f64::NAN,
            high: f64::NAN,
            at_bound: true,
        })
        .collect();
    let mut correlation = vec![0.0; n * n];
    for (a, &i) in free.iter().enumerate() {
        let spread = |a: usize| {
            inverse
                .as_ref()
                .map_or(f64::INFINITY, |m| m.at(a, a).sqrt())
        };
        watch.work(1 + free.len() / PRODUCTS_OF_A_UNIT)?;
        let reach = width * spread(a);
        estimates[i].at_bound = false;
        estimates[i].low = problem.value(i, point.at[i] - reach);
        estimates[i].high = problem.value(i, point.at[i] + reach);
        for (b, &j) in free.iter().enumerate() {
            let both = inverse.as_ref().map_or(f64::NAN, |m| m.at(a, b));
            correlation[i * n + j] = both / (spread(a) * spread(b));
        }
    }
    Ok(FitResult {
        estimates,
        sum_of_squares: point.cost,
        sigma,
        degrees,
        runs,
        converged,
        fitted: point.fitted.clone(),
        correlation,
        likelihood: None,
    })
}
