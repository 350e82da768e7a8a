//! Paths in arguments: finding them and knowing all that they may mean.
//!
//! A server may expand `~`, decode `%2e`, follow a symlink or collapse `..` before or after that.
//! Nobody at the door can know which, so a path stands for the *set* of places it may lead to:
//! deny and hitl match if any of them matches, allow only if all of them do.

pub mod budget;
pub mod canonical;
pub mod reach;
pub mod view;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::memo::Memo;

pub use budget::StepBudget;
pub use canonical::{Meaning, meanings, meanings_within};
pub use reach::Reach;
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
/// Last words of argument names that mean a path: `relative_path`, `notebookPath`, `working_dir`, `cwd`.
const PATH_WORDS: [&str; 22] = [
    "path",
    "paths",
    "pathname",
    "filepath",
    "file",
    "files",
    "filename",
    "filenames",
    "dir",
    "dirs",
    "dirname",
    "directory",
    "directories",
    "folder",
    "folders",
    "cwd",
    "pwd",
    "workdir",
    "root",
    "roots",
    "uri",
    "uris",
];
/// Argument names whose strings are what is written, not where.
const CONTENT_KEYS: [&str; 4] = ["content", "text", "oldText", "newText"];

/// The role that an argument's name gives, ignoring case. Plural and camel-case spellings count.
#[must_use]
pub fn role_of_key(key: &str) -> Option<Role> {
    thread_local! {
        static ROLES: Memo<Option<Role>> = Memo::default();
    }
    ROLES.with(|roles| roles.of(key, read_role))
}

fn read_role(key: &str) -> Option<Role> {
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
        let words = crate::words::words(key);
        let last = words.last()?.trim_end_matches(|c: char| c.is_ascii_digit());
        PATH_WORDS.contains(&last).then_some(Role::Path)
    }
}

/// The scheme of a URI (RFC 3986 §3.1), lower case, as URL parsers find it: blanks around it and line
/// ends in it do not count.
pub(crate) fn scheme_of(text: &str) -> Option<String> {
    let (scheme, _) = trimmed(text).split_once(':')?;
    let whole = without_line_ends(scheme);
    let scheme = whole.as_deref().unwrap_or(scheme);
    let mut chars = scheme.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    (starts && chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
        .then(|| scheme.to_lowercase())
}

/// Whether this argument name holds content rather than a place.
#[must_use]
pub fn is_content_key(key: &str) -> bool {
    CONTENT_KEYS.contains(&key)
}

/// Longest string that can be a path by its looks, in bytes.
pub const SHAPE_BYTES_MAX: usize = 4 * 1024;

/// Whether a string looks like a path: at most 4 KiB, no control character inside, and, without what
/// readers take off its ends, it starts with `/`, `~`, `./`, `../` or `file:` (any case), or is `.` or
/// `..`, as it stands or percent-decoded. A `file:` URI may hold tabs and line ends: URL parsers drop them.
#[must_use]
pub fn looks_like_path(text: &str) -> bool {
    if text.len() > SHAPE_BYTES_MAX {
        return false;
    }
    let bare = trimmed(text);
    if bare.chars().any(char::is_control) {
        return without_line_ends(bare).is_some_and(|uri| {
            is_file_uri(&uri)
                && uri
                    .get(5..)
                    .is_some_and(|rest| rest.starts_with(['/', '\\']))
        });
    }
    begins_like_path(bare) || (may_hide_its_beginning(bare) && decodes_to_path(bare))
}

fn begins_like_path(start: &str) -> bool {
    start.starts_with(['/', '~'])
        || start.starts_with("./")
        || start.starts_with("../")
        || start == ".."
        || start == "."
        || is_file_uri(start)
}

/// Whether percent-decoding can make this begin like a path: what does not begin so stays as it is.
fn may_hide_its_beginning(text: &str) -> bool {
    text.starts_with(['%', '.', 'f', 'F']) && text.contains('%')
}

/// Whether taking off layers of percent-encoding uncovers the beginning of a path. What is encoded more
/// often than anybody does honestly counts as one.
fn decodes_to_path(text: &str) -> bool {
    let mut layer = Cow::Borrowed(text);
    for _ in 0..canonical::DECODINGS_MAX {
        let next = percent_decode_str(&layer).decode_utf8_lossy().into_owned();
        if next == *layer {
            return false;
        }
        if begins_like_path(trimmed(&next)) {
            return true;
        }
        layer = Cow::Owned(next);
    }
    percent_decode_str(&layer).decode_utf8_lossy() != layer
}

/// Without what readers take off the ends of a path: blanks, control characters, byte order marks.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}')
}

/// Without tabs and line ends, which URL parsers drop wherever they stand; `None` where there are none.
pub(crate) fn without_line_ends(text: &str) -> Option<String> {
    const DROPPED: [char; 3] = ['\t', '\n', '\r'];
    text.contains(DROPPED).then(|| text.replace(DROPPED, ""))
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
            ("relative_path", Some(Role::Path)),
            ("notebookPath", Some(Role::Path)),
            ("cwd", Some(Role::Path)),
            ("input_file2", Some(Role::Path)),
            ("file_type", None),
            ("profile", None),
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
            "..%2f..%2fetc",
            "%7e/x",
            "%2e%2e/x",
            ".%252fx",
            "%252525252fx",
            "file%3a///etc",
            "/etc/shadow\n",
            "\t/etc/shadow",
            "\u{feff}/etc/shadow",
            "\u{1}~/x\r\n",
            "fi\tle:///etc",
            "file:\n///etc",
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
            "50% of /x",
            "%d items",
            "foo%2fbar",
            "File: a\nSize: b",
        ] {
            assert!(!looks_like_path(no), "{no}");
        }
        assert!(!looks_like_path(&format!(
            "/{}",
            "x".repeat(SHAPE_BYTES_MAX)
        )));
    }
}
