//! What a tool does, inferred from its name: read, write or delete. The worst verb wins.

use crate::words::words;

/// What a call does to what it touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It looks.
    Read,
    /// It changes or makes.
    Write,
    /// It removes.
    Delete,
    /// Its name does not tell. Only rules that say `unknown` match it; a rule on read, write or
    /// delete never does.
    Unknown,
}

impl Operation {
    /// All that a policy can name.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Delete, Self::Unknown];

    /// The words of all, for whoever asks.
    pub(crate) fn labels() -> Vec<&'static str> {
        Self::ALL.map(Self::label).to_vec()
    }

    /// The word used in policies and in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Unknown => "unknown",
        }
    }
}

const READ: [&str; 6] = ["read", "get", "list", "fetch", "search", "find"];
const DELETE: [&str; 4] = ["delete", "remove", "drop", "clear"];
const WRITE: [&str; 10] = [
    "write", "create", "edit", "update", "set", "save", "put", "add", "insert", "append",
];

/// Longest tool name that is looked at, in bytes; a longer one has no known operation.
const NAME_BYTES_MAX: usize = 256;

/// The operation that a tool's name tells: of all its words the worst verb. `None` where no word is
/// a verb that is known, so that no rule on operations matches.
#[must_use]
pub fn infer(tool_name: &str) -> Option<Operation> {
    if tool_name.len() > NAME_BYTES_MAX {
        return None;
    }
    words(tool_name)
        .iter()
        .filter_map(|word| {
            let word = word.as_str();
            if DELETE.contains(&word) {
                Some(Operation::Delete)
            } else if WRITE.contains(&word) {
                Some(Operation::Write)
            } else if READ.contains(&word) {
                Some(Operation::Read)
            } else {
                None
            }
        })
        .max()
}

/// Whether the name says that something is taken away from where it is, though it is no verb of the
/// list: such a call on the parent of a protected path would take that with it.
#[must_use]
pub(crate) fn takes_away(tool_name: &str) -> bool {
    infer(tool_name) == Some(Operation::Delete)
        || words(tool_name).iter().any(|w| {
            matches!(
                w.as_str(),
                "move" | "rename" | "trash" | "purge" | "erase" | "rm" | "mv" | "unlink"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verb_wins() {
        let cases = [
            ("read_file", Some(Operation::Read)),
            ("list_files", Some(Operation::Read)),
            ("set_filesystem_default", Some(Operation::Write)),
            ("create_directory", Some(Operation::Write)),
            ("delete_list", Some(Operation::Delete)),
            ("get_and_delete", Some(Operation::Delete)),
            ("readWriteFile", Some(Operation::Write)),
            ("file-remove", Some(Operation::Delete)),
            ("copy_path", None),
            ("move_path", None),
            ("directory_tree", None),
            ("reader", None),
            ("", None),
        ];
        for (name, expect) in cases {
            assert_eq!(infer(name), expect, "{name}");
        }
    }
}
