//! The statistics of the lab. Pure functions over numbers: no clock, no process, no file.

mod bootstrap;
pub(crate) mod gate;
mod hodges_lehmann;
pub(crate) mod interval;
mod order;
pub(crate) mod percentile;
pub(crate) mod random;
pub(crate) mod student;
mod theil_sen;
mod times;

pub(crate) use hodges_lehmann::hodges_lehmann;
pub(crate) use interval::Interval;
pub(crate) use order::share;
pub(crate) use percentile::{SortedSamples, median};
pub(crate) use random::SeededRandom;
pub(crate) use theil_sen::theil_sen;
pub(crate) use times::{CONFIDENCE, TimePercentiles};

/// Arithmetic mean; 0 for no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample variance (n − 1); 0 below two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}
