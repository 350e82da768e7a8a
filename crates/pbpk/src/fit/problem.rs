//! Parameters, data and residuals of a fit.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: rows are observations, columns parameters of one problem"
)]

use std::fmt;

use super::{FitError, LikelihoodOptions};
use crate::compile::{Instance, QuantityChanges};
use crate::error::SetError;
use crate::run::{OspVersion, RunError, RunOptions, run};

/// A parameter to be fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitParameter {
    /// Its quantity.
    pub position: usize,
    /// Bounds in base units; infinite for none.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// One measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Position among the structure's outputs.
    pub output: usize,
    /// Time in minutes.
    pub time: f64,
    /// Value in base units.
    pub value: f64,
    /// Factor of its residual.
    pub weight: f64,
    /// Whether the true value only lies below `value`, the limit of quantification: the residual is 0 if the model lies
    /// below it too.
    pub is_censored: bool,
}

/// How residuals are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResidualModel {
    /// Differences of logarithms.
    Log,
    /// Differences.
    Absolute,
    /// Normal errors with one standard deviation, which is estimated.
    Additive,
    /// Normal errors with a standard deviation that is a share of the value of the model; the share is estimated.
    Proportional,
    /// Normal errors with the variances of both together.
    Combined,
    /// Log-normal errors: the logarithms have one standard deviation, which is estimated.
    LogNormal,
}

impl ResidualModel {
    /// All models of errors, those of least squares first.
    pub const ALL: [Self; 6] = [
        Self::Log,
        Self::Absolute,
        Self::Additive,
        Self::Proportional,
        Self::Combined,
        Self::LogNormal,
    ];

    /// Returns the name by which it is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Absolute => "absolute",
            Self::Additive => "additive",
            Self::Proportional => "proportional",
            Self::Combined => "combined",
            Self::LogNormal => "log-normal",
        }
    }

    /// Returns the model of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Returns whether standard deviations are estimated by likelihood.
    #[must_use]
    pub fn is_likelihood(self) -> bool {
        !matches!(self, Self::Log | Self::Absolute)
    }

    /// Returns whether logarithms are compared: values then have to be positive.
    #[must_use]
    pub fn is_logarithmic(self) -> bool {
        matches!(self, Self::Log | Self::LogNormal)
    }
}

/// Values of the model at the observations, and their derivatives.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prediction {
    /// One for each observation.
    pub(super) values: Vec<f64>,
    /// By the fitted parameters, row by row.
    pub(super) jacobian: Vec<f64>,
}

/// Parameters, data, and the individual at which the fit starts.
pub struct FitProblem<'a> {
    individual: &'a Instance,
    parameters: Vec<FitParameter>,
    observations: Vec<Observation>,
    errors: ResidualModel,
    positions: Vec<usize>,
    changes: QuantityChanges,
    times: Vec<f64>,
    /// For each parameter whether it is fitted by its logarithm.
    by_log: Vec<bool>,
    interrupt: Option<crate::watch::Question<'a>>,
    tolerances: (Option<f64>, Option<f64>),
    release: OspVersion,
    likelihood: LikelihoodOptions,
}

/// Why a problem makes no sense.
#[derive(Debug, Clone, PartialEq)]
pub enum ProblemError {
    /// Fewer observations than parameters.
    TooFew {
        /// Observations.
        observations: usize,
        /// Parameters.
        parameters: usize,
    },
    /// A lower bound that is not below the upper one.
    NoRange {
        /// The parameter's path.
        path: String,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Bounds that exclude the start.
    Bounds {
        /// The parameter's path.
        path: String,
        /// Start value.
        start: f64,
    },
    /// An observation that is no number, or not positive where logarithms are compared.
    Observation {
        /// Its time.
        time: f64,
        /// Its value.
        value: f64,
    },
    /// A parameter that cannot be set.
    Set(SetError),
    /// The same parameter twice.
    Twice {
        /// Its path.
        path: String,
    },
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew {
                observations,
                parameters,
            } => write!(
                f,
                "{observations} usable observations do not determine {parameters} parameters"
            ),
            Self::NoRange { path, low, high } => write!(
                f,
                "the lower bound of '{path}', {low}, is not below the upper one, {high}"
            ),
            Self::Bounds { path, start } => write!(
                f,
                "'{path}' starts at {start}, which does not lie within its bounds; give it another start or wider bounds"
            ),
            Self::Observation { time, value } => {
                write!(f, "the observation {value} at {time} min cannot be used")
            }
            Self::Set(e) => e.fmt(f),
            Self::Twice { path } => write!(f, "'{path}' is fitted twice"),
        }
    }
}

impl std::error::Error for ProblemError {}

impl<'a> FitProblem<'a> {
    /// Returns a problem with the individual's values as start values.
    ///
    /// # Errors
    /// [`ProblemError::Set`] for a quantity that cannot be set.
    pub fn new(
        individual: &'a Instance,
        parameters: Vec<FitParameter>,
        observations: Vec<Observation>,
        errors: ResidualModel,
    ) -> Result<Self, ProblemError> {
        let positions: Vec<usize> = parameters.iter().map(|p| p.position).collect();
        let changes =
            QuantityChanges::new(individual, positions.clone()).map_err(ProblemError::Set)?;
        let mut times: Vec<f64> = observations.iter().map(|o| o.time).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let by_log = parameters
            .iter()
            .map(|p| {
                let positive = individual.value(p.position).is_some_and(|v| v > 0.0);
                positive && (p.low >= 0.0 || p.low == f64::NEG_INFINITY)
            })
            .collect();
        Ok(Self {
            individual,
            parameters,
            observations,
            errors,
            positions,
            changes,
            times,
            by_log,
            interrupt: None,
            tolerances: (None, None),
            release: OspVersion::default(),
            likelihood: LikelihoodOptions::default(),
        })
    }

    /// Asks this question during the fit.
    pub fn set_watch(&mut self, interrupt: crate::watch::Question<'a>) {
        self.interrupt = Some(interrupt);
    }

    pub(super) fn interrupt(&self) -> Option<crate::watch::Question<'a>> {
        self.interrupt
    }

    /// Relative and absolute tolerance of the runs instead of the file's.
    pub fn with_tolerances(&mut self, relative: Option<f64>, absolute: Option<f64>) {
        self.tolerances = (relative, absolute);
    }

    /// Sets the release of the OSP solver for the rules of the runs.
    pub fn with_release(&mut self, release: OspVersion) {
        self.release = release;
    }

    /// Sets starts and intervals of a fit by likelihood.
    pub fn with_likelihood(&mut self, options: LikelihoodOptions) {
        self.likelihood = options;
    }

    pub(super) fn likelihood(&self) -> LikelihoodOptions {
        self.likelihood
    }

    pub(super) fn errors(&self) -> ResidualModel {
        self.errors
    }

    pub(super) fn observations(&self) -> &[Observation] {
        &self.observations
    }

    pub(super) fn is_by_log(&self, parameter: usize) -> bool {
        self.by_log[parameter]
    }

    /// Returns the path of a parameter.
    pub(super) fn path(&self, parameter: usize) -> &str {
        let quantities = &self.individual.structure().model().quantities;
        let quantity = self
            .positions
            .get(parameter)
            .and_then(|q| quantities.get(*q));
        quantity.map_or("", |quantity| quantity.path.as_str())
    }

    pub(super) fn check(&self) -> Result<(), ProblemError> {
        let path = |q: usize| {
            let quantity = self.individual.structure().model().quantities.get(q);
            quantity.map_or_else(String::new, |q| q.path.clone())
        };
        if self.observations.len() < self.parameters.len() || self.parameters.is_empty() {
            return Err(ProblemError::TooFew {
                observations: self.observations.len(),
                parameters: self.parameters.len(),
            });
        }
        for (i, p) in self.parameters.iter().enumerate() {
            if self.positions[..i].contains(&p.position) {
                return Err(ProblemError::Twice {
                    path: path(p.position),
                });
            }
            let start = self.individual.value(p.position).unwrap_or(f64::NAN);
            if p.low.is_nan() || p.high.is_nan() || p.low >= p.high {
                return Err(ProblemError::NoRange {
                    path: path(p.position),
                    low: p.low,
                    high: p.high,
                });
            }
            if !(start >= p.low && start <= p.high && start.is_finite()) {
                return Err(ProblemError::Bounds {
                    path: path(p.position),
                    start,
                });
            }
        }
        let usable = |o: &Observation| {
            o.value.is_finite()
                && o.time.is_finite()
                && o.time >= 0.0
                && (o.value > 0.0 || !self.errors.is_logarithmic())
        };
        match self.observations.iter().find(|o| !usable(o)) {
            Some(o) => Err(ProblemError::Observation {
                time: o.time,
                value: o.value,
            }),
            None => Ok(()),
        }
    }

    fn inner(&self, i: usize, value: f64) -> f64 {
        if self.by_log[i] { value.ln() } else { value }
    }

    /// Returns the value of a parameter in base units.
    pub(super) fn value(&self, i: usize, inner: f64) -> f64 {
        if self.by_log[i] { inner.exp() } else { inner }
    }

    /// Returns the start values of the fit.
    pub(super) fn start(&self) -> Vec<f64> {
        let value = |q: usize| self.individual.value(q).unwrap_or(f64::NAN);
        let positions = self.positions.iter().enumerate();
        positions.map(|(i, q)| self.inner(i, value(*q))).collect()
    }

    /// Bounds of the fit.
    pub(super) fn bounds(&self) -> Vec<(f64, f64)> {
        let bound = |(i, p): (usize, &FitParameter)| {
            let low = if self.by_log[i] && p.low <= 0.0 {
                f64::NEG_INFINITY
            } else {
                self.inner(i, p.low)
            };
            (low, self.inner(i, p.high))
        };
        self.parameters.iter().enumerate().map(bound).collect()
    }

    /// Returns the values of the model at the observations.
    pub(super) fn predict(&self, at: &[f64]) -> Result<Prediction, FitError> {
        let values: Vec<f64> = at
            .iter()
            .enumerate()
            .map(|(i, u)| self.value(i, *u))
            .collect();
        let mut individual = self.individual.clone();
        let set = individual.set_all(&self.changes, &values);
        set.map_err(|e| FitError::Problem(ProblemError::Set(e)))?;
        let options = RunOptions {
            rel_tol: self.tolerances.0,
            abs_tol: self.tolerances.1,
            times: Some(&self.times),
            sensitivity_to: &self.positions,
            interrupt: self.interrupt,
            osp_version: self.release,
            ..RunOptions::default()
        };
        let results = run(&individual, &options).map_err(|failure| match failure.error {
            RunError::Interrupted { cause, .. } => FitError::Interrupted(cause),
            error => FitError::Run(error),
        })?;
        let (outputs, width) = (results.paths.len(), at.len());
        let mut prediction = Prediction {
            values: Vec::with_capacity(self.observations.len()),
            jacobian: Vec::with_capacity(self.observations.len() * width),
        };
        for o in &self.observations {
            let row = results.times.partition_point(|t| *t < o.time);
            let place = row.min(results.times.len() - 1) * outputs + o.output;
            prediction.values.push(results.values[place]);
            let derivatives = &results.derivatives[place * width..(place + 1) * width];
            for (i, d) in derivatives.iter().enumerate() {
                let inner = if self.by_log[i] { values[i] } else { 1.0 };
                prediction.jacobian.push(d * inner);
            }
        }
        Ok(prediction)
    }

    /// Values of the model, residuals, and the derivatives of these, row by row.
    #[expect(clippy::type_complexity, reason = "three parts of one result")]
    pub(super) fn residuals(&self, at: &[f64]) -> Result<(Vec<f64>, Vec<f64>, Vec<f64>), FitError> {
        let mut prediction = self.predict(at)?;
        let width = at.len();
        let mut residuals = Vec::with_capacity(self.observations.len());
        for (i, o) in self.observations.iter().enumerate() {
            let value = prediction.values[i];
            let (residual, slope) = match self.errors.is_logarithmic() {
                _ if o.is_censored && value <= o.value => (0.0, 0.0),
                true => (value.ln() - o.value.ln(), 1.0 / value),
                false => (value - o.value, 1.0),
            };
            if !residual.is_finite() {
                return Err(FitError::Run(RunError::NotComparable {
                    time: o.time,
                    value,
                }));
            }
            residuals.push(o.weight * residual);
            for d in &mut prediction.jacobian[i * width..(i + 1) * width] {
                *d *= o.weight * slope;
            }
        }
        Ok((prediction.values, residuals, prediction.jacobian))
    }
}
