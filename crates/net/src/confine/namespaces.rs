//! Covers over places, in a mount namespace whose covers are locked by a second one.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change,
    mount_remount, unmount,
};
use rustix::thread::UnshareFlags;

use super::way::Steps;
use super::{Confine, Confinement, view};

/// The hidden command that maps the users of a namespace from outside of it.
pub(crate) const MAP_COMMAND: &str = "__map";
/// Our own binary, also where its directory is covered.
const OWN_BINARY: &str = "/proc/self/exe";
/// How long is waited for a process to enter its namespace, in milliseconds.
const MAP_WAIT_MS: u64 = 2_000;

/// Enters the namespaces and covers the places.
pub(super) fn enter(confinement: &Confinement, no_network: bool) -> Result<(), String> {
    let network = if no_network {
        UnshareFlags::NEWNET
    } else {
        UnshareFlags::empty()
    };
    // Memory, semaphores and queues of System V have no places that could be listed.
    let shared = match confinement.sandbox {
        Some(_) => UnshareFlags::NEWIPC,
        None => UnshareFlags::empty(),
    };
    let guarded = confinement.covered.iter().chain(&confinement.read_only);
    let steps = Steps::to(guarded);
    let work = std::env::current_dir();
    unshare(UnshareFlags::NEWNS | network | shared)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|e| format!("the mounts cannot be made private: {e}"))?;
    steps.pin(confinement.confine == Confine::Require)?;
    cover(&confinement.covered)?;
    for place in &confinement.read_only {
        if place.exists() {
            bind_read_only(place, place).map_err(|e| at(place, &e))?;
        }
    }
    enter_anew(work.unwrap_or_default());
    if let Some(sandbox) = &confinement.sandbox {
        view::enter(sandbox)?;
    }
    // What was mounted above is locked in a namespace that another user namespace owns.
    unshare(UnshareFlags::NEWNS)
}

/// Enters a directory by its name once more: the one that we are in lies below what was mounted since, and paths that
/// begin in it would lead past the covers. Where it is covered itself, the nearest one above it that is there is entered.
fn enter_anew(mut directory: PathBuf) {
    while std::env::set_current_dir(&directory).is_err() {
        if !directory.pop() {
            directory = "/".into();
        }
    }
}

pub(super) fn at(place: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", place.display())
}

fn unshare(more: UnshareFlags) -> Result<(), String> {
    let uid = rustix::process::geteuid();
    let gid = rustix::process::getegid();
    // Root is mapped with all other users, else it could no longer use their files; only a process
    // outside of the new namespace may do that.
    let mapper = uid
        .is_root()
        .then(Mapper::start)
        .transpose()
        .map_err(|e| format!("the users cannot be mapped: {e}"))?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe for the sake of shared descriptor tables, which are not asked for here"
    )]
    rustix::thread::unshare(UnshareFlags::NEWUSER | more)
        .map_err(|e| format!("no user namespace: {e}"))?;
    match mapper {
        Some(mapper) => mapper.finish(),
        None => map_own(uid.as_raw(), gid.as_raw()),
    }
}

/// Maps the one user that we are.
fn map_own(uid: u32, gid: u32) -> Result<(), String> {
    let write = |name: &str, text: String| {
        fs::write(format!("/proc/self/{name}"), text).map_err(|e| format!("{name}: {e}"))
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{uid} {uid} 1"))?;
    write("gid_map", format!("{gid} {gid} 1"))
}

/// A process that stays outside of our new namespace and maps its users.
struct Mapper(Child);

impl Mapper {
    fn start() -> io::Result<Self> {
        Command::new(OWN_BINARY)
            .args([MAP_COMMAND, &std::process::id().to_string(), "--", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map(Self)
    }

    fn finish(mut self) -> Result<(), String> {
        match self.0.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("the users cannot be mapped: {status}")),
            Err(error) => Err(format!("the users cannot be mapped: {error}")),
        }
    }
}

/// The hidden command: maps each user and group that we know onto itself for `process`, as soon as that
/// has entered a namespace of its own. Gives the exit code.
#[expect(
    clippy::disallowed_methods,
    reason = "a process of its own without a runtime, and its wait has a deadline"
)]
pub(crate) fn map(process: i32) -> u8 {
    let until = Instant::now() + Duration::from_millis(MAP_WAIT_MS);
    let namespace = |who: &str| fs::read_link(format!("/proc/{who}/ns/user"));
    let process = process.to_string();
    loop {
        match (namespace("self"), namespace(&process)) {
            (Ok(ours), Ok(theirs)) if ours != theirs => break,
            (Ok(_), Ok(_)) if Instant::now() < until => {
                std::thread::sleep(Duration::from_micros(200));
            }
            _ => return 1,
        }
    }
    let mapped = ["uid_map", "gid_map"].iter().all(|name| {
        let known = fs::read_to_string(format!("/proc/self/{name}"));
        known.is_ok_and(|known| {
            fs::write(format!("/proc/{process}/{name}"), identity(&known)).is_ok()
        })
    });
    u8::from(!mapped)
}

/// A map under which everybody that a map names is who they are. Each line has the first id inside, the
/// first outside and their number.
fn identity(map: &str) -> String {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (inside, _, count) = (words.next()?, words.next()?, words.next()?);
        Some(format!("{inside} {inside} {count}\n"))
    };
    map.lines().filter_map(line).collect()
}

/// Puts an empty directory or file over each place that exists.
fn cover(places: &[PathBuf]) -> Result<(), String> {
    let mut files = Vec::new();
    for place in places {
        // A link is covered where it leads to: that is what opening it opens.
        match fs::canonicalize(place) {
            Ok(real) if real.is_dir() => empty_directory(&real).map_err(|e| at(&real, &e))?,
            Ok(real) => files.push(real),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(place, &error)),
        }
    }
    // What lies below a covered directory is gone already.
    files.retain(|file| file.exists());
    if files.is_empty() {
        return Ok(());
    }
    let failed = |why: &dyn Display| format!("an empty file cannot be made: {why}");
    let stage = stage(&files).ok_or_else(|| failed(&"there is no directory to make it in"))?;
    stage_directory(stage).map_err(|e| failed(&e))?;
    let empty = stage.join("empty");
    let covered = fs::write(&empty, b"")
        .map_err(|e| failed(&e))
        .and_then(|()| {
            files
                .iter()
                .try_for_each(|file| bind_read_only(&empty, file).map_err(|e| at(file, &e)))
        });
    // The covers stay when the directory that the empty file was made in is gone.
    unmount(stage, UnmountFlags::DETACH).map_err(|e| failed(&e))?;
    covered
}

/// A directory under which none of these files lies: it is hidden for as long as the covers are made.
fn stage(files: &[PathBuf]) -> Option<&'static Path> {
    const USUAL: [&str; 6] = ["/tmp", "/dev/shm", "/run", "/mnt", "/var/tmp", "/media"];
    let fits = |stage: &&Path| stage.is_dir() && !files.iter().any(|f| f.starts_with(stage));
    USUAL.into_iter().map(Path::new).find(fits)
}

fn quiet() -> MountFlags {
    MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC
}

fn stage_directory(place: &Path) -> rustix::io::Result<()> {
    mount("durward", place, "tmpfs", quiet(), c"size=64k,mode=0755")
}

fn empty_directory(place: &Path) -> rustix::io::Result<()> {
    let flags = quiet() | MountFlags::RDONLY;
    mount("durward", place, "tmpfs", flags, c"size=4k,mode=0555")
}

/// Shows `source` at `target`, and nobody can write to it there.
fn bind_read_only(source: &Path, target: &Path) -> rustix::io::Result<()> {
    mount_bind(source, target)?;
    // Flags that the file system has already may not be dropped.
    let has = rustix::fs::statvfs(target)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (flag, keep) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if has.contains(flag) {
            flags |= keep;
        }
    }
    mount_remount(target, flags, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_turned_into_the_identity() {
        for (map, expect) in [
            ("         0          0 4294967295\n", "0 0 4294967295\n"),
            ("0 1000 1\n1 100000 65536\n", "0 0 1\n1 1 65536\n"),
            ("", ""),
            ("nonsense\n", ""),
        ] {
            assert_eq!(identity(map), expect);
        }
    }
}
