//! Teams and tenants.

use std::collections::BTreeMap;

use state::kv::Table;

use super::super::Accounts;
use super::super::fault::AccountFault;
use super::super::record::{Team, check_all, is_name};
use super::super::roll::{Roll, TEAMS, TENANTS};
use super::{Done, GROUPS_MAX, NAME_RULE, Note, put, unfit};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Team,
    Tenant,
}

impl Level {
    pub fn word(self) -> &'static str {
        match self {
            Self::Team => "team",
            Self::Tenant => "tenant",
        }
    }

    fn table(self) -> Table {
        match self {
            Self::Team => TEAMS,
            Self::Tenant => TENANTS,
        }
    }

    pub(crate) fn of(self, roll: &Roll) -> &BTreeMap<String, Team> {
        match self {
            Self::Team => &roll.teams,
            Self::Tenant => &roll.tenants,
        }
    }

    fn of_mut(self, roll: &mut Roll) -> &mut BTreeMap<String, Team> {
        match self {
            Self::Team => &mut roll.teams,
            Self::Tenant => &mut roll.tenants,
        }
    }
}

impl Accounts {
    /// Makes a team or a tenant, or puts this in the place of the one that is there.
    pub(crate) fn put_group(&self, level: Level, name: &str, team: Team, note: &Note) -> Done<()> {
        if !is_name(name) {
            return unfit(NAME_RULE);
        }
        check_all(&team.budgets).map_err(AccountFault::Unfit)?;
        if level == Level::Tenant && team.tenant.is_some() {
            return unfit("a tenant has no tenant itself");
        }
        let _alone = self.alone();
        {
            let roll = self.roll();
            let known = level.of(&roll);
            if !known.contains_key(name) && known.len() >= GROUPS_MAX {
                return Err(AccountFault::Full(match level {
                    Level::Team => "teams",
                    Level::Tenant => "tenants",
                }));
            }
            if let Some(tenant) = &team.tenant
                && !roll.tenants.contains_key(tenant)
            {
                return Err(AccountFault::Absent("tenant"));
            }
        }
        let what = format!("{} {name} written", level.word());
        self.write((note, &what), |to| {
            put(to, level.table(), name.as_bytes(), &team)
        })?;
        let tenant = team.tenant.clone();
        let mut roll = self.roll_to_change();
        let before = level.of_mut(&mut roll).insert(name.to_owned(), team);
        // What is open goes by the groups that it was opened with.
        if before.is_some_and(|before| before.tenant != tenant) {
            let users = roll.users.values();
            let moved = users.filter(|user| user.team.as_deref() == Some(name));
            self.gone().extend(moved.map(|user| user.subject()));
        }
        Ok(())
    }

    /// Removes a team without users, or a tenant without teams: their budgets would be gone with it.
    pub(crate) fn remove_group(&self, level: Level, name: &str, note: &Note) -> Done<()> {
        let _alone = self.alone();
        {
            let roll = self.roll();
            if !level.of(&roll).contains_key(name) {
                return Err(AccountFault::Absent(level.word()));
            }
            let mut users = roll.users.values();
            let mut teams = roll.teams.values();
            match level {
                Level::Team if users.any(|user| user.team.as_deref() == Some(name)) => {
                    return Err(AccountFault::InUse(
                        "the team has users; move or remove them first",
                    ));
                }
                Level::Tenant if teams.any(|team| team.tenant.as_deref() == Some(name)) => {
                    return Err(AccountFault::InUse(
                        "the tenant has teams; move or remove them first",
                    ));
                }
                Level::Team | Level::Tenant => {}
            }
        }
        let what = format!("{} {name} removed", level.word());
        self.write((note, &what), |to| {
            Ok(to.remove(level.table(), name.as_bytes()).map(drop)?)
        })?;
        level.of_mut(&mut self.roll_to_change()).remove(name);
        Ok(())
    }
}
