//! A whole journal: every segment, and how they continue one another.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::anchors::{self, Anchors, By, Claims, Seen};
use super::completeness::Held;
use super::finding::{Note, Problem, VerifyReport};
use super::join::{self, Join, Loose};
use super::scan::{Scan, Scanned};
use crate::journal::body::{Continues, Header};
use crate::journal::{PublicKey, SegmentId, segment_files};

/// Findings that a report holds; more are counted.
pub const FINDINGS_MAX: usize = 1_000;

/// Looks at a journal that is being written, at most, before what is missing is believed to be missing.
const LOOKS_MAX: usize = 8;
/// How long after the time in its name a segment may be begun, in milliseconds: so long its writer waits for the directory.
const BEGUN_WITHIN_MS: i64 = 10_000;
/// The same where retention removed a segment between its being listed and its being read: on a slow disk, below a busy
/// writer, that happens many times in a row.
const VANISHED_MAX: usize = 64;

/// Why nothing can be said about a journal.
#[derive(Debug)]
#[non_exhaustive]
pub enum AuditError {
    /// No public key is trusted, so a journal that was written anew as a whole could not be told from a true one.
    NoKey,
    /// The directory holds no segment.
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The file's name is not a segment's.
    NotASegment {
        /// The file.
        path: PathBuf,
    },
    /// The file that was named as the head is none of this journal.
    NotAHead {
        /// The file.
        path: PathBuf,
    },
    /// A file or directory could not be read.
    Read {
        /// Which.
        path: PathBuf,
        /// The refusal.
        error: io::Error,
    },
    /// Somebody who wanted records as they were written met something else.
    Altered {
        /// In which segment.
        path: PathBuf,
        /// What is wrong there.
        problem: Problem,
    },
    /// The caller ended the verification or the reading.
    Cancelled,
}

/// Receives the number of scanned segments and of all; breaks to end the verification.
pub type SegmentWatch<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::NoKey => f.write_str("no public key to verify with"),
            AuditError::Empty { path } => write!(f, "{} holds no journal segment", path.display()),
            AuditError::NotASegment { path } => {
                write!(
                    f,
                    "{} is not named like a journal segment: TIME-ID.jsonl",
                    path.display()
                )
            }
            AuditError::NotAHead { path } => {
                write!(
                    f,
                    "{} is not a head of this journal: no trusted key has signed it, and it names no segment of the journal",
                    path.display()
                )
            }
            AuditError::Read { path, error } => {
                write!(f, "cannot read {}: {error}", path.display())
            }
            AuditError::Altered { path, problem } => {
                write!(f, "{} is not as it was written: {problem}", path.display())
            }
            AuditError::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for AuditError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AuditError::Read { error, .. } => Some(error),
            AuditError::NoKey
            | AuditError::Empty { .. }
            | AuditError::NotASegment { .. }
            | AuditError::NotAHead { .. }
            | AuditError::Altered { .. }
            | AuditError::Cancelled => None,
        }
    }
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> AuditError {
    move |error| AuditError::Read {
        path: path.to_path_buf(),
        error,
    }
}

/// The segment files of a directory, or the one file.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, AuditError> {
    if fs::metadata(path).map_err(failed(path))?.is_dir() {
        return segment_files::segments(path).map_err(failed(path));
    }
    match segment_files::id_of(path) {
        Some(_) => Ok(vec![path.to_path_buf()]),
        None => Err(AuditError::NotASegment {
            path: path.to_path_buf(),
        }),
    }
}

pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// The segment's id: as the header states, else as the file's name does.
    pub(super) id: SegmentId,
    pub(super) header: Option<Header>,
    pub(super) scanned: Scanned,
}

impl Entry {
    fn continues(&self) -> Option<Continues> {
        self.header.as_ref().and_then(|header| header.continues)
    }
}

/// Verifies the journal in a directory, or one segment file, against the public keys that are trusted and nothing else.
///
/// # Errors
/// [`AuditError`] when nothing can be said. What is wrong with the journal itself is in the report.
pub fn verify(path: &Path, trusted: &[PublicKey]) -> Result<VerifyReport, AuditError> {
    verify_against(path, trusted, &Anchors::default())
}

/// Verifies the journal in a directory, or one segment file, against the public keys that are trusted, the head, and what a
/// witness holds. The journal may be written meanwhile: what is missing because it went while it was being looked for is
/// looked for again.
///
/// # Errors
/// [`AuditError`] when nothing can be said. What is wrong with the journal itself is in the report.
pub fn verify_against(
    path: &Path,
    trusted: &[PublicKey],
    anchors: &Anchors<'_>,
) -> Result<VerifyReport, AuditError> {
    verify_watched(
        path,
        trusted,
        anchors,
        &mut |_, _| ControlFlow::Continue(()),
    )
}

/// Verifies as [`verify_against`] does, and calls `watch` before each segment. A journal that changes meanwhile is scanned
/// again from its first segment.
///
/// # Errors
/// As [`verify_against`], and [`AuditError::Cancelled`] after `watch` breaks.
pub fn verify_watched(
    path: &Path,
    trusted: &[PublicKey],
    anchors: &Anchors<'_>,
    watch: &mut SegmentWatch<'_>,
) -> Result<VerifyReport, AuditError> {
    if trusted.is_empty() {
        return Err(AuditError::NoKey);
    }
    let (mut looks, mut vanished) = (0, 0);
    loop {
        let before = anchors::head(anchors.head, trusted)?;
        let looked = look(path, trusted, anchors, &before, watch);
        let moved = || {
            let after = anchors::head(anchors.head, trusted);
            after.is_ok_and(|after| after.serial() != before.serial())
        };
        let again = match &looked {
            Ok(report) if !report.is_intact() => {
                looks += 1;
                looks < LOOKS_MAX && moved()
            }
            // Retention may remove a segment that was listed a moment ago; the head said so before that.
            Err(AuditError::Read { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                vanished += 1;
                vanished < VANISHED_MAX
            }
            Ok(_) | Err(_) => false,
        };
        if !again {
            return looked;
        }
    }
}

/// One look at everything. What the head and the witness name is read first, so that it has to be there.
fn look(
    path: &Path,
    trusted: &[PublicKey],
    anchors: &Anchors<'_>,
    before: &Seen,
    watch: &mut SegmentWatch<'_>,
) -> Result<VerifyReport, AuditError> {
    let mut report = VerifyReport::default();
    let mut claims = Claims::new();
    let testimony = anchors::witness(anchors.witness, trusted, &mut claims, &mut report)?;
    for end in before.head().into_iter().flat_map(|head| &head.ends) {
        anchors::claim(end, By::Head, &mut claims);
    }
    let known = before.head().is_some_and(|head| !head.ends.is_empty());
    let single = match fs::metadata(path) {
        // A directory that was removed is one whose segments are all missing.
        Err(error) if error.kind() == io::ErrorKind::NotFound && known => false,
        found => !found.map_err(failed(path))?.is_dir(),
    };
    let paths = match files(path) {
        Err(AuditError::Read { error, .. }) if error.kind() == io::ErrorKind::NotFound && known => {
            Vec::new()
        }
        found => found?,
    };
    if paths.is_empty() && !known && testimony.as_ref().is_none_or(|of| of.ends.is_empty()) {
        return Err(AuditError::Empty {
            path: path.to_path_buf(),
        });
    }
    let mut entries = Vec::with_capacity(paths.len());
    for path in paths {
        entries.push(entry(path, &mut report)?);
    }
    report.segments = entries.len() as u64;
    let shelf = Shelf::new(&entries, &mut report);
    let mut context = ScanContext {
        trusted,
        claims: &claims,
        total: report.segments,
        watch,
    };
    chains(&shelf, &mut entries, &mut context, &mut report)?;
    let after = anchors::head(anchors.head, trusted)?;
    let heads = [before, &after].into_iter().filter_map(Seen::head);
    let retired_ms = heads.filter_map(|head| head.retired_ms).max();
    links(&entries, &shelf, (single, retired_ms), &mut report);
    let held = Held {
        entries: &entries,
        shelf: &shelf,
        before,
        after: &after,
        head_file: anchors.head.map(anchors::name).unwrap_or_default(),
        testimony: testimony.as_ref(),
        single,
    };
    held.compare(&mut report);
    Ok(report)
}

/// Inputs of every scan of one look.
struct ScanContext<'a> {
    trusted: &'a [PublicKey],
    claims: &'a Claims,
    /// Number of segments.
    total: u64,
    watch: &'a mut SegmentWatch<'a>,
}

/// Scans every chain from its start.
fn chains(
    shelf: &Shelf,
    entries: &mut [Entry],
    context: &mut ScanContext<'_>,
    report: &mut VerifyReport,
) -> Result<(), AuditError> {
    let (mut loose, mut seen) = (Loose::default(), HashSet::new());
    for root in shelf.roots(entries) {
        chain(root, shelf, entries, context, &mut seen, &mut loose, report)?;
    }
    for at in 0..entries.len() {
        if !seen.contains(&at) {
            if let Some(entry) = entries.get(at) {
                report.find(&entry.name, None, Problem::Circle);
            }
            chain(at, shelf, entries, context, &mut seen, &mut loose, report)?;
        }
    }
    join::tell(loose, report);
    Ok(())
}

fn entry(path: PathBuf, report: &mut VerifyReport) -> Result<Entry, AuditError> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let header = segment_files::header(&path).map_err(failed(&path))?;
    let Some(named) = segment_files::id_of(&path) else {
        return Err(AuditError::NotASegment { path });
    };
    let stated = header.as_ref().map(|header| header.segment);
    if let Some(segment) = stated.filter(|stated| *stated != named) {
        report.find(&name, Some(1), Problem::Misnamed { segment });
    }
    Ok(Entry {
        path,
        name,
        id: stated.unwrap_or(named),
        header,
        scanned: Scanned::default(),
    })
}

/// Who is where, and who continues whom.
pub(super) struct Shelf {
    pub(super) by_id: HashMap<SegmentId, usize>,
    pub(super) successor: HashMap<SegmentId, usize>,
}

impl Shelf {
    fn new(entries: &[Entry], report: &mut VerifyReport) -> Shelf {
        let mut shelf = Shelf {
            by_id: HashMap::new(),
            successor: HashMap::new(),
        };
        for (at, entry) in entries.iter().enumerate() {
            if shelf.by_id.contains_key(&entry.id) {
                report.find(
                    &entry.name,
                    Some(1),
                    Problem::Duplicate { segment: entry.id },
                );
                continue;
            }
            shelf.by_id.insert(entry.id, at);
            let Some(continued) = entry.continues() else {
                continue;
            };
            match shelf
                .successor
                .get(&continued.segment)
                .and_then(|other| entries.get(*other))
            {
                Some(other) => {
                    let (segment, other) = (continued.segment, other.name.clone());
                    report.find(&entry.name, Some(1), Problem::Fork { segment, other });
                }
                None => {
                    shelf.successor.insert(continued.segment, at);
                }
            }
        }
        shelf
    }

    /// Entries at which a chain starts here: those that continue nothing that is present, and all but the first of a fork.
    fn roots(&self, entries: &[Entry]) -> Vec<usize> {
        let starts = |at: usize, entry: &Entry| {
            entry.continues().is_none_or(|continued| {
                !self.by_id.contains_key(&continued.segment)
                    || self.successor.get(&continued.segment) != Some(&at)
            })
        };
        entries
            .iter()
            .enumerate()
            .filter(|(at, entry)| starts(*at, entry))
            .map(|(at, _)| at)
            .collect()
    }
}

/// Scans the segments of one chain in their order, with one join for all.
fn chain(
    root: usize,
    shelf: &Shelf,
    entries: &mut [Entry],
    context: &mut ScanContext<'_>,
    seen: &mut HashSet<usize>,
    loose: &mut Loose,
    report: &mut VerifyReport,
) -> Result<(), AuditError> {
    let partial = entries
        .get(root)
        .is_some_and(|entry| entry.continues().is_some());
    let mut join = Join::new(partial);
    let mut next = Some(root);
    while let Some(at) = next {
        let done = seen.len() as u64;
        if !seen.insert(at) {
            break;
        }
        if (context.watch)(done, context.total).is_break() {
            return Err(AuditError::Cancelled);
        }
        let Some(entry) = entries.get_mut(at) else {
            break;
        };
        let scan = Scan::new(
            &entry.name,
            entry.id,
            entry.header.as_ref(),
            (context.trusted, context.claims.get(&entry.id)),
            &mut join,
            report,
        );
        entry.scanned = scan.run(&entry.path).map_err(failed(&entry.path))?;
        next = shelf.successor.get(&entry.id).copied();
    }
    join.finish(loose, report);
    Ok(())
}

/// Compares the time in a file's name with the one that its segment was given: that of the header, or the one behind the
/// continued segment's where that is later.
fn dated(entry: &Entry, before: Option<&Entry>, report: &mut VerifyReport) {
    let named_ms = segment_files::named_ms(&entry.path);
    let misnamed = segment_files::id_of(&entry.path) != Some(entry.id);
    let (Some(header), Some(named_ms), false) = (&entry.header, named_ms, misnamed) else {
        return;
    };
    let after_ms = before.and_then(|before| segment_files::named_ms(&before.path));
    let right = match (header.continues, after_ms) {
        (None, _) => named_ms == header.time_ms,
        (Some(_), Some(after_ms)) => named_ms == header.time_ms.max(after_ms.saturating_add(1)),
        (Some(_), None) => named_ms >= header.time_ms,
    };
    if !right {
        report.find(&entry.name, None, Problem::Redated);
    }
}

/// Compares what each segment states about the one it continues with what is there.
fn links(
    entries: &[Entry],
    shelf: &Shelf,
    (single, retired_ms): (bool, Option<i64>),
    report: &mut VerifyReport,
) {
    let retired: HashSet<_> = entries
        .iter()
        .flat_map(|entry| &entry.scanned.retired)
        .map(key)
        .collect();
    let set_aside: HashSet<_> = entries
        .iter()
        .flat_map(|entry| &entry.scanned.set_aside)
        .collect();
    for entry in entries {
        let before = entry.continues().map(|before| before.segment);
        let before = before.and_then(|before| shelf.by_id.get(&before));
        dated(entry, before.and_then(|at| entries.get(*at)), report);
        let Some(continued) = entry.continues() else {
            continue;
        };
        let (segment, file) = (continued.segment, entry.name.clone());
        match shelf.by_id.get(&segment).and_then(|at| entries.get(*at)) {
            None if retired.contains(&key(&continued)) => {
                report.notes.push(Note::Retired { file, segment })
            }
            None if set_aside.contains(&segment) => {
                report.notes.push(Note::SetAside { file, segment });
            }
            // The record of it may have gone as well, while whoever continues it goes on writing.
            None if comes_before(entry, retired_ms) => {
                report.notes.push(Note::Retired { file, segment });
            }
            None if single => report
                .notes
                .push(Note::ContinuedElsewhere { file, segment }),
            None => report.find(&file, Some(1), Problem::ContinuedMissing { segment }),
            Some(before) if before.scanned.last != Some((continued.sequence, continued.hash)) => {
                let Continues {
                    segment,
                    sequence,
                    hash,
                } = continued;
                report.find(
                    &file,
                    Some(1),
                    Problem::ContinuedDiffers {
                        segment,
                        sequence,
                        hash,
                    },
                );
            }
            Some(before) if !before.scanned.closed => {
                report.find(&file, Some(1), Problem::ContinuedOpen { segment });
            }
            Some(_) => {}
        }
    }
}

/// Whether retention has come as far as the segment that this one continues: it was begun before the last one that was let go.
fn comes_before(entry: &Entry, retired_ms: Option<i64>) -> bool {
    let named_ms = segment_files::named_ms(&entry.path);
    let begun_ms = retired_ms.map(|ms| ms.saturating_add(BEGUN_WITHIN_MS));
    named_ms.is_some() && named_ms <= begun_ms
}

fn key(continued: &Continues) -> (SegmentId, u64, crate::journal::EntryHash) {
    (continued.segment, continued.sequence, continued.hash)
}
