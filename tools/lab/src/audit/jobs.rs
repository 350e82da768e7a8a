//! What jobs waited in the queue and how long they ran.

use super::{Group, Row};
use crate::error::LabError;
use crate::journal;
use serde::Deserialize;
use std::io;
use std::path::Path;

/// A job as its server tells it; numbers are seconds since 1970.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    submitted_at: Option<f64>,
    started_at: Option<f64>,
    finished_at: Option<f64>,
}

/// Reads a file of job records, one a line, the members at the top or below `job`.
pub(super) fn read(file: &Path) -> Result<Group, LabError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Line {
        Wrapped { job: Job },
        Plain(Job),
    }
    let (mut waits, mut runs, mut n) = (Vec::new(), Vec::new(), 0);
    journal::lines(file, |number, line| {
        let line: Line = serde_json::from_slice(line)
            .map_err(|error| format!("line {number} is not a job: {error}"))?;
        let (Line::Wrapped { job } | Line::Plain(job)) = line;
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
    Ok(Group {
        name: "jobs".into(),
        n,
        rows: vec![Row::of("queue wait", waits), Row::of("running", runs)],
    })
}
