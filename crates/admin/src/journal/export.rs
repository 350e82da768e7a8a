//! Export of records as they were written.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gate::journal::audit::{Filter, each_while};
use serde::Serialize;

use crate::error::AdminError;
use crate::progress::OperationWatch;

/// Records between two steps of an export.
const STEP_RECORDS: u64 = 1_024;

/// Result of an export.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ExportReport {
    /// Number of records.
    pub records: u64,
    /// Lines that cannot be read as records.
    pub skipped: u64,
}

/// Writes each record that the filter takes as one line of JSON, in the order of the segments. Holds one line at a time.
///
/// # Errors
/// A journal that cannot be read, an output that cannot be written, [`AdminError::Cancelled`].
pub fn export(
    journal: &Path,
    filter: &Filter,
    out: &mut dyn Write,
    watch: &mut OperationWatch<'_>,
) -> Result<ExportReport, AdminError> {
    let mut records = 0_u64;
    let mut written: io::Result<()> = Ok(());
    let read = each_while(journal, filter, &mut |body| {
        written = out.write_all(body).and_then(|()| out.write_all(b"\n"));
        if written.is_err() {
            return ControlFlow::Break(());
        }
        records = records.saturating_add(1);
        match records.is_multiple_of(STEP_RECORDS) {
            true => watch.step(records, None),
            false => ControlFlow::Continue(()),
        }
    });
    written
        .and_then(|()| out.flush())
        .map_err(|error| AdminError::Write {
            path: PathBuf::from("the output"),
            error,
        })?;
    Ok(ExportReport {
        records,
        skipped: read?,
    })
}
