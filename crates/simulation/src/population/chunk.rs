//! A part of a population's individuals, as it is stored and as clients get it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::figures::number;
use crate::results::Columns;

/// Most points of a curve that are shown at a glance.
const PREVIEW_POINTS_MAX: usize = 200;

/// Most failed individuals that are listed.
const FAILURES_TOLD_MAX: usize = 20;

/// The type of a chunk as it is kept; see [`crate::results::Columns`].
pub const CONTENT_TYPE: &str = "application/vnd.durward.columns";

/// A part of the individuals, computed and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PopulationChunk {
    /// Its name.
    pub chunk_id: String,
    /// Handle of its numbers.
    pub handle: String,
    /// First and last individual.
    pub subjects: [i64; 2],
    /// First and last time, in minutes.
    pub times: [f64; 2],
    /// Bytes of its numbers, header included.
    pub bytes: u64,
    /// SHA-256 of those bytes, in hex.
    pub sha256: String,
    /// Some individuals that could not be computed, with the reason.
    pub failed: BTreeMap<i64, String>,
    /// How many could not be computed.
    #[serde(default)]
    pub failures: usize,
    /// The first individuals at a glance.
    pub preview: Value,
    /// States of the model.
    #[serde(default)]
    pub states: usize,
    /// Steps of the solver, all individuals together.
    #[serde(default)]
    pub steps: usize,
    /// Name of the solver.
    #[serde(default = "native")]
    pub engine: String,
    /// Warnings of the runs, without repetitions.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Chunks that do not say what has solved them.
fn native() -> String {
    crate::BACKEND.to_owned()
}

/// At most five individuals, and the first curve.
pub fn preview(columns: &Columns) -> Value {
    let mut subjects: Vec<i64> = columns.columns.iter().filter_map(|c| c.subject).collect();
    subjects.dedup();
    subjects.truncate(5);
    let list = |values: &[f64]| -> Vec<Value> {
        let shown = values.iter().take(PREVIEW_POINTS_MAX);
        shown.copied().map(number).collect()
    };
    json!({
        "subjects": subjects, "time": list(&columns.times), "concentration": list(columns.column(0)),
    })
}

/// Which individuals could not be computed, and why: how many, and the first of them; `None` where all could.
#[must_use]
pub fn failures(chunks: &[PopulationChunk]) -> Option<Value> {
    let count: usize = chunks.iter().map(|chunk| chunk.failures).sum();
    let of = |(id, why): (&i64, &String)| json!({"subjectId": id, "error": why});
    let known = chunks.iter().flat_map(|chunk| &chunk.failed);
    let some: Vec<Value> = known.take(FAILURES_TOLD_MAX).map(of).collect();
    (count > 0).then(|| json!({"count": count, "individuals": some}))
}

impl PopulationChunk {
    /// Returns how many individuals it has.
    #[must_use]
    pub fn len(&self) -> usize {
        let [first, last] = self.subjects;
        usize::try_from(last - first + 1).unwrap_or_default()
    }

    /// As clients read of it.
    #[must_use]
    pub fn to_value(&self, results_id: &str) -> Value {
        json!({
            "chunkId": self.chunk_id,
            "uri": format!("/population_results/{results_id}/chunks/{}", self.chunk_id),
            "contentType": CONTENT_TYPE,
            "sizeBytes": self.bytes,
            "subjectRange": self.subjects,
            "timeRange": self.times,
            "preview": self.preview,
        })
    }
}
