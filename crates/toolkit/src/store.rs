//! The one database behind jobs and results, and what its parts share: names that nobody can guess, and a
//! secret for what is signed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use state::kv::{Durability, Kv, KvError, Table, View as _};

/// The database in a store's directory.
const FILE: &str = "store.redb";
const META: Table = Table("meta");
const SECRET: &[u8] = b"secret";
const SECRET_BYTES: usize = 32;
/// Random bytes in a name: 128 bits.
const NAME_BYTES: usize = 16;
/// Longest name of a caller that stands in keys as it is, in bytes; of a longer one its digest does.
const CALLER_BYTES_MAX: usize = 256;
/// Most processes of one server that keep things beside each other.
pub const PLACES_MAX: usize = 16;

/// Fills bytes with randomness. Passed in: nothing here asks the system for it.
pub type Random = Box<dyn FnMut(&mut [u8]) + Send>;

/// The database of a process.
pub struct Store {
    kv: Kv,
    directory: PathBuf,
    secret: Secret,
    random: Mutex<Random>,
}

/// A key that is never printed.
struct Secret([u8; SECRET_BYTES]);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.directory.display())
    }
}

impl Store {
    /// Opens the store of this directory, or makes an empty one.
    ///
    /// # Errors
    /// [`KvError`] where it cannot be opened; [`KvError::Busy`] where another process has it.
    pub fn open(directory: &Path, random: Random) -> Result<Arc<Self>, KvError> {
        let kv = Kv::open(&directory.join(FILE))?;
        Self::of(kv, directory, random)
    }

    /// The store of the first directory `place-0`, `place-1`, … below this one that no other process has.
    ///
    /// # Errors
    /// [`KvError::Busy`] where [`PLACES_MAX`] processes have one each; else as [`Store::open`].
    pub fn open_free(directory: &Path, random: Random) -> Result<(Arc<Self>, PathBuf), KvError> {
        let mut number = 0;
        loop {
            let place = directory.join(format!("place-{number}"));
            number += 1;
            match Kv::open(&place.join(FILE)) {
                Err(KvError::Busy { .. }) if number < PLACES_MAX => {}
                opened => return Ok((Self::of(opened?, &place, random)?, place)),
            }
        }
    }

    fn of(kv: Kv, directory: &Path, mut random: Random) -> Result<Arc<Self>, KvError> {
        let secret = kv.write(Durability::Synced, |t| -> Result<_, KvError> {
            let kept = t.get(META, SECRET)?;
            if let Some(kept) = kept.and_then(|kept| <[u8; SECRET_BYTES]>::try_from(kept).ok()) {
                return Ok(kept);
            }
            let mut fresh = [0; SECRET_BYTES];
            random(&mut fresh);
            t.put(META, SECRET, &fresh)?;
            Ok(fresh)
        })?;
        Ok(Arc::new(Self {
            kv,
            directory: directory.to_owned(),
            secret: Secret(secret),
            random: Mutex::new(random),
        }))
    }

    pub(crate) fn kv(&self) -> &Kv {
        &self.kv
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A keyed digest, good in this store only.
    pub(crate) fn sign(&self, purpose: &str, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret.0);
        for part in std::iter::once(&purpose.as_bytes()).chain(parts) {
            // With their lengths, so that no two lists of parts read the same.
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize()
    }

    /// A name that nobody can guess: the prefix, `_`, and 128 random bits.
    pub(crate) fn name(&self, prefix: &str) -> String {
        let mut bytes = [0; NAME_BYTES];
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        (*random)(&mut bytes);
        format!("{prefix}_{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// A key of several parts that sorts by its parts and is unambiguous: each but the last has its length before it.
pub(crate) fn key(first: &str, rest: &[&[u8]]) -> Vec<u8> {
    let long = blake3::hash(first.as_bytes());
    let first = match first.len() {
        0..=CALLER_BYTES_MAX => first.as_bytes(),
        _ => long.as_bytes(),
    };
    let mut key = u16::try_from(first.len())
        .unwrap_or(u16::MAX)
        .to_be_bytes()
        .to_vec();
    key.extend_from_slice(first);
    for part in rest {
        key.extend_from_slice(part);
    }
    key
}

/// A time as bytes that sort like it.
pub(crate) fn time_key(ms: i64) -> [u8; 8] {
    u64::try_from(ms).unwrap_or(0).to_be_bytes()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A directory for one test.
    pub(crate) struct Place(pub(crate) PathBuf);

    impl Place {
        pub(crate) fn new() -> Self {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("store-{}-{number}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        pub(crate) fn open(&self) -> Arc<Store> {
            static SEED: AtomicUsize = AtomicUsize::new(1);
            let mut state = SEED.fetch_add(1, Ordering::Relaxed) as u64;
            let random = move |bytes: &mut [u8]| {
                for byte in bytes {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    *byte = (state >> 56) as u8;
                }
            };
            Store::open(&self.0, Box::new(random)).unwrap()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_secret_stays_and_is_never_printed() {
        let place = Place::new();
        let store = place.open();
        let signed = store.sign("test", &[b"a", b"b"]);
        assert_ne!(signed, store.sign("test", &[b"ab", b""]));
        assert_ne!(signed, store.sign("other", &[b"a", b"b"]));
        assert!(!format!("{store:?}").contains("secret"));
        drop(store);
        assert_eq!(place.open().sign("test", &[b"a", b"b"]), signed);
        let other = Place::new();
        assert_ne!(other.open().sign("test", &[b"a", b"b"]), signed);
    }

    #[test]
    fn names_differ_and_keys_do_not_run_together() {
        let place = Place::new();
        let store = place.open();
        assert_ne!(store.name("job"), store.name("job"));
        assert_ne!(key("a", &[b"bc"]), key("ab", &[b"c"]));
        let long = "x".repeat(2_000);
        assert!(key(&long, &[]).len() < 100);
        assert_ne!(key(&long, &[]), key(&format!("{long}y"), &[]));
    }
}
