//! Who may call: whoever shows a good key, where there are keys; else the processes of the local user.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::credential::{Authenticate, Credential, LocalUser, Shown};
use super::error::{IdentityFault, RingError};
use super::ring::{Entry, KeyRing, PREFIX};
use super::token_fault::TokenFault;
use crate::caller::{Caller, Proof, Welcome};

/// Most users of the machine whose refusals are told apart until they are taken.
const USERS_MAX: usize = 256;
/// Most refusals of keys that are told apart until they are taken: a flood of them must not fill the journal.
const TURNED_MAX: usize = 32;
/// Longest name of a server that is kept, in bytes: none is longer.
const SERVER_BYTES_MAX: usize = 64;

/// The keys, and what was refused since it was last taken.
pub struct KeyHolders {
    ring: RwLock<KeyRing>,
    /// Nobody is answered without a key. Never taken back: whoever removes the last key wants a caller
    /// out, not everybody in.
    required: AtomicBool,
    local: LocalUser,
    refused: Mutex<Refusals>,
    /// The keys that were good when they were last looked at, by name.
    good: Mutex<BTreeMap<String, Entry>>,
    welcomes: Mutex<Welcomes>,
    /// Who knows the tokens of accounts, and what those begin with.
    accounts: Option<(&'static str, Arc<dyn Authenticate>)>,
    /// Verifies access tokens of issuers.
    tokens: Option<Arc<dyn Authenticate>>,
}

/// Callers beyond this number are forgotten where nobody calls on their behalf.
const WELCOMES_MAX: usize = 1_024;

/// Whether those who were identified are still welcome.
#[derive(Default)]
struct Welcomes {
    callers: HashMap<Arc<str>, Welcome>,
    /// How often callers were expelled.
    expulsions: u64,
}

impl Welcomes {
    fn of(&mut self, caller: &Arc<str>) -> Welcome {
        if self.callers.len() >= WELCOMES_MAX {
            self.callers.retain(|_, welcome| !welcome.is_forgotten());
        }
        self.callers.entry(Arc::clone(caller)).or_default().clone()
    }

    fn end(&mut self, gone: &[Arc<str>]) {
        if gone.is_empty() {
            return;
        }
        self.expulsions += 1;
        for caller in gone {
            if let Some(welcome) = self.callers.remove(caller) {
                welcome.end();
            }
        }
    }
}

/// How often each refusal was met.
type Refusals = BTreeMap<Turned, u64>;

/// A credential that was refused, as far as refusals are told apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turned {
    /// Why.
    pub fault: IdentityFault,
    /// The user of the machine, where it is about one.
    pub user: Option<u32>,
    /// Whose key it is, where it is one of ours.
    pub subject: Option<Arc<str>>,
    /// The server that was asked for, where it was one.
    pub server: Option<Box<str>>,
    /// Where the request came from, where that is known.
    pub from: Option<IpAddr>,
}

impl Turned {
    /// One of which no more than the reason is told.
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

/// What a look at the keys has shown.
#[derive(Debug, Default)]
pub struct Looked {
    /// Whether the file was read again, and what was wrong with it.
    pub read: Option<Result<(), RingError>>,
    /// The callers (by subject) that were welcome before and are no longer.
    pub gone: Vec<Arc<str>>,
    /// Keys that are good now and were not before, or not so.
    pub begun: Vec<Entry>,
    /// Keys that were good before and are no longer.
    pub ended: Vec<Entry>,
}

impl KeyHolders {
    /// The holders of these keys; without any, and where none is `required`, the processes of one user.
    #[must_use]
    pub fn new(ring: KeyRing, local: LocalUser, required: bool, now_ms: i64) -> Self {
        Self {
            required: AtomicBool::new(required || ring.has_keys()),
            good: Mutex::new(good(&ring, now_ms)),
            ring: RwLock::new(ring),
            local,
            refused: Mutex::default(),
            welcomes: Mutex::default(),
            accounts: None,
            tokens: None,
        }
    }

    /// The same, where there are accounts as well: a text that begins with `prefix` is shown to them. From then
    /// on nobody is answered without a credential.
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

    /// Whether nobody is answered without a key.
    #[must_use]
    pub fn need_keys(&self) -> bool {
        self.required.load(Ordering::Acquire)
    }

    /// Reads the keys again where they have changed. To be called now and then.
    pub fn look(&self, now_ms: i64) -> Looked {
        let mut looked = Looked::default();
        if !self.ring().is_current() {
            let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
            let read = ring.reload();
            if read.is_ok() && ring.has_keys() && !self.required.swap(true, Ordering::AcqRel) {
                // Whoever came in without a key comes in no more.
                looked.gone.push(Arc::clone(&self.local.caller.subject));
            }
            looked.read = Some(read);
        }
        (looked.begun, looked.ended) = self.changed(now_ms);
        looked.gone.extend(looked.ended.iter().map(Entry::subject));
        self.welcomes().end(&looked.gone);
        looked.gone.extend(self.take_gone(now_ms));
        looked
    }

    /// The callers of accounts that a change, or time, has made unwelcome. To be called when a change was made, before it is
    /// answered: who comes in after the answer is not among them.
    pub fn take_gone(&self, now_ms: i64) -> Vec<Arc<str>> {
        let accounts = self.accounts.as_ref().map(|(_, accounts)| accounts);
        let others = accounts.into_iter().chain(&self.tokens);
        let gone: Vec<Arc<str>> = others.flat_map(|of| of.take_gone(now_ms)).collect();
        self.welcomes().end(&gone);
        gone
    }

    /// How often each refusal was met since this was last asked.
    pub fn take_refused(&self) -> Refusals {
        std::mem::take(&mut *self.refused())
    }

    /// The keys that are good since the last look, and those that are good no longer. A key that another has the place of
    /// is no longer good, unless the two overlap.
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
        loop {
            let before = self.welcomes().expulsions;
            let mut caller = self.find(shown, now_ms)?;
            let mut welcomes = self.welcomes();
            caller.welcome = welcomes.of(&caller.subject);
            // Who was expelled between the two is looked for once more.
            if welcomes.expulsions == before {
                return Ok(caller);
            }
        }
    }

    fn welcomes(&self) -> MutexGuard<'_, Welcomes> {
        self.welcomes.lock().unwrap_or_else(PoisonError::into_inner)
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
        let turned = self.turned(fault, shown, now_ms);
        let mut refused = self.refused();
        let most = match fault {
            IdentityFault::OtherUser => USERS_MAX,
            _ => TURNED_MAX,
        };
        let is_told = refused.len() < most || refused.contains_key(&turned);
        let told = if is_told { turned } else { Turned::of(fault) };
        *refused.entry(told).or_default() += 1;
    }

    fn turned(&self, fault: IdentityFault, shown: &Credential<'_>, now_ms: i64) -> Turned {
        if fault == IdentityFault::OtherUser {
            return Turned {
                user: shown.user(),
                ..Turned::of(fault)
            };
        }
        let ring = self.ring();
        let holder = shown.text().and_then(|text| ring.holder(text, now_ms));
        let server = shown.server().filter(|name| name.len() <= SERVER_BYTES_MAX);
        Turned {
            subject: holder.map(Entry::subject),
            server: server.map(Into::into),
            from: shown.from(),
            ..Turned::of(fault)
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

/// The keys that are good now, by name.
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
        let looked = holders.look(100);
        assert_eq!(looked.gone, ["key:ci".into()]);
        assert_eq!((looked.begun.len(), looked.ended.len()), (0, 1));
        drop(std::fs::remove_dir_all(place));
    }

    #[test]
    fn who_was_identified_before_a_key_was_taken_back_is_expelled_with_it_and_nobody_else() {
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
        assert!(!going.is_expelled() && !going.clone().is_expelled());
        // Its time is over.
        assert_eq!(holders.look(100).gone.len(), 1);
        assert!(going.is_expelled() && twice.clone().is_expelled());
        assert!(!staying.is_expelled() && !shows(&other).unwrap().is_expelled());
        drop(std::fs::remove_dir_all(place));
    }
}
