//! Verification of the journal, or of another one.

use std::fs::File;
use std::path::{Path, PathBuf};

use gate::journal::audit::{Anchors, Unproven, Verdict, VerifyReport, is_head_of, verify_watched};
use gate::journal::{CHECKPOINT_PUBLIC_FILE, HEAD_FILE, PublicKey};
use serde::Serialize;

use super::segments::is_written;
use crate::error::AdminError;
use crate::progress::OperationWatch;
use crate::state_paths::StatePaths;

/// Which journal is verified, and against what.
#[derive(Debug, Clone, Default)]
pub struct VerifyRequest {
    /// Directory of the journal, or one segment; `None`: the installation's.
    pub journal: Option<PathBuf>,
    /// Files of trusted public keys; empty: the installation's.
    pub keys: Vec<PathBuf>,
    /// Head to compare with; `None`: the installation's, unless `journal` is another one.
    pub head: Option<PathBuf>,
    /// File of a witness to compare with; `None`: as for the head.
    pub witness: Option<PathBuf>,
    /// Counts a segment that a running instance writes as sound up to its latest signature.
    pub running: bool,
}

/// Result of a verification.
#[derive(Debug, Serialize)]
pub struct JournalVerification {
    /// Sound, open or tampered.
    pub status: Verdict,
    /// Findings and counts.
    #[serde(flatten)]
    pub report: VerifyReport,
}

/// Status of a verification.
pub use gate::journal::audit::Verdict as VerificationStatus;

/// Verifies a journal; `watch` is given the number of scanned segments.
///
/// # Errors
/// A key or a journal that cannot be read, a head of another journal, [`AdminError::Cancelled`].
pub fn verify(
    request: &VerifyRequest,
    paths: &StatePaths,
    watch: &mut OperationWatch<'_>,
) -> Result<JournalVerification, AdminError> {
    let (journal, keys) = (paths.journal(), paths.keys());
    let default = [keys.join(CHECKPOINT_PUBLIC_FILE)];
    let files = match request.keys.as_slice() {
        [] => default.as_slice(),
        files => files,
    };
    let mut trusted = Vec::with_capacity(files.len());
    for file in files {
        match PublicKey::read(file) {
            Ok(key) => trusted.push(key),
            // If there is a key or a head and no journal, the journal was removed.
            Err(_) if request.keys.is_empty() && request.journal.is_none() && !journal.exists() => {
                return Err(AdminError::NoJournal(journal));
            }
            Err(error) => return Err(AdminError::JournalKey(error)),
        }
    }
    let directory = request.journal.as_ref().unwrap_or(&journal);
    // The head of this installation says nothing of another journal.
    let own = directory.starts_with(&journal);
    let head = keys.join(HEAD_FILE);
    let anchors = Anchors {
        head: request.head.as_deref().or(own.then_some(head.as_path())),
        witness: (request.witness.as_deref()).or(paths.witness.as_deref().filter(|_| own)),
    };
    if let Some(file) = &request.head {
        is_head_of(file, directory, &trusted)?;
    }
    let running = request.running.then_some(directory.as_path());
    verify_with(directory, &trusted, &anchors, running, watch)
}

/// Verifies, and sets the status. With the directory of a journal, segments that a running instance is writing there leave
/// nothing open.
pub(super) fn verify_with(
    directory: &Path,
    trusted: &[PublicKey],
    anchors: &Anchors<'_>,
    running: Option<&Path>,
    watch: &mut OperationWatch<'_>,
) -> Result<JournalVerification, AdminError> {
    let mut step = |done, total| watch.step(done, Some(total));
    let report = verify_watched(directory, trusted, anchors, &mut step)?;
    let is_written = |open: &Unproven| running.is_some_and(|dir| is_being_written(open, dir));
    let status = match report.verdict() {
        Verdict::Open if report.unproven.iter().all(is_written) => Verdict::Sound,
        verdict => verdict,
    };
    Ok(JournalVerification { status, report })
}

/// Returns whether an instance holds the lock of the open segment.
fn is_being_written(open: &Unproven, directory: &Path) -> bool {
    let Unproven::Tail {
        file,
        abandoned: false,
        ..
    } = open
    else {
        return false;
    };
    let path = match directory.is_dir() {
        true => directory.join(file),
        false => directory.to_path_buf(),
    };
    File::open(path).is_ok_and(|file| is_written(&file))
}
