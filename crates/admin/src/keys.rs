//! Keys of callers of `durward serve`, and the callers and groups that they make.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use gate::identity::{Entry, KeyRing, NewKey, RingError, Rotation};
use serde::{Serialize, Serializer};

use crate::error::AdminError;

/// Whether a key is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum KeyState {
    /// It is accepted.
    Good,
    /// A person revoked it.
    Revoked,
    /// Its time is over.
    Expired,
}

impl KeyState {
    /// Returns the word for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }
}

/// A key, without its secret. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct KeyEntry {
    /// Name; the caller is `key:NAME`.
    pub name: String,
    /// Whether it is accepted.
    pub state: KeyState,
    /// When it was created.
    pub created_ms: i64,
    /// When it expires; null: never.
    pub expires_ms: Option<i64>,
    /// When it was revoked.
    pub revoked_ms: Option<i64>,
    /// Until when the secret before the latest rotation is accepted too.
    pub overlap_until_ms: Option<i64>,
    /// Servers and model providers that it may use; empty: all.
    pub servers: Vec<String>,
    /// Groups of its caller.
    pub groups: Vec<String>,
}

impl KeyEntry {
    fn new(entry: &Entry, now_ms: i64) -> Self {
        let state = match entry.good_at(now_ms) {
            Ok(()) => KeyState::Good,
            Err(_) if entry.revoked_ms.is_some() => KeyState::Revoked,
            Err(_) => KeyState::Expired,
        };
        Self {
            name: entry.name.clone(),
            state,
            created_ms: entry.created_ms,
            expires_ms: entry.expires_ms,
            revoked_ms: entry.revoked_ms,
            overlap_until_ms: entry.overlap_until_ms().filter(|end| now_ms < *end),
            servers: entry.servers.clone(),
            groups: entry.groups.clone(),
        }
    }
}

/// Secret of a key, which is returned once.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schemas", schemars(transparent))]
pub struct KeySecret(String);

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(..)")
    }
}

impl Serialize for KeySecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl KeySecret {
    /// Returns the text that its holder has to know.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// A key with a new secret.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct IssuedKey {
    /// The secret.
    pub key: KeySecret,
    /// The key.
    #[serde(flatten)]
    pub entry: KeyEntry,
}

/// A caller that keys make.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CallerEntry {
    /// Name in rules and in the journal: `key:NAME`.
    pub subject: String,
    /// Whether its latest key is accepted.
    pub state: KeyState,
    /// Groups that it belongs to.
    pub groups: Vec<String>,
}

/// A group, and the callers that belong to it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct GroupEntry {
    /// Name.
    pub name: String,
    /// Callers with a key that is accepted, as `key:NAME`.
    pub members: Vec<String>,
}

/// Fills bytes from the kernel's generator.
pub type RandomSource<'a> = dyn Fn(&mut [u8]) -> io::Result<()> + 'a;

/// The keys in a key directory.
pub struct KeyDirectory<'a> {
    /// The key directory.
    pub path: &'a Path,
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// Source of secrets.
    pub random: &'a RandomSource<'a>,
}

impl fmt::Debug for KeyDirectory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyDirectory")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl KeyDirectory<'_> {
    /// Returns every key in the order of creation.
    ///
    /// # Errors
    /// Keys that cannot be read.
    pub fn list(&self) -> Result<Vec<KeyEntry>, AdminError> {
        self.with_ring(|ring, _| {
            let entries = ring.entries().iter();
            Ok(entries
                .map(|entry| KeyEntry::new(entry, self.now_ms))
                .collect())
        })
    }

    /// Creates a key.
    ///
    /// # Errors
    /// A name that is taken, too many keys, keys that cannot be read or written.
    pub fn create(&self, new: NewKey) -> Result<IssuedKey, AdminError> {
        let name = new.name.clone();
        self.with_ring(|ring, random| {
            let text = ring.create(new, self.now_ms, random)?;
            self.issued(ring, &name, text)
        })
    }

    /// Replaces the secret of a key.
    ///
    /// # Errors
    /// A key that does not exist or is no longer accepted, keys that cannot be read or written.
    pub fn rotate(&self, name: &str, rotation: Rotation) -> Result<IssuedKey, AdminError> {
        self.with_ring(|ring, random| {
            let text = ring.rotate(name, rotation, self.now_ms, random)?;
            self.issued(ring, name, text)
        })
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// A key that does not exist, keys that cannot be read or written.
    pub fn revoke(&self, name: &str) -> Result<KeyEntry, AdminError> {
        self.with_ring(|ring, _| {
            ring.revoke(name, self.now_ms)?;
            self.find(ring, name)
        })
    }

    /// Returns the callers that the keys make, by name.
    ///
    /// # Errors
    /// Keys that cannot be read.
    pub fn callers(&self) -> Result<Vec<CallerEntry>, AdminError> {
        let mut callers = BTreeMap::new();
        for key in self.list()? {
            let caller = CallerEntry {
                subject: format!("key:{}", key.name),
                state: key.state,
                groups: key.groups,
            };
            callers.insert(key.name, caller);
        }
        Ok(callers.into_values().collect())
    }

    /// Returns the groups that keys name, by name.
    ///
    /// # Errors
    /// Keys that cannot be read.
    pub fn groups(&self) -> Result<Vec<GroupEntry>, AdminError> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for caller in self.callers()? {
            for group in caller.groups {
                let members = groups.entry(group).or_default();
                if caller.state == KeyState::Good {
                    members.push(caller.subject.clone());
                }
            }
        }
        let entries = groups.into_iter();
        Ok(entries
            .map(|(name, members)| GroupEntry { name, members })
            .collect())
    }

    /// Opens the keys. A secret without randomness behind it is never returned.
    fn with_ring<T>(
        &self,
        work: impl FnOnce(&mut KeyRing, &mut dyn FnMut(&mut [u8])) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let mut failed = None;
        let mut random = |bytes: &mut [u8]| {
            if let Err(error) = (self.random)(bytes) {
                failed = Some(error);
            }
        };
        let done = KeyRing::open(self.path, &mut random)
            .map_err(AdminError::from)
            .and_then(|mut ring| work(&mut ring, &mut random));
        match failed {
            Some(error) => Err(AdminError::Random(error)),
            None => done,
        }
    }

    fn issued(&self, ring: &KeyRing, name: &str, text: String) -> Result<IssuedKey, AdminError> {
        Ok(IssuedKey {
            key: KeySecret(text),
            entry: self.find(ring, name)?,
        })
    }

    fn find(&self, ring: &KeyRing, name: &str) -> Result<KeyEntry, AdminError> {
        let entry = ring.entries().iter().rev().find(|entry| entry.name == name);
        entry
            .map(|entry| KeyEntry::new(entry, self.now_ms))
            .ok_or_else(|| RingError::NoSuchKey(name.to_owned()).into())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::ErrorKind;

    /// A key directory that is removed when dropped.
    struct KeyFolder(std::path::PathBuf);

    impl KeyFolder {
        fn new(name: &str) -> Self {
            let name = format!("admin-keys-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn with<T>(
            &self,
            random: &RandomSource<'_>,
            work: impl FnOnce(&KeyDirectory<'_>) -> T,
        ) -> T {
            work(&KeyDirectory {
                path: &self.0,
                now_ms: 1_000,
                random,
            })
        }
    }

    impl Drop for KeyFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn new_key(name: &str, groups: &[&str]) -> NewKey {
        NewKey {
            name: name.to_owned(),
            expires_ms: None,
            servers: Vec::new(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }
    }

    #[test]
    fn keys_make_callers_and_groups_and_no_secret_is_printed() {
        let folder = KeyFolder::new("groups");
        let next = Cell::new(0_u8);
        let random = |bytes: &mut [u8]| {
            next.set(next.get().wrapping_add(1));
            bytes.fill(next.get());
            Ok(())
        };
        folder.with(&random, |keys| {
            let issued = keys.create(new_key("ci", &["build", "all"])).unwrap();
            assert!(!format!("{issued:?}").contains(issued.key.reveal()));
            keys.create(new_key("laptop", &["all"])).unwrap();
            keys.revoke("ci").unwrap();
            let error = keys.create(new_key("laptop", &[])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            let error = keys.revoke("none").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            let callers = keys.callers().unwrap();
            let states: Vec<KeyState> = callers.iter().map(|caller| caller.state).collect();
            assert_eq!(states, [KeyState::Revoked, KeyState::Good]);
            let groups = keys.groups().unwrap();
            assert_eq!(groups[0].members, ["key:laptop"]);
            assert_eq!(
                (groups[1].name.as_str(), groups[1].members.len()),
                ("build", 0)
            );
        });
    }

    #[test]
    fn a_secret_without_randomness_is_not_returned() {
        let folder = KeyFolder::new("random");
        let random = |_: &mut [u8]| Err(io::Error::other("none"));
        let error = folder.with(&random, |keys| keys.create(new_key("ci", &[])).unwrap_err());
        assert!(matches!(error, AdminError::Random(_)), "{error}");
    }
}
