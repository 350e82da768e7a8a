//! What a job is asked for: everything that it needs, so that it can be done again after a restart.

use std::collections::BTreeMap;

use pbpk::run::OspVersion;
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
    /// Name of the release of OSP whose rules hold at the start of the run.
    #[serde(default)]
    pub osp_version: Option<String>,
}

/// What is known of how results were computed.
#[derive(Debug, Clone, Default)]
pub struct Solution {
    /// What has solved the model.
    pub engine: String,
    /// States of the model.
    pub states: usize,
    /// Steps of the solver, all individuals together.
    pub steps: usize,
    /// Warnings of the run, without repetitions.
    pub warnings: Vec<String>,
}

impl Work {
    /// Returns the release of OSP whose rules the run follows.
    #[must_use]
    pub fn release(&self) -> OspVersion {
        let named = self.osp_version.as_deref();
        named.and_then(|name| name.parse().ok()).unwrap_or_default()
    }

    /// Returns what is known of the model, and of how it was solved.
    #[must_use]
    pub fn solved(&self, solution: &Solution) -> Value {
        let mut metadata = self.metadata.clone();
        if let Some(members) = metadata.as_object_mut() {
            let mut solver = json!({
                "engine": solution.engine, "modelSha256": self.model.sha256,
                "states": solution.states, "steps": solution.steps, "warnings": solution.warnings,
            });
            // R follows the release that is installed.
            if solution.engine == crate::BACKEND
                && let Some(solver) = solver.as_object_mut()
            {
                solver.insert("ospVersion".to_owned(), self.release().name().into());
            }
            members.insert("solver".to_owned(), solver);
        }
        metadata
    }
}
