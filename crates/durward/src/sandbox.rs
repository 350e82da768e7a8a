//! What a server may reach of this machine: `servers.NAME.sandbox` and `--sandbox`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use net::confine::{Confine, Confinement, Sandbox};

use crate::config::values::no_network;
use crate::places::Places;

/// `--sandbox read=DIR,write=DIR,exec=DIR,network=none`: each part may stand more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxFlag(Sandbox);

impl FromStr for SandboxFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut sandbox = Sandbox::default();
        for part in text.split(',') {
            let (kind, value) = part.split_once('=').ok_or_else(|| {
                format!("\"{part}\" is not read=DIR, write=DIR, exec=DIR or network=none")
            })?;
            if value.is_empty() {
                return Err(format!("{kind} does not name a directory"));
            }
            match kind {
                "read" => sandbox.read.push(value.into()),
                "write" => sandbox.write.push(value.into()),
                "exec" => sandbox.exec.push(value.into()),
                "network" => sandbox.no_network = no_network(value)?,
                _ => {
                    return Err(format!(
                        "\"{kind}\" is not one of read, write, exec and network"
                    ));
                }
            }
        }
        Ok(Self(sandbox))
    }
}

/// The word of `--confine`.
///
/// # Errors
/// A sentence where it is none.
pub fn confine(word: &str) -> Result<Confine, String> {
    let found = Confine::ALL.into_iter().find(|c| c.label() == word);
    found.ok_or_else(|| "write auto, require or off".into())
}

/// What several flags come to together; none without flags.
pub fn joined(flags: &[SandboxFlag], places: &Places) -> Option<Sandbox> {
    if flags.is_empty() {
        return None;
    }
    let mut all = Sandbox::default();
    let absolute = |paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| places.absolute(path));
        paths.collect::<Vec<_>>()
    };
    for SandboxFlag(sandbox) in flags {
        all.read.extend(absolute(&sandbox.read));
        all.write.extend(absolute(&sandbox.write));
        all.exec.extend(absolute(&sandbox.exec));
        all.no_network |= sandbox.no_network;
    }
    Some(all)
}

/// How a server is confined: Durward's own places are empty for it; what Durward runs and what its configuration names
/// cannot be changed, this server's own program included.
pub fn confinement(
    places: &Places,
    policy: Option<&Path>,
    program: &std::ffi::OsStr,
    (confine, sandbox): (Option<Confine>, Option<Sandbox>),
) -> Confinement {
    let own = &places.own_binary;
    let policy = policy.map(|file| places.absolute(file));
    let covered = places.protected(policy.as_deref()).into_iter();
    Confinement {
        confine: confine.unwrap_or(places.confine),
        covered: covered
            .map(PathBuf::from)
            .filter(|place| place != own)
            .collect(),
        read_only: std::iter::once(own.clone())
            .chain(places.guarded.read_only.iter().cloned())
            .collect(),
        sandbox: sandbox.map(|mut sandbox| {
            // The program itself can be executed wherever it is.
            let program = Path::new(program);
            if program.components().count() > 1 {
                sandbox.exec.push(places.absolute(program));
            }
            sandbox
        }),
    }
}

/// Keeps other processes of the same user out of this one's memory, environment and open files
/// (`/proc/PID/…`). There are no core dumps either.
pub fn hide_this_process() {
    #[cfg(target_os = "linux")]
    {
        let hidden = rustix::process::DumpableBehavior::NotDumpable;
        // Where the kernel refuses it, nothing else is lost.
        let _ = rustix::process::set_dumpable_behavior(hidden);
    }
    // Elsewhere only the limit of core dumps can be set, which children inherit.
    #[cfg(not(target_os = "linux"))]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut none = getrlimit(Resource::Core);
        none.current = Some(0);
        let _ = setrlimit(Resource::Core, none);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_lists_places_and_the_network() {
        let read: SandboxFlag = "read=/a,read=/b c,write=/w,network=none".parse().unwrap();
        assert_eq!(read.0.read, [PathBuf::from("/a"), PathBuf::from("/b c")]);
        assert_eq!(read.0.write, [PathBuf::from("/w")]);
        assert!(read.0.no_network);
        for (wrong, expect) in [
            ("/a", "\"/a\" is not read=DIR"),
            ("reed=/a", "\"reed\" is not one of"),
            ("read=", "read does not name a directory"),
            ("network=some", "network is none or all"),
        ] {
            let why = wrong.parse::<SandboxFlag>().unwrap_err();
            assert!(why.contains(expect), "{wrong}: {why}");
        }
    }
}
