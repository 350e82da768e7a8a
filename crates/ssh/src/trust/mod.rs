//! Which keys of hosts are known: files in the format of OpenSSH's `known_hosts`.
//!
//! A key that is not known, is another one than the known, or is revoked fails the connection; there is no
//! setting that lets a changed one pass.

mod line;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
pub(crate) use line::{Line, Mark, lines, matches};
use toolkit::files::is_ours;

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What the files say of a host's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is one of the host's keys.
    Known,
    /// The host has no key there.
    Unknown,
    /// The host has another one of this type.
    Changed,
    /// It is revoked.
    Revoked,
}

/// Known keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownHosts {
    lines: Vec<Line>,
}

/// The names under which OpenSSH looks a host up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FiledNames {
    /// The address, with the port unless that is 22.
    pub full: String,
    /// The address alone, if `full` has a port: such a line counts for a key that it has.
    pub without_port: Option<String>,
}

impl FiledNames {
    pub fn new(address: &str, port: u16) -> Self {
        let address = address.to_ascii_lowercase();
        match port {
            22 => Self {
                full: address,
                without_port: None,
            },
            port => Self {
                full: format!("[{address}]:{port}"),
                without_port: Some(address),
            },
        }
    }
}

impl KnownHosts {
    /// Reads the files; one that is not there has no keys.
    pub fn read(paths: &[PathBuf]) -> Result<Self, String> {
        let mut all = Self::default();
        for path in paths {
            match std::fs::metadata(path) {
                Ok(about) if about.len() > FILE_BYTES_MAX => {
                    return Err(format!(
                        "{} is longer than {FILE_BYTES_MAX} bytes",
                        path.display()
                    ));
                }
                Ok(about) => {
                    // What is no file, as /dev/null, has no keys of anybody's.
                    if about.is_file() {
                        is_ours(&about, "could have another machine taken for a host")
                            .map_err(|wrong| format!("{}: {wrong}", path.display()))?;
                    }
                    let bytes = std::fs::read(path)
                        .map_err(|error| format!("{}: {error}", path.display()))?;
                    all.lines.extend(lines(&String::from_utf8_lossy(&bytes)));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Ok(all)
    }

    /// Returns what is said of this key of a host. A line without a port never makes another key a changed one.
    pub fn judge_host(&self, names: &FiledNames, kind: &str, blob: &[u8]) -> Verdict {
        let without = |names: &FiledNames| {
            let name = names.without_port.as_deref()?;
            Some(self.judge(name, kind, blob)).filter(|verdict| *verdict != Verdict::Changed)
        };
        match self.judge(&names.full, kind, blob) {
            Verdict::Unknown => without(names).unwrap_or(Verdict::Unknown),
            verdict => verdict,
        }
    }

    /// Returns whether a certificate's key may sign for a host, by a line with its port or without.
    pub fn host_authority(&self, names: &FiledNames, blob: &[u8]) -> Verdict {
        match (self.authority(&names.full, blob), &names.without_port) {
            (Verdict::Unknown, Some(name)) => self.authority(name, blob),
            (verdict, _) => verdict,
        }
    }

    /// Returns the types of the keys that a host has, and whether an authority may sign for it. Lines without a port count
    /// if there are none with it.
    pub fn host_kinds(&self, names: &FiledNames) -> (Vec<&str>, bool) {
        let (kinds, certified) = self.kinds(&names.full);
        match &names.without_port {
            Some(name) if kinds.is_empty() && !certified => self.kinds(name),
            _ => (kinds, certified),
        }
    }

    /// What is said of this key (`blob` as on the wire) of this host.
    fn judge(&self, host: &str, kind: &str, blob: &[u8]) -> Verdict {
        let mine = || self.lines.iter().filter(|line| line.is_of(host));
        if self
            .lines
            .iter()
            .any(|line| line.mark == Mark::Revoked && line.blob == blob && line.is_of(host))
        {
            return Verdict::Revoked;
        }
        let plain = || mine().filter(|line| line.mark == Mark::None);
        if plain().any(|line| line.blob == blob) {
            Verdict::Known
        } else if plain().any(|line| line.kind == kind) || plain().next().is_some() {
            // A key of another type beside known ones is no proof either.
            Verdict::Changed
        } else {
            Verdict::Unknown
        }
    }

    /// Whether a certificate's key (`blob`) may sign for this host.
    fn authority(&self, host: &str, blob: &[u8]) -> Verdict {
        let mut mine = self
            .lines
            .iter()
            .filter(|line| line.blob == blob && line.is_of(host));
        if mine.clone().any(|line| line.mark == Mark::Revoked) {
            Verdict::Revoked
        } else if mine.any(|line| line.mark == Mark::Authority) {
            Verdict::Known
        } else {
            Verdict::Unknown
        }
    }

    /// The types of the keys that a host has there, and whether an authority may sign for it.
    fn kinds(&self, host: &str) -> (Vec<&str>, bool) {
        let mine = || self.lines.iter().filter(|line| line.is_of(host));
        let kinds = mine()
            .filter(|line| line.mark == Mark::None)
            .map(|line| line.kind.as_str());
        (
            kinds.collect(),
            mine().any(|line| line.mark == Mark::Authority),
        )
    }

    /// Writes a host's first key down.
    pub fn write_down(path: &Path, host: &str, kind: &str, blob: &[u8]) -> std::io::Result<()> {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        file.write_all(format!("{host} {kind} {}\n", STANDARD.encode(blob)).as_bytes())
    }
}

/// What a text says, as a file of known hosts, of a key: for tests from outside.
#[must_use]
pub fn known_key(text: &str, host: &str, kind: &str, blob: &[u8]) -> &'static str {
    let known = KnownHosts {
        lines: lines(text).collect(),
    };
    match known.judge(host, kind, blob) {
        Verdict::Known => "known",
        Verdict::Unknown => "unknown",
        Verdict::Changed => "changed",
        Verdict::Revoked => "revoked",
    }
}

#[cfg(test)]
mod tests;
