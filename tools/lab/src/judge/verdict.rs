//! What a gate said, and the document that keeps it beside the run: `verdict.json`.

use crate::error::LabError;
use crate::run;
use crate::stats::Interval;
use crate::stats::gate::Verdict;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name and version of the document.
const FORMAT: &str = "durward-lab-verdict/1";
const FILE: &str = "verdict.json";

/// All rules held against one measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Judgement {
    format: String,
    /// What it was held against, as it was named.
    baseline: Option<String>,
    /// The worst of all rules that are more than a warning.
    pub(crate) verdict: Verdict,
    pub(crate) rules: Vec<Judged>,
}

/// One rule held against one variant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) rule: String,
    /// Whether breaking it is a warning only.
    pub(crate) warn: bool,
    pub(crate) arm: String,
    pub(crate) verdict: Verdict,
    /// In words.
    pub(crate) observed: String,
    /// The quantity that was judged: microseconds or a rate for an absolute limit, a share of the baseline
    /// for a relative one; nothing where there was none to judge.
    pub(crate) interval: Option<Interval>,
}

impl Judgement {
    /// All of them together.
    pub(crate) fn of(baseline: Option<String>, rules: Vec<Judged>) -> Self {
        let any = |verdict| rules.iter().any(|one| one.verdict == verdict && !one.warn);
        let verdict = match () {
            () if any(Verdict::Regressed) => Verdict::Regressed,
            () if any(Verdict::Inconclusive) => Verdict::Inconclusive,
            () => Verdict::Ok,
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

    /// What was kept in a run directory, if anything.
    pub(crate) fn beside(run: &Path) -> Result<Option<Self>, LabError> {
        let file = run.join(FILE);
        if !run.is_dir() || !file.exists() {
            return Ok(None);
        }
        run::document_of(&file, FORMAT).map(Some)
    }
}
