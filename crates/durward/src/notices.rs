//! Notices of the kernel that something in a directory has changed, so that nobody has to look again and again.
//!
//! They only say that it is worth while to look: what has changed is found out by looking. A network file system tells
//! nothing of what other machines do, and a user may have only so many watches: who relies on notices looks now and then
//! all the same.

use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Most links that are followed to a file.
const LINKS_MAX: usize = 16;
/// How many bytes of notices are read at once.
const READ_BYTES: usize = 4 * 1024;
/// Most reads in one go: what writes without end beside a file that is watched must not keep a thread to itself.
const READS_MAX: usize = 16;

/// Notices about some directories.
#[derive(Debug)]
pub struct Notices(Option<AsyncFd<OwnedFd>>);

impl Notices {
    /// Notices about whatever happens in these directories; none where the kernel does not give them for all of them. To be
    /// called within a runtime.
    pub fn of(directories: &[PathBuf]) -> Self {
        #[expect(
            deprecated,
            reason = "its successor is unsafe; an owned descriptor stays open as it should"
        )]
        let registered = |queue| AsyncFd::with_interest(queue, Interest::READABLE).ok();
        Self(asked(directories).and_then(registered))
    }

    /// The same about these files: about the directories that hold them, or a link on the way to them.
    pub fn of_files<'p>(files: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut directories: Vec<PathBuf> = Vec::new();
        for file in files {
            for place in steps(file) {
                if !directories.contains(&place) {
                    directories.push(place);
                }
            }
        }
        Self::of(&directories)
    }

    /// Whether there are any.
    pub fn are_given(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for the next one, and takes those that are there with it, up to a bound. Cancel-safe; never ready where there are none.
    pub async fn next(&self) {
        let Some(queue) = &self.0 else {
            return std::future::pending().await;
        };
        let mut bytes = [0; READ_BYTES];
        while let Ok(mut ready) = queue.readable().await {
            let reads = (0..READS_MAX)
                .take_while(|_| rustix::io::read(queue, &mut bytes).is_ok_and(|read| read > 0));
            let reads = reads.count();
            if reads < READS_MAX {
                ready.clear_ready();
            }
            if reads > 0 {
                return;
            }
        }
        std::future::pending().await
    }
}

/// The directories in which a file could be replaced: its own, and those of the links that lead to it.
fn steps(file: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let mut at = file.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Some(parent) = at.parent().map(Path::to_path_buf) else {
            break;
        };
        let target = std::fs::read_link(&at);
        places.push(parent.clone());
        match target {
            Ok(target) => at = parent.join(target),
            Err(_) => break,
        }
    }
    // A directory on the way may be a link as well.
    let real = std::fs::canonicalize(file).ok();
    places.extend(real.and_then(|real| real.parent().map(Path::to_path_buf)));
    places
}

#[cfg(target_os = "linux")]
fn asked(directories: &[PathBuf]) -> Option<OwnedFd> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

    let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
    let flags = WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MODIFY
        | WatchFlags::ATTRIB
        | WatchFlags::MOVE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    for directory in directories {
        add_watch(&queue, directory, flags).ok()?;
    }
    (!directories.is_empty()).then_some(queue)
}

#[cfg(not(target_os = "linux"))]
fn asked(_directories: &[PathBuf]) -> Option<OwnedFd> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn a_change_behind_a_link_is_told_of_and_a_missing_directory_has_no_notices() {
        let place = std::env::temp_dir().join(format!("durward-notices-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        for directory in ["named", "real"] {
            fs::create_dir_all(place.join(directory)).unwrap();
        }
        fs::write(place.join("real/file"), "a").unwrap();
        symlink("../real/file", place.join("named/file")).unwrap();
        let notices = Notices::of_files([place.join("named/file").as_path()]);
        assert!(notices.are_given());
        fs::write(place.join("real/file"), "b").unwrap();
        notices.next().await;
        fs::write(place.join("named/other"), "c").unwrap();
        notices.next().await;
        assert!(!Notices::of(&[place.join("gone")]).are_given());
        fs::remove_dir_all(&place).unwrap();
    }

    #[tokio::test]
    async fn many_notices_are_taken_in_more_than_one_go() {
        let place =
            std::env::temp_dir().join(format!("durward-notices-many-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        let notices = Notices::of(std::slice::from_ref(&place));
        assert!(notices.are_given());
        // Each tells of 32 bytes at least, and two that are alike in a row are told as one.
        for _ in 0..READS_MAX * READ_BYTES / 32 {
            for name in ["a", "b"] {
                fs::write(place.join(name), "x").unwrap();
            }
        }
        notices.next().await;
        let more = tokio::time::timeout(std::time::Duration::from_secs(5), notices.next());
        assert!(
            more.await.is_ok(),
            "a part of them is left for the next time"
        );
        fs::remove_dir_all(&place).unwrap();
    }
}
