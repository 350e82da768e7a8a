//! What is kept of tenants, teams, users and their tokens. All are JSON in the database; unknown members are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use state::counter::{AccountBudget, BudgetUnit};

/// Most budgets of one level.
pub const BUDGETS_MAX: usize = 8;
/// Longest window of a budget, in seconds: a year.
pub const WINDOW_S_MAX: u64 = 366 * 86_400;
/// Largest amount of one budget: tokens, requests or millionths of a dollar.
pub const AMOUNT_MAX: u64 = 1_000_000_000_000_000;
/// Longest name of a user, team, tenant or token, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// How much may be used of one thing within a window. Exactly one of the amounts is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Tokens read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Calls to models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The length of a window in seconds; 0: one window that never ends.
    #[serde(default)]
    pub window_s: u64,
}

impl Limit {
    /// So many requests a minute.
    #[must_use]
    pub fn requests_a_minute(most: u64) -> Self {
        Self {
            requests: Some(most),
            window_s: 60,
            ..Self::default()
        }
    }

    /// What it counts and how much of it there is; `None` where not exactly one amount is given.
    fn amount(&self) -> Option<(BudgetUnit, u64)> {
        match (self.tokens, self.requests, self.cost_micros) {
            (Some(most), None, None) => Some((BudgetUnit::Tokens, most)),
            (None, Some(most), None) => Some((BudgetUnit::Requests, most)),
            (None, None, Some(most)) => Some((BudgetUnit::Micros, most)),
            _ => None,
        }
    }

    /// What is wrong with it.
    ///
    /// # Errors
    /// A sentence for whoever wrote it.
    pub fn check(&self) -> Result<(), String> {
        let Some((_, most)) = self.amount() else {
            return Err("a budget has exactly one of tokens, requests and cost_micros".to_owned());
        };
        if most > AMOUNT_MAX {
            return Err(format!("a budget is at most {AMOUNT_MAX}"));
        }
        if self.window_s > WINDOW_S_MAX {
            return Err(format!("window_s is at most {WINDOW_S_MAX} (a year)"));
        }
        Ok(())
    }

    /// The same as a budget of the counter, on the account of this holder.
    #[must_use]
    pub fn budget(&self, holder: &str) -> Option<AccountBudget> {
        let (unit, most) = self.amount()?;
        let word = match unit {
            BudgetUnit::Tokens => "tokens",
            BudgetUnit::Requests => "requests",
            BudgetUnit::Micros => "cost",
        };
        Some(AccountBudget {
            account: format!("{holder} {word} {}", self.window_s).into(),
            unit,
            limit: most,
            window_ms: self.window_s.saturating_mul(1_000),
        })
    }
}

/// Checks the budgets of one level.
///
/// # Errors
/// A sentence for whoever wrote them.
pub fn check_all(limits: &[Limit]) -> Result<(), String> {
    if limits.len() > BUDGETS_MAX {
        return Err(format!("there are at most {BUDGETS_MAX} budgets"));
    }
    for (at, limit) in limits.iter().enumerate() {
        limit.check()?;
        let same = |other: &Limit| {
            other.window_s == limit.window_s
                && other.amount().map(|a| a.0) == limit.amount().map(|a| a.0)
        };
        if limits.iter().take(at).any(same) {
            return Err("two budgets count the same in windows of one length".to_owned());
        }
    }
    Ok(())
}

/// What a user may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Use models, and see to the own account.
    #[default]
    User,
    /// See to all accounts as well.
    Admin,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Never given to another.
    pub id: String,
    /// Unique; `user:NAME` in rules and records.
    pub name: String,
    /// The team, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// What the user may do.
    #[serde(default)]
    pub role: Role,
    /// Whether the user's tokens open anything.
    pub is_active: bool,
    /// In milliseconds since 1970.
    pub created_ms: i64,
    /// Beside those of the team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Limit>,
    /// Keys of providers, by the provider's name, sealed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provider_keys: BTreeMap<String, String>,
}

impl User {
    /// The name in rules and records.
    #[must_use]
    pub fn subject(&self) -> Arc<str> {
        format!("user:{}", self.name).into()
    }
}

/// A token of a user. Its text is kept nowhere: the digest of it is what it is filed under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Unique.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// Its owner.
    pub user: String,
    /// In milliseconds since 1970.
    pub created_ms: i64,
    /// When its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Inside those of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Limit>,
}

/// Users who share budgets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Team {
    /// The tenant, where there is one. No tenant has one itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Shared by its users.
    #[serde(default)]
    pub budgets: Vec<Limit>,
}

/// Whether this can be a name: it stands in names of accounts, in rules and in paths.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(fits)
        && name.bytes().any(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_say_what_is_wrong_with_them() {
        let cases = [
            (r#"{"tokens":5}"#, None),
            (r#"{"cost_micros":5,"window_s":86400}"#, None),
            ("{}", Some("exactly one")),
            (r#"{"tokens":5,"requests":5}"#, Some("exactly one")),
            (r#"{"tokens":1000000000000001}"#, Some("at most")),
            (r#"{"tokens":1,"window_s":40000000}"#, Some("a year")),
        ];
        for (text, says) in cases {
            let limit: Limit = serde_json::from_str(text).unwrap();
            let said = limit.check().err();
            assert_eq!(said.is_some(), says.is_some(), "{text} {said:?}");
            assert!(said.unwrap_or_default().contains(says.unwrap_or("")));
        }
        for odd in [
            r#"{"tokens":-1}"#,
            r#"{"tokens":1.5}"#,
            r#"{"tokens":"1"}"#,
            r#"{"token":1}"#,
            r#"{"tokens":1,"tokens":2}"#,
        ] {
            assert!(serde_json::from_str::<Limit>(odd).is_err(), "{odd}");
        }
        let limit = Limit::requests_a_minute(60);
        assert!(check_all(&[limit.clone(), limit.clone()]).is_err());
        assert!(check_all(&vec![limit.clone(); BUDGETS_MAX + 1]).is_err());
        let budget = limit.budget("user u_1").unwrap();
        assert_eq!(
            (&*budget.account, budget.unit, budget.window_ms),
            ("user u_1 requests 60", BudgetUnit::Requests, 60_000)
        );
    }

    #[test]
    fn names_have_no_room_for_anything_else() {
        for good in ["ada", "ada.l-1_x", "ada@example.org", "A"] {
            assert!(is_name(good), "{good}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", " ", "a b", "a/b", "..", "a\n", "ü", "a:b", &long] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
