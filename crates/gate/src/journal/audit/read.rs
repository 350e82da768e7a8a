//! Showing records: the latest that meet a filter, and those that come.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::filter::Filter;
use super::lines::{Ended, Lines};
use super::newest::{Newest, open, time_ms};
use super::verify::{AuditError, failed, files};
use crate::journal::Line;

/// Lines that could not be read and were passed over.
pub type Skipped = u64;

/// Bytes that one look at one file takes in, at most.
const POLL_BYTES_MAX: u64 = 8 << 20;

/// A record among others: its time, and where it was found, which decides between records of one millisecond.
type Place = (i64, usize, u64);

/// The latest `limit` bodies that the filter takes, oldest first, and how many lines were unreadable. Records are in the order of
/// their times, also where several instances wrote at once.
///
/// # Errors
/// [`AuditError::Read`] and [`AuditError::NotASegment`].
pub fn latest(
    path: &Path,
    filter: &Filter,
    limit: usize,
) -> Result<(Vec<Vec<u8>>, Skipped), AuditError> {
    let mut kept: BTreeMap<Place, Vec<u8>> = BTreeMap::new();
    let mut skipped = 0_u64;
    let mut newest = Newest::of(path)?;
    // Segments which ended before all that is kept need not be read.
    loop {
        let oldest = kept.first_key_value().filter(|_| kept.len() >= limit);
        let Some(segment) = newest.next(oldest.map(|((oldest_ms, ..), _)| *oldest_ms))? else {
            break;
        };
        let mut number = 0_u64;
        let (path, file) = (&segment.path, segment.file);
        let unreadable = lines_of(path, file, filter, &mut |body| {
            number = number.saturating_add(1);
            kept.insert((time_ms(body), segment.number, number), body.to_vec());
            if kept.len() > limit {
                kept.pop_first();
            }
            ControlFlow::Continue(())
        })?;
        skipped = skipped.saturating_add(unreadable);
    }
    Ok((kept.into_values().collect(), skipped))
}

/// Calls `each` with every body of one file that the filter takes, until it breaks; returns how many lines were unreadable.
fn lines_of(
    path: &Path,
    file: File,
    filter: &Filter,
    each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<Skipped, AuditError> {
    let mut lines = Lines::new(BufReader::with_capacity(1 << 18, file));
    let (mut bytes, mut skipped) = (Vec::new(), 0_u64);
    while let Some(ended) = lines.next(&mut bytes).map_err(failed(path))? {
        match body(&bytes, ended, filter) {
            None => skipped = skipped.saturating_add(1),
            Some(None) => {}
            Some(Some(body)) => {
                if each(body).is_break() {
                    return Err(AuditError::Cancelled);
                }
            }
        }
    }
    Ok(skipped)
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
    each_while(path, filter, &mut |body| {
        each(body);
        ControlFlow::Continue(())
    })
}

/// Calls `each` as [`each`](fn@each) does, until it breaks.
///
/// # Errors
/// As [`each`](fn@each), and [`AuditError::Cancelled`] after `each` breaks.
pub fn each_while(
    path: &Path,
    filter: &Filter,
    each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<Skipped, AuditError> {
    let files = files(path)?;
    if files.is_empty() {
        return Err(AuditError::Empty {
            path: path.to_path_buf(),
        });
    }
    let mut skipped = 0_u64;
    for path in files {
        if let Some(file) = open(&path)? {
            skipped = skipped.saturating_add(lines_of(&path, file, filter, each)?);
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
            if let Some(opened) = open(&file)? {
                let length = opened.metadata().map_err(failed(&file))?.len();
                seen_bytes.insert(file, length);
            }
        }
        Ok(Follower {
            path: path.to_path_buf(),
            filter,
            seen_bytes,
        })
    }

    /// Calls `each` with every body that was added and that the filter takes, in the order of their times; a line still being
    /// written waits for the next poll. Returns how many lines were unreadable.
    ///
    /// # Errors
    /// [`AuditError::Read`] and [`AuditError::NotASegment`].
    pub fn poll(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<Skipped, AuditError> {
        let mut skipped = 0_u64;
        let present = files(&self.path)?;
        self.seen_bytes.retain(|file, _| present.contains(file));
        let mut added: Vec<(i64, Vec<u8>)> = Vec::new();
        for path in present {
            let Some(mut file) = open(&path)? else {
                continue;
            };
            let seen_bytes = self.seen_bytes.entry(path.clone()).or_default();
            let start_bytes = *seen_bytes;
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
                    Some(Some(body)) => added.push((time_ms(body), body.to_vec())),
                }
            }
        }
        added.sort_by_key(|(time_ms, _)| *time_ms);
        added.iter().for_each(|(_, body)| each(body));
        Ok(skipped)
    }
}
