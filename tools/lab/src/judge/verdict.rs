//! Verdicts of a gate, and their document beside the run: `verdict.json`.

use crate::error::LabError;
use crate::run;
use crate::stats::Interval;
use crate::stats::gate::ChangeVerdict;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name and version of the document.
const FORMAT: &str = "durward-lab-verdict/1";
const FILE: &str = "verdict.json";

/// All rules compared with one measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Judgement {
    format: String,
    /// Name of the baseline.
    baseline: Option<String>,
    /// The worst of all rules that are more than a warning.
    pub(crate) verdict: ChangeVerdict,
    pub(crate) rules: Vec<RuleVerdict>,
}

/// One rule compared with one variant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RuleVerdict {
    pub(crate) rule: String,
    /// Whether breaking it is a warning only.
    pub(crate) warn: bool,
    pub(crate) arm: String,
    pub(crate) verdict: ChangeVerdict,
    /// In words.
    pub(crate) observed: String,
    /// The quantity that was judged: microseconds or a rate for an absolute limit, a share of the baseline
    /// for a relative one; nothing if there was none to judge.
    pub(crate) interval: Option<Interval>,
}

impl Judgement {
    /// Returns all of them together.
    pub(crate) fn of(baseline: Option<String>, rules: Vec<RuleVerdict>) -> Self {
        let any = |verdict| rules.iter().any(|one| one.verdict == verdict && !one.warn);
        let verdict = match () {
            () if any(ChangeVerdict::Regressed) => ChangeVerdict::Regressed,
            () if any(ChangeVerdict::Inconclusive) => ChangeVerdict::Inconclusive,
            () => ChangeVerdict::Ok,
        };
        Self {
            format: FORMAT.into(),
            baseline,
            verdict,
            rules,
        }
    }

    /// Keeps it in the run directory; a document by itself has no place for it.
    pub(crate) fn keep(&self, run: &Path) -> Result<(), LabError> {
        if run.is_dir() {
            run::write_document(&run.join(FILE), self)?;
        }
        Ok(())
    }

    /// Returns the verdict in a run directory, if there is one.
    pub(crate) fn beside(run: &Path) -> Result<Option<Self>, LabError> {
        let file = run.join(FILE);
        if !run.is_dir() || !file.exists() {
            return Ok(None);
        }
        run::document_of(&file, FORMAT).map(Some)
    }
}
