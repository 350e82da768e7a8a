//! Keys of providers that users bring: sealed as they come.

use std::collections::BTreeMap;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::super::fault::AccountFault;
use super::super::record::User;
use super::super::{Accounts, purpose};
use super::{Done, Note, PROVIDER_KEY_BYTES_MAX, PROVIDER_KEYS_MAX, unfit};
use crate::key::Key;

impl Accounts {
    /// Keeps these keys, by the provider's name, beside those that are there or in their place.
    pub(crate) fn set_provider_keys(
        &self,
        user: &str,
        keys: BTreeMap<String, Zeroizing<String>>,
        note: &Note,
    ) -> Done<Arc<User>> {
        if keys.is_empty() {
            return unfit("write {\"PROVIDER\": \"KEY\"}");
        }
        for (provider, key) in &keys {
            if !crate::catalogue::is_name(provider) {
                return unfit("a provider's name has letters, digits and . _ - :");
            }
            if key.len() > PROVIDER_KEY_BYTES_MAX || Key::new(key).is_none() {
                return unfit(format!(
                    "the key of {provider} is empty, longer than {PROVIDER_KEY_BYTES_MAX} bytes, or holds a character that no key has"
                ));
            }
        }
        let named: Vec<&str> = keys.keys().map(String::as_str).collect();
        let what = format!("keys of {} of user {user} kept", named.join(", "));
        let _alone = self.alone();
        let mut changed = self.owned(user)?;
        for (provider, key) in keys {
            let nonce = *self.random::<12>()?;
            let sealed = self
                .seal
                .seal(&purpose(&changed.id, &provider), &key, nonce);
            let sealed = sealed.ok_or(AccountFault::Store)?;
            changed.provider_keys.insert(provider, sealed);
        }
        if changed.provider_keys.len() > PROVIDER_KEYS_MAX {
            return Err(AccountFault::Full("keys of providers of one user"));
        }
        self.keep(changed, (note, &what))
    }

    /// Forgets a key.
    pub(crate) fn remove_provider_key(
        &self,
        user: &str,
        provider: &str,
        note: &Note,
    ) -> Done<Arc<User>> {
        let _alone = self.alone();
        let mut changed = self.owned(user)?;
        if changed.provider_keys.remove(provider).is_none() {
            return Err(AccountFault::Absent("key"));
        }
        let what = format!("key of {provider} of user {user} removed");
        self.keep(changed, (note, &what))
    }
}
