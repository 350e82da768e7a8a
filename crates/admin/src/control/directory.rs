//! The runtime directory and the sockets in it.
//!
//! It has to be ours and ours alone: who may write there could put a socket of their own in our place
//! and be shown what waits. Sockets are bound and reached through a descriptor of the directory that was
//! checked, so that it cannot be exchanged in between, and so that its path may be long.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, unlinkat};
use state::directory::{DirectoryLock, create_private};

/// Most sockets that are looked at in one directory.
const SOCKETS_MAX: usize = 1_000;
/// Most names that are tried for one's own socket.
const NAMES_MAX: usize = 16;
const EXTENSION: &str = ".sock";
/// End of the name of a socket until a process listens at it, so that no client finds it before.
const UNREADY: &str = ".sock.new";

/// A runtime directory that was found to be ours alone.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    opened: OwnedFd,
}

/// Why a runtime directory cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// It belongs to another user.
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Others may read or change it.
    Open {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: RawMode,
    },
    /// The system refused.
    Io {
        /// The operation, and its object.
        what: String,
        /// The refusal.
        error: io::Error,
    },
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { path, owner } => write!(
                f,
                "the runtime directory {} belongs to user {owner}, not to user {}, so approvals there could be forged\n  hint: unset XDG_RUNTIME_DIR, or set it to a directory of your own",
                path.display(),
                rustix::process::geteuid().as_raw()
            ),
            Self::Open { path, mode } => write!(
                f,
                "the runtime directory {} is open to other users (mode {mode:04o}), so approvals there could be forged\n  hint: chmod 700 {}",
                path.display(),
                path.display()
            ),
            Self::Io { what, error } => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for Unusable {}

impl Unusable {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }

    /// Whether the directory is simply not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

impl Directory {
    /// Opens and checks a directory.
    pub fn open(path: &Path) -> Result<Self, Unusable> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let failed = || format!("open the runtime directory {}", path.display());
        let opened = rustix::fs::open(path, flags, Mode::empty())
            .map_err(io::Error::from)
            .map_err(Unusable::io(failed()))?;
        let found = rustix::fs::fstat(&opened)
            .map_err(io::Error::from)
            .map_err(Unusable::io(failed()))?;
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Unusable::Foreign {
                path: path.to_path_buf(),
                owner: found.st_uid,
            });
        }
        let mode = Mode::from_raw_mode(found.st_mode).as_raw_mode();
        if mode & 0o077 != 0 {
            return Err(Unusable::Open {
                path: path.to_path_buf(),
                mode,
            });
        }
        Ok(Self {
            path: path.to_path_buf(),
            opened,
        })
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A name in the directory as the socket calls take it: short, and independent of the path.
    fn at(&self, name: &str) -> PathBuf {
        let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", self.opened.as_raw_fd()));
        if by_descriptor.exists() {
            by_descriptor.join(name)
        } else {
            self.path.join(name)
        }
    }

    /// Connects to a socket in it.
    pub fn connect(&self, name: &str) -> io::Result<UnixStream> {
        UnixStream::connect(self.at(name))
    }

    /// Names of the sockets in it, sorted.
    pub fn sockets(&self) -> io::Result<Vec<String>> {
        self.ending(EXTENSION)
    }

    fn ending(&self, end: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.at("."))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
            if is_socket && name.ends_with(end) && names.len() < SOCKETS_MAX {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns whether no process listens at a socket. Under the directory's lock this is certain: a process that binds
    /// holds the lock until it listens.
    fn is_stale(&self, name: &str) -> bool {
        matches!(self.connect(name), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }

    fn remove(&self, name: &str) {
        // Another may have been faster; nothing depends on it.
        let _ = unlinkat(&self.opened, name, AtFlags::empty());
    }

    fn is_free(&self, name: &str) -> bool {
        let found = rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW);
        match found {
            Err(_) => true,
            Ok(found) => {
                let socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
                socket && self.is_stale(name) && {
                    self.remove(name);
                    true
                }
            }
        }
    }
}

/// An instance's own socket. Dropping it takes its name away.
#[derive(Debug)]
pub struct Socket {
    directory: Directory,
    name: String,
    listener: Option<UnixListener>,
}

impl Socket {
    /// Creates the directory if it is missing, removes sockets of dead instances, and listens.
    pub fn bind(path: &Path, instance: &str) -> Result<Self, Unusable> {
        create_private(path).map_err(|error| Unusable::Io {
            what: "make the runtime directory".into(),
            error: io::Error::other(error),
        })?;
        let directory = Directory::open(path)?;
        let _lock = DirectoryLock::acquire(path).map_err(|error| Unusable::Io {
            what: "lock the runtime directory".into(),
            error: io::Error::other(error),
        })?;
        let listed = || format!("list {}", path.display());
        for name in directory.sockets().map_err(Unusable::io(listed()))? {
            if directory.is_stale(&name) {
                directory.remove(&name);
            }
        }
        // Whoever makes one holds the lock: these are of instances that ended there.
        for name in directory.ending(UNREADY).map_err(Unusable::io(listed()))? {
            directory.remove(&name);
        }
        let pid = std::process::id();
        // The same number may live in another container that shares the directory.
        let name = (1..=NAMES_MAX)
            .map(|count| match count {
                1 => format!("{instance}-{pid}{EXTENSION}"),
                _ => format!("{instance}-{pid}-{count}{EXTENSION}"),
            })
            .find(|name| directory.is_free(name))
            .ok_or_else(|| Unusable::Io {
                what: format!(
                    "find a free name for the control socket in {}",
                    path.display()
                ),
                error: io::ErrorKind::AlreadyExists.into(),
            })?;
        let what = format!("listen at {}", path.join(&name).display());
        let mut socket = Self {
            name: format!("{}{UNREADY}", name.trim_end_matches(EXTENSION)),
            directory,
            listener: None,
        };
        socket.listen(&name).map_err(Unusable::io(what))?;
        Ok(socket)
    }

    /// Listens under the present name and takes the given one after it: whoever sees that one is answered.
    fn listen(&mut self, name: &str) -> io::Result<()> {
        let unready = self.directory.at(&self.name);
        self.listener = Some(UnixListener::bind(&unready)?);
        rustix::fs::chmod(&unready, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::rename(&unready, self.directory.at(name))?;
        name.clone_into(&mut self.name);
        Ok(())
    }

    /// The listener, once.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }

    /// Returns its path.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(&self.name)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.directory.remove(&self.name);
    }
}

/// The user at the other end.
pub fn peer(stream: &impl AsFd) -> io::Result<u32> {
    #[cfg(target_os = "linux")]
    {
        Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
    }
    #[cfg(not(target_os = "linux"))]
    {
        // The directory excludes other users; the system has no call that rustix offers.
        let _ = stream;
        Ok(rustix::process::geteuid().as_raw())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn fresh(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("durward-run-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn a_directory_too_open_or_a_link_to_one_is_not_used() {
        let path = fresh("open");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        let error = Socket::bind(&path, "x").unwrap_err();
        assert!(error.to_string().contains("mode 0750"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let link = fresh("link");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Directory::open(&link).is_err());
        std::fs::remove_file(&link).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn what_the_dead_left_is_removed_and_what_the_living_use_stays() {
        let path = fresh("stale").join("a".repeat(120));
        let living = Socket::bind(&path, "living").unwrap();
        for dead in ["dead-1.sock", "dead-2.sock.new"] {
            drop(UnixListener::bind(living.directory.at(dead)).unwrap());
        }
        std::fs::write(path.join("file.sock"), "no socket").unwrap();
        let second = Socket::bind(&path, "living").unwrap();
        let names = second.directory.sockets().unwrap();
        let pid = std::process::id();
        assert_eq!(
            names,
            [format!("living-{pid}-2.sock"), format!("living-{pid}.sock")]
        );
        assert!(path.join("file.sock").exists());
        assert!(!path.join("dead-2.sock.new").exists());
        drop(living);
        drop(second);
        assert!(
            Directory::open(&path)
                .unwrap()
                .sockets()
                .unwrap()
                .is_empty()
        );
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_name_that_is_seen_is_listened_at() {
        let path = fresh("seen");
        let first = Socket::bind(&path, "first").unwrap();
        let directory = Directory::open(&path).unwrap();
        let ends = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut refused = Vec::new();
                while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                    for name in directory.sockets().unwrap() {
                        if directory.is_stale(&name) {
                            refused.push(name);
                        }
                    }
                }
                refused
            });
            let second: Vec<Socket> = (0..NAMES_MAX)
                .map(|_| Socket::bind(&path, "second").unwrap())
                .collect();
            ends.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(looking.join().unwrap(), Vec::<String>::new());
            drop(second);
        });
        drop(first);
        std::fs::remove_dir_all(&path).unwrap();
    }
}
