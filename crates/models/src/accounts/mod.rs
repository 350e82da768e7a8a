//! Accounts: users with tokens and keys of their own, in teams of tenants, each level with budgets.
//!
//! Everything is in memory and in one file of the state directory; a change is in the file before it is answered.
//!
//! Invariants, as absences:
//! - no text of a token is kept: it is found by its keyed digest;
//! - no key of a provider is kept as it is: it is sealed with the master key, and opened for one request;
//! - a token opens model APIs and its own account, and no server that the configuration does not name;
//! - no call waits for the disk: only changes do.

pub(crate) mod change;
mod fault;
mod levels;
pub(crate) mod record;
mod roll;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gate::Caller;
use gate::caller::Proof;
use gate::identity::{Authenticate, Credential, IdentityFault};
use state::DirectoryLock;
use state::counter::CounterStore;
use state::kv::{Durability, Kv, Table, View as _};
use toolkit::seal::Seal;
use zeroize::Zeroizing;

use crate::key::Key;
pub use fault::{AccountFault, OpenError};
pub use record::{Limit, Role};
use roll::{Digest, Roll};

/// What every token begins with.
pub const TOKEN_PREFIX: &str = "dwu_";
/// Longest text that is looked at as a token, in bytes.
const TOKEN_BYTES_MAX: usize = 128;
/// File of the accounts, in the state directory.
pub const ACCOUNTS_FILE: &str = "accounts.db";
/// File of the key of the tokens' digests, in the directory of keys.
const DIGEST_FILE: &str = "accounts.key";
/// File of the master key, where the environment has none.
const MASTER_FILE: &str = "master.key";
/// Kind of secrets that the master key's own key is derived for.
const SEALED_KIND: &str = "durward provider keys at rest";
/// What is known of the file itself.
const META: Table = Table("meta");
/// A text that opens with the right master key only.
const CHECK: &[u8] = b"check";

/// Gives random bytes; an error where there are none.
pub type Random = Box<dyn Fn(&mut [u8]) -> std::io::Result<()> + Send + Sync>;

/// The key that keys of providers are sealed with. It prints as nothing.
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl MasterKey {
    /// From 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let key = blake3::Hash::from_hex(text.trim()).ok()?;
        Some(Self(Zeroizing::new(*key.as_bytes())))
    }
}

/// How accounts are kept.
pub struct AccountOptions {
    /// Whether anybody may register.
    pub is_open: bool,
    /// Requests a minute of a user for whom nothing else is said; `None`: no bound.
    pub requests_a_minute: Option<u64>,
    /// The callers of this group, by keys of the operator's, are administrators.
    pub admin_group: String,
    /// Servers that tokens are good for, beside the model APIs.
    pub servers: Vec<String>,
    /// The master key, where the environment has one.
    pub master: Option<MasterKey>,
}

impl fmt::Debug for AccountOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountOptions")
            .field("is_open", &self.is_open)
            .field("requests_a_minute", &self.requests_a_minute)
            .finish_non_exhaustive()
    }
}

/// All accounts.
pub struct Accounts {
    pub(crate) options: AccountOptions,
    kv: Kv,
    seal: Seal,
    digests: Zeroizing<[u8; 32]>,
    random: Random,
    counter: Arc<dyn CounterStore>,
    roll: RwLock<Roll>,
    /// Held while something is changed: file and memory change in one order.
    changing: Mutex<()>,
    /// Subjects that have lost a token since this was last asked.
    gone: Mutex<Vec<Arc<str>>>,
    /// When the time of tokens is over that were shown since the start: another has opened nothing.
    ends: Mutex<BTreeSet<(i64, Digest)>>,
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Accounts({} users)", self.roll().users.len())
    }
}

impl Accounts {
    /// Reads the accounts that are kept below `state`, with the keys below `keys`.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        (state, keys): (&Path, &Path),
        options: AccountOptions,
        counter: Arc<dyn CounterStore>,
        random: Random,
    ) -> Result<Self, OpenError> {
        state::directory::create_private(keys).map_err(OpenError::Directory)?;
        let lock = DirectoryLock::acquire(keys).map_err(OpenError::Directory)?;
        let mut broken = false;
        let mut fill = |bytes: &mut [u8]| broken |= random(bytes).is_err();
        let mut secret = |file: &str| {
            gate::journal::secret(&keys.join(file), &mut fill).map_err(OpenError::Keys)
        };
        let digests = Zeroizing::new(secret(DIGEST_FILE)?);
        let master = match &options.master {
            Some(MasterKey(master)) => master.clone(),
            None => Zeroizing::new(secret(MASTER_FILE)?),
        };
        drop(lock);
        let seal = Seal::new(SEALED_KIND, &master).ok_or(OpenError::Random)?;
        let kv = Kv::open(&state.join(ACCOUNTS_FILE))?;
        let mut nonce = [0; 12];
        if broken || random(&mut nonce).is_err() {
            return Err(OpenError::Random);
        }
        check(&kv, &seal, nonce)?;
        Ok(Self {
            roll: RwLock::new(Roll::read(&kv)?),
            options,
            kv,
            seal,
            digests,
            random,
            counter,
            changing: Mutex::default(),
            gone: Mutex::default(),
            ends: Mutex::default(),
        })
    }

    /// The keys of providers that a caller has brought, by the provider's name.
    #[must_use]
    pub(crate) fn own_keys(&self, caller: &Caller) -> Vec<(String, Key)> {
        let Some(user) = self.user_of(caller) else {
            return Vec::new();
        };
        let open = |(provider, sealed): (&String, &String)| {
            let text = self.seal.open(&purpose(&user.id, provider), sealed);
            if text.is_none() {
                tracing::error!(provider, "a user's key of this provider cannot be opened");
            }
            Some((provider.clone(), Key::new(&text?)?))
        };
        user.provider_keys.iter().filter_map(open).collect()
    }

    /// The user who calls; `None` where the caller has no account.
    pub(crate) fn user_of(&self, caller: &Caller) -> Option<Arc<record::User>> {
        let id = caller.token.as_deref()?;
        let roll = self.roll();
        let token = roll.tokens.get(roll.by_id.get(id)?)?;
        roll.users.get(&token.user).cloned()
    }

    fn digest(&self, text: &str) -> Digest {
        *blake3::keyed_hash(&self.digests, text.as_bytes()).as_bytes()
    }

    pub(crate) fn roll(&self) -> RwLockReadGuard<'_, Roll> {
        self.roll.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn roll_to_change(&self) -> RwLockWriteGuard<'_, Roll> {
        self.roll.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self) -> MutexGuard<'_, BTreeSet<(i64, Digest)>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authenticate for Accounts {
    fn identify(&self, shown: &Credential<'_>, now_ms: i64) -> Result<Caller, IdentityFault> {
        let text = shown.text().ok_or(IdentityFault::Missing)?;
        if text.len() > TOKEN_BYTES_MAX {
            return Err(IdentityFault::Unknown);
        }
        let roll = self.roll();
        // The digest is keyed, so how long a look takes tells nothing of any token.
        let digest = self.digest(text);
        let (token, user) = roll.holder(&digest, now_ms)?;
        if let Some(server) = shown.server()
            && !self.options.servers.iter().any(|name| name == server)
        {
            return Err(IdentityFault::OutOfScope);
        }
        if let Some(end) = token.expires_ms {
            self.ends().insert((end, digest));
        }
        let team = user.team.as_ref().map(|team| format!("team:{team}").into());
        let tenant = roll.tenant_of(user);
        let tenant = tenant.map(|tenant| format!("tenant:{tenant}").into());
        Ok(Caller {
            subject: user.subject(),
            groups: team.into_iter().chain(tenant).collect(),
            proof: Proof::ApiKey,
            servers: Some(
                self.options
                    .servers
                    .iter()
                    .map(|name| name.as_str().into())
                    .collect(),
            ),
            until_ms: token.expires_ms,
            token: Some(token.id.as_str().into()),
            ..Caller::default()
        })
    }

    fn take_revoked(&self, now_ms: i64) -> Vec<Arc<str>> {
        let mut gone = std::mem::take(&mut *self.gone());
        let mut ends = self.ends();
        let later = ends.split_off(&(now_ms.saturating_add(1), Digest::default()));
        let over = std::mem::replace(&mut *ends, later);
        drop(ends);
        let roll = self.roll();
        // One that was revoked has ended what its user had open then.
        let over = over.iter().filter_map(|(_, digest)| {
            let token = roll.tokens.get(digest)?;
            roll.users.get(&token.user)
        });
        gone.extend(over.map(|user| user.subject()));
        gone
    }
}

/// What a sealed key of a provider is for.
fn purpose(user: &str, provider: &str) -> String {
    format!("{user} {provider}")
}

/// Whether the master key is the one that keys were sealed with.
fn check(kv: &Kv, seal: &Seal, nonce: [u8; 12]) -> Result<(), OpenError> {
    let found = kv.read(|view| view.get(META, CHECK))?;
    let Some(found) = found else {
        let sealed = seal.seal("check", "check", nonce);
        let sealed = sealed.ok_or(OpenError::Random)?;
        return Ok(kv.write(Durability::Synced, |to| {
            to.put(META, CHECK, sealed.as_bytes())
        })?);
    };
    let text = String::from_utf8(found).ok();
    match text.and_then(|text| seal.open("check", &text)) {
        Some(_) => Ok(()),
        None => Err(OpenError::MasterKey),
    }
}
