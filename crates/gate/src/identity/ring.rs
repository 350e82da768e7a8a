//! API keys: shown once, kept as keyed digests.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use state::{DirectoryLock, directory};

use super::error::{IdentityFault, RingError};
use crate::journal::hex;
use crate::journal::keys::secret;

/// File of the keys' digests, in the key directory.
pub const KEY_RING_FILE: &str = "api_keys.json";
/// File of the secret that the digests are keyed with.
const SECRET_FILE: &str = "api.key";
/// Most keys, revoked ones included until they are pushed out.
pub const KEYS_MAX: usize = 1_000;
/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Longest text that is looked at as a key, in bytes.
const KEY_BYTES_MAX: usize = 256;
/// What every key begins with.
pub(super) const PREFIX: &str = "dw_";

/// A key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name, unique among those that are not revoked.
    pub name: String,
    /// Keyed digest of the key, in hex.
    digest: String,
    /// When it was made or last rotated, in milliseconds since 1970.
    pub created_ms: i64,
    /// When its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<i64>,
    /// The servers that it is good for; empty: all.
    #[serde(default)]
    pub servers: Vec<String>,
    /// The groups that its caller belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The text before it was rotated, while that is good beside the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<Previous>,
}

/// A text that a key had, good for a while yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Previous {
    digest: String,
    until_ms: i64,
}

impl Entry {
    /// Until when the text before the last rotation is good, in milliseconds since 1970.
    #[must_use]
    pub fn overlap_until_ms(&self) -> Option<i64> {
        self.previous.as_ref().map(|previous| previous.until_ms)
    }

    /// What its caller is called in rules and records.
    #[must_use]
    pub fn subject(&self) -> Arc<str> {
        format!("key:{}", self.name).into()
    }

    /// Whether who showed this key before may go on as who shows `later`: the same key, or the one
    /// that it was rotated to with an overlap.
    #[must_use]
    pub fn goes_on_as(&self, later: &Self) -> bool {
        let rotated = |previous: &Previous| previous.digest == self.digest;
        self.name == later.name
            && (self.digest == later.digest || later.previous.as_ref().is_some_and(rotated))
    }

    /// Whether it is good for this server.
    ///
    /// # Errors
    /// [`IdentityFault::OutOfScope`].
    pub fn good_for(&self, server: &str) -> Result<(), IdentityFault> {
        if self.servers.is_empty() || self.servers.iter().any(|name| name == server) {
            Ok(())
        } else {
            Err(IdentityFault::OutOfScope)
        }
    }

    /// Whether it opens anything at this time.
    ///
    /// # Errors
    /// Why not.
    pub fn good_at(&self, now_ms: i64) -> Result<(), IdentityFault> {
        if self.revoked_ms.is_some() {
            return Err(IdentityFault::Revoked);
        }
        match self.expires_ms {
            Some(end) if end <= now_ms => Err(IdentityFault::Expired),
            _ => Ok(()),
        }
    }
}

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Its name.
    pub name: String,
    /// When its time is over, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
    /// The servers that it is good for; empty: all.
    pub servers: Vec<String>,
    /// The groups that its caller belongs to.
    pub groups: Vec<String>,
}

/// How a key is to be rotated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rotation {
    /// Until when the old text is good beside the new one, in milliseconds since 1970.
    pub overlap_until_ms: Option<i64>,
    /// When the key's time is over from now on; absent: as before.
    pub expires_ms: Option<i64>,
}

/// All keys, as read from their file. The file as it was then is known again by [`KeyRing::is_current`].
pub struct KeyRing {
    path: PathBuf,
    secret: [u8; 32],
    entries: Vec<Entry>,
    seen: Option<Seen>,
}

/// What a file looked like: a replaced file has another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyRing({} keys)", self.entries.len())
    }
}

impl KeyRing {
    /// Reads the keys in `directory`; none where there is no file yet.
    ///
    /// # Errors
    /// Any [`RingError`] of reading.
    pub fn open(directory: &Path, random: &mut dyn FnMut(&mut [u8])) -> Result<Self, RingError> {
        directory::create_private(directory)?;
        let lock = DirectoryLock::acquire(directory)?;
        let secret = secret(&directory.join(SECRET_FILE), random)?;
        drop(lock);
        let path = directory.join(KEY_RING_FILE);
        let seen = look(&path);
        let entries = read(&path)?;
        Ok(Self {
            path,
            secret,
            entries,
            seen,
        })
    }

    /// Whether keys are in use in `directory`. Unlike [`KeyRing::open`] it makes nothing.
    ///
    /// # Errors
    /// Any [`RingError`] of reading.
    pub fn in_use(directory: &Path) -> Result<bool, RingError> {
        if !directory.exists() {
            return Ok(false);
        }
        directory::check_private(directory)?;
        read(&directory.join(KEY_RING_FILE)).map(|entries| !entries.is_empty())
    }

    /// Whether the file is still the one that was read.
    #[must_use]
    pub fn is_current(&self) -> bool {
        look(&self.path) == self.seen
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// Any [`RingError`] of reading; the keys that were known stay.
    pub fn reload(&mut self) -> Result<(), RingError> {
        let seen = look(&self.path);
        let entries = read(&self.path);
        // A file that cannot be read is not read again and again.
        self.seen = seen;
        self.entries = entries?;
        Ok(())
    }

    /// All keys, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether keys are in use here. One that was revoked counts: taking back the last key must not
    /// open the door to everybody.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        !self.entries.is_empty()
    }

    /// The key that this is. Takes as long for any wrong text of a key's length: every digest is
    /// compared, each without an early end.
    ///
    /// # Errors
    /// An [`IdentityFault`].
    pub fn check(&self, text: &str, now_ms: i64) -> Result<&Entry, IdentityFault> {
        let entry = self.holder(text, now_ms).ok_or(IdentityFault::Unknown)?;
        entry.good_at(now_ms)?;
        Ok(entry)
    }

    /// The key with this text, whether it is good or not.
    #[must_use]
    pub fn holder(&self, text: &str, now_ms: i64) -> Option<&Entry> {
        if !text.starts_with(PREFIX) || text.len() > KEY_BYTES_MAX {
            return None;
        }
        let digest = self.digest(text);
        let mut found = None;
        for entry in &self.entries {
            if same(entry.digest.as_bytes(), digest.as_bytes()) {
                found = Some(entry);
            }
            if let Some(previous) = &entry.previous
                && same(previous.digest.as_bytes(), digest.as_bytes())
                && now_ms < previous.until_ms
            {
                found = Some(entry);
            }
        }
        found
    }

    /// Makes a key and writes it down; gives its text, which is kept nowhere.
    ///
    /// # Errors
    /// Any [`RingError`].
    pub fn create(
        &mut self,
        new: NewKey,
        now_ms: i64,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<String, RingError> {
        self.change(|ring| {
            if ring.live(&new.name).is_some() {
                return Err(RingError::Taken(new.name));
            }
            if ring.entries.len() >= KEYS_MAX {
                let oldest = ring.entries.iter().position(|e| e.revoked_ms.is_some());
                ring.entries.remove(oldest.ok_or(RingError::Full)?);
            }
            let text = fresh(random);
            let digest = ring.digest(&text);
            ring.entries.push(Entry {
                name: new.name,
                digest,
                created_ms: now_ms,
                expires_ms: new.expires_ms,
                revoked_ms: None,
                servers: new.servers,
                groups: new.groups,
                previous: None,
            });
            Ok(text)
        })
    }

    /// Gives a key another text; the old one is good no longer, or for the overlap that is asked for.
    ///
    /// # Errors
    /// Any [`RingError`]; [`RingError::Expired`] where the new text would be good for nothing.
    pub fn rotate(
        &mut self,
        name: &str,
        rotation: Rotation,
        now_ms: i64,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<String, RingError> {
        self.change(|ring| {
            let at = ring.find(name)?;
            let text = fresh(random);
            let digest = ring.digest(&text);
            if let Some(entry) = ring.entries.get_mut(at) {
                let expires_ms = rotation.expires_ms.or(entry.expires_ms);
                if expires_ms.is_some_and(|end| end <= now_ms) {
                    return Err(RingError::Expired(name.to_owned()));
                }
                // A text whose time is over already gets no more of it.
                let was_good = entry.good_at(now_ms).is_ok();
                let overlap = rotation.overlap_until_ms.filter(|_| was_good);
                let old = std::mem::replace(&mut entry.digest, digest);
                entry.previous = overlap.map(|until_ms| Previous {
                    digest: old,
                    until_ms: entry.expires_ms.map_or(until_ms, |end| end.min(until_ms)),
                });
                entry.expires_ms = expires_ms;
                entry.created_ms = now_ms;
            }
            Ok(text)
        })
    }

    /// Takes a key back.
    ///
    /// # Errors
    /// Any [`RingError`].
    pub fn revoke(&mut self, name: &str, now_ms: i64) -> Result<(), RingError> {
        self.change(|ring| {
            let at = ring.find(name)?;
            if let Some(entry) = ring.entries.get_mut(at) {
                entry.revoked_ms = Some(now_ms);
                entry.previous = None;
            }
            Ok(())
        })
    }

    /// Changes the file as it is now, whatever was read before.
    fn change<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, RingError>,
    ) -> Result<T, RingError> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let lock = DirectoryLock::acquire(directory)?;
        self.entries = read(&self.path)?;
        let done = act(self)?;
        let malformed = |_| RingError::Malformed {
            path: self.path.clone(),
        };
        let text = serde_json::to_vec_pretty(&self.entries).map_err(malformed)?;
        directory::write_private(&self.path, &text)?;
        self.seen = look(&self.path);
        drop(lock);
        Ok(done)
    }

    fn live(&self, name: &str) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| entry.name == name && entry.revoked_ms.is_none())
    }

    fn find(&self, name: &str) -> Result<usize, RingError> {
        self.live(name).ok_or_else(|| {
            if self.entries.iter().any(|entry| entry.name == name) {
                RingError::Revoked(name.to_owned())
            } else {
                RingError::NoSuchKey(name.to_owned())
            }
        })
    }

    fn digest(&self, text: &str) -> String {
        hex::text(blake3::keyed_hash(&self.secret, text.as_bytes()).as_bytes())
    }
}

/// A key of 256 random bits.
fn fresh(random: &mut dyn FnMut(&mut [u8])) -> String {
    let mut bytes = [0_u8; 32];
    random(&mut bytes);
    format!("{PREFIX}{}", hex::text(&bytes))
}

/// Whether two texts are the same, looked at to the end whatever differs.
fn same(left: &[u8], right: &[u8]) -> bool {
    let differing = left
        .iter()
        .zip(right)
        .fold(0_u8, |differing, (l, r)| differing | (l ^ r));
    left.len() == right.len() && std::hint::black_box(differing) == 0
}

fn look(path: &Path) -> Option<Seen> {
    let status = fs::metadata(path).ok()?;
    Some(Seen {
        inode: status.ino(),
        size: status.len(),
        modified: (status.mtime(), status.mtime_nsec()),
    })
}

fn read(path: &Path) -> Result<Vec<Entry>, RingError> {
    let failed = |error| RingError::Read {
        path: path.to_path_buf(),
        error,
    };
    let malformed = || RingError::Malformed {
        path: path.to_path_buf(),
    };
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let status = file.metadata().map_err(failed)?;
    if status.mode() & 0o077 != 0 {
        return Err(RingError::Exposed {
            path: path.to_path_buf(),
        });
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(malformed());
    }
    let entries: Vec<Entry> = serde_json::from_slice(&text).map_err(|_| malformed())?;
    if entries.len() > KEYS_MAX {
        return Err(malformed());
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    struct Place(PathBuf);

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn counter() -> impl FnMut(&mut [u8]) {
        let mut next = 0_u8;
        move |bytes: &mut [u8]| {
            for byte in bytes {
                next = next.wrapping_add(1);
                *byte = next;
            }
        }
    }

    fn place(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("gate-keys-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Place(path)
    }

    fn new(name: &str) -> NewKey {
        NewKey {
            name: name.to_owned(),
            expires_ms: None,
            servers: Vec::new(),
            groups: Vec::new(),
        }
    }

    #[test]
    fn a_key_is_good_until_it_expires_is_rotated_or_revoked() {
        let place = place("life");
        let mut random = counter();
        let mut ring = KeyRing::open(&place.0, &mut random).unwrap();
        let expiring = NewKey {
            expires_ms: Some(100),
            servers: vec!["files".into()],
            groups: Vec::new(),
            ..new("a")
        };
        let text = ring.create(expiring, 1, &mut random).unwrap();
        let other = ring.create(new("b"), 1, &mut random).unwrap();
        assert_eq!(ring.check(&text, 99).unwrap().name, "a");
        assert_eq!(ring.check(&text, 100).unwrap_err(), IdentityFault::Expired);
        let entry = ring.check(&text, 1).unwrap();
        assert_eq!(entry.good_for("files"), Ok(()));
        assert_eq!(entry.good_for("other"), Err(IdentityFault::OutOfScope));
        for wrong in [
            "",
            "dw_",
            "dw_00",
            &text[3..],
            &format!("{text}0"),
            &"dw_".repeat(200),
        ] {
            assert_eq!(
                ring.check(wrong, 1).unwrap_err(),
                IdentityFault::Unknown,
                "{wrong}"
            );
        }
        let rotated = ring
            .rotate("b", Rotation::default(), 2, &mut random)
            .unwrap();
        assert_eq!(ring.check(&other, 2).unwrap_err(), IdentityFault::Unknown);
        assert!(ring.check(&rotated, 2).is_ok());
        ring.revoke("b", 3).unwrap();
        assert_eq!(ring.check(&rotated, 3).unwrap_err(), IdentityFault::Revoked);
        assert!(matches!(ring.revoke("b", 3), Err(RingError::Revoked(_))));
        assert!(matches!(ring.revoke("c", 3), Err(RingError::NoSuchKey(_))));
        assert!(matches!(
            ring.create(new("a"), 3, &mut random),
            Err(RingError::Taken(_))
        ));
        assert!(ring.create(new("b"), 3, &mut random).is_ok());
    }

    #[test]
    fn an_overlap_keeps_the_old_text_good_until_it_ends() {
        let place = place("overlap");
        let mut random = counter();
        let mut ring = KeyRing::open(&place.0, &mut random).unwrap();
        let first = ring.create(new("a"), 1, &mut random).unwrap();
        let before = ring.entries()[0].clone();
        let overlap = Rotation {
            overlap_until_ms: Some(50),
            expires_ms: Some(100),
        };
        let second = ring.rotate("a", overlap, 2, &mut random).unwrap();
        assert!(before.goes_on_as(&ring.entries()[0]));
        assert_eq!(ring.entries()[0].overlap_until_ms(), Some(50));
        assert!(ring.check(&first, 49).is_ok() && ring.check(&second, 49).is_ok());
        assert_eq!(ring.check(&first, 50).unwrap_err(), IdentityFault::Unknown);
        // A second rotation leaves two texts at most.
        let third = ring.rotate("a", overlap, 3, &mut random).unwrap();
        assert_eq!(ring.check(&first, 4).unwrap_err(), IdentityFault::Unknown);
        assert!(ring.check(&second, 4).is_ok() && ring.check(&third, 4).is_ok());
        assert!(!before.goes_on_as(&ring.entries()[0]));
        let expired = ring.rotate("a", Rotation::default(), 100, &mut random);
        assert!(matches!(expired, Err(RingError::Expired(_))));
        ring.revoke("a", 5).unwrap();
        assert_eq!(ring.check(&second, 6).unwrap_err(), IdentityFault::Unknown);
        assert_eq!(ring.check(&third, 6).unwrap_err(), IdentityFault::Revoked);
        assert!(ring.has_keys(), "a revoked key keeps the door shut");
    }

    #[test]
    fn what_one_process_changes_another_sees_and_the_text_is_kept_nowhere() {
        let place = place("two");
        let mut random = counter();
        let mut first = KeyRing::open(&place.0, &mut random).unwrap();
        let mut second = KeyRing::open(&place.0, &mut random).unwrap();
        let text = first.create(new("a"), 1, &mut random).unwrap();
        assert!(!second.is_current());
        second.reload().unwrap();
        assert!(second.is_current() && second.check(&text, 1).is_ok());
        let file = fs::read_to_string(place.0.join(KEY_RING_FILE)).unwrap();
        assert!(!file.contains(&text) && !file.contains(&text[3..]));
        assert!(!format!("{first:?}").contains(&text));
        let mode = fs::metadata(place.0.join(KEY_RING_FILE)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_exposed_or_broken_is_refused_and_the_known_keys_stay() {
        let place = place("broken");
        let mut random = counter();
        let mut ring = KeyRing::open(&place.0, &mut random).unwrap();
        let text = ring.create(new("a"), 1, &mut random).unwrap();
        let path = place.0.join(KEY_RING_FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(ring.reload(), Err(RingError::Exposed { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "[{]").unwrap();
        assert!(matches!(ring.reload(), Err(RingError::Malformed { .. })));
        assert!(ring.check(&text, 1).is_ok());
    }

    #[test]
    fn the_number_of_keys_is_bounded_and_revoked_ones_make_room() {
        let place = place("many");
        let mut random = counter();
        let mut ring = KeyRing::open(&place.0, &mut random).unwrap();
        ring.create(new("first"), 1, &mut random).unwrap();
        let entry = ring.entries[0].clone();
        ring.entries = (0..KEYS_MAX)
            .map(|n| Entry {
                name: format!("k{n}"),
                ..entry.clone()
            })
            .collect();
        directory::write_private(&ring.path, &serde_json::to_vec(&ring.entries).unwrap()).unwrap();
        assert!(matches!(
            ring.create(new("x"), 1, &mut random),
            Err(RingError::Full)
        ));
        ring.revoke("k5", 1).unwrap();
        ring.create(new("x"), 1, &mut random).unwrap();
        assert_eq!(ring.entries.len(), KEYS_MAX);
    }
}
