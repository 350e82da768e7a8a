//! The run directory: plain files with all of a measurement, for people and for other programs.
//!
//! `manifest.json` has the plan and the machine; `ops/wN.jsonl` holds every call, `latency.hlog` the same as
//! histograms, `resources.jsonl` what the processes used, `summary.json` the figures and `verdict.json` what a gate
//! said. Shapes: `docs/schemas`.

mod histogram;
mod manifest;
mod ops;
mod read;
mod resources;

pub(crate) use histogram::LoggedHistogram;
pub(crate) use manifest::{RunManifest, build};
pub(crate) use ops::{CallStatus, OpRecord, OpsWriter};
pub(crate) use read::{document_of, format_of, operations, parsed, samples, summary_file};
pub(crate) use resources::{GENERATOR, ResourceSample, ResourceSampler};

use crate::error::LabError;
use crate::wall_clock;
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How many runs may begin in one second at one place.
const SAME_SECOND_MAX: u32 = 100;

/// A run directory that is being written.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Makes `<place>/<UTC time>-<name>/` with its `ops` directory; a number follows if the second already has one.
    pub(crate) fn create(place: &Path, name: &str) -> Result<Self, LabError> {
        let moment = wall_clock::compact();
        fs::create_dir_all(place).map_err(|source| LabError::path(place, source))?;
        for number in 1..=SAME_SECOND_MAX {
            let path = match number {
                1 => place.join(format!("{moment}-{name}")),
                more => place.join(format!("{moment}-{name}-{more}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => {
                    let ops = path.join("ops");
                    fs::create_dir(&ops).map_err(|source| LabError::path(&ops, source))?;
                    return Ok(Self { path });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(LabError::path(&path, source)),
            }
        }
        Err(LabError::path(
            place,
            io::Error::other("too many runs of this second"),
        ))
    }

    /// Returns its address.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes one document.
    pub(crate) fn document(&self, name: &str, value: &impl Serialize) -> Result<(), LabError> {
        write_document(&self.file(name), value)
    }
}

/// Writes a document so that a reader sees all of it or nothing.
pub(crate) fn write_document(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| LabError::path(path, io::Error::other(error)))?;
    bytes.push(b'\n');
    write_whole(path, &bytes)
}

/// Writes a file beside its place and moves it there.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|source| {
        // A partial file is of no use; a failure to remove it does not matter.
        let _ = fs::remove_file(&part);
        LabError::path(path, source)
    })
}
