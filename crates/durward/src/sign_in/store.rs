//! The file of the sign-in, sealed with a key that lies beside it. Both are of mode 0600 in a directory of mode 0700.
//!
//! The seal keeps tokens out of a copy of the one file, of backups that leave out keys, and of searches of the disk; it does not
//! keep them from a process of the same user, which may read both files.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use state::directory::{create_private, write_private};
use toolkit::seal::Seal;
use zeroize::Zeroizing;

use crate::failure::{EXIT_NOT_SIGNED_IN, Failure};
use crate::local;
use crate::places::Places;

/// Directory below the state directory.
const DIRECTORY: &str = "sign-in";
/// File of the sealed sign-in.
const SEALED_FILE: &str = "sign-in.sealed";
/// File of the key, as 64 hexadecimal digits.
const KEY_FILE: &str = "seal.key";
/// Kind of secrets that the key is for, and their purpose.
const KIND: &str = "durward sign-in at rest";
/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// A sign-in as it is stored.
#[derive(Serialize, Deserialize)]
pub struct StoredSignIn {
    /// Issuer.
    pub issuer: String,
    /// The name in rules and in the journal.
    pub subject: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Scopes.
    pub scopes: Vec<String>,
    /// Session at the issuer.
    pub sid: Option<String>,
    /// Client.
    pub client_id: Option<String>,
    /// When the person has signed in, in milliseconds since 1970.
    pub began_ms: i64,
    /// When the access token ends, in milliseconds since 1970.
    pub expires_ms: i64,
    /// When it is refreshed, in milliseconds since 1970.
    pub refresh_ms: i64,
    /// Access token.
    pub access: Zeroizing<String>,
    /// Refresh token.
    pub refresh: Option<Zeroizing<String>>,
}

/// Where the sign-in is stored.
pub struct SignInStore(PathBuf);

impl SignInStore {
    /// Returns the store of a state directory.
    pub fn of(places: &Places) -> Self {
        Self(places.state.join(DIRECTORY))
    }

    /// Returns its directory.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Reads the sign-in; `None` without a sign-in.
    ///
    /// # Errors
    /// If the file is exposed, damaged, or sealed with another key.
    pub fn read(&self) -> Result<Option<StoredSignIn>, Failure> {
        let path = self.0.join(SEALED_FILE);
        let Some(sealed) = read_private(&path)? else {
            return Ok(None);
        };
        let damaged = || Failure {
            code: EXIT_NOT_SIGNED_IN,
            message: format!(
                "{} cannot be opened with the key beside it\n  hint: durward logout, then durward login",
                path.display()
            ),
        };
        let seal = self.seal()?.ok_or_else(damaged)?;
        let text = seal.open(KIND, sealed.trim()).ok_or_else(damaged)?;
        serde_json::from_str(&text).map(Some).map_err(|_| damaged())
    }

    /// Writes the sign-in.
    ///
    /// # Errors
    /// If the directory or the files cannot be written.
    pub fn write(&self, stored: &StoredSignIn) -> Result<(), Failure> {
        create_private(&self.0).map_err(Failure::journal)?;
        let no_randomness = |error: io::Error| Failure::other(format!("no randomness: {error}"));
        let seal = match self.seal()? {
            Some(seal) => seal,
            None => {
                let mut key = Zeroizing::new([0_u8; 32]);
                local::random(&mut *key).map_err(no_randomness)?;
                let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                let text = Zeroizing::new(text);
                write_private(&self.0.join(KEY_FILE), text.as_bytes()).map_err(Failure::journal)?;
                Seal::new(KIND, &key).ok_or_else(|| Failure::other("the key cannot be used"))?
            }
        };
        let mut nonce = [0_u8; 12];
        local::random(&mut nonce).map_err(no_randomness)?;
        let text = serde_json::to_string(stored).map(Zeroizing::new);
        let text = text.map_err(|error| Failure::other(error.to_string()))?;
        let sealed = seal
            .seal(KIND, &text, nonce)
            .ok_or_else(|| Failure::other("the sign-in cannot be sealed"))?;
        write_private(&self.0.join(SEALED_FILE), sealed.as_bytes()).map_err(Failure::journal)
    }

    /// Removes the sign-in and its key.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self) -> Result<(), Failure> {
        for name in [SEALED_FILE, KEY_FILE] {
            let path = self.0.join(name);
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::journal(format!("{}: {error}", path.display())));
                }
            }
        }
        Ok(())
    }

    fn seal(&self) -> Result<Option<Seal>, Failure> {
        let Some(text) = read_private(&self.0.join(KEY_FILE))? else {
            return Ok(None);
        };
        let text = text.trim();
        let byte = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
        let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        Ok(key.and_then(|key| Seal::new(KIND, &Zeroizing::new(key))))
    }
}

/// Reads a file that only its user may read; `None` if it does not exist.
fn read_private(path: &Path) -> Result<Option<Zeroizing<String>>, Failure> {
    let failed = |error: io::Error| Failure::journal(format!("{}: {error}", path.display()));
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(Failure {
            code: EXIT_NOT_SIGNED_IN,
            message: format!(
                "{0} is readable by other users; run chmod 600 {0}",
                path.display()
            ),
        });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(Some(text))
}
