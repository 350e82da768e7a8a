//! A measurement read back.

use super::rule::Metric;
use crate::error::LabError;
use crate::host::Host;
use crate::overhead::{FORMAT, LaunchFigures};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The largest document that is read, in bytes.
const DOCUMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The members of a stored measurement that a comparison needs.
#[derive(Debug, Deserialize)]
pub(super) struct Stored {
    build: String,
    operation: String,
    protocol: String,
    path: String,
    runs: u32,
    warmup: u32,
    turn: u32,
    delay_us: u64,
    confidence: f64,
    pinned_core: Option<usize>,
    host: Host,
    arms: Vec<StoredArm>,
    comparisons: Vec<StoredComparison>,
}

#[derive(Debug, Deserialize)]
struct StoredArm {
    name: String,
    per_launch: Vec<LaunchFigures>,
}

#[derive(Debug, Deserialize)]
struct StoredComparison {
    arm: String,
    per_launch_overhead_us: Vec<f64>,
}

#[derive(Deserialize)]
struct Head {
    format: String,
}

impl Stored {
    /// Reads a run directory's summary, or a document by itself.
    pub(super) fn read(path: &Path) -> Result<Self, LabError> {
        let file = if path.is_dir() {
            path.join("summary.json")
        } else {
            path.to_path_buf()
        };
        let failed = |source| LabError::Path {
            path: file.clone(),
            source,
        };
        let size = fs::metadata(&file).map_err(failed)?.len();
        if size > DOCUMENT_BYTES_MAX {
            return Err(failed(std::io::Error::other("longer than 64 MiB")));
        }
        let bytes = fs::read(&file).map_err(failed)?;
        let unread = |error: serde_json::Error| {
            failed(std::io::Error::other(format!(
                "no whole measurement: {error}"
            )))
        };
        let head: Head = serde_json::from_slice(&bytes).map_err(unread)?;
        if head.format != FORMAT {
            return Err(failed(std::io::Error::other(format!(
                "it has the format {}, this version compares {FORMAT}",
                head.format
            ))));
        }
        serde_json::from_slice(&bytes).map_err(unread)
    }

    /// Refuses to compare what was measured in different ways, unless forced.
    pub(super) fn must_match(&self, other: &Self, force: bool) -> Result<(), LabError> {
        let pairs = [
            ("build", self.build.clone(), other.build.clone()),
            ("operation", self.operation.clone(), other.operation.clone()),
            ("protocol", self.protocol.clone(), other.protocol.clone()),
            ("path", self.path.clone(), other.path.clone()),
            ("calls", self.shape(), other.shape()),
            (
                "pinning",
                format!("{:?}", self.pinned_core),
                format!("{:?}", other.pinned_core),
            ),
            (
                "processor",
                self.host.processor.clone(),
                other.host.processor.clone(),
            ),
            (
                "cores",
                self.host.cores.to_string(),
                other.host.cores.to_string(),
            ),
        ];
        match pairs.into_iter().find(|(_, left, right)| left != right) {
            Some((what, left, right)) if !force => Err(LabError::Incomparable(format!(
                "the measurements differ in {what} ({left} against {right}); --force compares them all the same"
            ))),
            _ => Ok(()),
        }
    }

    fn shape(&self) -> String {
        format!(
            "{} calls after {}, turns of {}, {} us apart",
            self.runs, self.warmup, self.turn, self.delay_us
        )
    }

    pub(super) fn confidence(&self) -> f64 {
        self.confidence
    }

    /// The names of the arms, the baseline first.
    pub(super) fn arms(&self) -> impl Iterator<Item = &str> {
        self.arms.iter().map(|arm| arm.name.as_str())
    }

    /// A quantity of an arm, launch by launch; nothing where a launch lacks it.
    pub(super) fn launches(&self, arm: &str, metric: Metric) -> Option<Vec<f64>> {
        if metric == Metric::Overhead {
            let found = self.comparisons.iter().find(|c| c.arm == arm)?;
            return Some(found.per_launch_overhead_us.clone());
        }
        let found = self.arms.iter().find(|known| known.name == arm)?;
        let value = |launch: &LaunchFigures| match metric {
            Metric::P50 => launch.p50_us,
            Metric::P95 => launch.p95_us,
            Metric::P99 => launch.p99_us,
            Metric::Mean => Some(launch.mean_us),
            Metric::Overhead => None,
        };
        found.per_launch.iter().map(value).collect()
    }
}
