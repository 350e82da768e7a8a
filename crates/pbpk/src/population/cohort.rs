//! A population drawn from distributions. Each number is a function of the seed, the individual and the column alone,
//! so that the first individuals stay the same when more are asked for (a Latin hypercube apart, which needs to know
//! the size).

use super::INDIVIDUALS_MAX;
use super::correlation::{MixingMatrix, ScoreCorrelation};
use super::table::{ParameterColumn, Population, PopulationError};
use crate::units::normal;
use crate::watch::{Interrupt, Watch};

/// Numbers drawn that make a unit of work, and products of correlations.
const NUMBERS_OF_A_UNIT: usize = 8;
const PRODUCTS_OF_A_UNIT: usize = 1024;
/// Numbers that are put in order at once.
const SORTED_AT_ONCE: usize = 1 << 12;

/// How a parameter is spread.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// Geometric mean and geometric standard deviation.
    LogNormal(f64, f64),
    /// Lower and upper end.
    Uniform(f64, f64),
    /// Values with their weights.
    Discrete(Vec<(f64, f64)>),
}

/// A parameter that differs between individuals.
#[derive(Debug, Clone, PartialEq)]
pub struct VariedParameter {
    /// The parameter and the unit of its values.
    pub column: ParameterColumn,
    /// How it is spread.
    pub distribution: Distribution,
}

/// A population to be drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cohort {
    /// Number of individuals.
    pub size: usize,
    /// Start of the random numbers.
    pub seed: u64,
    /// Parameters that differ.
    pub varied: Vec<VariedParameter>,
    /// Whether each parameter falls once into each of as many equally likely parts as there are individuals.
    pub latin: bool,
    /// Correlations of the normal scores of parameters; those not named are independent. Not with `latin`: the parts
    /// would no longer be met once each.
    pub correlations: Vec<ScoreCorrelation>,
}

impl Distribution {
    /// Reads `normal(MEAN;SD)`, `lognormal(GEOMETRIC MEAN;GEOMETRIC SD)`, `uniform(MIN;MAX)` or
    /// `discrete(VALUE:WEIGHT;…)`.
    ///
    /// # Errors
    /// What is wrong with the text or its numbers.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shape = "write normal(MEAN;SD), lognormal(GEOMETRIC MEAN;GEOMETRIC SD), uniform(MIN;MAX) or discrete(VALUE:WEIGHT;...)";
        let inner = text
            .trim()
            .strip_suffix(')')
            .and_then(|t| t.split_once('('));
        let (name, inner) = inner.ok_or(shape)?;
        let number = |text: &str| {
            let value = text.trim().parse::<f64>().ok().filter(|v| v.is_finite());
            value.ok_or_else(|| format!("'{text}' is not a number"))
        };
        let two = || {
            let (a, b) = inner.split_once(';').ok_or(shape)?;
            Ok::<_, String>((number(a)?, number(b)?))
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "normal" => match two()? {
                (mean, sd) if sd >= 0.0 => Ok(Self::Normal(mean, sd)),
                _ => Err("the standard deviation must not be negative".to_owned()),
            },
            "lognormal" => match two()? {
                (mean, sd) if mean > 0.0 && sd >= 1.0 => Ok(Self::LogNormal(mean, sd)),
                _ => Err(
                    "the geometric mean must be positive and the geometric deviation at least 1"
                        .to_owned(),
                ),
            },
            "uniform" => match two()? {
                (min, max) if min <= max => Ok(Self::Uniform(min, max)),
                _ => Err("the upper end must not lie below the lower".to_owned()),
            },
            "discrete" => {
                let pair = |text: &str| {
                    let (value, weight) = text.split_once(':').unwrap_or((text, "1"));
                    Ok::<_, String>((number(value)?, number(weight)?))
                };
                let pairs = inner.split(';').map(pair).collect::<Result<Vec<_>, _>>()?;
                let total: f64 = pairs.iter().map(|p| p.1).sum();
                if pairs.iter().any(|p| p.1 < 0.0) || total <= 0.0 {
                    return Err("weights must not be negative, and one must be positive".to_owned());
                }
                Ok(Self::Discrete(pairs))
            }
            _ => Err(shape.to_owned()),
        }
    }

    /// Returns the value below which the part p of all lies, 0 < p < 1.
    #[must_use]
    pub fn quantile(&self, p: f64) -> f64 {
        match self {
            Self::Normal(mean, sd) => mean + sd * normal::quantile(p),
            Self::LogNormal(mean, sd) => (mean.ln() + sd.ln() * normal::quantile(p)).exp(),
            Self::Uniform(min, max) => min + p * (max - min),
            Self::Discrete(pairs) => {
                let total: f64 = pairs.iter().map(|p| p.1).sum();
                let mut sum = 0.0;
                let found = pairs.iter().find(|(_, weight)| {
                    sum += weight / total;
                    p <= sum
                });
                found.or(pairs.last()).map_or(f64::NAN, |p| p.0)
            }
        }
    }
}

impl Cohort {
    /// Draws the population.
    ///
    /// # Errors
    /// [`PopulationError::Size`], [`PopulationError::ScoreCorrelation`].
    pub fn draw(&self) -> Result<Population, PopulationError> {
        self.draw_watched(&Watch::default())
    }

    /// As [`Cohort::draw`], asking `watch` now and then whether to go on.
    ///
    /// # Errors
    /// As [`Cohort::draw`], and [`PopulationError::Interrupted`].
    pub fn draw_watched(&self, watch: &Watch<'_>) -> Result<Population, PopulationError> {
        watch.ask()?;
        if self.size == 0 || self.size > INDIVIDUALS_MAX {
            return Err(PopulationError::Size { count: self.size });
        }
        if self.latin && !self.correlations.is_empty() {
            let what = "a Latin hypercube is drawn without them".to_owned();
            return Err(PopulationError::Correlation { what });
        }
        let mixing = MixingMatrix::new(self.varied.len(), &self.correlations)?;
        let strata: Vec<Vec<u32>> = if self.latin {
            (0..self.varied.len())
                .map(|c| self.permutation(c, watch))
                .collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let mut values = Vec::with_capacity(self.size * self.varied.len());
        let units =
            1 + self.varied.len() / NUMBERS_OF_A_UNIT + mixing.products() / PRODUCTS_OF_A_UNIT;
        for row in 0..self.size {
            watch.work(units)?;
            let mut own: Vec<f64> = (0..self.varied.len())
                .map(|c| uniform(self.seed, c as u64, row as u64))
                .collect();
            mixing.mix(&mut own);
            for (c, (varied, u)) in self.varied.iter().zip(own).enumerate() {
                let part = strata.get(c).and_then(|s| s.get(row));
                let p = part.map_or(u, |part| (f64::from(*part) + u) / self.size as f64);
                values.push(varied.distribution.quantile(p));
            }
        }
        let columns = self.varied.iter().map(|v| v.column.clone()).collect();
        Ok(Population::new(
            columns,
            (0..self.size as i64).collect(),
            values,
        ))
    }

    /// Returns a random order of the parts of a column: that of their keys, which are put in order a range at a time.
    fn permutation(&self, column: usize, watch: &Watch<'_>) -> Result<Vec<u32>, Interrupt> {
        let count = self.size.div_ceil(SORTED_AT_ONCE).max(1);
        let mut ranges: Vec<Vec<(u64, u32)>> = vec![Vec::new(); count];
        for i in 0..self.size as u32 {
            let key = mixed(!self.seed, column as u64, u64::from(i));
            // Keys are spread evenly, and ranges ascend with them.
            let range = (u128::from(key) * count as u128) >> u64::BITS;
            if let Some(range) = ranges.get_mut(range as usize) {
                range.push((key, i));
            }
            if (i as usize).is_multiple_of(SORTED_AT_ONCE) {
                watch.ask()?;
            }
        }
        let mut order = Vec::with_capacity(self.size);
        for mut range in ranges {
            watch.ask()?;
            range.sort_unstable();
            order.extend(range.into_iter().map(|k| k.1));
        }
        Ok(order)
    }
}

/// Returns a number in (0, 1).
pub(crate) fn uniform(seed: u64, column: u64, row: u64) -> f64 {
    ((mixed(seed, column, row) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Bits that look independent for every seed, column and row: SplitMix64 over their mixture.
/// Source: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
fn mixed(seed: u64, column: u64, row: u64) -> u64 {
    let step = |x: u64| {
        let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    step(step(step(seed) ^ column) ^ row)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges that are put in order one after another give the order of all.
    #[test]
    fn parts_come_in_the_order_of_their_keys() {
        for size in [1, SORTED_AT_ONCE, 3 * SORTED_AT_ONCE + 1] {
            let cohort = Cohort {
                size,
                seed: 5,
                ..Cohort::default()
            };
            let mut order: Vec<u32> = (0..size as u32).collect();
            order.sort_by_key(|i| mixed(!5, 2, u64::from(*i)));
            let found = cohort.permutation(2, &Watch::default());
            assert!(found == Ok(order), "{size}");
        }
    }
}
