//! What a job is asked for: everything that it needs, so that it can be done again after a restart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::models::{ModelRef, Selection};
use crate::population::Cohort;

/// The kind of jobs that run one individual.
pub const KIND_RUN: &str = "run";
/// The kind of jobs that run a population.
pub const KIND_POPULATION: &str = "population";

/// A run, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The call that asked for it, by its name in the journal.
    #[serde(default)]
    pub op: Option<String>,
    /// The simulation's id when it was asked for.
    pub simulation_id: String,
    /// Under which name the result is kept.
    pub results_id: String,
    /// The model file.
    pub model: ModelRef,
    /// What is told of it.
    pub metadata: Value,
    /// What the caller has set, in base units, by path.
    pub changed: BTreeMap<String, f64>,
    /// How many numbers one individual gives, for the size of chunks.
    pub numbers: usize,
    /// Which outputs are kept.
    pub selection: Selection,
    /// The individuals, where there is more than the one of the file.
    pub cohort: Option<Cohort>,
}

impl Work {
    /// What is told of the model, and of how it was solved.
    #[must_use]
    pub fn solved(&self, engine: &str, states: usize, steps: usize) -> Value {
        let mut metadata = self.metadata.clone();
        if let Some(members) = metadata.as_object_mut() {
            let solver = json!({
                "engine": engine, "modelSha256": self.model.sha256,
                "states": states, "steps": steps,
            });
            members.insert("solver".to_owned(), solver);
        }
        metadata
    }
}
