//! What the gate may ask of the file system, passed in: only for upstreams on this machine.

/// The file system and home of the side that will open the path.
pub trait PathView: Send + Sync {
    /// The home directory that `~` stands for.
    fn home(&self) -> Option<String>;
    /// The directory against which relative paths are resolved.
    fn current_dir(&self) -> Option<String>;
    /// Returns the value of an environment variable of the side that will open the path.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
    /// Whether [`PathView::current_dir`] is certainly the directory that relative paths are resolved
    /// against: somebody has said so. A server may else have one of its own.
    fn is_base_known(&self) -> bool {
        false
    }
    /// The text of the regular file at `path` (absolute, no `..`), without following a link anywhere in it;
    /// at most `bytes_max` bytes.
    fn read_text(&self, _path: &str, _bytes_max: usize) -> FileText {
        FileText::Unreadable
    }
    /// Whether there is something at `path` (absolute, no `..`), and no link on the whole way to it. `false` where that is not so
    /// or cannot be told at once; then [`PathView::read_link`] is asked step by step.
    fn is_without_links(&self, _path: &str) -> bool {
        false
    }
    /// The target of the symbolic link at `path` (absolute, no `..`), or what stands in the way.
    fn read_link(&self, path: &str) -> Link;
}

/// What is read at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileText {
    /// All of the file.
    Text(String),
    /// It is no UTF-8, or holds characters that no text has.
    Binary,
    /// It is longer than was asked for.
    TooLong,
    /// There is nothing.
    Missing,
    /// There is something else: a directory, a link, a device.
    NotAFile,
    /// Nobody can say.
    Unreadable,
}

impl FileText {
    /// What these bytes are: all of a file, at most `bytes_max` of them.
    #[must_use]
    pub fn of(bytes: Vec<u8>, bytes_max: usize) -> Self {
        if bytes.len() > bytes_max {
            return Self::TooLong;
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Self::Text(text),
            Ok(_) | Err(_) => Self::Binary,
        }
    }
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// A symbolic link with this target, as stored.
    To(String),
    /// Something that is no symbolic link.
    NotALink,
    /// Nothing (yet): nothing below it can be a link either.
    Missing,
    /// Nobody can say (no permission, not UTF-8).
    Unreadable,
}
