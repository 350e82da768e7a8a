//! What jobs waited in the queue and how long they ran.

use super::{DecisionGroup, LatencyRow};
use crate::error::LabError;
use crate::journal;
use serde::Deserialize;
use std::io;
use std::path::Path;

/// A job as its server reports it; numbers are seconds since 1970.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerJob {
    submitted_at: Option<f64>,
    started_at: Option<f64>,
    finished_at: Option<f64>,
}

/// Reads a file of job records, one a line, the members at the top or below `job`.
pub(super) fn read(file: &Path) -> Result<DecisionGroup, LabError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum JobLine {
        Wrapped { job: ServerJob },
        Plain(ServerJob),
    }
    let (mut waits, mut runs, mut n) = (Vec::new(), Vec::new(), 0);
    journal::lines(file, |number, line| {
        let line: JobLine = serde_json::from_slice(line)
            .map_err(|error| format!("line {number} is not a job: {error}"))?;
        let (JobLine::Wrapped { job } | JobLine::Plain(job)) = line;
        n += 1;
        let between = |from: Option<f64>, to: Option<f64>| Some((to? - from?).max(0.0) * 1e3);
        waits.extend(between(job.submitted_at, job.started_at));
        runs.extend(between(job.started_at, job.finished_at));
        Ok(())
    })?;
    if runs.is_empty() {
        return Err(LabError::path(
            file,
            io::Error::other("no job in it has startedAt and finishedAt"),
        ));
    }
    Ok(DecisionGroup {
        name: "jobs".into(),
        n,
        rows: vec![
            LatencyRow::of("queue wait", waits),
            LatencyRow::of("running", runs),
        ],
    })
}
