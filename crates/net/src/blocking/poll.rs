//! Waits for a descriptor, with a limit.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Polls one descriptor; returns false when the time ran out.
///
/// # Errors
/// The system's error, except for an interruption, which counts as false.
pub fn poll_one(fd: &impl AsFd, flags: PollFlags, longest: Option<Duration>) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, flags)];
    match poll(&mut fds, timespec(longest).as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits at most this long, less if a signal comes; never returns true.
///
/// # Errors
/// The system's error, except for an interruption.
pub fn pause(longest: Option<Duration>) -> io::Result<bool> {
    match poll(&mut [], timespec(longest).as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns a duration as the system takes it.
#[must_use]
pub fn timespec(duration: Option<Duration>) -> Option<Timespec> {
    duration.map(|duration| Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    })
}
