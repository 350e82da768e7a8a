//! Directory for the state of a measured `durward`, if its command names none: not in its user's own journal.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::LabError;
use crate::variant::Variant;

/// Variable of the state directory of every `durward` without one in its command.
pub(super) const VARIABLE: &str = "DURWARD_STATE_DIR";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory of one process, removed when dropped.
#[derive(Debug)]
pub(super) struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    /// Returns one for this variant; `None` if the directory of its journal or its socket is known. The variant's own
    /// command outranks it.
    pub(super) fn of(arm: &Variant) -> Result<Option<Self>, LabError> {
        if arm.journal().is_some() || arm.control().is_some() {
            return Ok(None);
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("durward-lab-state-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // `create_dir` refuses what exists already, a link included.
        fs::create_dir(&folder).map_err(|source| LabError::path(&folder, source))?;
        Ok(Some(Self(folder)))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // Leftovers are in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::child::spawn;
    use super::*;

    #[test]
    fn p07_each_arm_has_a_state_directory_of_its_own() {
        let said = |name: &str| {
            let words = ["sh", "-c", "printf %s \"$DURWARD_STATE_DIR\""];
            let arm = Variant::new(name, words.map(Into::into).to_vec());
            let mut spawned = spawn(&arm, 10_000).unwrap();
            let mut text = String::new();
            spawned.output.read_to_string(&mut text).unwrap();
            let folder = PathBuf::from(text);
            assert!(folder.is_dir(), "{folder:?}");
            drop(spawned);
            assert!(!folder.exists(), "{folder:?}");
            folder
        };
        assert_ne!(said("one"), said("two"));
    }

    #[test]
    fn an_arm_whose_journal_is_named_keeps_it() {
        let arm = Variant::new("a", vec!["true".into()]).with_journal("/x/journal".into());
        assert!(ScratchDirectory::of(&arm).unwrap().is_none());
    }
}
