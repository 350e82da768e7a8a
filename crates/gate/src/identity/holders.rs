//! Authentication: by API keys if there are any, else processes of the local user.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::credential::{Authenticate, Credential, LocalUser, Shown};
use super::error::{IdentityFault, RingError};
use super::revocation_table::RevocationTable;
use super::ring::{Entry, KeyRing, PREFIX};
use super::token_fault::TokenFault;
use crate::caller::{Caller, Proof};

/// Most users of the machine that have a count of refusals each.
const USERS_MAX: usize = 256;
/// Most different refusals of keys between two records: a flood must not fill the journal.
const REFUSALS_MAX: usize = 32;
/// Longest name of a server, in bytes.
const SERVER_BYTES_MAX: usize = 64;

/// Keys, and refusals that are not recorded yet.
pub struct KeyHolders {
    ring: RwLock<KeyRing>,
    /// Every request needs a key. Never cleared: removing the last key shuts a caller out and lets no one in.
    required: AtomicBool,
    local: LocalUser,
    refused: Mutex<Refusals>,
    /// Valid keys at the last refresh, by name.
    good: Mutex<BTreeMap<String, Entry>>,
    revocations: RevocationTable,
    /// Prefix of the tokens of accounts, and their authenticator.
    accounts: Option<(&'static str, Arc<dyn Authenticate>)>,
    /// Verifies access tokens of issuers.
    tokens: Option<Arc<dyn Authenticate>>,
}

/// Count of each refusal.
type Refusals = BTreeMap<RefusedCredential, u64>;

/// A refused credential, as its record names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusedCredential {
    /// The reason.
    pub fault: IdentityFault,
    /// The user of the machine, if the fault is about one.
    pub user: Option<u32>,
    /// The subject of the key, if it is a known one.
    pub subject: Option<Arc<str>>,
    /// The requested server.
    pub server: Option<Box<str>>,
    /// Address of the client, if known.
    pub from: Option<IpAddr>,
}

impl RefusedCredential {
    /// Returns one with the reason alone.
    fn of(fault: IdentityFault) -> Self {
        Self {
            fault,
            user: None,
            subject: None,
            server: None,
            from: None,
        }
    }
}

/// Changes that a refresh of the keys has found.
#[derive(Debug, Default)]
pub struct KeyChanges {
    /// Result of reading the file, if it was read again.
    pub read: Option<Result<(), RingError>>,
    /// Subjects of the callers that are revoked now.
    pub revoked: Vec<Arc<str>>,
    /// Keys that are valid now and were not, or that have changed.
    pub begun: Vec<Entry>,
    /// Keys that were valid and no longer are.
    pub ended: Vec<Entry>,
}

impl KeyHolders {
    /// Returns the authenticator of these keys; without keys, and unless they are `required`, of processes of one user.
    #[must_use]
    pub fn new(ring: KeyRing, local: LocalUser, required: bool, now_ms: i64) -> Self {
        Self {
            required: AtomicBool::new(required || ring.has_keys()),
            good: Mutex::new(good(&ring, now_ms)),
            ring: RwLock::new(ring),
            local,
            refused: Mutex::default(),
            revocations: RevocationTable::default(),
            accounts: None,
            tokens: None,
        }
    }

    /// Adds accounts, which authenticate texts that begin with `prefix`. Every request needs a credential then.
    #[must_use]
    pub fn with_accounts(self, prefix: &'static str, accounts: Arc<dyn Authenticate>) -> Self {
        self.required.store(true, Ordering::Release);
        Self {
            accounts: Some((prefix, accounts)),
            ..self
        }
    }

    /// The same with access tokens of issuers: a bearer text that is neither a key nor a token of an account is given to
    /// `tokens`. From then on every request needs a credential.
    #[must_use]
    pub fn with_tokens(self, tokens: Arc<dyn Authenticate>) -> Self {
        self.required.store(true, Ordering::Release);
        Self {
            tokens: Some(tokens),
            ..self
        }
    }

    /// Returns whether every request needs a key.
    #[must_use]
    pub fn need_keys(&self) -> bool {
        self.required.load(Ordering::Acquire)
    }

    /// Reads changed keys again and revokes the callers of keys that have ended.
    pub fn look(&self, now_ms: i64) -> KeyChanges {
        let mut changes = KeyChanges::default();
        if !self.ring().is_current() {
            let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
            let read = ring.reload();
            if read.is_ok() && ring.has_keys() && !self.required.swap(true, Ordering::AcqRel) {
                // Callers without a key are refused from now on.
                changes.revoked.push(Arc::clone(&self.local.caller.subject));
            }
            changes.read = Some(read);
        }
        (changes.begun, changes.ended) = self.changed(now_ms);
        changes
            .revoked
            .extend(changes.ended.iter().map(Entry::subject));
        self.revocations.revoke(&changes.revoked);
        changes.revoked.extend(self.take_revoked(now_ms));
        changes
    }

    /// Revokes the callers of accounts and of issuers that a change, or time, has ended, and returns them. Call it after a change
    /// and before its answer: callers that are identified after the answer are not among them.
    pub fn take_revoked(&self, now_ms: i64) -> Vec<Arc<str>> {
        let accounts = self.accounts.as_ref().map(|(_, accounts)| accounts);
        let others = accounts.into_iter().chain(&self.tokens);
        let gone: Vec<Arc<str>> = others.flat_map(|of| of.take_revoked(now_ms)).collect();
        self.revocations.revoke(&gone);
        gone
    }

    /// Returns and clears the counts of refusals.
    pub fn take_refused(&self) -> Refusals {
        std::mem::take(&mut *self.refused())
    }

    /// Returns keys that have become valid since the last refresh, and those that no longer are. A replaced key is no longer valid,
    /// unless the two overlap.
    fn changed(&self, now_ms: i64) -> (Vec<Entry>, Vec<Entry>) {
        let now = good(&self.ring(), now_ms);
        let mut before = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = |entry: &Entry| now.get(&entry.name).is_some_and(|n| entry.goes_on_as(n));
        let ended = before.values().filter(|entry| !goes_on(entry));
        let begun = now
            .values()
            .filter(|entry| before.get(&entry.name) != Some(entry));
        let changed = (begun.cloned().collect(), ended.cloned().collect());
        *before = now;
        changed
    }

    /// Returns who shows this, as [`Authenticate::identify`] does, without a note of a refusal: the caller notes it, or has it
    /// judged again.
    ///
    /// # Errors
    /// [`IdentityFault`].
    pub fn identify_unnoted(
        &self,
        shown: &Credential<'_>,
        now_ms: i64,
    ) -> Result<Caller, IdentityFault> {
        self.revocations.identify(|| self.find(shown, now_ms))
    }

    fn find(&self, shown: &Credential<'_>, now_ms: i64) -> Result<Caller, IdentityFault> {
        if !self.need_keys() {
            return self.local.identify(shown, now_ms);
        }
        if let Some((prefix, accounts)) = &self.accounts
            && shown.text().is_some_and(|text| text.starts_with(prefix))
        {
            return accounts.identify(shown, now_ms);
        }
        if let Some(tokens) = &self.tokens {
            match shown.shown() {
                Shown::Bearer(text) if !text.starts_with(PREFIX) => {
                    return tokens.identify(shown, now_ms);
                }
                Shown::Nothing => return Err(IdentityFault::Token(TokenFault::Missing)),
                Shown::Bearer(_) | Shown::Other | Shown::Unfit => {}
            }
        }
        self.ring().identify(shown, now_ms)
    }

    /// Notes a refusal, for [`KeyHolders::take_refused`].
    pub fn note_refusal(&self, fault: IdentityFault, shown: &Credential<'_>, now_ms: i64) {
        let credential = self.refused_credential(fault, shown, now_ms);
        let mut refused = self.refused();
        let most = match fault {
            IdentityFault::OtherUser => USERS_MAX,
            _ => REFUSALS_MAX,
        };
        let has_place = refused.len() < most || refused.contains_key(&credential);
        let counted = if has_place {
            credential
        } else {
            RefusedCredential::of(fault)
        };
        *refused.entry(counted).or_default() += 1;
    }

    fn refused_credential(
        &self,
        fault: IdentityFault,
        shown: &Credential<'_>,
        now_ms: i64,
    ) -> RefusedCredential {
        if fault == IdentityFault::OtherUser {
            return RefusedCredential {
                user: shown.user(),
                ..RefusedCredential::of(fault)
            };
        }
        let ring = self.ring();
        let holder = shown.text().and_then(|text| ring.holder(text, now_ms));
        let server = shown.server().filter(|name| name.len() <= SERVER_BYTES_MAX);
        RefusedCredential {
            subject: holder.map(Entry::subject),
            server: server.map(Into::into),
            from: shown.from(),
            ..RefusedCredential::of(fault)
        }
    }

    fn ring(&self) -> RwLockReadGuard<'_, KeyRing> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> MutexGuard<'_, Refusals> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authenticate for KeyHolders {
    fn identify(&self, shown: &Credential<'_>, now_ms: i64) -> Result<Caller, IdentityFault> {
        let found = self.identify_unnoted(shown, now_ms);
        if let Err(fault) = &found {
            self.note_refusal(*fault, shown, now_ms);
        }
        found
    }
}

impl Authenticate for KeyRing {
    fn identify(&self, shown: &Credential<'_>, now_ms: i64) -> Result<Caller, IdentityFault> {
        let text = match shown.shown() {
            Shown::Bearer(text) => text,
            Shown::Nothing => return Err(IdentityFault::Missing),
            Shown::Other => return Err(IdentityFault::Unknown),
            Shown::Unfit => return Err(IdentityFault::Ambiguous),
        };
        let entry = self.check(text, now_ms)?;
        if let Some(server) = shown.server() {
            entry.good_for(server)?;
        }
        Ok(Caller {
            subject: entry.subject(),
            groups: entry
                .groups
                .iter()
                .map(|name| name.as_str().into())
                .collect(),
            proof: Proof::ApiKey,
            servers: match entry.servers.as_slice() {
                [] => None,
                names => Some(names.iter().map(|name| name.as_str().into()).collect()),
            },
            until_ms: entry.expires_ms,
            ..Caller::default()
        })
    }
}

/// Returns the valid keys, by name.
fn good(ring: &KeyRing, now_ms: i64) -> BTreeMap<String, Entry> {
    let good = ring.entries().iter().filter(|e| e.good_at(now_ms).is_ok());
    good.map(|entry| (entry.name.clone(), entry.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::NewKey;

    fn ring() -> (std::path::PathBuf, KeyRing, String) {
        // Tests run beside each other.
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("durward-holders-{}-{number}", std::process::id());
        let place = std::env::temp_dir().join(name);
        let mut next = 0_u8;
        let mut random = move |bytes: &mut [u8]| {
            for byte in bytes {
                next = next.wrapping_add(1);
                *byte = next;
            }
        };
        let mut ring = KeyRing::open(&place, &mut random).unwrap();
        let new = NewKey {
            name: "ci".into(),
            expires_ms: Some(100),
            servers: vec!["files".into()],
            groups: vec!["robots".into(), "night".into()],
        };
        let text = ring.create(new, 1, &mut random).unwrap();
        (place, ring, text)
    }

    fn ada() -> LocalUser {
        LocalUser {
            caller: Caller::local("ada"),
            user: 1_000,
        }
    }

    #[test]
    fn refusals_of_other_users_are_told_apart() {
        let (place, mut ring, _) = ring();
        ring.revoke("ci", 2).unwrap();
        let holders = KeyHolders::new(ring, ada(), false, 1);
        holders.required.store(false, Ordering::Release);
        for user in [Some(1_001), Some(1_001), Some(0), None, Some(1_000)] {
            drop(holders.identify(&Credential::none().from_user(user), 50));
        }
        let told = holders.take_refused().into_iter();
        let told: Vec<_> = told
            .map(|(of, count)| ((of.fault, of.user), count))
            .collect();
        let other = IdentityFault::OtherUser;
        assert_eq!(
            told,
            [
                ((other, Some(0)), 1),
                ((other, Some(1_001)), 2),
                ((IdentityFault::UserUnknown, None), 1),
            ]
        );
        for user in 2_000..4_000 {
            drop(holders.identify(&Credential::none().from_user(Some(user)), 50));
        }
        let told = holders.take_refused();
        assert_eq!(told.len(), USERS_MAX + 1);
        assert_eq!(told.values().sum::<u64>(), 2_000);
        drop(std::fs::remove_dir_all(place));
    }

    #[test]
    fn a_key_gives_its_name_its_groups_and_its_end() {
        let (place, ring, text) = ring();
        let holders = KeyHolders::new(ring, ada(), false, 1);
        let shown = Credential::bearer(&text).for_server(Some("files"));
        let caller = holders.identify(&shown, 50).unwrap();
        let groups: Vec<&str> = caller.groups.iter().map(|g| &**g).collect();
        assert_eq!((&*caller.subject, caller.proof), ("key:ci", Proof::ApiKey));
        assert_eq!(
            (groups, caller.until_ms),
            (vec!["robots", "night"], Some(100))
        );
        let faults = [
            (Credential::none(), 50, IdentityFault::Missing),
            (Credential::unfit(), 50, IdentityFault::Ambiguous),
            (Credential::other(), 50, IdentityFault::Unknown),
            (
                shown.for_server(Some("other")),
                50,
                IdentityFault::OutOfScope,
            ),
            (shown, 100, IdentityFault::Expired),
        ];
        for (shown, now_ms, fault) in faults {
            assert_eq!(holders.identify(&shown, now_ms).map(drop), Err(fault));
        }
        assert_eq!(holders.take_refused().len(), 5);
        assert!(holders.need_keys());
        assert_eq!(holders.take_refused().len(), 0);
        let changes = holders.look(100);
        assert_eq!(changes.revoked, ["key:ci".into()]);
        assert_eq!((changes.begun.len(), changes.ended.len()), (0, 1));
        drop(std::fs::remove_dir_all(place));
    }

    #[test]
    fn who_was_identified_before_a_key_was_taken_back_is_revoked_with_it_and_nobody_else() {
        let (place, mut ring, text) = ring();
        let mut random = |bytes: &mut [u8]| bytes.fill(9);
        let new = NewKey {
            name: "other".into(),
            expires_ms: None,
            servers: Vec::new(),
            groups: Vec::new(),
        };
        let other = ring.create(new, 1, &mut random).unwrap();
        let holders = KeyHolders::new(ring, ada(), false, 1);
        let shows = |text: &str| holders.identify(&Credential::bearer(text), 50);
        let (going, twice, staying) = (shows(&text), shows(&text), shows(&other));
        let (going, twice, staying) = (going.unwrap(), twice.unwrap(), staying.unwrap());
        assert!(!going.is_revoked() && !going.clone().is_revoked());
        // The key has expired.
        assert_eq!(holders.look(100).revoked.len(), 1);
        assert!(going.is_revoked() && twice.clone().is_revoked());
        assert!(!staying.is_revoked() && !shows(&other).unwrap().is_revoked());
        drop(std::fs::remove_dir_all(place));
    }
}
