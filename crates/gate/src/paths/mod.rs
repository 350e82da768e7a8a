//! Paths in arguments: finding them and knowing all that they may mean.
//!
//! A server may expand `~`, decode `%2e`, follow a symlink or collapse `..` before or after that.
//! Nobody at the door can know which, so a path stands for the *set* of places it may lead to:
//! deny and hitl match if any of them matches, allow only if all of them do.

pub mod canonical;
pub mod view;

pub use canonical::{Meaning, meanings};
pub use view::PathView;

/// Which part a path plays in its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Named `path`, `file` and the like.
    Path,
    /// Where something comes from.
    Source,
    /// Where something goes.
    Destination,
    /// Not named as a path, but it looks like one.
    Shape,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Path, Self::Source, Self::Destination, Self::Shape];

    /// The word used in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Shape => "shape",
        }
    }
}

/// A path-like argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathArgument {
    /// As it stood in the arguments.
    pub text: String,
    /// Its part in the call.
    pub role: Role,
    /// It stands under a content key (`content`, `text`, `oldText`, `newText`): what is written
    /// rather than where. An allow rule does not ask it to match; deny and hitl rules look at it.
    pub content: bool,
    /// Where it may lead.
    pub meaning: Meaning,
}

/// Argument names that mean a path, without separators. Source: the access proxy's list.
const PATH_KEYS: [&str; 4] = ["path", "filepath", "file", "filename"];
const SOURCE_KEYS: [&str; 6] = ["source", "src", "from", "frompath", "sourcepath", "origin"];
const DESTINATION_KEYS: [&str; 8] = [
    "destination",
    "destinationpath",
    "dest",
    "to",
    "topath",
    "destpath",
    "target",
    "targetpath",
];
/// Plural forms that real servers use for lists of paths (the official filesystem server: `paths`).
const PLURAL_KEYS: [&str; 3] = ["paths", "files", "filenames"];
/// Argument names whose strings are what is written, not where.
const CONTENT_KEYS: [&str; 4] = ["content", "text", "oldText", "newText"];

/// The role that an argument's name gives, ignoring case. Plural and camel-case spellings count.
#[must_use]
pub fn role_of_key(key: &str) -> Option<Role> {
    /// Longest of the names below, with room for separators; a longer key is none of them.
    const KEY_BYTES_MAX: usize = 48;
    if key.len() > KEY_BYTES_MAX {
        return None;
    }
    let folded: String = key
        .chars()
        .filter(|c| *c != '_' && *c != '-')
        .flat_map(char::to_lowercase)
        .collect();
    let folded = folded.as_str();
    if PATH_KEYS.contains(&folded) || PLURAL_KEYS.contains(&folded) {
        Some(Role::Path)
    } else if SOURCE_KEYS.contains(&folded) {
        Some(Role::Source)
    } else if DESTINATION_KEYS.contains(&folded) {
        Some(Role::Destination)
    } else {
        None
    }
}

/// Whether this argument name holds content rather than a place.
#[must_use]
pub fn is_content_key(key: &str) -> bool {
    CONTENT_KEYS.contains(&key)
}

/// Longest string that can be a path by its looks, in bytes.
pub const SHAPE_BYTES_MAX: usize = 4 * 1024;

/// Whether a string looks like a path: at most 4 KiB, no control character, and it starts with
/// `/`, `~`, `./`, `../` or `file:` (any case), or is `.` or `..`.
#[must_use]
pub fn looks_like_path(text: &str) -> bool {
    let start = text.trim_start();
    text.len() <= SHAPE_BYTES_MAX
        && (start.starts_with(['/', '~'])
            || start.starts_with("./")
            || start.starts_with("../")
            || start == ".."
            || start == "."
            || is_file_uri(start)
            || start
                .get(..3)
                .is_some_and(|s| s.eq_ignore_ascii_case("%2f")))
        && !text.chars().any(char::is_control)
}

/// Whether `text` begins with the scheme `file:`, in any case.
#[must_use]
pub fn is_file_uri(text: &str) -> bool {
    text.get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_roles() {
        let cases = [
            ("path", Some(Role::Path)),
            ("filePath", Some(Role::Path)),
            ("FILENAME", Some(Role::Path)),
            ("paths", Some(Role::Path)),
            ("source", Some(Role::Source)),
            ("fromPath", Some(Role::Source)),
            ("destination_path", Some(Role::Destination)),
            ("targetPath", Some(Role::Destination)),
            ("message", None),
            ("", None),
        ];
        for (key, role) in cases {
            assert_eq!(role_of_key(key), role, "{key}");
        }
    }

    #[test]
    fn looks() {
        for yes in [
            "/",
            "/etc",
            "~/x",
            "~root",
            "./a",
            "../a",
            "..",
            ".",
            "FILE:///etc",
            "file:a",
            "%2Fetc",
        ] {
            assert!(looks_like_path(yes), "{yes}");
        }
        for no in [
            "",
            "etc/passwd",
            "hello",
            "a/b",
            "https://x/y",
            "/a\nb",
            "-/x",
            ".x",
        ] {
            assert!(!looks_like_path(no), "{no}");
        }
        assert!(!looks_like_path(&format!(
            "/{}",
            "x".repeat(SHAPE_BYTES_MAX)
        )));
    }
}
