//! Figures over all individuals.

use crate::fault::Fault;

/// A figure over the individuals: which measure of each curve, and what of their spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aggregate {
    /// Which of highest value, its time and area.
    measure: usize,
    of: SpreadMeasure,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum SpreadMeasure {
    Mean,
    Deviation,
    /// In parts of one.
    Quantile(f64),
}

/// Suffix of a name, in the order of the measures.
const MEASURES: [&str; 3] = ["cmax", "tmax", "auc"];
/// Default figures.
pub const USUAL: [&str; 4] = ["meanCmax", "sdCmax", "meanTmax", "meanAuc"];

impl Aggregate {
    /// Reads a name: `mean`, `sd`, `median`, `min`, `max` or `p5` (any percentile), and then `Cmax`, `Tmax` or `Auc`;
    /// `mean` and `sd` alone are those of `Cmax`.
    ///
    /// # Errors
    /// [`Fault`] of the argument `outputs.aggregates`.
    pub fn from_name(name: &str) -> Result<Self, Fault> {
        let folded: String = name
            .chars()
            .filter(|c| !matches!(c, '_' | '-'))
            .collect::<String>()
            .to_ascii_lowercase();
        let folded = match folded.as_str() {
            "mean" | "sd" => format!("{folded}cmax"),
            _ => folded,
        };
        let wrong = || {
            let wrong = format!("\"{}\" is not an aggregate", name.escape_debug());
            Fault::input("outputs.aggregates", wrong)
                .hint("write mean, sd, median, min, max or p5 and then Cmax, Tmax or Auc, such as meanCmax")
        };
        let found = MEASURES
            .iter()
            .enumerate()
            .find_map(|(at, end)| Some((at, folded.strip_suffix(end)?)));
        let (measure, of) = found.ok_or_else(wrong)?;
        let of = match of {
            "mean" => SpreadMeasure::Mean,
            "sd" => SpreadMeasure::Deviation,
            "median" => SpreadMeasure::Quantile(0.5),
            "min" => SpreadMeasure::Quantile(0.0),
            "max" => SpreadMeasure::Quantile(1.0),
            other => {
                let percent = other.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
                let percent = percent
                    .filter(|p| (0.0..=100.0).contains(p))
                    .ok_or_else(wrong)?;
                SpreadMeasure::Quantile(percent / 100.0)
            }
        };
        Ok(Self { measure, of })
    }

    /// Returns the figure over these individuals; those with a measure that is NaN do not count.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "at most a million individuals")]
    pub fn over(&self, individuals: &[[f64; 3]]) -> f64 {
        let measured = individuals.iter().filter_map(|one| one.get(self.measure));
        let mut values: Vec<f64> = measured
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        match self.of {
            SpreadMeasure::Mean => mean,
            SpreadMeasure::Deviation => {
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                (squares / (count - 1.0)).sqrt()
            }
            SpreadMeasure::Quantile(part) => {
                values.sort_by(f64::total_cmp);
                quantile(&values, part)
            }
        }
    }
}

/// By linear interpolation between ranks.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank lies between 0 and the number of values"
)]
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let rank = part * (sorted.len().saturating_sub(1)) as f64;
    let at = |rank: f64| sorted.get(rank as usize).copied().unwrap_or(f64::NAN);
    let (low, high) = (at(rank.floor()), at(rank.ceil()));
    low + (high - low) * rank.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_individuals() {
        let all = [
            [1.0, 5.0, 0.0],
            [2.0, 5.0, 0.0],
            [3.0, 8.0, 0.0],
            [f64::NAN, 8.0, 1.0],
        ];
        for (name, expect) in [
            ("meanCmax", 2.0),
            ("sd_Cmax", 1.0),
            ("sd", 1.0),
            ("medianCmax", 2.0),
            ("minTmax", 5.0),
            ("maxTmax", 8.0),
            ("p25Cmax", 1.5),
            ("mean_AUC", 0.25),
        ] {
            let figure = Aggregate::from_name(name).unwrap().over(&all);
            assert!((figure - expect).abs() < 1e-12, "{name}: {figure}");
        }
        for wrong in ["", "meanX", "p101Cmax", "pCmax", "sumAuc"] {
            assert!(Aggregate::from_name(wrong).is_err(), "{wrong}");
        }
        assert!(Aggregate::from_name("meanCmax").unwrap().over(&[]).is_nan());
    }
}
