//! Whether runs can be computed: a worker process is started as for a run, and solves a model with a known solution.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use net::worker::Worker;

use super::ospsuite::{OspsuiteInfo, OspsuiteLauncher, OspsuiteSession};
use super::worker::{PROBE, PROBED, PROBED_R, WORKER_COMMAND};

/// A model of one state that decays.
const MODEL: &str = include_str!("probe.xml");
/// How far the last value may be from the exact one, as a part of it.
const TOLERANCE: f64 = 1e-4;
/// How long a worker may take for it.
const WAIT: Duration = Duration::from_secs(10);
/// How long R may take to start and to load its package.
const WAIT_R: Duration = Duration::from_secs(60);
/// How often it is looked whether that time is over.
const LOOK: Duration = Duration::from_millis(50);

/// Tries whether runs can be computed by processes of this program; an empty one means in this process. Over R it
/// checks that R starts and has its package, and returns its versions.
///
/// # Errors
/// The fault, as a sentence.
pub fn probe(
    program: &Path,
    over_r: Option<&OspsuiteLauncher>,
) -> Result<Option<OspsuiteInfo>, String> {
    if program.as_os_str().is_empty() {
        return match over_r {
            Some(how) => started(how).map(Some),
            None => solve().map(|()| None),
        };
    }
    let (asked, wait) = match over_r {
        Some(how) => (serde_json::to_vec(how).unwrap_or_default(), WAIT_R),
        None => (Vec::new(), WAIT),
    };
    let mut worker = Worker::start(program, WORKER_COMMAND)
        .map_err(|error| format!("no worker process can be started: {error}"))?;
    let broke = |error| format!("a worker process does not answer: {error}");
    worker.speaker().say(PROBE, &asked).map_err(broke)?;
    let (process, is_done) = (worker.id(), AtomicBool::new(false));
    let answer = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let until = Instant::now() + wait;
            while !is_done.load(Ordering::Relaxed) {
                if Instant::now() >= until {
                    net::worker::kill(process);
                    return;
                }
                std::thread::park_timeout(LOOK);
            }
        });
        let answer = worker.listen();
        is_done.store(true, Ordering::Relaxed);
        watching.thread().unpark();
        answer
    });
    match answer.map_err(broke)? {
        (PROBED, wrong) if wrong.is_empty() => Ok(None),
        (PROBED_R, told) => serde_json::from_slice(&told)
            .map(Some)
            .map_err(|error| format!("a worker process says what cannot be read: {error}")),
        (PROBED, wrong) => Err(String::from_utf8_lossy(&wrong).into_owned()),
        (other, _) => Err(format!("a worker process answers with {other}")),
    }
}

fn started(how: &OspsuiteLauncher) -> Result<OspsuiteInfo, String> {
    let session = OspsuiteSession::start(how, &|| None).map_err(|fault| fault.message)?;
    Ok(session.told.clone())
}

/// Starts R as the question says; gives what R says of itself, as JSON.
///
/// # Errors
/// Why it cannot be started.
pub(super) fn begin(asked: &[u8]) -> Result<Vec<u8>, String> {
    let how = serde_json::from_slice(asked).map_err(|error| error.to_string())?;
    serde_json::to_vec(&started(&how)?).map_err(|error| error.to_string())
}

/// Solves dy/dt = -y from 1 to t = 1.
pub(super) fn solve() -> Result<(), String> {
    let read = pbpk::read::bytes(MODEL.as_bytes(), &pbpk::read::ReadOptions::default());
    let model = std::sync::Arc::new(read.map_err(|error| error.to_string())?);
    let outputs = model.outputs();
    let structure =
        pbpk::compile::Structure::new(model, outputs).map_err(|error| error.to_string())?;
    let instance = pbpk::compile::Instance::new(&structure);
    let results = pbpk::run::run(&instance, &pbpk::run::RunOptions::default());
    let results = results.map_err(|failure| failure.to_string())?;
    let last = results.column(0).last().unwrap_or(f64::NAN);
    let exact = (-1.0_f64).exp();
    match ((last - exact) / exact).abs() <= TOLERANCE {
        true => Ok(()),
        false => Err(format!("the engine gives {last} for {exact}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_is_a_solve_that_is_held_against_the_exact_value() {
        assert_eq!(solve(), Ok(()));
        assert_eq!(probe(Path::new(""), None), Ok(None));
    }

    #[test]
    fn a_program_that_is_no_worker_is_said_to_be_none() {
        let said = probe(Path::new("/nowhere/durward"), None).unwrap_err();
        assert!(said.contains("no worker process can be started"), "{said}");
        let said = probe(Path::new("/bin/true"), None).unwrap_err();
        assert!(said.contains("does not answer"), "{said}");
    }
}
