//! No name twice in one object.

use std::borrow::Cow;

/// How many names are compared pair by pair.
const PAIRWISE_MAX: usize = 16;

/// Whether no name stands twice. Quadratic up to 16 names, which is nearly always, else by sorting:
/// never worse than n log n.
pub(crate) fn is_unique(names: &mut [Cow<'_, str>]) -> bool {
    if names.len() < 2 {
        return true;
    }
    if names.len() <= PAIRWISE_MAX {
        return names
            .iter()
            .enumerate()
            .all(|(i, a)| names.iter().skip(i + 1).all(|b| a != b));
    }
    names.sort_unstable();
    names
        .windows(2)
        .all(|pair| !matches!(pair, [a, b] if a == b))
}
