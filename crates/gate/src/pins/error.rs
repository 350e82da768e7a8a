//! What can be wrong with a pin file.

use std::fmt;
use std::io;
use std::path::PathBuf;

use state::DirectoryError;

use crate::closed_set;

closed_set! {
    /// Why pins cannot be read or kept, as a closed set.
    pub enum PinFault {
        Name "pins_name": "the server's name cannot be the name of a file";
        Read "pins_read": "the file of pins cannot be read";
        Corrupt "pins_corrupt": "the file of pins is not what was written";
        Write "pins_write": "the file of pins cannot be written";
    }
}

/// Why pins cannot be read or kept.
#[derive(Debug)]
#[non_exhaustive]
pub enum PinError {
    /// The name cannot be the name of a file.
    Name {
        /// The server's name.
        server: String,
    },
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// The file is not what was written.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file cannot be written.
    Write(DirectoryError),
}

impl PinError {
    /// Which of the closed set it is.
    #[must_use]
    pub fn fault(&self) -> PinFault {
        match self {
            Self::Name { .. } => PinFault::Name,
            Self::Read { .. } => PinFault::Read,
            Self::Corrupt { .. } => PinFault::Corrupt,
            Self::Write(_) => PinFault::Write,
        }
    }
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { server } => write!(
                f,
                "no pins can be kept for a server named \"{}\": use letters, digits, - _ and .",
                server.escape_debug()
            ),
            Self::Read { path, error } => {
                write!(f, "the pins in {} cannot be read: {error}", path.display())
            }
            Self::Corrupt { path, what } => write!(
                f,
                "the pins in {} are damaged ({what}); compare with a backup, or start again with durward pins forget",
                path.display()
            ),
            Self::Write(error) => write!(f, "the pins cannot be written: {error}"),
        }
    }
}

impl std::error::Error for PinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Name { .. } | Self::Corrupt { .. } => None,
            Self::Read { error, .. } => Some(error),
            Self::Write(error) => Some(error),
        }
    }
}

impl From<DirectoryError> for PinError {
    fn from(error: DirectoryError) -> Self {
        Self::Write(error)
    }
}
