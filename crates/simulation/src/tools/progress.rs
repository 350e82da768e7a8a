//! Progress of a job for clients.

use serde_json::{Value, json};
use toolkit::jobs::{Job, JobState};

use crate::figures::number;
use crate::jobs::KIND_POPULATION;

/// Returns the counted unit.
fn unit(job: &Job) -> &'static str {
    match job.kind.as_str() {
        KIND_POPULATION => "individuals",
        _ => "run",
    }
}

/// Returns how much is done of how much, and how long the rest takes at the speed so far; `None` if the job does not
/// run.
pub(crate) fn progress(job: &Job, now_ms: i64) -> Option<Value> {
    let seconds = job
        .left_ms(now_ms)
        .map(|ms| number((ms / 100.0).round() / 10.0));
    (job.state == JobState::Running).then(|| {
        json!({
            "done": number(job.progress.done), "total": job.progress.total.map(number),
            "unit": unit(job), "secondsLeft": seconds,
        })
    })
}

/// Returns the same as a sentence.
pub(super) fn sentence(job: &Job, now_ms: i64) -> String {
    let state = job.state.label();
    let (Some(total), JobState::Running) = (job.progress.total, job.state) else {
        return state.to_owned();
    };
    let left = job.left_ms(now_ms).map_or_else(String::new, |ms| {
        format!(", about {:.0} s left", (ms / 1000.0).ceil())
    });
    match job.kind.as_str() {
        KIND_POPULATION => format!(
            "{state}: {} of {total} individuals{left}",
            job.progress.done
        ),
        _ => format!("{state}: {:.0} %{left}", 100.0 * job.progress.done / total),
    }
}
