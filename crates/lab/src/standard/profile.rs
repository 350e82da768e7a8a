//! Where the time goes, by `perf` where the system has it.

use super::scene::Scene;
use crate::arm::Arm;
use crate::driver::{self, Connection, Operation, Protocol};
use crate::error::LabError;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long calls are made under the profiler.
const SPAN: Duration = Duration::from_secs(2);
/// Samples a second.
const FREQUENCY_HZ: &str = "5000";
/// Lines of the summary.
const LINES_MAX: usize = 70;

/// A summary of where `arm` spends its time while it serves `operation`, or why there is none.
pub(super) fn summary(
    scene: &Scene,
    arm: &Arm,
    operation: &Operation,
) -> Result<Result<String, String>, LabError> {
    let data = scene.file("perf.data");
    let mut connection = Connection::new(driver::spawn(arm, 10_000)?);
    connection.open(Protocol::Legacy)?;
    let question = operation.question(Protocol::Legacy);
    for _ in 0..500 {
        connection.ask(&question)?;
    }
    let recorder = Command::new("perf")
        .args(["record", "-q", "-F", FREQUENCY_HZ, "-p"])
        .arg(connection.process().pid().to_string())
        .arg("-o")
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut recorder = match recorder {
        Ok(child) => child,
        Err(error) => return Ok(Err(format!("perf cannot be started: {error}"))),
    };
    let start = Instant::now();
    let mut calls = 0_u64;
    while start.elapsed() < SPAN {
        connection.ask(&question)?;
        calls += 1;
    }
    if let Some(pid) = i32::try_from(recorder.id()).ok().and_then(Pid::from_raw) {
        // It writes its file when it is interrupted.
        let _ = kill_process(pid, Signal::INT);
    }
    recorder.wait().map_err(|source| LabError::System {
        what: "wait for perf",
        source,
    })?;
    connection.close();
    let report = Command::new("perf")
        .args([
            "report",
            "--stdio",
            "--no-children",
            "-q",
            "--percent-limit",
            "0.4",
        ])
        .args(["--fields", "overhead,dso,symbol", "-i"])
        .arg(&data)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|source| LabError::path(&data, source))?;
    let text = String::from_utf8_lossy(&report.stdout);
    if !report.status.success() || text.trim().is_empty() {
        return Ok(Err("perf recorded nothing (no permission?)".into()));
    }
    Ok(Ok(render(&arm.name, operation, calls, &text)))
}

fn render(arm: &str, operation: &Operation, calls: u64, report: &str) -> String {
    let mut out = format!(
        "{arm}: {}, {calls} calls in {} s under perf at {FREQUENCY_HZ} Hz, share of samples by symbol\n\n",
        operation.describe(),
        SPAN.as_secs()
    );
    let lines = report
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty());
    for line in lines.take(LINES_MAX) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{line}");
    }
    out
}
