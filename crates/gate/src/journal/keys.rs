//! The two secrets of a journal: the key that signs checkpoints and the key of its digests.
//!
//! They live in a key directory, one hexadecimal line a file, `0600`; the public half lies beside them for whoever verifies.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Serialize, Serializer};
use state::directory::Waiting;
use state::{DirectoryError, DirectoryLock, directory};

use super::{head, hex};

/// File of the secret key that signs checkpoints.
pub const CHECKPOINT_KEY_FILE: &str = "checkpoint.key";
/// File of its public half.
pub const CHECKPOINT_PUBLIC_FILE: &str = "checkpoint.pub";
/// File of the secret key of digests.
pub const DIGEST_KEY_FILE: &str = "digest.key";

/// Largest key file that is read, in bytes.
const KEY_FILE_BYTES_MAX: u64 = 256;

/// The secrets of one installation. They print as nothing and leave this module only as signatures and digests.
#[derive(Clone)]
pub struct Keys {
    checkpoint: SigningKey,
    digest: [u8; 32],
    home: Option<Arc<Path>>,
}

/// Why the key directory could not be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeysError {
    /// The directory could not be prepared or locked, or a file in it not be written.
    Directory(DirectoryError),
    /// A key file could not be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The refusal.
        error: io::Error,
    },
    /// A secret key can be read by other users.
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// A key file does not hold what its name says.
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysError::Directory(error) => write!(f, "keys: {error}"),
            KeysError::Read { path, error } => {
                write!(f, "keys: cannot read {}: {error}", path.display())
            }
            KeysError::Exposed { path } => {
                write!(
                    f,
                    "keys: {0} is readable by other users; run chmod 600 {0}",
                    path.display()
                )
            }
            KeysError::Malformed { path } => {
                write!(
                    f,
                    "keys: {} is not one line of 64 lower-case hexadecimal digits",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for KeysError {}

impl From<DirectoryError> for KeysError {
    fn from(error: DirectoryError) -> Self {
        KeysError::Directory(error)
    }
}

impl Keys {
    /// Reads the keys in `directory`, making what is missing from `random` (which must fill its argument with secret, uniform
    /// bytes). Two processes that do this at once end up with the same keys.
    ///
    /// # Errors
    /// Any [`KeysError`].
    pub fn open(directory: &Path, random: &mut dyn FnMut(&mut [u8])) -> Result<Keys, KeysError> {
        Keys::open_telling(directory, random, &mut |_| {})
    }

    /// [`Keys::open`], which tells of a long wait for another process.
    ///
    /// # Errors
    /// As [`Keys::open`].
    pub fn open_telling(
        directory: &Path,
        random: &mut dyn FnMut(&mut [u8]),
        waiting: &mut Waiting<'_>,
    ) -> Result<Keys, KeysError> {
        directory::create_private(directory)?;
        let lock = DirectoryLock::acquire_telling(directory, waiting)?;
        let path = directory.join(CHECKPOINT_KEY_FILE);
        let fresh = !path.exists();
        let checkpoint = if fresh {
            let mut bytes = [0; 32];
            random(&mut bytes);
            bytes
        } else {
            secret(&path, random)?
        };
        let keys = Keys {
            checkpoint: SigningKey::from_bytes(&checkpoint),
            digest: secret(&directory.join(DIGEST_KEY_FILE), random)?,
            home: Some(directory.into()),
        };
        if fresh {
            // The head first: where there is a key, there has been a head.
            head::first(&keys, directory)?;
            directory::write_private(&path, &line(&checkpoint))?;
        }
        let public = directory.join(CHECKPOINT_PUBLIC_FILE);
        let known = fs::read(&public).ok();
        let line = line(&keys.public().0);
        if known.as_deref() != Some(line.as_slice()) {
            directory::write_private(&public, &line)?;
        }
        drop(lock);
        Ok(keys)
    }

    /// The directory that they are kept in, if they are.
    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Keys that are not kept: each call must be given different secret bytes. For tests and for journals that nobody verifies
    /// later.
    #[must_use]
    pub fn ephemeral(random: &mut dyn FnMut(&mut [u8])) -> Keys {
        let (mut checkpoint, mut digest) = ([0; 32], [0; 32]);
        random(&mut checkpoint);
        random(&mut digest);
        Keys {
            checkpoint: SigningKey::from_bytes(&checkpoint),
            digest,
            home: None,
        }
    }

    /// The public half of the checkpoint key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.checkpoint.verifying_key().to_bytes())
    }

    pub(in crate::journal) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.checkpoint.sign(message).to_bytes()
    }

    /// The keyed digest of these bytes.
    #[must_use]
    pub fn digest(&self, bytes: &[u8]) -> Digest {
        let mut short = [0; 16];
        let full = blake3::keyed_hash(&self.digest, bytes);
        for (to, from) in short.iter_mut().zip(full.as_bytes()) {
            *to = *from;
        }
        Digest(short)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(secret)")
    }
}

fn line(bytes: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    hex::push(&mut line, bytes);
    line.push(b'\n');
    line
}

/// The secret in a file, made where it is missing. The caller holds the directory's lock.
///
/// # Errors
/// [`KeysError`], where the file is exposed, malformed, or cannot be read or written.
pub fn secret(path: &Path, random: &mut dyn FnMut(&mut [u8])) -> Result<[u8; 32], KeysError> {
    match fs::metadata(path) {
        Ok(status) if status.mode() & 0o077 != 0 => Err(KeysError::Exposed {
            path: path.to_path_buf(),
        }),
        Ok(_) => read(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            random(&mut bytes);
            directory::write_private(path, &line(&bytes))?;
            Ok(bytes)
        }
        Err(error) => Err(KeysError::Read {
            path: path.to_path_buf(),
            error,
        }),
    }
}

fn read(path: &Path) -> Result<[u8; 32], KeysError> {
    let failed = |error| KeysError::Read {
        path: path.to_path_buf(),
        error,
    };
    let malformed = || KeysError::Malformed {
        path: path.to_path_buf(),
    };
    if fs::metadata(path).map_err(failed)?.len() > KEY_FILE_BYTES_MAX {
        return Err(malformed());
    }
    let text = fs::read(path).map_err(failed)?;
    hex::parse(text.trim_ascii_end()).ok_or_else(malformed)
}

/// A public key that checkpoints are verified with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Reads a public key file: one line of 64 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// [`KeysError::Read`] and [`KeysError::Malformed`].
    pub fn read(path: &Path) -> Result<PublicKey, KeysError> {
        read(path).map(PublicKey)
    }

    /// Reads the lower-case hexadecimal form.
    #[must_use]
    pub fn parse(text: &str) -> Option<PublicKey> {
        hex::parse(text.as_bytes()).map(PublicKey)
    }

    pub(in crate::journal) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        VerifyingKey::from_bytes(&self.0)
            .and_then(|key| key.verify_strict(message, &Signature::from_bytes(signature)))
            .is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::text(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::text(&self.0))
    }
}

/// A keyed digest: 128 bits of keyed BLAKE3. Equal contents have equal digests within one installation, and nobody without the
/// key can tell from a digest what a guessable content was.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::text(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::text(&self.0))
    }
}
