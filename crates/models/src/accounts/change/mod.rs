//! Changes of accounts: each is in the journal before it is in the file, in the file before it is in memory, and in memory
//! before it is answered.

mod groups;
mod keys;
mod note;
mod tokens;
mod users;

use std::sync::{MutexGuard, PoisonError};

use serde::Serialize;
use state::kv::{Durability, Table, Transaction};
use zeroize::Zeroizing;

use super::Accounts;
use super::fault::AccountFault;

pub(crate) use groups::Level;
pub(crate) use note::Note;
pub(crate) use tokens::NewToken;
pub(crate) use users::{NewUser, UserChange};

/// Most users.
pub const USERS_MAX: usize = 100_000;
/// Most tokens of one user.
pub const TOKENS_MAX: usize = 32;
/// Most teams, and most tenants.
pub const GROUPS_MAX: usize = 10_000;
/// Most keys of providers that a user keeps here.
pub const PROVIDER_KEYS_MAX: usize = 64;
/// Longest key of a provider, in bytes.
pub const PROVIDER_KEY_BYTES_MAX: usize = 4_096;

type Done<T> = Result<T, AccountFault>;

impl Accounts {
    /// Nothing else changes while this is held.
    fn alone(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes to the file what the journal has been told of; what is written survives a loss of power.
    fn write(
        &self,
        (note, what): (&Note, &str),
        act: impl FnOnce(&Transaction) -> Done<()>,
    ) -> Done<()> {
        let mut is_noted = false;
        let written = self.kv.write(Durability::Synced, |to| {
            act(to)?;
            // Last, so that nothing but the writing itself can still fail.
            note.before(what)?;
            is_noted = true;
            Ok(())
        });
        if is_noted && written.is_err() {
            note.not_made(what);
        }
        written
    }

    fn random<const N: usize>(&self) -> Done<Zeroizing<[u8; N]>> {
        let mut bytes = Zeroizing::new([0; N]);
        match (self.random)(bytes.as_mut_slice()) {
            Ok(()) => Ok(bytes),
            Err(error) => {
                tracing::error!("no randomness: {error}");
                Err(AccountFault::Store)
            }
        }
    }

    /// A new id.
    fn id(&self, prefix: &str) -> Done<String> {
        let bytes = self.random::<8>()?;
        let number = u64::from_le_bytes(*bytes);
        Ok(format!("{prefix}{number:016x}"))
    }
}

/// Puts an entry into a table, as JSON.
fn put(to: &Transaction, table: Table, key: &[u8], entry: &impl Serialize) -> Done<()> {
    let text = serde_json::to_vec(entry).map_err(|error| {
        tracing::error!("an account cannot be written: {error}");
        AccountFault::Store
    })?;
    Ok(to.put(table, key, &text)?)
}

fn unfit<T>(why: impl Into<String>) -> Done<T> {
    Err(AccountFault::Unfit(why.into()))
}

/// What names are refused with.
const NAME_RULE: &str =
    "a name has 1 to 64 ASCII letters, digits and . _ - @, and a letter or digit among them";
