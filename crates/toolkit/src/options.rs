//! Options of a built-in server: the keys that stand beside `builtin` in the configuration.
//!
//! A server declares them in one table of [`OptionDef`]; the binary reads the file against that table, checks it,
//! and prints the reference page from it. The server gets what was read as [`Options`], in its [`Setup`].

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate::Clock;

/// One option.
#[derive(Debug, Clone)]
pub struct OptionDef {
    /// The key in the configuration; not one of the keys that every server has.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// What holds without it, in words; empty where there is nothing.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Whether the server cannot do without it.
    pub required: bool,
}

/// What an option takes.
#[derive(Debug, Clone)]
pub enum OptionKind {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// A path, relative to the file's directory.
    Path,
    /// A list of such paths.
    Paths,
    /// A file that belongs to the configuration: no call may touch it.
    File,
    /// A whole number within bounds.
    Number(RangeInclusive<u64>),
    /// A span of time (`60s`), in milliseconds within bounds.
    SpanMs(RangeInclusive<u64>),
    /// A size (`64MiB`), in bytes within bounds.
    Bytes(RangeInclusive<u64>),
    /// One word of a closed set.
    Word(&'static [&'static str]),
}

/// What an option was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A text, or one word of a closed set.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A whole path.
    Path(PathBuf),
    /// Whole paths.
    Paths(Vec<PathBuf>),
    /// A number, milliseconds or bytes.
    Number(u64),
}

/// The options that were given, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    values: BTreeMap<&'static str, OptionValue>,
}

/// What a server is made with. Making one opens and writes nothing: a server is also made only to be asked what
/// a call is about (`durward policy explain`). What it keeps, it opens at its first call.
#[derive(Clone)]
pub struct Setup {
    /// The server's name in rules and records.
    pub peer: Arc<str>,
    /// What its configuration says.
    pub options: Options,
    /// The directory of the configuration, to which paths inside of files named there may be relative.
    pub base: PathBuf,
    /// Where it may keep things; not made yet. No call may touch it.
    pub state: PathBuf,
    /// The journal's directory, for servers that tell what was recorded of their own calls.
    pub journal: PathBuf,
    /// This program, for servers that start it again as a worker.
    pub program: PathBuf,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The system's randomness.
    pub random: fn(&mut [u8]) -> io::Result<()>,
}

impl OptionDef {
    /// An option that may be left out.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: OptionKind,
        default: &'static str,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            about,
            required: false,
        }
    }

    /// An option that has to be given.
    #[must_use]
    pub const fn required(name: &'static str, kind: OptionKind, about: &'static str) -> Self {
        Self {
            name,
            kind,
            default: "",
            about,
            required: true,
        }
    }
}

impl fmt::Display for OptionKind {
    /// As the reference page has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Texts => f.write_str("a list of texts"),
            Self::Path | Self::File => f.write_str("path"),
            Self::Paths => f.write_str("a list of paths"),
            Self::Number(bounds) => write!(f, "{} to {}", bounds.start(), bounds.end()),
            Self::SpanMs(_) => f.write_str("span of time"),
            Self::Bytes(_) => f.write_str("size"),
            Self::Word(words) => f.write_str(&words.join(" or ")),
        }
    }
}

impl Options {
    /// Sets a value; of two for one name the later one holds.
    pub fn set(&mut self, name: &'static str, value: OptionValue) {
        self.values.insert(name, value);
    }

    /// A value, where one was given.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.values.get(name)
    }

    /// A text or a word, where it was given.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            OptionValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A list of texts; empty where it was not given.
    #[must_use]
    pub fn texts(&self, name: &str) -> &[String] {
        match self.values.get(name) {
            Some(OptionValue::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// A path or a file, where it was given.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<&Path> {
        match self.values.get(name)? {
            OptionValue::Path(path) => Some(path),
            _ => None,
        }
    }

    /// A list of paths; empty where it was not given.
    #[must_use]
    pub fn paths(&self, name: &str) -> &[PathBuf] {
        match self.values.get(name) {
            Some(OptionValue::Paths(paths)) => paths,
            _ => &[],
        }
    }

    /// A number, a span in milliseconds or a size in bytes, where it was given.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.values.get(name)? {
            OptionValue::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("peer", &self.peer)
            .field("options", &self.options)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_found_by_its_kind() {
        let mut options = Options::default();
        options.set("models", OptionValue::Paths(vec!["/srv/m".into()]));
        options.set("workers", OptionValue::Number(2));
        options.set("hosts", OptionValue::Path("/etc/hosts.yaml".into()));
        options.set("adapter", OptionValue::Text("native".into()));
        assert_eq!(options.paths("models"), [PathBuf::from("/srv/m")]);
        assert_eq!(options.number("workers"), Some(2));
        assert_eq!(options.path("hosts"), Some(Path::new("/etc/hosts.yaml")));
        assert_eq!(options.text("adapter"), Some("native"));
        assert_eq!(options.number("models"), None);
        assert_eq!(options.texts("none"), [] as [String; 0]);
    }

    #[test]
    fn a_kind_says_what_it_takes() {
        assert_eq!(OptionKind::Number(1..=32).to_string(), "1 to 32");
        assert_eq!(
            OptionKind::Word(&["native", "ospsuite"]).to_string(),
            "native or ospsuite"
        );
    }
}
