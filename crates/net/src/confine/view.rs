//! A file system with nothing in it but what a sandbox lists and what is the system's own.
//!
//! Landlock alone keeps a child from opening what is not listed, not from connecting to a socket there: the session
//! bus of the user, or a terminal multiplexer, would run for it whatever it asks for. So each directory below the root
//! that is not the system's own is covered by an empty one, into which listed places are put again. Shared memory is
//! the child's own: what lies in that of the machine belongs to other programs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_remount, move_mount,
    open_tree,
};

use super::landlock::SYSTEM;
use super::namespaces::at;
use super::way::Way;
use super::{RESOLVERS, Sandbox};

/// Where programs keep memory that they share.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
/// What a child may keep there.
const SHARED_MEMORY_OPTIONS: &std::ffi::CStr = c"size=256m,mode=1777";
/// Where nobody listens.
const NOTHING: &str = "/dev/null";

/// A listed place, held open while what lies above it is covered.
struct Held {
    real: PathBuf,
    is_directory: bool,
    tree: OwnedFd,
}

/// Leaves nothing but what is listed.
pub(super) fn enter(sandbox: &Sandbox) -> Result<(), String> {
    let listed = [&sandbox.read, &sandbox.write, &sandbox.exec];
    let resolvers = RESOLVERS.iter().map(Path::new);
    let resolvers = resolvers.filter(|_| !sandbox.no_network);
    let listed = listed.into_iter().flatten().map(PathBuf::as_path);
    let mut real = BTreeSet::new();
    let mut links = BTreeSet::new();
    for place in listed.chain(resolvers) {
        // A place is reached by the name that it was listed under.
        links.extend(Way::to(place).links);
        // What is not there cannot be reached either.
        real.extend(fs::canonicalize(place).ok());
    }
    let (covers, sockets) = covers(&real)?;
    let memory = shared_memory(&real);
    let hidden: Vec<PathBuf> = covers.iter().chain(&memory).cloned().collect();
    let held = held(&real, &hidden)?;
    let work = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let rights = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    for cover in &covers {
        mount("durward", cover, "tmpfs", rights, c"size=1m,mode=0755")
            .map_err(|e| at(cover, &e))?;
    }
    if let Some(place) = &memory {
        mount("durward", place, "tmpfs", rights, SHARED_MEMORY_OPTIONS)
            .map_err(|e| at(place, &e))?;
    }
    for socket in &sockets {
        mount_bind(NOTHING, socket).map_err(|e| at(socket, &e))?;
    }
    for one in &held {
        put_back(one).map_err(|e| at(&one.real, &e))?;
    }
    let below = |path: &Path| hidden.iter().any(|cover| path.starts_with(cover));
    for (link, target) in links.iter().filter(|(link, _)| below(link)) {
        put_link(link, target).map_err(|e| at(link, &e))?;
    }
    // Entered anew: the directory that we are in is the one below the cover.
    if below(&work) && !work.exists() {
        fs::create_dir_all(&work).map_err(|e| at(&work, &e))?;
    }
    std::env::set_current_dir(&work).map_err(|e| at(&work, &e))?;
    for cover in &covers {
        let rights = rights | MountFlags::BIND | MountFlags::RDONLY;
        mount_remount(cover, rights, "").map_err(|e| at(cover, &e))?;
    }
    Ok(())
}

/// The machine's shared memory, unless it is listed.
fn shared_memory(real: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let place = Path::new(SHARED_MEMORY);
    let is_listed = place.ancestors().any(|above| real.contains(above));
    (!is_listed && place.is_dir()).then(|| place.to_owned())
}

/// The directories below the root that are to be empty, neither the system's own nor listed themselves; and the sockets
/// there.
fn covers(real: &BTreeSet<PathBuf>) -> Result<(Vec<PathBuf>, Vec<PathBuf>), String> {
    let root = Path::new("/");
    if real.contains(root) {
        return Ok(<_>::default());
    }
    let is_system = |path: &Path| SYSTEM.iter().any(|own| path == Path::new(own));
    let entries = fs::read_dir(root).map_err(|e| at(root, &e))?;
    let (mut out, mut sockets) = (Vec::new(), Vec::new());
    for entry in entries {
        let entry = entry.map_err(|e| at(root, &e))?;
        let path = entry.path();
        // Devices are listed one by one, and are no places for sockets.
        let is_own = is_system(&path) || path == Path::new("/dev") || real.contains(&path);
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && !is_own {
            out.push(path);
        } else if kind.is_socket() && !is_own {
            sockets.push(path);
        }
    }
    Ok((out, sockets))
}

/// The listed places that covers will hide, none below another, each before what lies below it.
fn held(real: &BTreeSet<PathBuf>, covers: &[PathBuf]) -> Result<Vec<Held>, String> {
    let mut out: Vec<Held> = Vec::new();
    for place in real {
        let is_hidden = covers.iter().any(|cover| place.starts_with(cover));
        let is_within = out.last().is_some_and(|held| place.starts_with(&held.real));
        if !is_hidden || is_within {
            continue;
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        out.push(Held {
            is_directory: place.is_dir(),
            tree: open_tree(CWD, place, flags).map_err(|e| at(place, &e))?,
            real: place.clone(),
        });
    }
    Ok(out)
}

fn put_back(held: &Held) -> io::Result<()> {
    if held.is_directory {
        fs::create_dir_all(&held.real)?;
    } else {
        make_room(&held.real)?;
        fs::write(&held.real, b"")?;
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(&held.tree, "", CWD, &held.real, flags)?)
}

fn put_link(link: &Path, target: &Path) -> io::Result<()> {
    make_room(link)?;
    match std::os::unix::fs::symlink(target, link) {
        // It is within a listed place.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

fn make_room(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}
