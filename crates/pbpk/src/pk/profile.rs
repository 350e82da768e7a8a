//! Observed profiles: missing values, and values below the limit of quantification.

/// Points of an observed profile that enter its parameters.
///
/// Missing values are left out. A value below the limit of quantification is 0 before the first quantified value, and
/// left out after it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObservedProfile {
    /// Times in minutes, ascending.
    pub times: Vec<f64>,
    /// Values at them.
    pub values: Vec<f64>,
    /// Points that are missing or below the limit and were left out.
    pub left_out: usize,
}

impl ObservedProfile {
    /// Takes points as (time, value, whether it is below the limit), in any order. Of several at the same time their
    /// mean counts.
    #[must_use]
    pub fn new(points: impl IntoIterator<Item = (f64, f64, bool)>) -> Self {
        let mut points: Vec<(f64, f64, bool)> = points.into_iter().collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut profile = Self::default();
        let mut has_begun = false;
        let mut repeated = 1.0_f64;
        for (time, value, is_below) in points {
            let value = match is_below {
                true if has_begun => f64::NAN,
                true => 0.0,
                false => value,
            };
            if !(time.is_finite() && value.is_finite()) {
                profile.left_out += 1;
                continue;
            }
            has_begun |= !is_below;
            match (profile.times.last(), profile.values.last_mut()) {
                (Some(last), Some(mean)) if *last == time => {
                    repeated += 1.0;
                    *mean += (value - *mean) / repeated;
                }
                _ => {
                    repeated = 1.0;
                    profile.times.push(time);
                    profile.values.push(value);
                }
            }
        }
        profile
    }
}
