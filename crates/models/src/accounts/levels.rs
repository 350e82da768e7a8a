//! The budgets that a call of an account is on: the token's, inside the user's, the team's and the tenant's.

use gate::Caller;
use serde_json::{Value, json};
use state::counter::{AccountBudget, BudgetUnit};

use super::Accounts;
use super::record::{Limit, Token, User};
use super::roll::Roll;

impl Accounts {
    /// The budgets of a caller, from the narrowest to the widest; none for a caller without an account.
    #[must_use]
    pub(crate) fn budgets(&self, caller: &Caller) -> Vec<AccountBudget> {
        let Some(id) = caller.token.as_deref() else {
            return Vec::new();
        };
        let roll = self.roll();
        let token = roll.by_id.get(id).and_then(|at| roll.tokens.get(at));
        let user = token.and_then(|token| roll.users.get(&token.user));
        match (token, user) {
            (Some(token), Some(user)) => {
                let mut budgets = of_all(&format!("token {id}"), &token.budgets);
                budgets.extend(self.of_user(&roll, user));
                budgets
            }
            // Revoked meanwhile: what is not there any more has no room.
            _ => of_all(&format!("token {id}"), &[Limit::requests_a_minute(0)]),
        }
    }

    /// The same without a token's own.
    fn of_user(&self, roll: &Roll, user: &User) -> Vec<AccountBudget> {
        let mut budgets = of_all(&format!("user {}", user.id), &user.budgets);
        if !budgets.iter().any(|own| own.unit == BudgetUnit::Requests)
            && let Some(most) = self.options.requests_a_minute
        {
            let usual = Limit::requests_a_minute(most);
            budgets.extend(usual.budget(&format!("user {}", user.id)));
        }
        if let Some(team) = &user.team {
            budgets.extend(self.of_team(roll, team));
        }
        budgets
    }

    fn of_team(&self, roll: &Roll, name: &str) -> Vec<AccountBudget> {
        let Some(team) = roll.teams.get(name) else {
            return Vec::new();
        };
        let mut budgets = of_all(&format!("team {name}"), &team.budgets);
        if let Some(tenant) = &team.tenant
            && let Some(own) = roll.tenants.get(tenant)
        {
            budgets.extend(of_all(&format!("tenant {tenant}"), &own.budgets));
        }
        budgets
    }

    /// What is used of a user's budgets, those of the team and the tenant included.
    pub(crate) fn used_by(&self, user: &User, now_ms: i64) -> Value {
        let budgets = self.of_user(&self.roll(), user);
        self.told(&budgets, now_ms)
    }

    /// What is used of a token's own budgets.
    pub(crate) fn used_with(&self, token: &Token, now_ms: i64) -> Value {
        self.told(
            &of_all(&format!("token {}", token.id), &token.budgets),
            now_ms,
        )
    }

    /// What is used of the budgets of a team or a tenant.
    pub(crate) fn used_of(&self, holder: &str, limits: &[Limit], now_ms: i64) -> Value {
        self.told(&of_all(holder, limits), now_ms)
    }

    fn told(&self, budgets: &[AccountBudget], now_ms: i64) -> Value {
        let one = |budget: &AccountBudget| {
            let unit = match budget.unit {
                BudgetUnit::Tokens => "tokens",
                BudgetUnit::Requests => "requests",
                BudgetUnit::Micros => "cost_micros",
            };
            let of = budget.account.split(' ').next().unwrap_or_default();
            json!({
                "of": of,
                unit: budget.limit,
                "used": self.counter.local_usage(budget, now_ms),
                "window_s": budget.window_ms / 1_000,
                "ends_in_s": budget.ends_in_ms(now_ms).map(|ms| ms.div_ceil(1_000)),
            })
        };
        budgets.iter().map(one).collect()
    }
}

fn of_all(holder: &str, limits: &[Limit]) -> Vec<AccountBudget> {
    limits
        .iter()
        .filter_map(|limit| limit.budget(holder))
        .collect()
}
