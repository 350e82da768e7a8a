//! Where a login gets private keys from: files and an agent.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::Place;

/// Longest file of a key or certificate, in bytes.
const KEY_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Permission bits by which other users reach a file.
const OTHERS: u32 = 0o077;

/// Keys that a login may offer, in the order of OpenSSH's client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct KeySources {
    /// Files with private keys, or with public keys for which the agent has the private ones.
    pub files: Vec<KeyFile>,
    /// Files with certificates. Without any, the certificate beside each key file is offered too.
    pub certificates: Vec<PathBuf>,
    /// The agent's socket.
    pub agent: Option<PathBuf>,
    /// Offers those keys of the agent only that `files` names.
    pub identities_only: bool,
    /// Skips what cannot be read, as `ssh` does, instead of failing.
    pub skips_unreadable: bool,
}

/// A file with a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyFile {
    /// The file.
    pub path: PathBuf,
    /// The key's passphrase.
    pub passphrase: Option<Place>,
}

impl KeySources {
    /// Returns the kind of login in a word or two.
    pub(super) fn kind(&self) -> &'static str {
        match (self.files.is_empty(), &self.agent) {
            (true, _) => "agent",
            (false, Some(_)) => "key or agent",
            (false, None) if self.certificates.is_empty() => "key",
            (false, None) => "certificate",
        }
    }

    /// Returns why logins with these keys will fail, as far as this machine shows it.
    pub(super) fn faults(&self) -> Vec<String> {
        let fault =
            |what: &str, path: &Path, wrong: &str| format!("{what} {}: {wrong}", path.display());
        let mut unreadable = Vec::new();
        let mut exposed = Vec::new();
        let mut usable = 0;
        for file in &self.files {
            match read_key_file(&file.path) {
                Ok(_) => usable += 1,
                Err(KeyFileFault::Exposed(wrong)) => {
                    exposed.push(fault("key", &file.path, &wrong));
                }
                Err(KeyFileFault::Unreadable(wrong)) => {
                    unreadable.push(fault("key", &file.path, &wrong));
                }
            }
        }
        for path in &self.certificates {
            if let Err(error) = File::open(path) {
                unreadable.push(fault("certificate", path, &error.to_string()));
            }
        }
        if let Some(socket) = &self.agent {
            match std::fs::metadata(socket) {
                Ok(_) => usable += 1,
                Err(error) => unreadable.push(fault("agent", socket, &error.to_string())),
            }
        }
        if !self.skips_unreadable || usable == 0 {
            exposed.extend(unreadable);
        }
        exposed
    }
}

/// Why a file of a key is not used.
#[derive(Debug)]
pub(crate) enum KeyFileFault {
    Unreadable(String),
    /// Other users may read the private key.
    Exposed(String),
}

impl KeyFileFault {
    pub fn into_reason(self) -> String {
        match self {
            Self::Unreadable(wrong) | Self::Exposed(wrong) => wrong,
        }
    }
}

/// Returns the text of a key or certificate. Rejects a private key of this user that others may reach, as OpenSSH does.
pub(crate) fn read_key_file(path: &Path) -> Result<zeroize::Zeroizing<String>, KeyFileFault> {
    let unreadable = |error: &dyn std::fmt::Display| KeyFileFault::Unreadable(error.to_string());
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let about = file.metadata().map_err(|error| unreadable(&error))?;
    let mut text = zeroize::Zeroizing::new(String::new());
    let mut bounded = file.take(KEY_FILE_BYTES_MAX);
    bounded
        .read_to_string(&mut text)
        .map_err(|error| unreadable(&error))?;
    if text.contains("PRIVATE KEY-----") && is_exposed(&about) {
        return Err(KeyFileFault::Exposed(format!(
            "its mode is {:04o}, so that others may read this private key; run chmod 600 on it",
            about.mode() & 0o7777
        )));
    }
    Ok(text)
}

fn is_exposed(about: &Metadata) -> bool {
    about.uid() == rustix::process::getuid().as_raw() && about.mode() & OTHERS != 0
}
