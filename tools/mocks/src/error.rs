//! Why a mock could not run. Faults of a caller are protocol answers, not errors of the process.

use std::{fmt, io, path::PathBuf};

/// The mock cannot start or cannot go on.
#[derive(Debug)]
pub enum MockError {
    /// An option cannot be used as given; the text says what to change.
    Usage(String),
    /// A file or directory named on the command line cannot be used.
    Path {
        /// The path as it was given.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Standard input or output failed.
    Stdio(io::Error),
    /// The address cannot be listened on.
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// A child process could not be started.
    Spawn {
        /// The program that was to run.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The asynchronous runtime could not be built.
    Runtime(io::Error),
}

impl fmt::Display for MockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => f.write_str(text),
            Self::Path { path, source } => write!(f, "cannot use {}: {source}", path.display()),
            Self::Stdio(source) => write!(f, "standard input or output failed: {source}"),
            Self::Listen { address, source } => write!(f, "cannot listen on {address}: {source}"),
            Self::Spawn { program, source } => write!(f, "cannot start {program}: {source}"),
            Self::Runtime(source) => write!(f, "cannot build the runtime: {source}"),
        }
    }
}

impl std::error::Error for MockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Usage(_) => None,
            Self::Path { source, .. }
            | Self::Stdio(source)
            | Self::Listen { source, .. }
            | Self::Spawn { source, .. }
            | Self::Runtime(source) => Some(source),
        }
    }
}
