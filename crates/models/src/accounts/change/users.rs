//! Users: making, changing and removing them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Accounts;
use super::super::fault::AccountFault;
use super::super::record::{Limit, Role, Token, User, check_all, is_name};
use super::super::roll::{GONE, TOKENS, USERS};
use super::{Done, NAME_RULE, Note, USERS_MAX, put, unfit};

/// Names that sound like the operator's, which only an administrator gives to a user.
const RESERVED: [&str; 20] = [
    "admin",
    "administrator",
    "anonymous",
    "approver",
    "auditor",
    "default",
    "durward",
    "everyone",
    "guest",
    "local",
    "nobody",
    "operator",
    "owner",
    "root",
    "security",
    "service",
    "superuser",
    "support",
    "sysadmin",
    "system",
];

/// Returns whether a name is reserved, in whatever case and with whatever marks it is written.
fn is_reserved(name: &str) -> bool {
    let letters = |name: &str| -> String {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    let plain = letters(name);
    RESERVED.iter().any(|reserved| *reserved == plain)
}

/// What a new user is to be.
#[derive(Debug, Default)]
pub struct NewUser {
    pub name: String,
    pub team: Option<String>,
    pub role: Role,
    pub budgets: Vec<Limit>,
    /// Somebody registers. The name of a user who was removed is not theirs to take: rules, jobs, results and remembered
    /// replies go by it.
    pub is_own_doing: bool,
}

/// What of a user is to change; what is absent stays.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// `null` takes the user out of the team.
    #[serde(default, deserialize_with = "given")]
    pub team: Option<Option<String>>,
    pub role: Option<Role>,
    pub is_active: Option<bool>,
    pub budgets: Option<Vec<Limit>>,
}

/// Tells a member that is `null` from one that is absent.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    serde::Deserialize::deserialize(from).map(Some)
}

impl Accounts {
    /// Makes a user with a first token; gives both, and the token's text, which is kept nowhere.
    pub(crate) fn add_user(
        &self,
        new: NewUser,
        now_ms: i64,
        note: &Note,
    ) -> Done<(Arc<User>, String)> {
        if !is_name(&new.name) {
            return unfit(NAME_RULE);
        }
        if new.is_own_doing && is_reserved(&new.name) {
            return unfit("the name is reserved for the operator; choose another one");
        }
        check_all(&new.budgets).map_err(AccountFault::Unfit)?;
        let _alone = self.alone();
        {
            let roll = self.roll();
            let is_same = |known: &String| known.eq_ignore_ascii_case(&new.name);
            if roll.users.keys().any(is_same) {
                return Err(AccountFault::Taken("user"));
            }
            if new.is_own_doing && roll.gone.iter().any(is_same) {
                return Err(AccountFault::Taken("user"));
            }
            if roll.users.len() + roll.gone.len() >= USERS_MAX {
                return Err(AccountFault::Full("users"));
            }
        }
        self.has_team(new.team.as_deref())?;
        let what = match new.is_own_doing {
            true => format!("user {} has registered", new.name),
            false => format!("user {} made", new.name),
        };
        let user = User {
            id: self.id("u_")?,
            name: new.name,
            team: new.team,
            role: new.role,
            is_active: true,
            created_ms: now_ms,
            budgets: new.budgets,
            provider_keys: BTreeMap::new(),
        };
        let (text, digest) = self.fresh()?;
        let token = Token {
            id: self.id("t_")?,
            name: "first".to_owned(),
            user: user.name.clone(),
            created_ms: now_ms,
            expires_ms: None,
            budgets: Vec::new(),
        };
        self.write((note, &what), |to| {
            put(to, USERS, user.name.as_bytes(), &user)?;
            to.remove(GONE, user.name.as_bytes())?;
            put(to, TOKENS, &digest, &token)
        })?;
        let user = Arc::new(user);
        let mut roll = self.roll_to_change();
        roll.gone.remove(&user.name);
        roll.users.insert(user.name.clone(), Arc::clone(&user));
        roll.add_token(digest, token);
        Ok((user, text))
    }

    /// Changes a user. One who is no longer active, or in another team, is expelled.
    pub(crate) fn change_user(
        &self,
        name: &str,
        change: UserChange,
        note: &Note,
    ) -> Done<Arc<User>> {
        check_all(change.budgets.as_deref().unwrap_or_default()).map_err(AccountFault::Unfit)?;
        let _alone = self.alone();
        if let Some(team) = &change.team {
            self.has_team(team.as_deref())?;
        }
        let mut user = self.owned(name)?;
        let (was_active, was_in) = (user.is_active, user.team.clone());
        user.team = change.team.unwrap_or(user.team);
        user.role = change.role.unwrap_or(user.role);
        user.is_active = change.is_active.unwrap_or(user.is_active);
        user.budgets = change.budgets.unwrap_or(user.budgets);
        let user = self.keep(user, (note, &format!("user {name} changed")))?;
        // What is open goes by the groups that it was opened with.
        if (was_active && !user.is_active) || was_in != user.team {
            self.gone().push(user.subject());
        }
        Ok(user)
    }

    /// Removes a user with all tokens and keys.
    pub(crate) fn remove_user(&self, name: &str, note: &Note) -> Done<()> {
        let _alone = self.alone();
        let user = self.user(name)?;
        let tokens = self.roll().tokens_of(name);
        self.write((note, &format!("user {name} removed")), |to| {
            to.remove(USERS, name.as_bytes())?;
            to.put(GONE, name.as_bytes(), b"")?;
            for (digest, _) in &tokens {
                to.remove(TOKENS, digest)?;
            }
            Ok(())
        })?;
        let mut roll = self.roll_to_change();
        for (digest, _) in &tokens {
            roll.remove_token(digest);
        }
        roll.by_user.remove(name);
        roll.users.remove(name);
        roll.gone.insert(name.to_owned());
        drop(roll);
        self.gone().push(user.subject());
        Ok(())
    }

    /// The user of this name.
    pub(crate) fn user(&self, name: &str) -> Done<Arc<User>> {
        let found = self.roll().users.get(name).cloned();
        found.ok_or(AccountFault::Absent("user"))
    }

    /// The same, to be changed.
    pub(super) fn owned(&self, name: &str) -> Done<User> {
        let user = self.user(name)?;
        Ok(User::clone(&user))
    }

    /// Writes a changed user down.
    pub(super) fn keep(&self, user: User, noted: (&Note, &str)) -> Done<Arc<User>> {
        self.write(noted, |to| put(to, USERS, user.name.as_bytes(), &user))?;
        let user = Arc::new(user);
        let mut roll = self.roll_to_change();
        roll.users.insert(user.name.clone(), Arc::clone(&user));
        Ok(user)
    }

    fn has_team(&self, team: Option<&str>) -> Done<()> {
        match team {
            Some(team) if !self.roll().teams.contains_key(team) => {
                Err(AccountFault::Absent("team"))
            }
            Some(_) | None => Ok(()),
        }
    }
}
