//! What is compared with a journal from outside of it: the head beside the keys, and the heads that a witness was given.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use serde::Serialize;

use super::finding::{Problem, VerifyReport};
use super::lines::{Ended, Lines};
use super::verify::{AuditError, failed, files};
use crate::journal::head::{End, HEAD_BYTES_MAX, Head, NotAHead};
use crate::journal::{EntryHash, PublicKey, SegmentId, segment_files};

const READ_BYTES: usize = 1 << 18;

/// Who states where a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The head beside the keys.
    Head,
    /// A head that the witness was given.
    Witness,
    /// A signed record of the journal.
    Journal,
}

impl By {
    pub(super) fn words(self) -> &'static str {
        match self {
            By::Head => "the head",
            By::Witness => "the witness",
            By::Journal => "a signed record",
        }
    }
}

/// Where to look for what is compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anchors<'a> {
    /// File of the head.
    pub head: Option<&'a Path>,
    /// File of a witness.
    pub witness: Option<&'a Path>,
}

/// A record that has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) hash: EntryHash,
    pub(super) by: By,
    /// When it was stated, in milliseconds since 1970.
    pub(super) time_ms: i64,
}

/// Claims by segment and sequence.
pub(super) type Claims = HashMap<SegmentId, BTreeMap<u64, Claim>>;

/// The head at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// None was asked for.
    Unasked,
    /// There is no file.
    Missing,
    /// There is something else in its place.
    Bad(NotAHead),
    Here(Head),
}

impl Seen {
    pub(super) fn head(&self) -> Option<&Head> {
        match self {
            Seen::Here(head) => Some(head),
            Seen::Unasked | Seen::Missing | Seen::Bad(_) => None,
        }
    }

    pub(super) fn serial(&self) -> u64 {
        self.head().map_or(0, |head| head.serial)
    }
}

/// Reads the head.
pub(super) fn head(path: Option<&Path>, trusted: &[PublicKey]) -> Result<Seen, AuditError> {
    let Some(path) = path else {
        return Ok(Seen::Unasked);
    };
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(HEAD_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Seen::Missing),
        Err(error) => Err(failed(path)(error)),
        Ok(_) => Ok(match Head::read(&bytes, trusted) {
            Ok(head) => Seen::Here(head),
            Err(problem) => Seen::Bad(problem),
        }),
    }
}

/// Whether a file that a reader names may be a head of the journal at `journal`: a trusted key has signed it, or it names a
/// segment of that journal, and was changed since.
///
/// # Errors
/// [`AuditError::NotAHead`] where it is neither; what reading the file or the directory meets.
pub fn is_head_of(file: &Path, journal: &Path, trusted: &[PublicKey]) -> Result<(), AuditError> {
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(HEAD_BYTES_MAX as u64).read_to_end(&mut bytes))
        .map_err(failed(file))?;
    if Head::read(&bytes, trusted).is_ok() {
        return Ok(());
    }
    let segments: HashSet<SegmentId> = match files(journal) {
        Ok(paths) => paths
            .iter()
            .filter_map(|path| segment_files::id_of(path))
            .collect(),
        // The verification says what is wrong with the journal.
        Err(_) => return Ok(()),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.split(|c: char| !c.is_ascii_hexdigit());
    let names_one =
        words.any(|word| SegmentId::parse(word).is_some_and(|id| segments.contains(&id)));
    names_one.then_some(()).ok_or_else(|| AuditError::NotAHead {
        path: file.to_path_buf(),
    })
}

/// What a witness holds.
#[derive(Debug, Default)]
pub(super) struct Testimony {
    /// Heads that it was given.
    pub(super) heads: u64,
    /// The largest serial among them.
    pub(super) serial: u64,
    /// The last end that it knows of each segment, and the line that states it.
    pub(super) ends: BTreeMap<SegmentId, (End, u64)>,
    /// Name of the file.
    pub(super) file: String,
}

/// Reads what a witness holds, adding to the claims; a line that is no head of a trusted key is found.
pub(super) fn witness(
    path: Option<&Path>,
    trusted: &[PublicKey],
    claims: &mut Claims,
    report: &mut VerifyReport,
) -> Result<Option<Testimony>, AuditError> {
    let Some(path) = path else {
        return Ok(None);
    };
    let file = File::open(path).map_err(failed(path))?;
    let mut lines = Lines::new(BufReader::with_capacity(READ_BYTES, file));
    let mut testimony = Testimony {
        file: name(path),
        ..Testimony::default()
    };
    let (mut bytes, mut number) = (Vec::new(), 0_u64);
    while let Some(ended) = lines.next(&mut bytes).map_err(failed(path))? {
        number = number.saturating_add(1);
        let read = match ended {
            Ended::Whole => Head::read(&bytes, trusted),
            // It is being written, or its writer died: the heads before it stand.
            Ended::Torn => break,
            Ended::TooLong => Err(NotAHead::Malformed),
        };
        match read {
            Ok(head) => testimony.add(&head, number, claims),
            Err(_) => report.find(&testimony.file, Some(number), Problem::WitnessForged),
        }
    }
    Ok(Some(testimony))
}

impl Testimony {
    fn add(&mut self, head: &Head, line: u64, claims: &mut Claims) {
        self.heads = self.heads.saturating_add(1);
        self.serial = self.serial.max(head.serial);
        for end in &head.ends {
            claim(end, By::Witness, claims);
            if end.sequence.is_some() {
                self.ends.insert(end.segment, (*end, line));
            }
        }
    }
}

/// Adds what an end states.
pub(super) fn claim(end: &End, by: By, claims: &mut Claims) {
    if let (Some(sequence), Some(hash)) = (end.sequence, end.hash) {
        let claim = Claim {
            hash,
            by,
            time_ms: end.time_ms,
        };
        let of = claims.entry(end.segment).or_default();
        match of.get(&sequence) {
            // The first to state something else than the others stays, so that it is compared too.
            Some(known) if known.hash != hash && known.by == By::Witness => {}
            _ => drop(of.insert(sequence, claim)),
        }
    }
}

/// The last part of a path, for a report.
pub(super) fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
