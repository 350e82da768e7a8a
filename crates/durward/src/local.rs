//! This machine's clock, randomness and file system, as the gate asks for them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gate::Clock;
use gate::paths::PathView;
use gate::paths::view::{FileText, Link};
use mcp::describe::ArgumentRoles;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::places::Places;

/// Length from which on the kernel takes no path, in bytes.
const PATH_MAX: usize = 4_096;

/// The system's clocks.
pub struct SystemClock {
    start_ns: u64,
}

impl SystemClock {
    /// Starts counting.
    pub fn new() -> Self {
        Self {
            start_ns: nanos(ClockId::Monotonic),
        }
    }

    fn since_start(&self, clock: ClockId) -> u64 {
        nanos(clock).saturating_sub(self.start_ns)
    }
}

/// Nanoseconds since the machine was started.
fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

impl Clock for SystemClock {
    fn wall_ms(&self) -> i64 {
        now_ms()
    }

    fn mono_ns(&self) -> u64 {
        self.since_start(ClockId::Monotonic)
    }

    fn about_ns(&self) -> u64 {
        self.since_start(ClockId::MonotonicCoarse)
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// Returns the day in UTC, as `2026-11-28`.
pub fn date() -> String {
    let mut text = gate::journal::format_utc(now_ms());
    text.truncate("2026-11-28".len());
    text
}

/// Milliseconds since 1970, up to a few ago: a tenth of what [`now_ms`] costs.
pub fn about_ms() -> i64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    now.tv_sec
        .saturating_mul(1_000)
        .saturating_add(now.tv_nsec / 1_000_000)
}

/// Fills `bytes` from the kernel's generator, by its call: a container may have no devices.
///
/// # Errors
/// Where the kernel gives none.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| io::Error::other("the kernel gives no random bytes"))
}

/// This machine's file system, as a child of ours sees it.
pub struct LocalView {
    home: Option<String>,
    current: Option<String>,
    is_base_known: bool,
    /// The environment variables that its server is started with.
    variables: HashMap<String, String>,
}

/// How a server reads its arguments, as far as the configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// What its arguments are, where neither names nor schemas tell.
    pub arguments: ArgumentRoles,
    /// The directory that it resolves relative paths against.
    pub relative_to: Option<PathBuf>,
    /// The directory that it is started in, where that is not ours.
    pub started_in: Option<PathBuf>,
}

impl LocalView {
    /// A view for children that run where we were started.
    pub fn new(places: &Places) -> Self {
        let text = |path: &Option<std::path::PathBuf>| {
            path.as_ref().and_then(|p| p.to_str()).map(str::to_owned)
        };
        Self {
            home: text(&places.home),
            current: text(&places.current),
            is_base_known: false,
            variables: HashMap::new(),
        }
    }

    /// A view for a server that reads its arguments like this.
    pub fn of(places: &Places, reads: &Reads) -> Self {
        let own = reads.relative_to.as_ref().or(reads.started_in.as_ref());
        let own = own.and_then(|path| path.to_str()).map(str::to_owned);
        let view = Self::new(places);
        Self {
            current: own.or(view.current),
            is_base_known: reads.relative_to.is_some(),
            ..view
        }
    }

    /// Takes these variables for those of the server's environment. Values that are not UTF-8 are left out.
    pub fn with_environment(mut self, variables: Vec<(OsString, OsString)>) -> Self {
        let texts = variables.into_iter();
        let texts = texts.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        self.variables = texts.collect();
        self
    }
}

impl PathView for LocalView {
    fn home(&self) -> Option<String> {
        self.home.clone()
    }

    fn current_dir(&self) -> Option<String> {
        self.current.clone()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn is_base_known(&self) -> bool {
        self.is_base_known
    }

    fn read_text(&self, path: &str, bytes_max: usize) -> FileText {
        if !path.starts_with('/') {
            return FileText::Unreadable;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened =
            rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let file = match opened {
            Ok(file) => std::fs::File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => return FileText::Missing,
            Err(Errno::LOOP) => return FileText::NotAFile,
            Err(_) => return FileText::Unreadable,
        };
        match file.metadata() {
            Ok(found) if !found.is_file() => return FileText::NotAFile,
            Ok(_) => {}
            Err(_) => return FileText::Unreadable,
        }
        let (mut bytes, most) = (Vec::new(), bytes_max.saturating_add(1));
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        if file.take(most).read_to_end(&mut bytes).is_err() {
            return FileText::Unreadable;
        }
        FileText::of(bytes, bytes_max)
    }

    fn is_without_links(&self, path: &str) -> bool {
        // One call of the system instead of one for each step.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).is_ok()
    }

    fn read_link(&self, path: &str) -> Link {
        // Nearly nothing is a link: the room for its target is made where there is one.
        let is_link = rustix::fs::readlinkat_raw(CWD, path, &mut [0; 1][..]).map(|_| ());
        match is_link.and_then(|()| rustix::fs::readlink(Path::new(path), Vec::new())) {
            Ok(target) => target.into_string().map_or(Link::Unreadable, Link::To),
            Err(Errno::INVAL) => Link::NotALink,
            // Whoever goes there step by step gets farther than a path is long.
            Err(Errno::NAMETOOLONG) if path.len() >= PATH_MAX => Link::Unreadable,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Link::Missing,
            Err(_) => Link::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_way_without_links_is_one_where_no_step_is_a_link() {
        let folder = std::env::temp_dir().join(format!("durward-links-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let root = folder.canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "").unwrap();
        symlink("b", root.join("a/to_b")).unwrap();
        symlink("b/file", root.join("a/to_file")).unwrap();
        symlink("nowhere", root.join("a/dangling")).unwrap();
        symlink("loop", root.join("a/loop")).unwrap();
        let view = LocalView {
            home: None,
            current: None,
            is_base_known: false,
            variables: HashMap::new(),
        };
        let is_step_by_step = |path: &str| {
            let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
            let mut steps = ends.chain([path.len()]).filter_map(|end| path.get(..end));
            steps.all(|step| view.read_link(step) == Link::NotALink)
        };
        let below = |name: &str| format!("{}/{name}", root.display());
        let mut found = 0;
        for name in [
            "a",
            "a/b",
            "a/b/file",
            "a/to_b",
            "a/to_b/file",
            "a/to_file",
            "a/dangling",
            "a/loop",
            "a/loop/x",
            "a/none",
            "a/none/x",
            "a/b/file/x",
        ] {
            let path = below(name);
            assert_eq!(
                view.is_without_links(&path),
                is_step_by_step(&path),
                "{path}"
            );
            found += usize::from(view.is_without_links(&path));
        }
        assert_eq!(found, 3);
        for path in [
            "/proc/self",
            "/proc/self/root/etc",
            "/proc/self/fd/0",
            "/proc/thread-self/cwd",
        ] {
            assert!(!view.is_without_links(path), "{path}");
        }
        let deep = format!("{}{}", below("a"), "/a".repeat(PATH_MAX / 2));
        assert_eq!(view.read_link(&deep), Link::Unreadable);
        let long = below(&"n".repeat(256));
        assert_eq!(view.read_link(&long), Link::Missing);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
