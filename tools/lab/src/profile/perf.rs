//! `perf`: samples of what runs on the processors, by symbol.

use super::{SPAN_MAX, goes_on};
use crate::processes;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Samples a second.
const FREQUENCY_HZ: &str = "5000";
/// Lines of the page.
const LINES_MAX: usize = 70;
/// How often a profile is looked at while it is made.
const GLANCE: Duration = Duration::from_millis(20);

/// Returns whether it can be started and may look at processes of ours.
pub(super) fn works(data: &Path) -> bool {
    let tried = Command::new("perf")
        .args(["record", "-q", "-o"])
        .arg(data)
        .args(["--", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // A leftover file does no harm.
    let _ = std::fs::remove_file(data);
    tried.is_ok_and(|status| status.success())
}

/// Records until it is to end; gives the page.
pub(super) fn record(roots: &[u32], data: &Path, stopped: &Receiver<()>) -> Result<String, String> {
    let mut recorder = start(roots, data)?;
    let since = Instant::now();
    while since.elapsed() < SPAN_MAX && goes_on(stopped, GLANCE) {
        if matches!(recorder.try_wait(), Ok(Some(_))) {
            break;
        }
    }
    if let Some(pid) = i32::try_from(recorder.id()).ok().and_then(Pid::from_raw) {
        // It writes its file when it is interrupted.
        let _ = kill_process(pid, Signal::INT);
    }
    let ended = recorder.wait();
    ended.map_err(|error| format!("perf cannot be waited for: {error}"))?;
    let page = report(data);
    // The page is what is kept.
    let _ = std::fs::remove_file(data);
    page
}

fn start(roots: &[u32], data: &Path) -> Result<Child, String> {
    let pids = roots.iter().flat_map(|root| processes::numbers(*root));
    let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
    Command::new("perf")
        .args(["record", "-q", "-F", FREQUENCY_HZ, "-p", &pids.join(",")])
        .arg("-o")
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("perf cannot be started: {error}"))
}

fn report(data: &Path) -> Result<String, String> {
    let wanted = ["--stdio", "--no-children", "-q", "--percent-limit", "0.4"];
    let report = Command::new("perf")
        .arg("report")
        .args(wanted)
        .args(["--fields", "overhead,pid,dso,symbol", "-i"])
        .arg(data)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("perf cannot be started: {error}"))?;
    let text = String::from_utf8_lossy(&report.stdout);
    if !report.status.success() || text.trim().is_empty() {
        return Err("perf recorded nothing (no permission?)".into());
    }
    let mut page =
        format!("by perf at {FREQUENCY_HZ} Hz: share of samples by process, file and symbol\n\n");
    let lines = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty());
    for line in lines.take(LINES_MAX) {
        // Writing to a string does not fail.
        let _ = writeln!(page, "{line}");
    }
    Ok(page)
}
