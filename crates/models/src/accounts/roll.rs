//! All accounts as they are in memory, by what they are looked up by: a call never waits for the disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use gate::identity::IdentityFault;
use state::kv::{Kv, SCAN_ENTRIES_MAX, Table, View as _};

use super::fault::OpenError;
use super::record::{Team, Token, User};

/// Users by name.
pub(super) const USERS: Table = Table("users");
/// Names of users who were removed.
pub(super) const GONE: Table = Table("gone");
/// Tokens by their digest.
pub(super) const TOKENS: Table = Table("tokens");
/// Teams by name.
pub(super) const TEAMS: Table = Table("teams");
/// Tenants by name.
pub(super) const TENANTS: Table = Table("tenants");

/// The keyed digest of a token.
pub(crate) type Digest = [u8; 32];

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    pub users: BTreeMap<String, Arc<User>>,
    pub gone: BTreeSet<String>,
    pub tokens: HashMap<Digest, Arc<Token>>,
    pub by_user: HashMap<String, Vec<Digest>>,
    pub by_id: HashMap<String, Digest>,
    pub teams: BTreeMap<String, Team>,
    pub tenants: BTreeMap<String, Team>,
}

impl Roll {
    /// Reads everything.
    pub fn read(kv: &Kv) -> Result<Self, OpenError> {
        let mut roll = Self::default();
        each(kv, USERS, |_, user: User| {
            roll.users.insert(user.name.clone(), Arc::new(user));
        })?;
        each_raw(kv, GONE, |key, _| {
            roll.gone.insert(name(key));
            Ok(())
        })?;
        each(kv, TOKENS, |key, token: Token| {
            if let Ok(digest) = Digest::try_from(key) {
                roll.add_token(digest, token);
            }
        })?;
        each(kv, TEAMS, |key, team: Team| {
            roll.teams.insert(name(key), team);
        })?;
        each(kv, TENANTS, |key, tenant: Team| {
            roll.tenants.insert(name(key), tenant);
        })?;
        Ok(roll)
    }

    pub fn add_token(&mut self, digest: Digest, token: Token) {
        let own = self.by_user.entry(token.user.clone()).or_default();
        own.push(digest);
        self.by_id.insert(token.id.clone(), digest);
        self.tokens.insert(digest, Arc::new(token));
    }

    pub fn remove_token(&mut self, digest: &Digest) {
        if let Some(token) = self.tokens.remove(digest) {
            self.by_id.remove(&token.id);
            if let Some(own) = self.by_user.get_mut(&token.user) {
                own.retain(|other| other != digest);
            }
        }
    }

    /// The tokens of a user, oldest first.
    pub fn tokens_of(&self, user: &str) -> Vec<(Digest, Arc<Token>)> {
        let own = self.by_user.get(user).into_iter().flatten();
        let found = own.filter_map(|digest| Some((*digest, Arc::clone(self.tokens.get(digest)?))));
        let mut found: Vec<_> = found.collect();
        found.sort_by(|a, b| (a.1.created_ms, &a.1.id).cmp(&(b.1.created_ms, &b.1.id)));
        found
    }

    /// Whose token this is, where it is good at a time.
    pub fn holder(
        &self,
        digest: &Digest,
        now_ms: i64,
    ) -> Result<(&Arc<Token>, &Arc<User>), IdentityFault> {
        let token = self.tokens.get(digest).ok_or(IdentityFault::Unknown)?;
        let user = self.users.get(&token.user);
        let user = user.ok_or(IdentityFault::Unknown)?;
        if !user.is_active {
            return Err(IdentityFault::Revoked);
        }
        match token.expires_ms {
            Some(end) if end <= now_ms => Err(IdentityFault::Expired),
            _ => Ok((token, user)),
        }
    }

    /// The tenant of a user, by way of the team.
    pub fn tenant_of(&self, user: &User) -> Option<&str> {
        let team = self.teams.get(user.team.as_deref()?)?;
        team.tenant.as_deref()
    }
}

fn name(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

/// Every entry of a table, in parts that are as long as a scan may be.
fn each<T: serde::de::DeserializeOwned>(
    kv: &Kv,
    table: Table,
    mut take: impl FnMut(&[u8], T),
) -> Result<(), OpenError> {
    each_raw(kv, table, |key, value| {
        let entry = serde_json::from_slice(value).map_err(|_| OpenError::Entry(table.0))?;
        take(key, entry);
        Ok(())
    })
}

/// The same as it is kept.
fn each_raw(
    kv: &Kv,
    table: Table,
    mut take: impl FnMut(&[u8], &[u8]) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let mut from = Vec::new();
    loop {
        let part = kv.read(|view| view.scan(table, &from, None, SCAN_ENTRIES_MAX))?;
        let Some((last, _)) = part.last() else {
            return Ok(());
        };
        from.clone_from(last);
        from.push(0);
        for (key, value) in &part {
            take(key, value)?;
        }
    }
}
