//! Jobs that have ended: their times, in the journal and for `/metrics`.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gate::journal::{Micros, OpId, RecordedJob};
use toolkit::jobs::Job;
use toolkit::measure::{Measure, Measured, Times};
use toolkit::server::JobRecorder;

use super::work::{KIND_POPULATION, KIND_RUN};

/// The bounds of the classes of times, in seconds. Jobs are timed in whole milliseconds.
const CLASSES_S: [f64; 15] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0,
];

/// Record of the jobs that have ended since this process began.
#[derive(Default)]
pub struct EndedJobs {
    recorder: OnceLock<JobRecorder>,
    kinds: Mutex<BTreeMap<&'static str, KindCounts>>,
}

struct KindCounts {
    counts: BTreeMap<&'static str, u64>,
    waited: Times,
    ran: Times,
}

impl Default for KindCounts {
    fn default() -> Self {
        Self {
            counts: BTreeMap::new(),
            waited: Times::new(&CLASSES_S),
            ran: Times::new(&CLASSES_S),
        }
    }
}

impl EndedJobs {
    /// Records in the journal from now on.
    pub fn record_with(&self, recorder: JobRecorder) {
        // The first one stays: a server has one journal.
        let _ = self.recorder.set(recorder);
    }

    /// A job has ended.
    pub fn tell(&self, job: &Job) {
        let end_ms = job.finished_ms.unwrap_or(job.submitted_ms);
        let waited = span(job.submitted_ms, job.started_ms.unwrap_or(end_ms));
        let ran = job.started_ms.map(|started_ms| span(started_ms, end_ms));
        let known = [KIND_RUN, KIND_POPULATION];
        let kind = known.into_iter().find(|kind| *kind == job.kind);
        if let Some(recorder) = self.recorder.get() {
            let op = job
                .request
                .get("op")
                .and_then(|op| OpId::parse(op.as_str()?));
            let recorded = RecordedJob {
                id: job.id.as_str(),
                kind: kind.unwrap_or("other"),
                status: job.state.label(),
                queue_wait_us: Micros::from_duration(waited),
                ran_us: ran.map(Micros::from_duration),
            };
            recorder(op, recorded);
        }
        let Some(kind) = kind else {
            return;
        };
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let of = kinds.entry(kind).or_default();
        *of.counts.entry(job.state.label()).or_default() += 1;
        of.waited.add(waited);
        if let Some(ran) = ran {
            of.ran.add(ran);
        }
    }

    /// Everything, for a scrape.
    pub fn measures(&self) -> Vec<Measure> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::new();
        for (kind, of) in &*kinds {
            for (status, count) in &of.counts {
                out.push(Measure::new(
                    "mcp_simulation_jobs",
                    "Jobs by how they ended",
                    &[("kind", kind), ("status", status)],
                    Measured::Count(*count),
                ));
            }
        }
        type Of = fn(&KindCounts) -> &Times;
        let times: [(&str, &str, Of); 2] = [
            (
                "mcp_simulation_job_queue_wait_seconds",
                "From the submission of a job until a worker took it",
                |of| &of.waited,
            ),
            (
                "mcp_simulation_job_duration_seconds",
                "From when a worker took a job until its end",
                |of| &of.ran,
            ),
        ];
        for (name, about, times) in times {
            for (kind, of) in &*kinds {
                let labels = [("kind", *kind)];
                out.push(Measure::new(name, about, &labels, times(of).measured()));
            }
        }
        out
    }
}

/// Returns a span of the wall clock; none if it was set back.
fn span(from_ms: i64, to_ms: i64) -> Duration {
    let ms = to_ms.saturating_sub(from_ms);
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
