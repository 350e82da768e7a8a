//! The variables that a file of hosts may name, as the binary has read them.

use std::collections::BTreeMap;
use std::fmt;

/// Variables by name; their values are secrets.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// These variables.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(variables.into_iter().collect())
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
