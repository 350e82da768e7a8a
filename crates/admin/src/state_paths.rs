//! Directories and files of an installation.

use std::path::PathBuf;

/// Paths of an installation.
#[derive(Debug, Clone, Default)]
pub struct StatePaths {
    /// Directory of journal, keys and pins.
    pub state: PathBuf,
    /// Directory of the configuration.
    pub config: PathBuf,
    /// Directories of control sockets.
    pub runtime: Vec<PathBuf>,
    /// File of the witness, if one is configured.
    pub witness: Option<PathBuf>,
}

impl StatePaths {
    /// Returns the directory of the journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.state.join("journal")
    }

    /// Returns the directory of keys and head.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.state.join("keys")
    }

    /// Returns the directory of pins.
    #[must_use]
    pub fn pins(&self) -> PathBuf {
        self.state.join("pins")
    }

    /// Returns the state directory without links, so that two processes can compare theirs.
    #[must_use]
    pub fn real_state(&self) -> PathBuf {
        std::fs::canonicalize(&self.state).unwrap_or_else(|_| self.state.clone())
    }
}
