//! `ssh_config`: what OpenSSH's client would do for a host, as far as it matters here.
//!
//! Read as OpenSSH 9.2 reads it: the first value of an option counts, blocks begin with `Host` or `Match`, further
//! files come in with `Include`. Nothing is run and nothing is looked up. A line that is not supported, such as
//! `Match exec`, makes those hosts unusable that it may apply to, and no others. No crate reads `Match`, so this is a reader
//! of its own.

mod evaluate;
mod include;
mod keywords;
mod line;
mod read;
mod tokens;

use std::fmt;
use std::path::{Path, PathBuf};

pub use evaluate::Effective;
pub use tokens::{OF_FILES, OF_JUMPS, Tokens, expanded};

/// Longest file, in bytes.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Most files that one configuration is made of.
pub const FILES_MAX: usize = 256;
/// How deep files may include others.
pub const DEPTH_MAX: usize = 16;
/// Most lines of all files.
pub const LINES_MAX: usize = 100_000;

/// Whose configuration it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Person {
    /// The home, for `~` and `%d`.
    pub home: PathBuf,
    /// The name on this machine, for `%u` and where no user is named.
    pub user: String,
    /// The agent's socket, where there is one.
    pub agent: Option<PathBuf>,
}

impl Person {
    /// Returns the person of this process; `variable` reads the environment. Without USER and LOGNAME, the name is the one that
    /// `/etc/passwd` has for the process's user.
    #[must_use]
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let in_passwd = || {
            let text = std::fs::read_to_string("/etc/passwd").ok()?;
            name_in_passwd(&text, rustix::process::getuid().as_raw()).map(str::to_owned)
        };
        Self {
            home: variable("HOME").map(PathBuf::from).unwrap_or_default(),
            user: variable("USER")
                .or_else(|| variable("LOGNAME"))
                .or_else(in_passwd)
                .unwrap_or_default(),
            agent: variable("SSH_AUTH_SOCK").map(PathBuf::from),
        }
    }
}

/// Returns the name of a user in a text of passwd(5).
fn name_in_passwd(text: &str, uid: u32) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid) && !name.is_empty()).then_some(name)
    })
}

/// A configuration, read.
#[derive(Debug, Clone, Default)]
pub struct Config {
    entries: Vec<Entry>,
    /// The files it was read from, included ones too.
    files: Vec<PathBuf>,
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The file, the line, what is wrong and what to do.
    pub wrong: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wrong)
    }
}

impl std::error::Error for ConfigFault {}

/// What a line means.
#[derive(Debug, Clone)]
enum Entry {
    /// What follows is for these hosts.
    Host(Vec<String>),
    /// What follows is for what meets all of these.
    Match(Vec<Criterion>),
    /// An option that matters, and its values.
    Set(Wanted, Vec<String>),
    /// Other files' entries; they apply where the block that includes them does.
    Include(Vec<Entry>),
    /// A line that is not supported: the file, the line and why.
    Unsupported(String),
}

/// A condition of a `Match` line.
#[derive(Debug, Clone)]
struct Criterion {
    negated: bool,
    kind: Kind,
    patterns: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// It cannot be evaluated here: the file, the line and why.
    Unsupported(String),
    All,
    /// Never so: names are not made canonical.
    Canonical,
    Host,
    OriginalHost,
    User,
    LocalUser,
}

/// The options that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    HostName,
    User,
    Port,
    IdentityFile,
    CertificateFile,
    IdentityAgent,
    IdentitiesOnly,
    ProxyJump,
    ProxyCommand,
    UserKnownHostsFile,
    GlobalKnownHostsFile,
    StrictHostKeyChecking,
    HostKeyAlias,
    RevokedHostKeys,
}

impl Config {
    /// Reads a file and what it includes.
    ///
    /// # Errors
    /// [`ConfigFault`] if the file cannot be read, or is too long. A line that is not supported is an error of
    /// [`Config::effective`] for the hosts that it may apply to.
    pub fn read(path: &Path, person: &Person) -> Result<Self, ConfigFault> {
        let mut reading = read::Reading::new(person);
        let entries = reading.file(path)?;
        reading.finish(entries)
    }

    /// Reads a text that includes nothing outside of `person`'s files; `name` stands in messages.
    ///
    /// # Errors
    /// [`ConfigFault`] if it is too long.
    pub fn of(text: &str, name: &str, person: &Person) -> Result<Self, ConfigFault> {
        let mut reading = read::Reading::new(person);
        let entries = reading.text(text, name);
        reading.finish(entries)
    }

    /// Returns the files it was read from, included ones too.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The names that `Host` lines have in full, each once, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        fn collect<'e>(entries: &'e [Entry], names: &mut Vec<&'e str>) {
            for entry in entries {
                match entry {
                    Entry::Host(patterns) => {
                        for pattern in patterns {
                            let is_name = !pattern.contains(['*', '?', '!']);
                            if is_name && !names.contains(&pattern.as_str()) {
                                names.push(pattern);
                            }
                        }
                    }
                    Entry::Include(entries) => collect(entries, names),
                    Entry::Match(_) | Entry::Set(..) | Entry::Unsupported(_) => {}
                }
            }
        }
        let mut names = Vec::new();
        collect(&self.entries, &mut names);
        names
    }
}

#[cfg(test)]
mod tests;
