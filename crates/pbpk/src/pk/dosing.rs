//! When what was given.

use std::collections::BTreeMap;
use std::fmt;

/// One application of a drug.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrugApplication {
    /// Its time, in minutes.
    pub start: f64,
    /// Drug per body weight, in µmol/kg.
    pub dose_per_weight: Option<f64>,
    /// How long it is infused, in minutes.
    pub infusion_time: Option<f64>,
}

/// All applications, in order of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dosing {
    applications: Vec<DrugApplication>,
}

/// Why a list of applications makes no sense.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DosingError {
    /// Fault, for people.
    pub what: &'static str,
    /// The number at fault.
    pub value: f64,
}

impl fmt::Display for DosingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, found {}", self.what, self.value)
    }
}

impl std::error::Error for DosingError {}

impl Dosing {
    /// Sorts and checks applications.
    ///
    /// # Errors
    /// [`DosingError`] for a time that is not finite or occurs twice, or a dose or infusion time that
    /// is negative or no number.
    pub fn new(mut applications: Vec<DrugApplication>) -> Result<Self, DosingError> {
        let amount = |v: f64| v.is_finite() && v >= 0.0;
        for a in &applications {
            if !a.start.is_finite() {
                return Err(DosingError {
                    what: "an application needs a finite start time",
                    value: a.start,
                });
            }
            if let Some(value) = a.dose_per_weight.filter(|d| !amount(*d)) {
                return Err(DosingError {
                    what: "a dose must not be negative",
                    value,
                });
            }
            if let Some(value) = a.infusion_time.filter(|d| !amount(*d)) {
                return Err(DosingError {
                    what: "an infusion time must not be negative",
                    value,
                });
            }
        }
        applications.sort_by(|a, b| a.start.total_cmp(&b.start));
        for (a, b) in applications.iter().zip(applications.iter().skip(1)) {
            if a.start == b.start {
                return Err(DosingError {
                    what: "two applications at the same time; give their sum",
                    value: a.start,
                });
            }
        }
        Ok(Self { applications })
    }

    /// One application at the start of the curve.
    ///
    /// # Errors
    /// [`DosingError`] as for [`Dosing::new`].
    pub fn single(
        dose_per_weight: Option<f64>,
        infusion_time: Option<f64>,
    ) -> Result<Self, DosingError> {
        Self::new(vec![DrugApplication {
            start: 0.0,
            dose_per_weight,
            infusion_time,
        }])
    }

    /// Finds applications in the constants of a model, as (path, value) in base units: a container
    /// with a `Start time` and a `DrugMass` is one; doses at the same time are added; body weight is
    /// `Organism|Weight`.
    ///
    /// # Errors
    /// [`DosingError`] as for [`Dosing::new`].
    pub fn from_constants<'a>(
        constants: impl Iterator<Item = (&'a str, f64)>,
    ) -> Result<Self, DosingError> {
        #[derive(Default)]
        struct Found {
            start: Option<f64>,
            mass: Option<f64>,
            infusion: Option<f64>,
        }
        let mut containers: BTreeMap<&str, Found> = BTreeMap::new();
        let mut weight = None;
        for (path, value) in constants {
            let Some((container, name)) = path.rsplit_once(['|', '/']) else {
                continue;
            };
            match name {
                "Weight" if container == "Organism" || container.ends_with("|Organism") => {
                    weight = Some(value)
                }
                "Start time" => containers.entry(container).or_default().start = Some(value),
                "DrugMass" => containers.entry(container).or_default().mass = Some(value),
                "Infusion time" => containers.entry(container).or_default().infusion = Some(value),
                _ => {}
            }
        }
        let mut applications: Vec<DrugApplication> = Vec::new();
        for found in containers.values() {
            let (Some(start), Some(mass)) = (found.start, found.mass) else {
                continue;
            };
            // A regimen takes the dose of what it replaces away.
            if mass == 0.0 {
                continue;
            }
            let dose = weight.filter(|w| *w > 0.0).map(|w| mass / w);
            match applications.iter_mut().find(|a| a.start == start) {
                Some(a) => {
                    a.dose_per_weight = a.dose_per_weight.zip(dose).map(|(x, y)| x + y);
                    a.infusion_time = a.infusion_time.or(found.infusion);
                }
                None => applications.push(DrugApplication {
                    start,
                    dose_per_weight: dose,
                    infusion_time: found.infusion,
                }),
            }
        }
        Self::new(applications)
    }

    /// Returns the applications in order of time.
    #[must_use]
    pub fn applications(&self) -> &[DrugApplication] {
        &self.applications
    }

    /// Returns whether there are two or more.
    #[must_use]
    pub fn is_multiple(&self) -> bool {
        self.applications.len() > 1
    }

    /// Dose per body weight of all applications together; `None` if one is unknown.
    #[must_use]
    pub fn total(&self) -> Option<f64> {
        if self.applications.is_empty() {
            return None;
        }
        self.applications.iter().map(|a| a.dose_per_weight).sum()
    }
}
