//! GuardedPaths of this machine that calls are kept off.

use super::seen::Seen;
use super::target::Target;
use crate::paths::view::PathView;

/// Directories and files, each with all below it.
#[derive(Debug, Default)]
pub(super) struct GuardedPaths {
    /// Canonical, sorted, each once.
    canonical: Vec<String>,
    /// The same, to be compared with what is no plain path.
    targets: Vec<Target>,
}

impl GuardedPaths {
    /// Takes absolute paths, as they are spelled and where their links lead in `view`. The root is none.
    pub fn new(paths: &[String], view: Option<&dyn PathView>) -> Self {
        let places = paths
            .iter()
            .flat_map(|path| crate::paths::meanings(path, view).places);
        let mut canonical: Vec<String> = places.filter(|place| place != "/").collect();
        canonical.sort();
        canonical.dedup();
        Self {
            targets: canonical
                .iter()
                .map(|place| Target::at_or_below(place))
                .collect(),
            canonical,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.canonical.is_empty()
    }

    /// Whether the call reaches one of them: by a path at or below it, or by reading or taking away what holds it.
    pub fn are_reached(&self, seen: &Seen<'_>) -> bool {
        let reach = &seen.facts().reach;
        let is_guarded = |place: &str| self.canonical.iter().any(|top| is_below(place, top));
        let holds_one = |place: &str| self.canonical.iter().any(|inner| is_below(inner, place));
        seen.tops().chain(reach.every_place()).any(is_guarded)
            || (seen.reaches_below() && seen.tops().any(holds_one))
            || self.targets.iter().any(|target| {
                reach.relative.iter().any(|text| target.ends(text))
                    || reach.globs.iter().any(|glob| target.meets(glob))
            })
    }

    /// Whether a call names a directory above one of them, and nothing says that it does not move or replace what it
    /// names. A call that certainly does reaches what is below, so [`Self::are_reached`] holds.
    pub fn may_be_moved(&self, seen: &Seen<'_>) -> bool {
        let holds_one = |place: &str| self.canonical.iter().any(|inner| is_below(inner, place));
        seen.movable().any(holds_one)
    }
}

/// Whether `place` is `top` or below it.
fn is_below(place: &str, top: &str) -> bool {
    top == "/"
        || place
            .strip_prefix(top)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
