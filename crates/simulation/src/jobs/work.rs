//! Work of a job: everything that it needs, so that it can be repeated after a restart.

use std::collections::BTreeMap;

use pbpk::run::OspVersion;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::models::{ModelRef, QuantitySelection};
use crate::population::CohortRecord;

/// The kind of jobs that run one individual.
pub const KIND_RUN: &str = "run";
/// The kind of jobs that run a population.
pub const KIND_POPULATION: &str = "population";

/// A run, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunWork {
    /// The call that asked for it, by its name in the journal.
    #[serde(default)]
    pub op: Option<String>,
    /// The simulation's id when it was asked for.
    pub simulation_id: String,
    /// Under which name the result is kept.
    pub results_id: String,
    /// The model file.
    pub model: ModelRef,
    /// Metadata for clients.
    pub metadata: Value,
    /// Values set by the caller, in base units, by path.
    pub changed: BTreeMap<String, f64>,
    /// How many numbers one individual gives, for the size of chunks.
    pub numbers: usize,
    /// Which outputs are kept.
    pub selection: QuantitySelection,
    /// The individuals, if there is more than the one of the file.
    pub cohort: Option<CohortRecord>,
    /// Name of the release of OSP for the start of the run.
    #[serde(default)]
    pub osp_version: Option<String>,
}

/// Information about the computation of results.
#[derive(Debug, Clone, Default)]
pub struct SolutionInfo {
    /// Name of the solver.
    pub engine: String,
    /// States of the model.
    pub states: usize,
    /// Steps of the solver, all individuals together.
    pub steps: usize,
    /// Warnings of the run, without repetitions.
    pub warnings: Vec<String>,
}

impl RunWork {
    /// Returns the release of OSP that the run follows.
    #[must_use]
    pub fn release(&self) -> OspVersion {
        let named = self.osp_version.as_deref();
        named.and_then(|name| name.parse().ok()).unwrap_or_default()
    }

    /// Returns what is known of the model, and of how it was solved.
    #[must_use]
    pub fn solved(&self, solution: &SolutionInfo) -> Value {
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
