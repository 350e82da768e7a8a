//! What could not be measured: a peer that fails costs its own rows and no other, and nothing passes that was
//! not measured.

use super::StandardArgs;
use crate::arm::Arm;
use crate::error::LabError;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// A table or an arm that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Absent {
    /// What would have been measured.
    pub(super) title: String,
    /// Why it was not.
    pub(super) why: String,
    /// Whether a budget hangs on it; a peer's absence misses none.
    pub(super) ours: bool,
}

/// Whether an arm of this name is a peer.
fn is_peer(args: &StandardArgs, name: &str) -> bool {
    let named = args.peer.iter().filter_map(|text| text.split_once('='));
    let mut names = named.map(|(name, _)| name);
    names.any(|peer| peer == name) || args.http_peer.iter().any(|peer| peer.name() == name)
}

/// Measures; a peer that fails is left out, and the rest measured again without it. What fails for another
/// reason is absent as a whole. Only Ctrl-C and a wrong command line end it all.
pub(super) fn forgiving<T>(
    title: &str,
    args: &StandardArgs,
    arms: &mut Vec<Arm>,
    absent: &mut Vec<Absent>,
    mut measure: impl FnMut(&[Arm]) -> Result<T, LabError>,
) -> Result<Option<T>, LabError> {
    loop {
        let error = match measure(arms) {
            Ok(found) => return Ok(Some(found)),
            Err(error @ (LabError::Aborted | LabError::Usage(_))) => return Err(error),
            Err(error) => error,
        };
        let culprit = error
            .arm()
            .filter(|arm| is_peer(args, arm))
            .map(str::to_owned);
        absent.push(Absent {
            title: match &culprit {
                Some(peer) => format!("{title}: {peer}"),
                None => title.to_owned(),
            },
            why: error.to_string(),
            ours: culprit.is_none(),
        });
        let Some(peer) = culprit else {
            return Ok(None);
        };
        arms.retain(|arm| arm.name != peer);
    }
}

/// A line of the page for each.
pub(super) fn write(absent: &[Absent], page: &mut String) -> fmt::Result {
    for one in absent {
        let why = one.why.replace(['\n', '\r'], " ").replace('<', "\\<");
        writeln!(page, "- **Absent**: {}: {why}.", one.title)?;
    }
    Ok(())
}
