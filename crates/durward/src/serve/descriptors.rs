//! File descriptors: as many as this process may have, and how many connections that is enough for.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that are kept for everything but connections: servers, the journal, control sockets.
const RESERVED: u64 = 512;

/// The limit on open files.
pub struct Files {
    /// As it is now.
    pub max: u64,
    /// As it was, where it was raised: programs that count on it (`select` knows 1,024) get it back.
    pub before: Option<u64>,
}

/// Raises the limit on open files as far as it goes. Where it cannot be raised, what is allowed has to do.
pub fn raised() -> Files {
    let found = getrlimit(Resource::Nofile);
    let mut limit = found;
    let mut before = None;
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if setrlimit(Resource::Nofile, limit).is_ok() {
            before = found.current;
        }
    }
    Files {
        max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        before,
    }
}

/// How many connections at once there are descriptors for, at most as many as are wanted.
pub fn connections(files_max: u64, wanted: usize) -> usize {
    let left = files_max.saturating_sub(RESERVED).max(files_max / 2).max(1);
    usize::try_from(left).map_or(wanted, |left| left.min(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        for (files_max, expect) in [
            (u64::MAX, 10_240),
            (20_000, 10_240),
            (4_096, 3_584),
            (1_024, 512),
            (256, 128),
            (0, 1),
        ] {
            assert_eq!(connections(files_max, 10_240), expect, "{files_max}");
        }
    }
}
