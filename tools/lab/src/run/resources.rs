//! Resources of the processes, once a second, as lines of `resources.jsonl`: those that are measured, and the generator
//! itself.

use super::RunDirectory;
use crate::error::LabError;
use crate::{processes, wall_clock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the processes are looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// How many lines one run may have; a long soak keeps its beginning.
const LINES_MAX: usize = 1_000_000;
/// How the lab's own process is called.
pub(crate) const GENERATOR: &str = "generator";

/// One process at one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ResourceSample {
    /// ISO 8601 in UTC.
    pub(crate) ts: String,
    /// Since the beginning of the run.
    pub(crate) elapsed_ms: u64,
    /// The variant it belongs to, or `generator`.
    pub(crate) who: String,
    pub(crate) pid: u32,
    /// Its program and first words.
    pub(crate) command: String,
    /// Processor time since its start.
    pub(crate) cpu_ms: f64,
    /// Share of one core since the last look; nothing at the first.
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) rss_kib: u64,
    pub(crate) hwm_kib: u64,
    pub(crate) fds: u64,
    pub(crate) threads: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

/// Looks until it is stopped.
#[derive(Debug)]
pub(crate) struct ResourceSampler {
    targets: Targets,
    /// Dropped to end the thread.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<Result<(), LabError>>>,
}

/// The processes that are looked at: who, and the root of the tree.
type Targets = Arc<Mutex<Vec<(String, u32)>>>;

impl ResourceSampler {
    /// Begins `resources.jsonl` of a run. The generator is looked at from the beginning.
    pub(crate) fn start(run: &RunDirectory) -> Result<Self, LabError> {
        let path = run.file("resources.jsonl");
        let file = File::create_new(&path).map_err(|source| LabError::path(&path, source))?;
        let targets: Targets = Arc::default();
        let (stop, stopped) = sync_channel::<()>(1);
        let watched = Arc::clone(&targets);
        let thread = std::thread::spawn(move || {
            let mut out = BufWriter::new(file);
            let (start, mut seen, mut lines) = (Instant::now(), BTreeMap::new(), 0_usize);
            loop {
                for sample in look(&watched, start, &mut seen) {
                    lines += 1;
                    if lines > LINES_MAX {
                        break;
                    }
                    let written = serde_json::to_writer(&mut out, &sample)
                        .map_err(std::io::Error::from)
                        .and_then(|()| out.write_all(b"\n"));
                    written.map_err(|source| LabError::path(&path, source))?;
                }
                // A run that is killed leaves what was seen until then.
                out.flush()
                    .map_err(|source| LabError::path(&path, source))?;
                if stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return out.flush().map_err(|source| LabError::path(&path, source));
                }
            }
        });
        Ok(Self {
            targets,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// From now on these processes, and all below them, are looked at instead of the former ones.
    pub(crate) fn watch(&self, targets: Vec<(String, u32)>) {
        *self.targets.lock().unwrap_or_else(PoisonError::into_inner) = targets;
    }

    /// Looks no more; an error if the file could not be written.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), LabError> {
        self.stop = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(done)) => done,
            Some(Err(_)) => Err(LabError::System {
                what: "sample resources",
                source: std::io::Error::other("the sampler stopped"),
            }),
            None => Ok(()),
        }
    }
}

impl Drop for ResourceSampler {
    fn drop(&mut self) {
        // A caller that ignores the result ignores the error too.
        let _ = self.end();
    }
}

/// The last look at each process: when, and its processor time until then in microseconds.
type Seen = BTreeMap<u32, (Duration, f64)>;

fn look(targets: &Targets, start: Instant, seen: &mut Seen) -> Vec<ResourceSample> {
    let targets = targets
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let own = processes::member(std::process::id());
    let own = own.into_iter().map(|m| (GENERATOR.to_owned(), m));
    let members: Vec<(String, processes::TreeMember)> = targets
        .into_iter()
        .flat_map(|(who, root)| {
            processes::tree(root)
                .into_iter()
                .map(move |m| (who.clone(), m))
        })
        .chain(own)
        .collect();
    let (now, ts) = (start.elapsed(), wall_clock::iso(wall_clock::now_ms()));
    // Who was not there at the last look began after it.
    let last = seen.values().map(|(then, _)| *then).max();
    let samples = members.into_iter().map(|(who, member)| {
        let before = seen
            .insert(member.pid, (now, member.cpu_us))
            .or(last.map(|then| (then, 0.0)));
        ResourceSample {
            ts: ts.clone(),
            elapsed_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            who,
            pid: member.pid,
            command: member.short(),
            cpu_ms: member.cpu_us / 1_000.0,
            cpu_percent: before.and_then(|(then, cpu_us)| {
                let span_us = (now - then).as_secs_f64() * 1e6;
                // A thread that ended takes its time with it.
                (span_us > 0.0).then(|| (member.cpu_us - cpu_us).max(0.0) / span_us * 100.0)
            }),
            rss_kib: member.resident_kib,
            hwm_kib: member.high_water_kib,
            fds: member.descriptors,
            threads: member.threads,
            voluntary_switches: member.switches[0],
            involuntary_switches: member.switches[1],
        }
    });
    samples.collect()
}
