//! What a built-in server counts and times, for `/metrics`.

/// One value at one moment. All values of a name have the same kind and the same labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// The family's name, without the ending `_total`.
    pub name: &'static str,
    /// What it says, a sentence.
    pub about: &'static str,
    /// Labels and their values.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Measured,
}

/// A value of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Only ever grows.
    Count(u64),
    /// How many there are now.
    Level(u64),
    /// Times in seconds.
    Times {
        /// Their sum.
        sum_s: f64,
        /// How many there were up to each bound, not counting those up to the bound before; the last bound is infinite.
        classes: Vec<(f64, u64)>,
    },
}

impl Measure {
    /// A value with these labels.
    #[must_use]
    pub fn new(
        name: &'static str,
        about: &'static str,
        labels: &[(&'static str, &str)],
        value: Measured,
    ) -> Self {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        Self {
            name,
            about,
            labels,
            value,
        }
    }
}
