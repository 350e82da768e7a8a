//! The notation `250 mg,interval=12 h,number=6`, and the same as names with values.

use std::str::FromStr;

use super::{DOSES_MAX, DoseAmount, Regimen, RegimenError};
use crate::csv;
use crate::path;

/// Names that a regimen may have, for messages.
pub const NAMES: &str = "dose container start interval number infusion loading steady";

impl FromStr for Regimen {
    type Err = RegimenError;

    fn from_str(text: &str) -> Result<Self, RegimenError> {
        let mut pairs = Vec::new();
        for (i, part) in text.split(',').enumerate() {
            match part.split_once('=') {
                Some((name, value)) => pairs.push((name.trim(), value.trim())),
                None if i == 0 => pairs.push(("dose", part.trim())),
                None => pairs.push((part.trim(), "true")),
            }
        }
        Self::from_pairs(pairs.into_iter()).map_err(|error| match error {
            RegimenError::Notation { what, .. } => RegimenError::Notation {
                text: text.to_owned(),
                what,
            },
            error => error,
        })
    }
}

impl Regimen {
    /// Returns the notation of a regimen that is given as names with values, as in a study or by a client.
    ///
    /// # Errors
    /// [`RegimenError::Notation`] for a value with a comma, which would add a name, and as for reading the notation.
    pub fn notation<'p>(
        pairs: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Result<String, RegimenError> {
        let mut parts = Vec::new();
        for (name, value) in pairs {
            if value.contains(',') {
                return Err(wrong(value, format!("{name} must not have a comma")));
            }
            parts.push(format!("{name}={value}"));
        }
        let text = parts.join(",");
        text.parse::<Self>().map(|_| text)
    }

    fn from_pairs<'p>(
        pairs: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Result<Self, RegimenError> {
        let (mut dose, mut number) = (None, None);
        let mut regimen = Self {
            dose: DoseAmount {
                value: f64::NAN,
                unit: String::new(),
            },
            container: None,
            start: None,
            interval: None,
            number: 1,
            infusion: None,
            loading: None,
            steady: false,
        };
        for (name, value) in pairs {
            match name {
                "dose" => dose = Some(amount(value)?),
                "loading" => regimen.loading = Some(amount(value)?),
                "container" => regimen.container = Some(value.to_owned()),
                "start" => regimen.start = Some(minutes(name, value)?),
                "interval" => regimen.interval = Some(minutes(name, value)?),
                "infusion" => regimen.infusion = Some(minutes(name, value)?),
                "steady" => regimen.steady = flag(value)?,
                "number" => {
                    let count = value.parse::<usize>().ok().filter(|n| *n > 0);
                    number = Some(count.ok_or_else(|| {
                        wrong(
                            value,
                            "number is a whole number of doses above 0".to_owned(),
                        )
                    })?);
                }
                other => {
                    let near = path::nearest(other, NAMES.split(' '), 1);
                    let near = near.first().map_or("", String::as_str);
                    let what =
                        format!("there is no '{other}'; did you mean {near}? Names: {NAMES}");
                    return Err(wrong(other, what));
                }
            }
        }
        let what = "write DOSE[,interval=TIME][,number=N][,start=TIME][,infusion=TIME][,loading=DOSE][,container=PATH][,steady], such as '250 mg,interval=12 h,number=6'";
        regimen.dose = dose.ok_or_else(|| wrong("", format!("a dose is missing; {what}")))?;
        regimen.number = number.unwrap_or(1);
        regimen.check()?;
        Ok(regimen)
    }

    fn check(&self) -> Result<(), RegimenError> {
        let repeats = self.number > 1 || self.steady;
        if repeats && !self.interval.is_some_and(|interval| interval > 0.0) {
            let what = "several doses and a steady state need an interval above 0";
            return Err(wrong("", what.to_owned()));
        }
        if self.infusion.is_some_and(|time| time <= 0.0) {
            return Err(wrong("", "an infusion takes more than 0 min".to_owned()));
        }
        if self.steady && self.loading.is_some() {
            let what = "a steady state does not depend on a loading dose; leave one of them out";
            return Err(wrong("", what.to_owned()));
        }
        if self.number > DOSES_MAX {
            return Err(RegimenError::TooMany {
                what: "doses",
                limit: DOSES_MAX,
            });
        }
        Ok(())
    }
}

fn wrong(text: &str, what: String) -> RegimenError {
    RegimenError::Notation {
        text: text.to_owned(),
        what,
    }
}

/// Splits a number and its unit.
fn number_and_unit(text: &str) -> Result<(f64, Option<String>), RegimenError> {
    let assigned = format!("x={text}");
    let parsed = path::parse(&assigned).map_err(|_| {
        let what = format!("'{text}' does not begin with a number; write a number and a unit");
        wrong(text, what)
    })?;
    Ok((parsed.1, parsed.2.map(str::to_owned)))
}

fn amount(text: &str) -> Result<DoseAmount, RegimenError> {
    match number_and_unit(text)? {
        (value, Some(unit)) if value >= 0.0 && value.is_finite() => Ok(DoseAmount { value, unit }),
        (_, Some(_)) => Err(wrong(text, "a dose must not be negative".to_owned())),
        (_, None) => Err(wrong(
            text,
            format!("the dose '{text}' has no unit: write mg, mg/kg or µmol after it"),
        )),
    }
}

fn minutes(name: &str, text: &str) -> Result<f64, RegimenError> {
    let (value, unit) = number_and_unit(text)?;
    let factor = csv::minutes(unit.as_deref().unwrap_or("min"));
    match factor.map(|factor| value * factor) {
        Some(time) if time.is_finite() && time >= 0.0 => Ok(time),
        Some(_) => Err(wrong(text, format!("{name} must not be negative"))),
        None => {
            let what =
                format!("'{text}' is not a time for {name}; write min, h or day(s) after a number");
            Err(wrong(text, what))
        }
    }
}

fn flag(text: &str) -> Result<bool, RegimenError> {
    match text {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(wrong(text, "steady is true or false".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DoseAmount, Regimen};

    #[test]
    fn a_regimen_is_read_from_its_text() {
        let text = "250 mg,interval=12 h,number=6,loading=500 mg,container=Oral,infusion=30";
        let regimen: Regimen = text.parse().unwrap();
        let expected = Regimen {
            dose: DoseAmount {
                value: 250.0,
                unit: "mg".to_owned(),
            },
            container: Some("Oral".to_owned()),
            start: None,
            interval: Some(720.0),
            number: 6,
            infusion: Some(30.0),
            loading: Some(DoseAmount {
                value: 500.0,
                unit: "mg".to_owned(),
            }),
            steady: false,
        };
        assert_eq!(regimen, expected);
        let steady: Regimen = "5 mg/kg,interval=1 day(s),steady".parse().unwrap();
        assert_eq!((steady.interval, steady.steady), (Some(1440.0), true));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (text, expected) in [
            ("250", "has no unit"),
            ("250 mg,number=6", "need an interval"),
            ("250 mg,intervall=12 h,number=6", "did you mean interval"),
            (
                "250 mg,interval=12 kg,number=6",
                "is not a time for interval",
            ),
            ("-1 mg", "must not be negative"),
            ("250 mg,number=0", "above 0"),
            ("interval=12 h", "a dose is missing"),
            ("250 mg,interval=12 h,number=1001", "more than 1000 doses"),
            ("250 mg,infusion=0", "more than 0 min"),
            ("1 mg,interval=1 h,steady,loading=2 mg", "loading"),
        ] {
            let error = text.parse::<Regimen>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
