//! This machine's clock, randomness and file system, as the gate asks for them.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use gate::Clock;
use gate::paths::PathView;
use gate::paths::view::Link;

use crate::places::Places;

/// The system's clocks.
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Starts counting.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn wall_ms(&self) -> i64 {
        now_ms()
    }

    fn mono_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Fills `bytes` from the kernel's generator.
///
/// # Errors
/// Where the kernel's device cannot be read.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

/// This machine's file system, as a child of ours sees it.
pub struct LocalView {
    home: Option<String>,
    current: Option<String>,
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
        }
    }
}

impl PathView for LocalView {
    fn home(&self) -> Option<String> {
        self.home.clone()
    }

    fn current_dir(&self) -> Option<String> {
        self.current.clone()
    }

    fn read_link(&self, path: &str) -> Link {
        match rustix::fs::readlink(Path::new(path), Vec::new()) {
            Ok(target) => target.into_string().map_or(Link::Unreadable, Link::To),
            Err(rustix::io::Errno::INVAL) => Link::NotALink,
            Err(
                rustix::io::Errno::NOENT
                | rustix::io::Errno::NOTDIR
                | rustix::io::Errno::NAMETOOLONG,
            ) => Link::Missing,
            Err(_) => Link::Unreadable,
        }
    }
}
