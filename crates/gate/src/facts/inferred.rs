//! What a tool's name says of it, read once a name.

use super::operation::{self, Operation};
use super::{effects, reading};
use crate::memo::Memo;
use crate::words::words;

/// Words of tools that write what their arguments do not name.
const WRITES_BESIDE: [&str; 15] = [
    "unzip",
    "untar",
    "unpack",
    "extract",
    "decompress",
    "restore",
    "checkout",
    "clone",
    "pull",
    "apply",
    "patch",
    "link",
    "symlink",
    "mklink",
    "ln",
];

/// What a tool's name says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inferred {
    /// The worst of its verbs.
    pub operation: Option<Operation>,
    /// What is at the call's places is gone afterwards.
    pub takes_away: bool,
    /// It writes what its arguments do not name: beside a place that they name, or wherever its server keeps
    /// its files.
    pub writes_beside: bool,
    /// What it does to the world; `None` where nobody knows.
    pub effects: Option<&'static [&'static str]>,
    /// Whether it only reads: where its definition says nothing, where it says no, where it says yes.
    reads_only: [bool; 3],
}

impl Inferred {
    /// Reads a name.
    pub fn of(tool: &str) -> Self {
        thread_local! {
            static NAMES: Memo<Inferred> = Memo::default();
        }
        NAMES.with(|names| names.of(tool, Self::read))
    }

    fn read(tool: &str) -> Self {
        let effects = effects::of_tool(tool);
        let hints = [None, Some(false), Some(true)];
        Self {
            operation: operation::infer(tool),
            takes_away: operation::takes_away(tool),
            writes_beside: words(tool)
                .iter()
                .any(|word| WRITES_BESIDE.contains(&word.as_str())),
            effects,
            reads_only: hints.map(|hint| reading::reads_only(tool, effects, hint)),
        }
    }

    /// Whether it only reads, where its definition says so or not (`readOnlyHint`).
    pub fn reads_only(&self, hint: Option<bool>) -> bool {
        let [unsaid, no, yes] = self.reads_only;
        match hint {
            None => unsaid,
            Some(false) => no,
            Some(true) => yes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_same_each_time() {
        for tool in [
            "read_file",
            "sized",
            "move_path",
            "delete_all",
            "query",
            "execute",
            "",
        ] {
            for hint in [None, Some(false), Some(true)] {
                for _ in 0..2 {
                    let inferred = Inferred::of(tool);
                    assert_eq!(
                        inferred.reads_only(hint),
                        reading::reads_only(tool, None, hint)
                    );
                    assert_eq!(inferred.operation, operation::infer(tool), "{tool}");
                    assert_eq!(inferred.takes_away, operation::takes_away(tool), "{tool}");
                    assert_eq!(inferred.effects, effects::of_tool(tool), "{tool}");
                }
            }
        }
    }
}
