//! Files that are looked at again and again: has one changed, and is its change complete?
//!
//! Looking costs a `stat` each, and sees renames, swapped links and network file systems alike. When it is worth while to
//! look, the kernel says ([`crate::notices`]).

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How long a file may go on changing before it is taken as it is, in milliseconds.
const SETTLE_MS_MAX: u64 = 5_000;
/// A file changed less than this before it was read may change again without looking different, in
/// milliseconds; it is read once more.
const RACY_MS: i64 = 2_000;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// One file.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    /// As it was when it was last taken; absent where it was not there.
    taken: Option<Stamp>,
    /// As the last look found it.
    seen: Option<Stamp>,
    /// Since when it has looked otherwise than taken.
    unsettled_since_ms: Option<u64>,
    /// It has to be read again, whatever it looks like.
    racy: bool,
}

/// What a look found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Something has changed and come to rest.
    pub changed: bool,
    /// Files that are gone since the last look.
    pub gone: Vec<PathBuf>,
}

/// The files.
#[derive(Debug, Default)]
pub struct Watch {
    files: Vec<Watched>,
}

impl Watch {
    /// Takes these files as they are now; those that were watched before keep what is known of them.
    pub fn set(&mut self, paths: Vec<PathBuf>, wall_ms: i64) {
        let mut before = std::mem::take(&mut self.files);
        for path in paths {
            let at = before.iter().position(|file| file.path == path);
            let file = at.map_or_else(|| Watched::new(path, wall_ms), |at| before.swap_remove(at));
            self.files.push(file);
        }
    }

    /// Looks at all of them. `mono_ms` never goes back; `wall_ms` is compared with the files' times.
    pub fn look(&mut self, mono_ms: u64, wall_ms: i64) -> Found {
        let mut found = Found::default();
        for file in &mut self.files {
            file.look(stamp(&file.path), mono_ms, wall_ms, &mut found);
        }
        found
    }
}

impl Watched {
    fn new(path: PathBuf, wall_ms: i64) -> Self {
        let now = stamp(&path);
        Self {
            path,
            taken: now,
            seen: now,
            unsettled_since_ms: None,
            racy: now.is_some_and(|now| now.is_young(wall_ms)),
        }
    }

    fn look(&mut self, now: Option<Stamp>, mono_ms: u64, wall_ms: i64, found: &mut Found) {
        let stands_still = now == self.seen;
        self.seen = now;
        let Some(now) = now else {
            if self.taken.take().is_some() {
                found.gone.push(self.path.clone());
            }
            self.unsettled_since_ms = None;
            return;
        };
        if self.taken == Some(now) {
            self.unsettled_since_ms = None;
            if self.racy && !now.is_young(wall_ms) {
                self.racy = false;
                found.changed = true;
            }
            return;
        }
        let since_ms = *self.unsettled_since_ms.get_or_insert(mono_ms);
        if stands_still || mono_ms.saturating_sub(since_ms) >= SETTLE_MS_MAX {
            self.taken = Some(now);
            self.unsettled_since_ms = None;
            self.racy = now.is_young(wall_ms);
            found.changed = true;
        }
    }
}

impl Stamp {
    fn is_young(&self, wall_ms: i64) -> bool {
        let (seconds, nanos) = self.changed;
        let changed_ms = seconds
            .saturating_mul(1_000)
            .saturating_add(nanos / 1_000_000);
        wall_ms.saturating_sub(changed_ms) < RACY_MS
    }
}

/// Follows links: what counts is the file that would be read.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: i64 = 1_000;

    fn at(bytes: u64, changed_s: i64) -> Option<Stamp> {
        Some(Stamp {
            device: 1,
            inode: 1,
            bytes,
            modified: (changed_s, 0),
            changed: (changed_s, 0),
        })
    }

    fn watched(taken: Option<Stamp>) -> Watched {
        Watched {
            path: PathBuf::from("f"),
            taken,
            seen: taken,
            unsettled_since_ms: None,
            racy: false,
        }
    }

    /// Looks every half second; gives the looks that found a change, and those that found it gone.
    fn looks(
        file: &mut Watched,
        stamps: &[Option<Stamp>],
        wall_ms: i64,
    ) -> (Vec<usize>, Vec<usize>) {
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for (number, stamp) in stamps.iter().enumerate() {
            let mut found = Found::default();
            let mono_ms = 500 * u64::try_from(number).unwrap();
            file.look(*stamp, mono_ms, wall_ms, &mut found);
            if found.changed {
                changed.push(number);
            }
            if !found.gone.is_empty() {
                gone.push(number);
            }
        }
        (changed, gone)
    }

    #[test]
    fn a_change_is_taken_once_it_stands_still() {
        let wall_ms = 1_000_000_000;
        let (a, b, c) = (at(1, OLD), at(2, OLD), at(3, OLD));
        for (stamps, changed, gone) in [
            (vec![a, a, a], vec![], vec![]),
            (vec![a, b, b, b], vec![2], vec![]),
            (vec![b, c, b, c, c], vec![4], vec![]),
            // Back to what was taken: nothing has changed.
            (vec![b, a, a], vec![], vec![]),
            // Gone is told once; what comes back is looked at.
            (vec![None, None, None, a, a], vec![4], vec![0]),
            (vec![None, b, b, None, None], vec![2], vec![0, 3]),
        ] {
            let mut file = watched(a);
            assert_eq!(
                looks(&mut file, &stamps, wall_ms),
                (changed, gone),
                "{stamps:?}"
            );
        }
    }

    #[test]
    fn a_file_that_never_stands_still_is_taken_after_a_while() {
        let mut file = watched(at(0, OLD));
        let stamps: Vec<_> = (1..=25).map(|bytes| at(bytes, OLD)).collect();
        let (changed, _) = looks(&mut file, &stamps, 1_000_000_000);
        assert_eq!(changed, [10, 21]);
    }

    #[test]
    fn a_young_file_is_read_once_more_when_it_is_old_enough() {
        let mut file = watched(at(1, OLD));
        let changed_ms = 50_000;
        let young = at(1, changed_ms / 1_000);
        assert_eq!(
            looks(&mut file, &[young, young, young], changed_ms + 1_999).0,
            [1]
        );
        assert!(file.racy);
        assert_eq!(
            looks(&mut file, &[young, young], changed_ms + RACY_MS).0,
            [0]
        );
        assert!(!file.racy);
    }
}
