//! Summary of a measurement, the same for every command: `compare`, `gate` and `report` read this and nothing else of a
//! document that they do not know. Shape: `docs/schemas/summary.json`.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::judge::MeasuredQuantities;
use crate::run;

/// The name and version of the schema.
pub(crate) const FORMAT: &str = "durward-lab-summary/1";

/// The summary of a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasurementSummary {
    pub(crate) format: String,
    /// The command that measured: `overhead`, `load`, `standard` or `audit-latency`.
    pub(crate) kind: String,
    /// What must be the same in measurements that are compared.
    pub(crate) likeness: Vec<MeasurementTrait>,
    /// Why the generator was the limit, if it was.
    pub(crate) limited: Option<String>,
    /// Why it is not whole, if it is not.
    pub(crate) torn: Option<String>,
    pub(crate) measurement: MeasuredQuantities,
}

/// One thing in which measurements can differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasurementTrait {
    pub(crate) what: String,
    pub(crate) value: String,
}

/// Something that was measured.
pub(crate) trait SummarySource: Serialize {
    /// Its summary.
    fn summary(&self) -> MeasurementSummary;
}

/// A document with its summary, as it is written.
#[derive(Debug, Serialize)]
pub(crate) struct SummaryDocument<'d, T> {
    #[serde(flatten)]
    figures: &'d T,
    summary: MeasurementSummary,
}

impl<'d, T: SummarySource> SummaryDocument<'d, T> {
    /// Returns the document of these figures.
    pub(crate) fn of(figures: &'d T) -> Self {
        Self {
            figures,
            summary: figures.summary(),
        }
    }

    /// Prints it.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)
    }
}

impl MeasurementSummary {
    /// Returns a summary of a whole measurement that nothing limited.
    pub(crate) fn of(
        kind: &str,
        likeness: impl IntoIterator<Item = (&'static str, String)>,
        measurement: MeasuredQuantities,
    ) -> Self {
        let likeness = likeness.into_iter().map(|(what, value)| MeasurementTrait {
            what: what.to_owned(),
            value,
        });
        Self {
            format: FORMAT.to_owned(),
            kind: kind.to_owned(),
            likeness: likeness.collect(),
            limited: None,
            torn: None,
            measurement,
        }
    }

    /// Reads that of a run directory, or of a document by itself.
    pub(crate) fn read(path: &Path) -> Result<Self, LabError> {
        #[derive(Deserialize)]
        struct SummaryHolder {
            summary: Option<MeasurementSummary>,
        }
        let file = run::summary_file(path)?;
        let wrong = |what: String| LabError::path(&file, io::Error::other(what));
        let holder: SummaryHolder = run::parsed(&file)?;
        let summary = holder.summary.ok_or_else(|| {
            wrong("it has no summary: it is not a measurement, or one of an earlier version; measure again".into())
        })?;
        if summary.format != FORMAT {
            let found = &summary.format;
            return Err(wrong(format!(
                "its summary has the format {found}, this version reads {FORMAT}"
            )));
        }
        Ok(summary)
    }

    /// Refuses to compare what was measured in different ways, unless forced.
    pub(crate) fn must_match(&self, other: &Self, force: bool) -> Result<(), LabError> {
        if force {
            return Ok(());
        }
        let differ = |what: &str, left: &str, right: &str| {
            Err(LabError::Incomparable(format!(
                "the measurements differ in {what} ({left} against {right}); --force compares them all the same"
            )))
        };
        if self.kind != other.kind {
            return differ("kind", &self.kind, &other.kind);
        }
        let value = |of: &Self, what: &str| {
            let found = of.likeness.iter().find(|known| known.what == what);
            found.map_or_else(|| "nothing".to_owned(), |known| known.value.clone())
        };
        for known in self.likeness.iter().chain(&other.likeness) {
            let (left, right) = (value(self, &known.what), value(other, &known.what));
            if left != right {
                return differ(&known.what, &left, &right);
            }
        }
        Ok(())
    }

    /// Refuses what says more about the generator than about the target, unless forced.
    pub(crate) fn must_not_be_limited(&self, force: bool) -> Result<(), LabError> {
        match &self.limited {
            Some(why) if !force => Err(LabError::Incomparable(format!(
                "the generator was the limit of this run ({why}); measure with less load, or judge it all the same with --force"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses what was stopped or failed before it was done, unless forced.
    pub(crate) fn must_be_whole(&self, force: bool) -> Result<(), LabError> {
        match &self.torn {
            Some(why) if !force => Err(LabError::Incomparable(format!(
                "the measurement is not whole: {why}; measure again, or judge what there is with --force"
            ))),
            _ => Ok(()),
        }
    }
}
