//! Who the individuals are: size, seed, and how parameters differ.

use pbpk::population::{Distribution, ParameterColumn, Population, VariedParameter};
use pbpk::watch::Watch;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;

/// Most individuals of one run.
pub const SIZE_MAX: u64 = 1_000_000;
/// Most parameters that differ.
const COVARIATES_MAX: usize = 64;

/// A cohort as it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CohortRecord {
    /// Number of individuals.
    pub size: u64,
    /// How random numbers are spread: `random` or `latin-hypercube`.
    pub sampling: Option<String>,
    /// Start of the random numbers.
    pub seed: Option<i64>,
    /// Parameters that differ.
    pub covariates: Vec<Value>,
    /// Figures over all individuals.
    pub aggregates: Vec<String>,
    /// The outputs as they were asked for.
    pub time_series: Vec<Value>,
    /// Metadata that the caller wants returned.
    pub metadata: Value,
}

impl CohortRecord {
    /// Returns the individuals.
    ///
    /// # Errors
    /// [`Fault`] if a covariate or the sampling makes no sense, or if `watch` ends it.
    pub fn draw(&self, watch: &Watch<'_>) -> Result<Population, Fault> {
        if self.size > SIZE_MAX {
            let wrong = format!("a cohort has at most {SIZE_MAX} individuals");
            return Err(Fault::input("cohort.size", wrong));
        }
        if self.covariates.len() > COVARIATES_MAX {
            let wrong = format!("a cohort has at most {COVARIATES_MAX} covariates");
            return Err(Fault::input("cohort.covariates", wrong));
        }
        let varied = self.covariates.iter().enumerate();
        let varied: Result<Vec<VariedParameter>, Fault> = varied
            .map(|(at, covariate)| read_one(at, covariate))
            .collect();
        let cohort = pbpk::population::Cohort {
            size: usize::try_from(self.size).unwrap_or(usize::MAX),
            seed: self.seed.unwrap_or_default().cast_unsigned(),
            varied: varied?,
            latin: self.is_latin()?,
            correlations: Vec::new(),
        };
        Ok(cohort.draw_watched(watch)?)
    }

    /// Returns a warning where no parameter differs between the individuals.
    #[must_use]
    pub fn alike(&self) -> Option<String> {
        let none = self.covariates.is_empty() && self.size > 1;
        none.then(|| {
            format!(
                "cohort.covariates is empty, so all {} individuals are alike",
                self.size
            )
        })
    }

    /// Returns the parameters that differ, with their units, as far as they are given.
    pub fn columns(&self) -> impl Iterator<Item = ParameterColumn> {
        let read = self.covariates.iter().enumerate();
        read.filter_map(|(at, covariate)| Some(read_one(at, covariate).ok()?.column))
    }

    fn is_latin(&self) -> Result<bool, Fault> {
        match self
            .sampling
            .as_deref()
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            None | Some("" | "random" | "monte-carlo" | "montecarlo") => Ok(false),
            Some("latin" | "lhs" | "latin-hypercube" | "latin_hypercube" | "latinhypercube") => {
                Ok(true)
            }
            Some(other) => Err(Fault::input(
                "cohort.sampling",
                format!("\"{}\" is not a sampling", other.escape_debug()),
            )
            .hint("write random or latin-hypercube")),
        }
    }
}

/// `{path, unit?, distribution, …}`: `normal` with `mean` and `sd`, `lognormal` with `mean` and `sd` (geometric),
/// `uniform` with `min` and `max`, `discrete` with `values` and perhaps `weights`; or the distribution in one text.
fn read_one(at: usize, covariate: &Value) -> Result<VariedParameter, Fault> {
    let field = format!("cohort.covariates[{at}]");
    let wrong = |what: String| Fault::input(&field, what);
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| covariate.get(name)?.as_str());
        found.map(str::to_owned)
    };
    let number = |names: &[&str]| {
        let found = names.iter().find_map(|name| covariate.get(name)?.as_f64());
        found.ok_or_else(|| wrong(format!("needs a number {}", names.join(" or "))))
    };
    let path = text(&["path", "parameterPath", "name"])
        .ok_or_else(|| wrong("needs a path, such as Organism|Weight".into()))?;
    let kind = text(&["distribution"]).ok_or_else(|| {
        wrong("needs a distribution: normal, lognormal, uniform or discrete".into())
    })?;
    let written = match kind.trim().to_ascii_lowercase().as_str() {
        "normal" => format!("normal({};{})", number(&["mean"])?, number(&["sd", "std"])?),
        "lognormal" => format!(
            "lognormal({};{})",
            number(&["mean", "geometricMean"])?,
            number(&["sd", "gsd", "geometricSd"])?
        ),
        "uniform" => format!("uniform({};{})", number(&["min"])?, number(&["max"])?),
        "discrete" => discrete(covariate).ok_or_else(|| wrong("needs a list values".into()))?,
        _ => kind,
    };
    Ok(VariedParameter {
        column: ParameterColumn {
            path,
            unit: text(&["unit"]).unwrap_or_default(),
        },
        distribution: Distribution::parse(&written).map_err(wrong)?,
    })
}

fn discrete(covariate: &Value) -> Option<String> {
    let values = covariate.get("values")?.as_array()?;
    let weights = covariate.get("weights").and_then(Value::as_array);
    let weight = |at: usize| weights.and_then(|weights| weights.get(at)?.as_f64());
    let pairs = values
        .iter()
        .enumerate()
        .map(|(at, value)| Some(format!("{}:{}", value.as_f64()?, weight(at).unwrap_or(1.0))));
    let pairs: Option<Vec<String>> = pairs.collect();
    Some(format!("discrete({})", pairs?.join(";")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cohort(covariates: Value) -> CohortRecord {
        CohortRecord {
            size: 50,
            sampling: None,
            seed: Some(7),
            covariates: covariates.as_array().unwrap().clone(),
            aggregates: Vec::new(),
            time_series: Vec::new(),
            metadata: json!({}),
        }
    }

    #[test]
    fn seed_covariates_and_sampling_decide_the_individuals() {
        let one = cohort(json!([
            {"path": "Organism|Weight", "unit": "kg", "distribution": "normal", "mean": 70, "sd": 10},
            {"path": "Organism|Age", "distribution": "uniform(20;60)"},
            {"path": "x", "distribution": "discrete", "values": [1, 2], "weights": [1, 3]}
        ]));
        let drawn = one.draw(&Watch::default()).unwrap();
        assert_eq!(drawn.len(), 50);
        assert_eq!(drawn, one.draw(&Watch::default()).unwrap());
        let other = CohortRecord {
            seed: Some(8),
            ..one.clone()
        };
        assert_ne!(drawn, other.draw(&Watch::default()).unwrap());
        let latin = CohortRecord {
            sampling: Some("lhs".into()),
            ..one
        };
        assert_ne!(drawn, latin.draw(&Watch::default()).unwrap());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let cases = [
            (
                json!([{"distribution": "normal"}]),
                "needs a path, such as Organism|Weight",
            ),
            (
                json!([{"path": "a"}]),
                "needs a distribution: normal, lognormal, uniform or discrete",
            ),
            (
                json!([{"path": "a", "distribution": "normal", "mean": 1}]),
                "needs a number sd or std",
            ),
            (
                json!([{"path": "a", "distribution": "uniform", "min": 2, "max": 1}]),
                "the upper end must not lie below the lower",
            ),
            (
                json!([{"path": "a", "distribution": "discrete"}]),
                "needs a list values",
            ),
        ];
        for (covariates, wrong) in cases {
            let fault = cohort(covariates).draw(&Watch::default()).unwrap_err();
            assert_eq!(fault.message, wrong);
            assert_eq!(
                fault.details[0].field.as_deref(),
                Some("cohort.covariates[0]")
            );
        }
        let sampled = CohortRecord {
            sampling: Some("sobol".into()),
            ..cohort(json!([]))
        };
        assert_eq!(
            sampled.draw(&Watch::default()).unwrap_err().message,
            "\"sobol\" is not a sampling"
        );
    }
}
