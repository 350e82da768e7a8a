//! Only listed directories, by the kernel's Landlock.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use super::view::SHARED_MEMORY;
use super::{RESOLVERS, Sandbox};

/// The kernel's interface that this is written for; what an older kernel lacks is left out.
const WANTED: ABI = ABI::V9;
/// Places that every program needs to read and run from.
pub(super) const SYSTEM: [&str; 10] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/proc", "/sys",
];
/// Devices that every program may use.
const DEVICES: [&str; 7] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    SHARED_MEMORY,
];

/// Limits this process, and all that it starts, to what is listed. `alone`: nothing else keeps the child
/// off the protected places, so no listed one may lie above them.
pub(super) fn enter(sandbox: &Sandbox, protected: &[PathBuf], alone: bool) -> Result<(), String> {
    let listed = [&sandbox.read, &sandbox.write, &sandbox.exec];
    if alone && let Some(above) = first_above(listed.into_iter().flatten(), protected) {
        return Err(format!(
            "sandbox: {} holds files of Durward, and without user namespaces they cannot be covered; list its other subdirectories instead",
            above.display()
        ));
    }
    let read = AccessFs::from_read(WANTED) & !BitFlags::from(AccessFs::Execute);
    let run = AccessFs::from_read(WANTED);
    let write = AccessFs::from_all(WANTED) & !BitFlags::from(AccessFs::Execute);
    let ask = read | AccessFs::ResolveUnix;
    let failed = |error: &dyn std::fmt::Display| format!("sandbox: {error}");
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))
        .and_then(|ruleset| ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(|ruleset| ruleset.create())
        .map_err(|e| failed(&e))?;
    let system = SYSTEM.iter().map(PathBuf::from);
    let resolvers = RESOLVERS.iter().filter(|_| !sandbox.no_network);
    // Where nothing else is put in its place, it is that of all programs.
    let devices = DEVICES
        .iter()
        .filter(|place| !(alone && **place == SHARED_MEMORY));
    let all = (system.map(|place| (place, run)))
        .chain(devices.map(|place| (place.into(), write)))
        .chain(resolvers.map(|place| (place.into(), ask)))
        .chain(sandbox.read.iter().map(|place| (place.clone(), read)))
        .chain(sandbox.write.iter().map(|place| (place.clone(), write)))
        .chain(sandbox.exec.iter().map(|place| (place.clone(), run)));
    for (place, access) in all {
        let Ok(open) = PathFd::new(&place) else {
            // A place that is not there cannot be reached either.
            continue;
        };
        let allowed = if place.is_dir() {
            access
        } else {
            access & AccessFs::from_file(WANTED)
        };
        rules = rules
            .add_rule(PathBeneath::new(open, allowed))
            .map_err(|e| failed(&e))?;
    }
    let status = rules.restrict_self().map_err(|e| failed(&e))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(
            "sandbox: this kernel has no Landlock; enable it (lsm=landlock,…), or leave sandbox: out"
                .into(),
        ),
    }
}

/// The first listed place that a protected one lies below, or that is one.
fn first_above<'a>(
    mut listed: impl Iterator<Item = &'a PathBuf>,
    protected: &[PathBuf],
) -> Option<&'a PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let protected: Vec<PathBuf> = protected.iter().map(|path| real(path)).collect();
    listed.find(|place| {
        let place = real(place);
        protected.iter().any(|path| path.starts_with(&place))
    })
}
