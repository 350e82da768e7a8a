//! Showing records: the latest that meet a filter, and those that come.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::filter::Filter;
use super::lines::{Ended, Lines};
use super::verify::{AuditError, failed, files};
use crate::journal::Line;

/// Lines that could not be read and were passed over.
pub type Skipped = u64;

/// Bytes that one look at one file takes in, at most.
const POLL_BYTES_MAX: u64 = 8 << 20;

/// The latest `limit` bodies that the filter takes, oldest first, and how many lines were unreadable. Segments are taken in the
/// order of their names, so records of instances that ran at once stand segment by segment.
///
/// # Errors
/// [`AuditError::Read`] and [`AuditError::NotASegment`].
pub fn latest(
    path: &Path,
    filter: &Filter,
    limit: usize,
) -> Result<(Vec<Vec<u8>>, Skipped), AuditError> {
    let mut parts: Vec<VecDeque<Vec<u8>>> = Vec::new();
    let (mut found, mut skipped) = (0_usize, 0_u64);
    for path in files(path)?.iter().rev() {
        if found >= limit {
            break;
        }
        let room = limit.saturating_sub(found);
        let mut part = VecDeque::new();
        let file = File::open(path).map_err(failed(path))?;
        let mut lines = Lines::new(BufReader::with_capacity(1 << 18, file));
        let mut bytes = Vec::new();
        while let Some(ended) = lines.next(&mut bytes).map_err(failed(path))? {
            match body(&bytes, ended, filter) {
                None => skipped = skipped.saturating_add(1),
                Some(None) => {}
                Some(Some(body)) => {
                    if part.len() == room {
                        part.pop_front();
                    }
                    part.push_back(body.to_vec());
                }
            }
        }
        found = found.saturating_add(part.len());
        parts.push(part);
    }
    Ok((parts.into_iter().rev().flatten().collect(), skipped))
}

/// Calls `each` with every body that the filter takes, segment by segment in the order of their names, and counts the lines that
/// were unreadable. Holds one line at a time.
///
/// # Errors
/// [`AuditError::Empty`], [`AuditError::Read`] and [`AuditError::NotASegment`].
pub fn each(
    path: &Path,
    filter: &Filter,
    each: &mut dyn FnMut(&[u8]),
) -> Result<Skipped, AuditError> {
    let files = files(path)?;
    if files.is_empty() {
        return Err(AuditError::Empty {
            path: path.to_path_buf(),
        });
    }
    let mut skipped = 0_u64;
    for path in files {
        let file = File::open(&path).map_err(failed(&path))?;
        let mut lines = Lines::new(BufReader::with_capacity(1 << 18, file));
        let mut bytes = Vec::new();
        while let Some(ended) = lines.next(&mut bytes).map_err(failed(&path))? {
            match body(&bytes, ended, filter) {
                None => skipped = skipped.saturating_add(1),
                Some(None) => {}
                Some(Some(body)) => each(body),
            }
        }
    }
    Ok(skipped)
}

/// `None`: unreadable. `Some(None)`: not wanted.
fn body<'a>(bytes: &'a [u8], ended: Ended, filter: &Filter) -> Option<Option<&'a [u8]>> {
    let line = if ended == Ended::Whole {
        Line::parse(bytes)?
    } else {
        return None;
    };
    Some(filter.takes(line.body)?.then_some(line.body))
}

/// Follows a journal: each poll yields what was added since the one before.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    filter: Filter,
    seen_bytes: HashMap<PathBuf, u64>,
}

impl Follower {
    /// Starts at the present end of the journal.
    ///
    /// # Errors
    /// [`AuditError::Read`] and [`AuditError::NotASegment`].
    pub fn new(path: &Path, filter: Filter) -> Result<Follower, AuditError> {
        let mut seen_bytes = HashMap::new();
        for file in files(path)? {
            let length = std::fs::metadata(&file).map_err(failed(&file))?.len();
            seen_bytes.insert(file, length);
        }
        Ok(Follower {
            path: path.to_path_buf(),
            filter,
            seen_bytes,
        })
    }

    /// Calls `each` with every body that was added and that the filter takes; a line still being written waits for the next
    /// poll. Returns how many lines were unreadable.
    ///
    /// # Errors
    /// [`AuditError::Read`] and [`AuditError::NotASegment`].
    pub fn poll(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<Skipped, AuditError> {
        let mut skipped = 0_u64;
        let present = files(&self.path)?;
        self.seen_bytes.retain(|file, _| present.contains(file));
        for path in present {
            let seen_bytes = self.seen_bytes.entry(path.clone()).or_default();
            let start_bytes = *seen_bytes;
            let mut file = File::open(&path).map_err(failed(&path))?;
            file.seek(SeekFrom::Start(start_bytes))
                .map_err(failed(&path))?;
            let mut lines = Lines::new(BufReader::new(std::io::Read::take(file, POLL_BYTES_MAX)));
            let mut bytes = Vec::new();
            while let Some(ended) = lines.next(&mut bytes).map_err(failed(&path))? {
                if ended == Ended::Torn {
                    break;
                }
                *seen_bytes = start_bytes.saturating_add(lines.taken_bytes);
                match body(&bytes, ended, &self.filter) {
                    None => skipped = skipped.saturating_add(1),
                    Some(None) => {}
                    Some(Some(body)) => each(body),
                }
            }
        }
        Ok(skipped)
    }
}
