//! The farm's network: a bridge, and a namespace with a line to it for each host.

use super::GuideHost;
use crate::error::LabError;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const BRIDGE: &str = "durward-farm0";
const BRIDGE_ADDRESS: &str = "10.178.0.1/24";
/// How long processes have to end by themselves.
const TERM_TIME: Duration = Duration::from_secs(5);

/// How often is looked whether they have ended.
const LOOK_TIME: Duration = Duration::from_millis(20);

/// What `ip` says to these words, or why it fails.
fn ip(words: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(words).output();
    let output = output.map_err(|error| format!("ip (iproute2) cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {}: {}", words.join(" "), told.trim()))
}

/// Runs a command; a failure is an error.
fn must(words: &[&str]) -> Result<(), LabError> {
    let failed = |what| LabError::Broken {
        arm: "farm".into(),
        what,
    };
    ip(words).map(drop).map_err(failed)
}

/// Whether namespaces, bridges and lines can be made here: one of each is, and goes again.
///
/// # Errors
/// Why not.
pub(super) fn can() -> Result<(), String> {
    let own = format!("durward-try-{}", std::process::id());
    let line = format!("dwt{}", std::process::id());
    ip(&["netns", "add", &own])?;
    let tried = ip(&[
        "link", "add", &line, "type", "veth", "peer", "name", "eth0", "netns", &own,
    ])
    .and_then(|_| ip(&["link", "del", &line]))
    .and_then(|_| ip(&["link", "add", &line, "type", "bridge"]))
    .and_then(|_| ip(&["link", "del", &line]));
    ip(&["netns", "del", &own])?;
    tried.map(drop)
}

/// Returns whether a host is up.
pub(super) fn is_up(host: GuideHost) -> bool {
    Path::new("/run/netns").join(host.namespace()).exists()
}

/// Makes the bridge and the hosts.
pub(super) fn up() -> Result<(), LabError> {
    must(&["link", "add", BRIDGE, "type", "bridge"])?;
    must(&["addr", "add", BRIDGE_ADDRESS, "dev", BRIDGE])?;
    must(&["link", "set", BRIDGE, "up"])?;
    for host in GuideHost::ALL {
        let (space, line) = (host.namespace(), host.line());
        let address = format!("{}/24", host.address());
        must(&["netns", "add", &space])?;
        must(&[
            "link", "add", &line, "type", "veth", "peer", "name", "eth0", "netns", &space,
        ])?;
        must(&["link", "set", &line, "master", BRIDGE, "up"])?;
        must(&["-n", &space, "addr", "add", &address, "dev", "eth0"])?;
        must(&["-n", &space, "link", "set", "eth0", "up"])?;
        must(&["-n", &space, "link", "set", "lo", "up"])?;
    }
    Ok(())
}

/// Removes what there is of them.
pub(super) fn down() -> Result<(), LabError> {
    for host in GuideHost::ALL {
        // The line goes with its other end, but only after the last user of the namespace.
        if Path::new("/sys/class/net").join(host.line()).exists() {
            must(&["link", "del", &host.line()])?;
        }
        if is_up(host) {
            must(&["netns", "del", &host.namespace()])?;
        }
    }
    if Path::new("/sys/class/net").join(BRIDGE).exists() {
        must(&["link", "del", BRIDGE])?;
    }
    Ok(())
}

/// Returns the processes that run in the hosts.
fn processes() -> Vec<Pid> {
    let up = GuideHost::ALL.into_iter().filter(|host| is_up(*host));
    let listed = up.filter_map(|host| ip(&["netns", "pids", &host.namespace()]).ok());
    let all: Vec<Pid> = listed
        .flat_map(|text| {
            let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.filter_map(Pid::from_raw).collect::<Vec<_>>()
        })
        .collect();
    all
}

/// Ends the processes that run in the hosts: kindly, and after a while for good. Gives how many there were.
pub(super) fn end_processes() -> Result<usize, LabError> {
    let all = processes();
    for pid in &all {
        let _ = kill_process(*pid, Signal::TERM);
    }
    let until = Instant::now() + TERM_TIME;
    while !processes().is_empty() {
        if Instant::now() > until {
            for pid in processes() {
                let _ = kill_process(pid, Signal::KILL);
            }
            break;
        }
        std::thread::park_timeout(LOOK_TIME);
    }
    // A killed process is gone when its number is free, or a zombie of its parent.
    let gone = Instant::now() + TERM_TIME;
    while processes()
        .iter()
        .any(|pid| test_kill_process(*pid).is_ok())
    {
        if Instant::now() > gone {
            return Err(LabError::Broken {
                arm: "farm".into(),
                what: "a process in a host does not end; look with `ip netns pids durward-target`"
                    .into(),
            });
        }
        std::thread::park_timeout(LOOK_TIME);
    }
    Ok(all.len())
}
