//! Sign-offs of a caller's reviewers, as a chain of entries for each simulation and scope: each entry names the hash of
//! the one before it, so that a change of an earlier one is seen.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use state::kv::{Durability, KvError, Table, View};

use super::index::{ResultIndex, key, read};
use crate::fault::{Fault, Kind};
use crate::models::hex;

/// By caller, simulation, scope and number: [`Signoff`].
const SIGNOFFS: Table = Table("signoffs");
/// Most entries of one chain. None is forgotten to make room.
const ENTRIES_MAX: usize = 1_000;
/// Predecessor hash of the first entry of a chain.
pub const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignoffAction {
    /// Somebody has signed.
    Recorded,
    /// Somebody has taken the signature back.
    Revoked,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signoff {
    /// Its id.
    pub id: String,
    /// The action.
    pub action: SignoffAction,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// Who.
    pub subject: String,
    /// The groups that they belonged to; entries of older versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Disposition of the reviewer; absent if it was revoked.
    pub disposition: Option<String>,
    /// Why.
    pub rationale: String,
    /// The limits that the reviewer has accepted.
    pub limitations: Vec<String>,
    /// Subjects of the review.
    pub focus: Vec<String>,
    /// Of the model and what was set in it at that time, SHA-256 in hex; empty if nothing was loaded.
    pub content: String,
    /// Hash of the entry before.
    pub previous: String,
    /// SHA-256 of this entry as JSON with an empty hash, in hex.
    pub hash: String,
}

impl Signoff {
    fn hashed(&self) -> String {
        let plain = Self {
            hash: String::new(),
            ..self.clone()
        };
        hex(&Sha256::digest(
            serde_json::to_vec(&plain).unwrap_or_default(),
        ))
    }
}

/// Returns whether each entry, oldest first, is what was written and names the one before it.
#[must_use]
pub fn is_whole(chain: &[Signoff]) -> bool {
    let before = std::iter::once(NONE).chain(chain.iter().map(|entry| entry.hash.as_str()));
    chain
        .iter()
        .zip(before)
        .all(|(entry, before)| entry.previous == before && entry.hash == entry.hashed())
}

impl ResultIndex {
    /// Returns the chain of a simulation and scope, oldest first.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn signoffs(
        &self,
        caller: &str,
        simulation: &str,
        scope: &str,
    ) -> Result<Vec<Signoff>, KvError> {
        let prefix = key(caller, &[simulation, scope]);
        self.kv.read(|view| chain(view, &prefix))
    }

    /// Adds an entry that is made of the newest one before it.
    ///
    /// # Errors
    /// [`Fault`] of `make`; [`Kind::Busy`] if the chain is full.
    pub fn sign(
        &self,
        caller: &str,
        simulation: &str,
        scope: &str,
        make: impl FnOnce(Option<&Signoff>) -> Result<Signoff, Fault>,
    ) -> Result<(), Fault> {
        let prefix = key(caller, &[simulation, scope]);
        self.kv.write(Durability::Synced, |t| {
            let chain = chain(t, &prefix)?;
            if chain.len() >= ENTRIES_MAX {
                let full = format!(
                    "{ENTRIES_MAX} entries are kept for this scope, which is as many as may be"
                );
                return Err(Fault::of(Kind::Busy, "scope", full));
            }
            let before = chain.last();
            let mut entry = make(before)?;
            entry.previous = before.map_or(NONE, |before| &before.hash).to_owned();
            entry.hash = entry.hashed();
            let at = [&prefix[..], &(chain.len() as u64).to_be_bytes()].concat();
            t.put(
                SIGNOFFS,
                &at,
                &serde_json::to_vec(&entry).unwrap_or_default(),
            )?;
            Ok(())
        })
    }
}

fn chain(view: &impl View, prefix: &[u8]) -> Result<Vec<Signoff>, KvError> {
    let held = view.scan_prefix(SIGNOFFS, prefix, ENTRIES_MAX)?;
    Ok(held.iter().filter_map(|(_, bytes)| read(bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_entry_a_missing_one_and_another_order_are_seen() {
        let folder = std::env::temp_dir().join(format!("signoffs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let index = ResultIndex::open(&folder, 1_000).unwrap();
        let entry = |rationale: &str| Signoff {
            id: rationale.to_owned(),
            action: SignoffAction::Recorded,
            at_ms: 1,
            subject: "ada".to_owned(),
            roles: Vec::new(),
            disposition: Some("acknowledged".to_owned()),
            rationale: rationale.to_owned(),
            limitations: Vec::new(),
            focus: Vec::new(),
            content: String::new(),
            previous: String::new(),
            hash: String::new(),
        };
        for rationale in ["one", "two", "three"] {
            index
                .sign("ada", "sim", "scope", |_| Ok(entry(rationale)))
                .unwrap();
        }
        let refused = index.sign("ada", "sim", "scope", |before| {
            assert_eq!(before.unwrap().rationale, "three");
            Err(Fault::input("x", "no"))
        });
        assert!(refused.is_err());
        let chain = index.signoffs("ada", "sim", "scope").unwrap();
        assert_eq!(chain.len(), 3);
        assert!(is_whole(&chain) && is_whole(&[]));
        assert_eq!(index.signoffs("bob", "sim", "scope").unwrap(), []);
        assert_eq!(index.signoffs("ada", "sim", "other").unwrap(), []);
        for change in [
            (|chain| chain[1].rationale.push('!')) as fn(&mut Vec<Signoff>),
            |chain| drop(chain.remove(0)),
            |chain| drop(chain.remove(1)),
            |chain| chain.swap(0, 1),
        ] {
            let mut other = chain.clone();
            change(&mut other);
            assert!(!is_whole(&other), "{other:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
