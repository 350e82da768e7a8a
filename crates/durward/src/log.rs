//! Messages for people, on standard error.
//!
//! Whoever started us may never read them, and the pipe is small: what it does not take is dropped
//! rather than waited for.

use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing_subscriber::EnvFilter;

use crate::ssh::Level;

/// How long a message for a person may wait for room, in milliseconds. Log lines do not wait.
const WAIT_MS: i64 = 1_000;
/// What a pipe that says it has room takes without blocking, in bytes (POSIX `PIPE_BUF` on Linux; less elsewhere).
const PART_BYTES: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// Standard error for messages: waits a moment for room, then drops what it cannot write.
#[derive(Debug, Clone, Copy)]
pub struct Tolerant;

/// Standard error for logs: drops what it cannot write at once, so that nobody who does not read it
/// can hold up a call.
#[derive(Debug, Clone, Copy)]
struct Hasty;

impl Write for Tolerant {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(write_where_room(bytes, WAIT_MS))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Hasty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(write_where_room(bytes, 0))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nobody can be told that telling failed: all counts as written.
fn write_where_room(bytes: &[u8], wait_ms: i64) -> usize {
    let mut stderr = io::stderr().lock();
    for part in bytes.chunks(PART_BYTES) {
        if !has_room(&stderr, wait_ms) || stderr.write_all(part).is_err() {
            break;
        }
    }
    bytes.len()
}

fn has_room(stderr: &impl AsFd, wait_ms: i64) -> bool {
    let wait = Timespec {
        tv_sec: wait_ms / 1_000,
        tv_nsec: (wait_ms % 1_000) * 1_000_000,
    };
    let mut fds = [PollFd::new(stderr, PollFlags::OUT)];
    matches!(poll(&mut fds, Some(&wait)), Ok(1..))
}

/// Starts logging: warnings, calls that wait for a person, reloads and what servers say on their standard error, more with `-v` and `-vv`.
pub fn start(verbose: u8) {
    begin(match verbose {
        0 => "warn,approval=info,upstream=info,reload=info,serve=info",
        1 => "info",
        _ => "debug",
    });
}

/// The same at a level that was asked for by its name; `-v` says more all the same.
pub fn start_at(level: Option<Level>, verbose: u8) {
    match level {
        Some(Level::Error) if verbose == 0 => begin("error"),
        Some(Level::Info) if verbose == 0 => start(1),
        Some(Level::Debug) => start(2),
        _ => start(verbose),
    }
}

fn begin(filter: &str) {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(|| Hasty)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
        .without_time()
        .finish();
    // A second start in one process (tests) keeps the first.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
