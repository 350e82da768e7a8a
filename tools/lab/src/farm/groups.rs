//! The limits of the farm's hosts: control groups, of version 2 or of version 1.

use super::GuideHost;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";
const FARM: &str = "durward-farm";
/// The period over which processor time is counted, in microseconds.
const PERIOD_US: u64 = 100_000;

/// A control group and what is written into its files.
struct ControlGroup {
    /// Root of the hierarchy.
    root: PathBuf,
    files: Vec<(&'static str, String)>,
}

impl ControlGroup {
    fn of(self, host: GuideHost) -> PathBuf {
        self.root.join(FARM).join(host.name())
    }
}

fn is_unified() -> bool {
    Path::new(ROOT).join("cgroup.controllers").exists()
}

/// Returns the groups of a host: one of version 2, or one for each controller of version 1.
fn groups(host: GuideHost) -> Vec<ControlGroup> {
    let bytes = (host.memory_mib() * 1024 * 1024).to_string();
    let quota = host.cpus() * PERIOD_US;
    let root = Path::new(ROOT);
    if is_unified() {
        let cpu = format!("{quota} {PERIOD_US}");
        let files = vec![("memory.max", bytes), ("cpu.max", cpu)];
        let root = root.to_path_buf();
        return vec![ControlGroup { root, files }];
    }
    let cpu = vec![
        ("cpu.cfs_period_us", PERIOD_US.to_string()),
        ("cpu.cfs_quota_us", quota.to_string()),
    ];
    let group = |name: &str, files| ControlGroup {
        root: root.join(name),
        files,
    };
    let memory = vec![("memory.limit_in_bytes", bytes)];
    vec![group("memory", memory), group("cpu", cpu)]
}

/// Sets a host's limits.
///
/// # Errors
/// Why not, in words; then it has none of them.
pub(super) fn set(host: GuideHost) -> Result<(), String> {
    let done = groups(host)
        .into_iter()
        .try_for_each(|group| one(group, host));
    if done.is_err() {
        remove(host);
    }
    done
}

fn one(group: ControlGroup, host: GuideHost) -> Result<(), String> {
    let told = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let write = |path: PathBuf, text: &str| fs::write(&path, text).map_err(|e| told(&path, e));
    if !group.root.is_dir() {
        return Err(format!("there is no {}", group.root.display()));
    }
    let farm = group.root.join(FARM);
    fs::create_dir_all(&farm).map_err(|error| told(&farm, error))?;
    if is_unified() {
        for above in [&group.root, &farm] {
            write(above.join("cgroup.subtree_control"), "+memory +cpu")?;
        }
    }
    let own = farm.join(host.name());
    fs::create_dir_all(&own).map_err(|error| told(&own, error))?;
    for (name, value) in &group.files {
        write(own.join(name), value)?;
    }
    Ok(())
}

/// Returns the files by which a process enters a host's limits; none if it has no limits.
pub(super) fn entrances(host: GuideHost) -> Vec<String> {
    let all = groups(host).into_iter().map(|group| group.of(host));
    all.filter(|own| own.is_dir())
        .map(|own| own.join("cgroup.procs").display().to_string())
        .collect()
}

/// Removes a host's limits, and what is above them with the last one. A group in use stays.
pub(super) fn remove(host: GuideHost) {
    for group in groups(host) {
        let farm = group.root.join(FARM);
        let _ = fs::remove_dir(group.of(host));
        let _ = fs::remove_dir(farm);
    }
}
