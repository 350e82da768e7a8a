//! A file that gains a line for every `tools/call` that arrived: proof of what reached a server.

use crate::MockError;
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
};

/// Appends one line per received call, before the call acts.
#[derive(Debug, Clone)]
pub(crate) struct CallLog {
    file: Arc<File>,
}

impl CallLog {
    /// Opens `path` for appending, creating it.
    pub(crate) fn open(path: &Path) -> Result<Self, MockError> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(|file| Self {
            file: Arc::new(file),
        })
        .map_err(|source| MockError::Path {
            path: path.to_owned(),
            source,
        })
    }

    /// One `write` of `{"name":…,"arguments":…}` and a newline; `name` and `arguments` are raw JSON
    /// of one frame, so neither holds a newline.
    pub(crate) fn note(&self, name: &str, arguments: &str) -> std::io::Result<()> {
        (&*self.file)
            .write_all(format!("{{\"name\":{name},\"arguments\":{arguments}}}\n").as_bytes())
    }
}
