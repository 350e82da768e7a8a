//! The administrator's paths.

use gate::Caller;
use http::Method;
use serde_json::{Value, json};

use super::path::Place;
use super::{Asked, Done, documents};
use crate::accounts::AccountFault;
use crate::accounts::Accounts;
use crate::accounts::change::{Level, NewUser, UserChange};
use crate::accounts::record::{Limit, Role, Team, User};

/// Most entries of one list.
const LIST_MAX: usize = 1_000;

/// What a new user is to be, as an administrator writes it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    username: String,
    team: Option<String>,
    #[serde(default)]
    role: Role,
    #[serde(default)]
    budgets: Vec<Limit>,
}

impl Accounts {
    /// Whether a caller is an administrator: by the role of the account, or by the group of the operator's key.
    pub(super) fn is_admin(&self, caller: Option<&Caller>) -> Result<(), AccountFault> {
        let caller = caller.ok_or(AccountFault::NotAdmin)?;
        let is = if caller.token.is_some() {
            let user = self.user_of(caller);
            user.is_some_and(|user| user.role == Role::Admin)
        } else {
            let named = &self.options.admin_group;
            // Whoever manages accounts can make one that reaches everything: a key for some servers may not, nor a group that an
            // issuer names.
            caller.sign_in.is_none()
                && caller.servers.is_none()
                && caller.groups.iter().any(|group| **group == **named)
        };
        if is {
            Ok(())
        } else {
            Err(AccountFault::NotAdmin)
        }
    }

    /// What an administrator asks.
    pub(super) fn administer(&self, asked: &Asked) -> Done {
        match &asked.place {
            Place::Users(None) if asked.method == Method::POST => {
                let body: Body = asked.read()?;
                let new = NewUser {
                    name: body.username,
                    team: body.team,
                    role: body.role,
                    budgets: body.budgets,
                    is_own_doing: false,
                };
                let (user, text) = self.add_user(new, asked.now_ms, &asked.note)?;
                Ok(documents::registered(&user, &text))
            }
            Place::Users(None) => self.list_users(asked),
            Place::Users(Some(name)) => self.one_user(asked, name),
            Place::UserTokens(name, id) => {
                let user = self.user(name)?;
                self.tokens(asked, &user, id.as_deref())
            }
            Place::Groups(level, None) => self.list_groups(asked, *level),
            Place::Groups(level, Some(name)) => self.one_group(asked, *level, name),
            Place::Page | Place::Register | Place::Me | Place::Keys(_) | Place::Tokens(_) => {
                Err(AccountFault::Absent("path"))
            }
        }
    }

    fn list_users(&self, asked: &Asked) -> Done {
        let after = asked.after();
        let roll = self.roll();
        let users = roll.users.values().filter(|user| user.name > after);
        let mut users: Vec<_> = users
            .take(LIST_MAX + 1)
            .map(|user| documents::of_user(user))
            .collect();
        let has_more = users.len() > LIST_MAX;
        users.truncate(LIST_MAX);
        Ok(json!({ "data": users, "has_more": has_more }))
    }

    fn one_user(&self, asked: &Asked, name: &str) -> Done {
        match asked.method {
            Method::PATCH => {
                let change: UserChange = asked.read()?;
                let user = self.change_user(name, change, &asked.note)?;
                Ok(self.with_budgets(&user, asked.now_ms))
            }
            Method::DELETE => {
                self.remove_user(name, &asked.note)?;
                Ok(json!({ "status": "removed", "username": name }))
            }
            _ => {
                let user = self.user(name)?;
                Ok(self.with_budgets(&user, asked.now_ms))
            }
        }
    }

    fn with_budgets(&self, user: &User, now_ms: i64) -> Value {
        let mut value = documents::of_user(user);
        if let Some(members) = value.as_object_mut() {
            members.insert("budgets".to_owned(), self.used_by(user, now_ms));
        }
        value
    }

    fn list_groups(&self, asked: &Asked, level: Level) -> Done {
        let after = asked.after();
        let roll = self.roll();
        let groups = level.of(&roll).iter().filter(|(name, _)| **name > after);
        let mut groups: Vec<Value> = groups
            .take(LIST_MAX + 1)
            .map(|(name, team)| self.group(level, name, team, asked.now_ms))
            .collect();
        let has_more = groups.len() > LIST_MAX;
        groups.truncate(LIST_MAX);
        Ok(json!({ "data": groups, "has_more": has_more }))
    }

    fn one_group(&self, asked: &Asked, level: Level, name: &str) -> Done {
        let word = level.word();
        match asked.method {
            Method::PUT => {
                let team: Team = asked.read()?;
                self.put_group(level, name, team.clone(), &asked.note)?;
                Ok(self.group(level, name, &team, asked.now_ms))
            }
            Method::DELETE => {
                self.remove_group(level, name, &asked.note)?;
                Ok(json!({ "status": "removed", "name": name }))
            }
            _ => {
                let found = level.of(&self.roll()).get(name).cloned();
                let team = found.ok_or(AccountFault::Absent(word))?;
                Ok(self.group(level, name, &team, asked.now_ms))
            }
        }
    }

    fn group(&self, level: Level, name: &str, team: &Team, now_ms: i64) -> Value {
        let holder = format!("{} {name}", level.word());
        documents::of_group(name, team, self.used_of(&holder, &team.budgets, now_ms))
    }
}

impl Asked {
    /// The name after which a list begins.
    fn after(&self) -> String {
        let query = self.query.as_deref().unwrap_or_default();
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(name, _)| *name == "after");
        // Names need no percent sign but for `@`.
        found
            .map(|(_, value)| value.replace("%40", "@"))
            .unwrap_or_default()
    }
}
