//! What was wrapped: which backup belongs to a client's file, and what the file was when it was left.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use state::directory;

/// Largest record that is read, in bytes.
const RECORD_BYTES_MAX: u64 = 64 * 1024;

/// Most wrapped files that are read.
const RECORDS_MAX: usize = 256;

/// Below the state directory.
const FOLDER: &str = "wrapped";

/// A wrapped file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub file: PathBuf,
    /// The file as it was before the first server was wrapped.
    pub backup: PathBuf,
    /// Digest of that.
    pub before: String,
    /// Digest of the file as it was left.
    pub after: String,
}

impl Record {
    /// The record of a file; none where there is none that can be read.
    pub fn find(file: &Path, state: &Path) -> Option<Self> {
        let record = Self::read(&place(file, state))?;
        (record.file == file).then_some(record)
    }

    /// Returns the files that are wrapped, at most [`RECORDS_MAX`].
    pub fn files(state: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(state.join(FOLDER)) else {
            return Vec::new();
        };
        let records = entries.flatten().take(RECORDS_MAX);
        let records = records.filter_map(|entry| Self::read(&entry.path()));
        records.map(|record| record.file).collect()
    }

    fn read(path: &Path) -> Option<Self> {
        let length = fs::metadata(path).ok()?.len();
        if length > RECORD_BYTES_MAX {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// The text of the backup, if it is what was there before.
    pub fn original(&self) -> Option<String> {
        let text = fs::read_to_string(&self.backup).ok()?;
        (digest(&text) == self.before).then_some(text)
    }

    pub fn write(&self, state: &Path) -> Result<(), String> {
        let path = place(&self.file, state);
        let text = serde_json::to_vec_pretty(self).map_err(|error| error.to_string())?;
        for folder in [state, &state.join(FOLDER)] {
            directory::create_private(folder).map_err(|error| error.to_string())?;
        }
        directory::replace_private(&path, &text, true).map_err(|error| error.to_string())
    }

    pub fn remove(&self, state: &Path) {
        drop(fs::remove_file(place(&self.file, state)));
    }
}

fn place(file: &Path, state: &Path) -> PathBuf {
    let name = digest(&file.to_string_lossy());
    let short = name.get(..16).unwrap_or_default();
    state.join(FOLDER).join(format!("{short}.json"))
}

/// The digest of a text, in hexadecimal.
pub(super) fn digest(text: &str) -> String {
    gate::pins::digest(text)
}
