//! Messages for people, on standard error.
//!
//! Standard error may share its description with a pipe that is non-blocking; then a full pipe
//! answers `WouldBlock`, and what cannot be written is dropped rather than waited for.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;

/// Standard error that drops what it cannot write.
#[derive(Debug, Clone, Copy)]
pub struct Tolerant;

impl Write for Tolerant {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Nobody can be told that telling failed.
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts logging: warnings and what servers say on their standard error, more with `-v` and `-vv`.
pub fn start(verbose: u8) {
    let filter = match verbose {
        0 => "warn,upstream=info",
        1 => "info",
        _ => "debug",
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(|| Tolerant)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
        .without_time()
        .finish();
    // A second start in one process (tests) keeps the first.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
