//! The limits of the farm's hosts: control groups of version 2.

use super::Host;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";
/// The period over which processor time is counted, in microseconds.
const PERIOD_US: u64 = 100_000;

fn farm() -> PathBuf {
    Path::new(ROOT).join("durward-farm")
}

fn of(host: Host) -> PathBuf {
    farm().join(host.name())
}

/// Sets a host's limits.
///
/// # Errors
/// Why not, in words.
pub(super) fn set(host: Host) -> Result<(), String> {
    let controllers = Path::new(ROOT).join("cgroup.controllers");
    let there =
        fs::read_to_string(controllers).map_err(|_| "no cgroups of version 2".to_owned())?;
    let has = |name: &str| there.split_whitespace().any(|known| known == name);
    if !has("memory") || !has("cpu") {
        return Err("the cgroup has no controllers for memory and CPUs".to_owned());
    }
    let told = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    let write = |path: PathBuf, text: &str| fs::write(&path, text).map_err(|e| told(&path, &e));
    let group = of(host);
    write(
        Path::new(ROOT).join("cgroup.subtree_control"),
        "+memory +cpu",
    )?;
    fs::create_dir_all(farm()).map_err(|error| told(&farm(), &error))?;
    write(farm().join("cgroup.subtree_control"), "+memory +cpu")?;
    fs::create_dir_all(&group).map_err(|error| told(&group, &error))?;
    let bytes = host.memory_mib() * 1024 * 1024;
    write(group.join("memory.max"), &bytes.to_string())?;
    let quota = host.cpus() * PERIOD_US;
    write(group.join("cpu.max"), &format!("{quota} {PERIOD_US}"))
}

/// The file by which a process enters a host's limits, where there are any.
pub(super) fn entrance(host: Host) -> Option<String> {
    let file = of(host).join("cgroup.procs");
    of(host)
        .join("memory.max")
        .exists()
        .then(|| file.display().to_string())
}

/// Removes a host's limits, and those of all with the last one. What is still in use stays.
pub(super) fn remove(host: Host) {
    let _ = fs::remove_dir(of(host));
    let _ = fs::remove_dir(farm());
}
