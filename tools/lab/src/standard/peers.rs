//! What could not be measured: a peer that fails costs its own rows and no other, and nothing passes that was
//! not measured.

use super::StandardArgs;
use crate::error::LabError;
use crate::variant::Variant;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// A table or a variant that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct MissingRow {
    /// What would have been measured.
    pub(super) title: String,
    /// Why it was not.
    pub(super) why: String,
    /// Whether a budget hangs on it; a peer's absence misses none.
    pub(super) ours: bool,
}

/// Returns whether a variant of this name is a peer.
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
    arms: &mut Vec<Variant>,
    absent: &mut Vec<MissingRow>,
    mut measure: impl FnMut(&[Variant]) -> Result<T, LabError>,
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
        absent.push(MissingRow {
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
pub(super) fn write(absent: &[MissingRow], page: &mut String) -> fmt::Result {
    for one in absent {
        let why = one.why.replace(['\n', '\r'], " ").replace('<', "\\<");
        writeln!(page, "- **Absent**: {}: {why}.", one.title)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::VariantTransport;
    use clap::{Args as _, FromArgMatches as _};

    fn args() -> StandardArgs {
        let command = StandardArgs::augment_args(clap::Command::new("standard"));
        let words = ["standard", "--peer", "Slow=slow", "--peer", "Dead=dead"];
        StandardArgs::from_arg_matches(&command.get_matches_from(words)).unwrap()
    }

    fn arms(names: &[&str]) -> Vec<Variant> {
        let arm = |name: &&str| Variant::parse(name, "true", VariantTransport::Stdio).unwrap();
        names.iter().map(arm).collect()
    }

    fn peer_fault(arm: &str) -> LabError {
        LabError::Broken {
            arm: arm.into(),
            what: "it died".into(),
        }
    }

    #[test]
    fn a_peer_that_fails_costs_its_own_row_only() {
        let (mut arms, mut absent) = (arms(&["direct", "durward", "Slow", "Dead"]), Vec::new());
        let found = forgiving("calls", &args(), &mut arms, &mut absent, |arms| match arms
            .iter()
            .find(|arm| arm.name == "Dead")
        {
            Some(dead) => Err(peer_fault(&dead.name)),
            None => Ok(arms.len()),
        });
        assert_eq!(found.unwrap(), Some(3));
        assert_eq!((absent.len(), absent[0].ours), (1, false));
        assert_eq!(absent[0].title, "calls: Dead");
        let mut page = String::new();
        write(&absent, &mut page).unwrap();
        assert!(
            page.contains("- **Absent**: calls: Dead: variant Dead: it died."),
            "{page}"
        );
    }

    #[test]
    fn our_own_failure_is_absent_and_an_end_ends_it() {
        let (mut arms, mut absent) = (arms(&["direct", "durward"]), Vec::new());
        let found = forgiving("calls", &args(), &mut arms, &mut absent, |_| {
            Err::<(), _>(peer_fault("durward"))
        });
        assert_eq!(found.unwrap(), None);
        assert!(absent[0].ours);
        let ended = forgiving("calls", &args(), &mut arms, &mut absent, |_| {
            Err::<(), _>(LabError::Aborted)
        });
        assert!(matches!(ended, Err(LabError::Aborted)));
        assert_eq!(absent.len(), 1);
    }
}
