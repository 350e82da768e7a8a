//! The file of a witness, which receives each head of the journal.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use gate::journal::WITNESS_BYTES_MAX;
use serde::Serialize;

use crate::error::AdminError;

/// Longest line that is counted as one head, in bytes.
const HEAD_BYTES_MAX: u64 = 16 << 20;

/// Extent of the file of a witness.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WitnessState {
    /// The file.
    pub file: PathBuf,
    /// Whether it exists.
    pub exists: bool,
    /// Number of heads that it was given; a verification says whether each is signed.
    pub heads: u64,
    /// Size, in bytes.
    pub size_bytes: u64,
    /// Most bytes that it may have.
    pub size_bytes_max: u64,
    /// When the latest head was added, in milliseconds since 1970.
    pub changed_ms: Option<i64>,
}

/// Reads the file of a witness. A file that does not exist holds no heads.
///
/// # Errors
/// A file that cannot be read.
pub fn read_witness(path: &Path) -> Result<WitnessState, AdminError> {
    let mut state = WitnessState {
        file: path.to_path_buf(),
        exists: false,
        heads: 0,
        size_bytes: 0,
        size_bytes_max: WITNESS_BYTES_MAX,
        changed_ms: None,
    };
    let failed = |error| AdminError::Directory {
        path: path.to_path_buf(),
        error,
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(state),
        other => other.map_err(failed)?,
    };
    let found = file.metadata().map_err(failed)?;
    state.exists = true;
    state.size_bytes = found.len();
    let changed = found.modified().ok();
    let since = changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok());
    state.changed_ms = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut lines)
            .take(HEAD_BYTES_MAX)
            .read_until(b'\n', &mut line);
        match read.map_err(failed)? {
            0 => return Ok(state),
            _ => state.heads += u64::from(line.ends_with(b"\n")),
        }
    }
}
