//! Sensitivities of pharmacokinetic parameters as the suite defines them: relative changes, over small relative changes
//! of one model parameter at a time.

use crate::compile::Instance;
use crate::error::SetError;
use crate::pk::{Curve, Dosing, analyse};
use crate::run::{Results, RunError, RunFailure, RunOptions, run};
use crate::watch::{Interrupt, Watch};

/// Output times that make a unit of work where figures are computed.
const TIMES_OF_A_UNIT: usize = 32;

/// How far and in how many steps a parameter is varied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VariationScheme {
    /// Largest relative change.
    pub range: f64,
    /// Steps up, and as many down.
    pub steps: u32,
    /// Sensitivities smaller than this count as 0: they are the solver's noise.
    pub threshold: f64,
}

impl Default for VariationScheme {
    /// Returns the suite's.
    fn default() -> Self {
        Self {
            range: 0.1,
            steps: 2,
            threshold: 1e-4,
        }
    }
}

/// The sensitivity of one figure of one output.
#[derive(Debug, Clone, PartialEq)]
pub struct SensitivityEntry {
    /// Position of the output among the results' outputs.
    pub output: usize,
    /// Name of the pharmacokinetic parameter.
    pub figure: &'static str,
    /// Relative change of the figure per relative change of the parameter.
    pub value: f64,
}

/// Why there are no sensitivities.
#[derive(Debug)]
pub enum SensitivityError {
    /// The parameter cannot be varied.
    Set(SetError),
    /// Its value is 0 or no number: nothing is relative to it.
    NoScale {
        /// Its path.
        path: String,
        /// Its value.
        value: f64,
    },
    /// A run failed.
    Run(Box<RunFailure>),
    /// The caller asked to stop.
    Interrupted(Interrupt),
}

impl std::fmt::Display for SensitivityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Set(e) => e.fmt(f),
            Self::NoScale { path, value } => {
                write!(
                    f,
                    "'{path}' is {value}: relative changes of it mean nothing"
                )
            }
            Self::Run(failure) => failure.fmt(f),
            Self::Interrupted(cause) => write!(f, "{cause} while sensitivities were computed"),
        }
    }
}

impl std::error::Error for SensitivityError {}

impl From<Interrupt> for SensitivityError {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted(cause)
    }
}

impl From<Box<RunFailure>> for SensitivityError {
    fn from(failure: Box<RunFailure>) -> Self {
        match failure.error {
            RunError::Interrupted { cause, .. } => Self::Interrupted(cause),
            _ => Self::Run(failure),
        }
    }
}

/// Figures of all outputs, by output and name.
pub type Figures = Vec<(usize, &'static str, f64)>;

/// Returns the figures of a run.
///
/// # Errors
/// That of `watch`, which is asked now and then whether to go on.
pub fn figures(
    instance: &Instance,
    results: &Results,
    watch: &Watch<'_>,
) -> Result<Figures, Interrupt> {
    watch.ask()?;
    let quantities = &instance.structure().model().quantities;
    let constants = quantities.iter().zip(instance.values());
    let dosing = Dosing::from_constants(constants.map(|(q, v)| (q.path.as_str(), *v)));
    let dosing = dosing.unwrap_or_default();
    let mut figures = Vec::new();
    for output in 0..results.paths.len() {
        watch.work(1 + results.times.len() / TIMES_OF_A_UNIT)?;
        let values: Vec<f64> = results.column(output).collect();
        let Ok(curve) = Curve::new(&results.times, &values) else {
            continue;
        };
        let found = analyse(curve, &dosing).values;
        figures.extend(found.iter().map(|v| (output, v.parameter.name, v.value)));
    }
    Ok(figures)
}

/// Sensitivities of all figures to one parameter, by runs with changed values; `base` holds the figures of the
/// unchanged individual. A figure that is 0 or that some run does not have has no sensitivity.
///
/// # Errors
/// [`SensitivityError`].
pub fn of_parameter(
    instance: &Instance,
    parameter: usize,
    base: &Figures,
    scheme: &VariationScheme,
    options: &RunOptions<'_>,
) -> Result<Vec<SensitivityEntry>, SensitivityError> {
    let value = instance.value(parameter).unwrap_or(f64::NAN);
    if value == 0.0 || !value.is_finite() {
        let quantity = instance.structure().model().quantities.get(parameter);
        return Err(SensitivityError::NoScale {
            path: quantity.map_or_else(String::new, |q| q.path.clone()),
            value,
        });
    }
    let watch = Watch::new(options.interrupt);
    let mut sums = vec![0.0; base.len()];
    let mut count = 0_u32;
    for step in 1..=scheme.steps {
        let factor = 1.0 + scheme.range * f64::from(step) / f64::from(scheme.steps);
        for changed in [value * factor, value / factor] {
            let mut other = instance.clone();
            other
                .set(parameter, changed)
                .map_err(SensitivityError::Set)?;
            let results = run(&other, options)?;
            let relative = (changed - value) / value;
            let figures = figures(&other, &results, &watch)?;
            for ((sum, new), old) in sums.iter_mut().zip(figures).zip(base) {
                *sum += (new.2 - old.2) / old.2 / relative;
            }
            count += 1;
        }
    }
    let entries = base.iter().zip(sums).map(|(&(output, figure, _), sum)| {
        let mean = sum / f64::from(count);
        SensitivityEntry {
            output,
            figure,
            value: if mean.abs() < scheme.threshold {
                0.0
            } else {
                mean
            },
        }
    });
    Ok(entries.filter(|e| e.value.is_finite()).collect())
}
