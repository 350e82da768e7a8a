//! Repair of the journal: changed segments are set aside as evidence.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gate::journal::audit::Anchors;
use gate::journal::{
    CHECKPOINT_PUBLIC_FILE, FileWitness, HEAD_FILE, JournalOptions, Keys, RepairPaths, SegmentId,
    Surroundings, Witness, format_utc, repair as repair_files,
};
use state::directory::{self, Held};

use super::verify::{JournalVerification, verify_with};
use crate::error::AdminError;
use crate::progress::OperationWatch;
use crate::state_paths::StatePaths;

/// File of the report in the directory of the evidence.
const REPORT_FILE: &str = "report.json";

/// Clock, randomness and log of the process that repairs.
pub struct RepairRequest<'a> {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// Fills bytes from the kernel's generator.
    pub random: &'a dyn Fn(&mut [u8]) -> io::Result<()>,
    /// Reports that another process holds a lock.
    pub waiting: &'a mut dyn FnMut(&Held<'_>),
}

impl fmt::Debug for RepairRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepairRequest")
            .field("now_ms", &self.now_ms)
            .finish_non_exhaustive()
    }
}

/// Files that a repair set aside.
#[derive(Debug)]
pub struct JournalRepair {
    /// Directory of the evidence.
    pub evidence: PathBuf,
    /// Number of files that were moved there.
    pub moved: usize,
    /// Segments that were named and are not there.
    pub missing: Vec<SegmentId>,
}

/// Result of a repair.
#[derive(Debug)]
pub struct RepairedJournal {
    /// Files that were set aside; `None` if nothing was wrong.
    pub repair: Option<JournalRepair>,
    /// The verification of the repaired journal.
    pub verification: JournalVerification,
}

/// Repairs the journal of the installation and verifies it; `watch` follows the verification at the end.
///
/// # Errors
/// [`AdminError::NoJournal`], a running instance, files that cannot be moved.
pub fn repair(
    request: RepairRequest<'_>,
    paths: &StatePaths,
    watch: &mut OperationWatch<'_>,
) -> Result<RepairedJournal, AdminError> {
    let (journal, keys) = (paths.journal(), paths.keys());
    if !keys.join(CHECKPOINT_PUBLIC_FILE).exists() {
        return Err(AdminError::NoJournal(journal));
    }
    let mut failed = None;
    let mut random = |bytes: &mut [u8]| {
        if let Err(error) = (request.random)(bytes) {
            failed = Some(error);
        }
    };
    let opened = Keys::open(&keys, &mut random)?;
    let mut instance = [0; 16];
    random(&mut instance);
    let time = format_utc(request.now_ms).replace([':', '.'], "-");
    let evidence = paths.state.join("set-aside").join(time);
    let head = keys.join(HEAD_FILE);
    // Before it is changed; a head that is missing is not kept.
    let head_before = std::fs::read(&head).ok();
    let witness = paths.witness.as_deref().map(FileWitness::new);
    let surroundings = Surroundings {
        random: &mut random,
        waiting: request.waiting,
        witness: witness.map(|witness| Arc::new(witness) as Arc<dyn Witness>),
        steps: None,
    };
    let files = RepairPaths {
        journal: &journal,
        keys: &keys,
        witness: paths.witness.as_deref(),
        evidence: &evidence,
    };
    let own = (instance, request.now_ms);
    // Nothing is retired: old segments may be evidence.
    let repaired = repair_files(files, &opened, JournalOptions::default(), own, surroundings);
    if let Some(error) = failed {
        return Err(AdminError::Random(error));
    }
    let repair = match repaired? {
        None => None,
        Some(done) => {
            let keep = |name: &str, bytes: &[u8]| {
                let path = evidence.join(name);
                directory::create_private(&evidence)
                    .and_then(|()| directory::write_private(&path, bytes))
                    .map_err(|error| AdminError::Write {
                        path,
                        error: io::Error::other(error),
                    })
            };
            let report = serde_json::to_vec(&done.before).map_err(|error| AdminError::Write {
                path: evidence.join(REPORT_FILE),
                error: error.into(),
            })?;
            keep(REPORT_FILE, &report)?;
            if let Some(head) = head_before.filter(|_| !evidence.join(HEAD_FILE).exists()) {
                keep(HEAD_FILE, &head)?;
            }
            Some(JournalRepair {
                moved: done.moved.len(),
                missing: done.missing,
                evidence,
            })
        }
    };
    let anchors = Anchors {
        head: Some(&head),
        witness: paths.witness.as_deref(),
    };
    let verification = verify_with(&journal, &[opened.public()], &anchors, None, watch)?;
    Ok(RepairedJournal {
        repair,
        verification,
    })
}
