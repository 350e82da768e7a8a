//! Why a measurement could not be made, or may not be believed.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Exit code of a measurement that failed, or could not be kept.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Exit code of a measurement that was stopped; what there was is written.
pub(crate) const EXIT_ABORTED: u8 = 97;

/// Why the lab stopped.
#[derive(Debug)]
pub enum LabError {
    /// The command line cannot be used as given; the text says what to change.
    Usage(String),
    /// The command of a variant could not be started.
    Spawn {
        /// The variant.
        arm: String,
        /// The program that was to run.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A variant did not answer within its time.
    Silent {
        /// The variant.
        arm: String,
        /// The request that it got.
        asked: String,
        /// How long it had, in milliseconds.
        waited_ms: u64,
    },
    /// A variant ended, closed its pipes or wrote what is no frame.
    Broken {
        /// The variant.
        arm: String,
        /// The fault, with the end of its standard error if there is one.
        what: String,
    },
    /// A variant answered, but not what was asked for: its times mean nothing.
    Invalid {
        /// The variant.
        arm: String,
        /// Fault of the answer.
        what: String,
    },
    /// Two measurements that were not made in the same way; the text says what to do.
    Incomparable(String),
    /// Stopped before there was a result.
    Aborted,
    /// A file or a directory cannot be used.
    Path {
        /// Which.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The system refused something else.
    System {
        /// The attempted action.
        what: &'static str,
        /// Error of that action.
        source: io::Error,
    },
}

impl LabError {
    /// Returns the system's error for a path.
    pub(crate) fn path(path: &Path, source: io::Error) -> Self {
        Self::Path {
            path: path.to_path_buf(),
            source,
        }
    }

    /// Returns the variant that failed, if it was one.
    pub(crate) fn arm(&self) -> Option<&str> {
        match self {
            Self::Spawn { arm, .. }
            | Self::Silent { arm, .. }
            | Self::Broken { arm, .. }
            | Self::Invalid { arm, .. } => Some(arm),
            Self::Usage(_)
            | Self::Incomparable(_)
            | Self::Aborted
            | Self::Path { .. }
            | Self::System { .. } => None,
        }
    }

    /// What kind of failure it is, as documents name it.
    fn kind(&self) -> &'static str {
        match self {
            Self::Usage(_) => "usage",
            Self::Spawn { .. } => "spawn",
            Self::Silent { .. } => "silent",
            Self::Broken { .. } => "broken",
            Self::Invalid { .. } => "invalid",
            Self::Incomparable(_) => "incomparable",
            Self::Aborted => "aborted",
            Self::Path { .. } => "path",
            Self::System { .. } => "system",
        }
    }

    /// Writes it as the one document that `--json` promises.
    pub(crate) fn document(&self, out: &mut dyn io::Write) -> io::Result<()> {
        #[derive(serde::Serialize)]
        struct ErrorDocument {
            format: &'static str,
            kind: &'static str,
            error: String,
            exit_code: u8,
        }
        let document = ErrorDocument {
            format: "durward-lab-error/1",
            kind: self.kind(),
            error: self.to_string(),
            exit_code: self.exit_code(),
        };
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }

    /// Returns the exit code: 2 for a wrong command line, 97 for what was stopped, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Aborted => EXIT_ABORTED,
            Self::Spawn { .. }
            | Self::Silent { .. }
            | Self::Broken { .. }
            | Self::Invalid { .. }
            | Self::Incomparable(_)
            | Self::Path { .. }
            | Self::System { .. } => EXIT_FAILED,
        }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Incomparable(text) => f.write_str(text),
            Self::Aborted => f.write_str("stopped before anything was measured"),
            Self::Spawn {
                arm,
                program,
                source,
            } => write!(f, "variant {arm}: cannot start {program}: {source}"),
            Self::Silent {
                arm,
                asked,
                waited_ms,
            } => write!(
                f,
                "variant {arm}: no answer to {asked} within {waited_ms} ms; --timeout-ms allows more"
            ),
            Self::Broken { arm, what } => write!(f, "variant {arm}: {what}"),
            Self::Invalid { arm, what } => {
                write!(
                    f,
                    "variant {arm} is invalid, its times are discarded: {what}"
                )
            }
            Self::Path { path, source } => write!(f, "cannot use {}: {source}", path.display()),
            Self::System { what, source } => write!(f, "cannot {what}: {source}"),
        }
    }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Usage(_)
            | Self::Incomparable(_)
            | Self::Aborted
            | Self::Silent { .. }
            | Self::Broken { .. }
            | Self::Invalid { .. } => None,
            Self::Spawn { source, .. }
            | Self::Path { source, .. }
            | Self::System { source, .. } => Some(source),
        }
    }
}
