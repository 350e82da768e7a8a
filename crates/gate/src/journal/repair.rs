//! Repair of a journal that was changed: what is broken is moved aside as evidence, a signed record names it, and a new chain
//! begins.
//!
//! Each file is named in a signed record before it is moved, so a crash in between leaves a journal that is still found to be
//! broken, never one that looks whole.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use state::directory;

use super::abandoned::{self, Found};
use super::audit::{Anchors, AuditError, Finding, Problem, VerifyReport, verify_against};
use super::body::Own;
use super::head::{End, HEAD_FILE, State};
use super::{
    Journal, JournalError, JournalOptions, Keys, SegmentId, Surroundings, retention, segment_files,
};

/// Most times that the rest is verified again: what was moved may have vouched for what stays.
const ROUNDS_MAX: usize = 16;

/// What a repair did.
#[derive(Debug)]
pub struct Repair {
    /// What was wrong before.
    pub before: VerifyReport,
    /// Files that were moved, by their place in the directory of the evidence.
    pub moved: Vec<PathBuf>,
    /// Segments that were named and not there.
    pub missing: Vec<SegmentId>,
}

/// Why a journal could not be repaired.
#[derive(Debug)]
#[non_exhaustive]
pub enum RepairError {
    /// An instance is writing this segment.
    InUse {
        /// Its file.
        path: PathBuf,
    },
    /// The journal could not be verified.
    Audit(AuditError),
    /// The new chain could not be begun.
    Journal(JournalError),
    /// A file could not be moved.
    Move {
        /// Which.
        path: PathBuf,
        /// The refusal.
        error: io::Error,
    },
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { path } => write!(
                f,
                "a running instance writes {}; stop every instance of this state directory first",
                path.display()
            ),
            Self::Audit(error) => error.fmt(f),
            Self::Journal(error) => error.fmt(f),
            Self::Move { path, error } => write!(f, "cannot move {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for RepairError {}

impl From<AuditError> for RepairError {
    fn from(error: AuditError) -> Self {
        Self::Audit(error)
    }
}

impl From<JournalError> for RepairError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// Files and directories that a repair works on.
#[derive(Debug, Clone, Copy)]
pub struct RepairPaths<'a> {
    /// The journal's directory.
    pub journal: &'a Path,
    /// The directory of keys and head.
    pub keys: &'a Path,
    /// The witness, where there is one.
    pub witness: Option<&'a Path>,
    /// Directory for the evidence; made if something is moved, on the disk of the journal.
    pub evidence: &'a Path,
}

/// What one round takes out of the journal, or takes over.
#[derive(Debug, Default)]
struct Round {
    /// Segments to set aside, with what is wrong and the file if there is one.
    aside: BTreeMap<SegmentId, (String, Option<PathBuf>)>,
    /// Segments that are as they were written and that nothing vouches for any more.
    orphans: Vec<PathBuf>,
    /// The largest serial that a head had.
    serial: u64,
}

/// Repairs the journal; `None` where nothing is wrong with it. No instance may run meanwhile.
///
/// # Errors
/// Any [`RepairError`]. What was moved until then is named in the journal.
pub fn repair(
    paths: RepairPaths<'_>,
    keys: &Keys,
    options: JournalOptions,
    own: ([u8; 16], i64),
    surroundings: Surroundings<'_>,
) -> Result<Option<Repair>, RepairError> {
    let head = paths.keys.join(HEAD_FILE);
    let anchors = Anchors {
        head: Some(&head),
        witness: paths.witness,
    };
    let verified = || verify_against(paths.journal, &[keys.public()], &anchors);
    let before = verified()?;
    if before.is_intact() {
        return Ok(None);
    }
    for path in segment_files::segments(paths.journal).unwrap_or_default() {
        if retention::is_held(&path).map_err(JournalError::from)? {
            return Err(RepairError::InUse { path });
        }
    }
    let mut repair = Repair {
        before: before.clone(),
        moved: Vec::new(),
        missing: Vec::new(),
    };
    let has = |wanted: fn(&Problem) -> bool| before.findings.iter().any(|f| wanted(&f.problem));
    if has(|problem| matches!(problem, Problem::HeadDamaged | Problem::HeadUnsigned)) {
        repair.moved.push(set_aside(&head, paths.evidence)?);
    }
    // Without the head nothing names the ends of chains: what is signed and whole is believed.
    let is_head_lost = has(|problem| {
        matches!(
            problem,
            Problem::HeadDamaged
                | Problem::HeadUnsigned
                | Problem::HeadMissing
                | Problem::HeadRolledBack { .. }
        )
    });
    let journal = Journal::open_chain(paths.journal, keys, options, own, surroundings, true)?;
    let mut report = if is_head_lost { verified()? } else { before };
    for number in 0..ROUNDS_MAX {
        let keeps_unknown = is_head_lost || number > 0;
        let round = Round::of(&report, paths.journal, keeps_unknown);
        if round.is_empty() {
            break;
        }
        carry_out(&journal, &round, (paths, keys, own.1), &mut repair)?;
        report = verified()?;
    }
    journal.close(own.1, "repaired")?;
    Ok(Some(repair))
}

impl Round {
    fn of(report: &VerifyReport, directory: &Path, keeps_unknown: bool) -> Self {
        let mut round = Self::default();
        let files = abandoned::by_segment(directory).unwrap_or_default();
        let mut unknown = Vec::new();
        for Finding { file, problem, .. } in &report.findings {
            let path = directory.join(file);
            let found = segment_files::id_of(&path).filter(|_| path.exists());
            let (segment, path) = match problem {
                Problem::HeadRolledBack { known, .. } => {
                    round.serial = round.serial.max(*known);
                    continue;
                }
                Problem::SegmentUnknown { segment } => {
                    unknown.push((*segment, problem.to_string(), path));
                    continue;
                }
                // The file that is named continues what is wrong.
                Problem::ContinuedMissing { segment }
                | Problem::ContinuedDiffers { segment, .. }
                | Problem::ContinuedOpen { segment }
                | Problem::SegmentMissing { segment, .. } => {
                    (*segment, files.get(segment).cloned())
                }
                // Of the head and the witness nothing is moved here.
                _ => match found {
                    Some(segment) => (segment, Some(path)),
                    None => continue,
                },
            };
            let entry = (problem.to_string(), path);
            round.aside.entry(segment).or_insert(entry);
        }
        if keeps_unknown {
            let paths = unknown.into_iter().map(|(_, _, path)| path);
            round.orphans.extend(paths);
        } else if round.aside.is_empty() {
            // Nothing that is missing or broken could have vouched for them.
            let entries = unknown.into_iter();
            let entries = entries.map(|(segment, problem, path)| (segment, (problem, Some(path))));
            round.aside.extend(entries);
        }
        round.orphans.retain(|path| {
            segment_files::id_of(path).is_some_and(|id| !round.aside.contains_key(&id))
        });
        round
    }

    fn is_empty(&self) -> bool {
        self.aside.is_empty() && self.orphans.is_empty() && self.serial == 0
    }
}

/// Records what a round changes, then moves the files.
fn carry_out(
    journal: &Journal,
    round: &Round,
    (paths, keys, now_ms): (RepairPaths<'_>, &Keys, i64),
    repair: &mut Repair,
) -> Result<(), RepairError> {
    let failed = |path: &Path, error| JournalError::Read {
        path: path.to_path_buf(),
        error,
    };
    let evidence = paths.evidence.display().to_string();
    let mut records = Vec::new();
    for (segment, (problem, path)) in &round.aside {
        let end = path.as_deref().and_then(|path| {
            segment_files::end(path, *segment, keys.public())
                .ok()
                .flatten()
        });
        let size = path.as_deref().map(fs::metadata).and_then(Result::ok);
        records.push(Own::SegmentSetAside {
            segment: *segment,
            sequence: end.as_ref().map(|end| end.sequence),
            hash: end.as_ref().map(|end| end.hash),
            size_bytes: size.map_or(0, |found| found.len()),
            problem,
            moved_to: path.as_ref().map(|_| evidence.as_str()),
        });
    }
    let mut closed = Vec::new();
    for path in &round.orphans {
        let Some(segment) = segment_files::id_of(path) else {
            continue;
        };
        let unstated = End {
            segment,
            named_ms: segment_files::named_ms(path).unwrap_or(0),
            state: State::Open,
            sequence: None,
            hash: None,
            end_bytes: 0,
            time_ms: now_ms,
        };
        let found = abandoned::look(Some(path), &unstated, keys.public());
        match found.map_err(|error| failed(path, error))? {
            Found::Closed(last, end_bytes) => closed.push(End {
                state: State::Closed,
                sequence: Some(last.sequence),
                hash: Some(last.hash),
                end_bytes,
                ..unstated
            }),
            Found::Abandoned(found) => records.push(found.record()),
            // It is no chain of this key; the next round finds what it is.
            Found::Left | Found::Nothing => {}
        }
    }
    let gone: HashSet<SegmentId> = round.aside.keys().copied().collect();
    journal.amend(now_ms, &records, &mut |head| {
        head.drop_ends(&gone.iter().copied().collect::<Vec<_>>());
        for end in &closed {
            head.put(*end);
        }
        head.serial = head.serial.max(round.serial);
    })?;
    for (segment, (_, path)) in &round.aside {
        match path {
            Some(path) => repair.moved.push(set_aside(path, paths.evidence)?),
            None => repair.missing.push(*segment),
        }
    }
    directory::sync(paths.journal).map_err(|error| failed(paths.journal, error))?;
    Ok(())
}

/// Moves a file into the directory of the evidence; returns its new path.
fn set_aside(path: &Path, evidence: &Path) -> Result<PathBuf, RepairError> {
    let failed = |error| RepairError::Move {
        path: path.to_path_buf(),
        error,
    };
    directory::create_private(evidence).map_err(JournalError::from)?;
    let name = path
        .file_name()
        .ok_or_else(|| failed(io::Error::other("it has no name")))?;
    let to = evidence.join(name);
    fs::rename(path, &to).map_err(failed)?;
    directory::sync(evidence).map_err(failed)?;
    Ok(to)
}
