//! Budgets of tokens and of money: which accounts a call is on, and what is reserved for it.
//!
//! A token is at least one byte of the request, so the request's length and the most that the model may write
//! together are never less than what a call of text uses. An image that is named by its URL can cost more.

use std::fmt;
use std::sync::Arc;

use dialects::Tokens;
use gate::Caller;
use state::counter::{
    AccountBudget, BudgetUnit, CounterStore, MemoryCounter, Reservation, ReserveError,
    ReserveRequest, SpendAmount,
};

use toolkit::door::RunBudget;

use crate::accounts::Accounts;
use crate::catalogue::Route;
use crate::prices::{Prices, most};
use crate::request::ModelRequest;

/// What is reserved for a reply of a run if the request names no most and the configuration no reserve, in tokens.
const RUN_REPLY_TOKENS: u64 = 16_384;

/// Window of the account of a run, in milliseconds: its use is forgotten after that.
const RUN_WINDOW_MS: u64 = 24 * 60 * 60 * 1_000;

/// Whose use one budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Per {
    /// Each caller has the whole of it.
    #[default]
    Caller,
    /// The callers of each group share it.
    Group,
    /// All callers share it.
    All,
}

/// How much may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Most {
    /// Tokens read and written.
    Tokens(u64),
    /// Millionths of a dollar.
    Micros(u64),
    /// Calls.
    Requests(u64),
}

/// A budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRule {
    /// Its name.
    pub name: String,
    /// What may be used within a window.
    pub most: Most,
    /// The length of a window, in milliseconds; 0 where it never ends.
    pub window_ms: u64,
    /// Whose use is counted.
    pub per: Per,
    /// Only callers of these groups; where the list is empty, all.
    pub groups: Vec<String>,
}

impl BudgetRule {
    /// The accounts of a caller under this budget.
    fn accounts(&self, caller: &Caller) -> Vec<Arc<str>> {
        let listed = |group: &&Arc<str>| {
            self.groups.is_empty() || self.groups.iter().any(|own| **own == ***group)
        };
        let mut groups = caller.groups.iter().filter(listed);
        let name = &self.name;
        match self.per {
            Per::Group => groups
                .map(|group| format!("{name} group {group}").into())
                .collect(),
            Per::Caller | Per::All if !self.groups.is_empty() && groups.next().is_none() => {
                Vec::new()
            }
            Per::Caller => vec![format!("{name} caller {}", caller.subject).into()],
            Per::All => vec![name.as_str().into()],
        }
    }
}

/// All budgets, and the store of their accounts.
#[derive(Clone)]
pub struct Budgets {
    rules: Vec<BudgetRule>,
    counter: Arc<dyn CounterStore>,
    /// What is reserved for a reply where the request names no most, in tokens.
    reply_tokens: u64,
    prices: Arc<Prices>,
    accounts: Option<Arc<Accounts>>,
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Budgets {
    /// These rules, counted here.
    #[must_use]
    pub fn new(
        rules: Vec<BudgetRule>,
        counter: Arc<dyn CounterStore>,
        reply_tokens: u64,
        prices: Arc<Prices>,
    ) -> Self {
        Self {
            rules,
            counter,
            reply_tokens,
            prices,
            accounts: None,
        }
    }

    /// Returns budgets of runs alone, counted in memory.
    pub(crate) fn of_runs(prices: Arc<Prices>) -> Self {
        let counter = Arc::new(MemoryCounter::default());
        Self::new(Vec::new(), counter, RUN_REPLY_TOKENS, prices)
    }

    /// The same with the budgets of accounts.
    #[must_use]
    pub fn with_accounts(self, accounts: Option<Arc<Accounts>>) -> Self {
        Self { accounts, ..self }
    }

    /// Returns the store of the accounts.
    #[must_use]
    pub fn counter(&self) -> &dyn CounterStore {
        self.counter.as_ref()
    }

    /// The accounts, where there are any.
    #[must_use]
    pub fn accounts(&self) -> Option<&Arc<Accounts>> {
        self.accounts.as_ref()
    }

    /// Reserves what a call may use on every account that its caller is on.
    pub(crate) async fn reserve(
        &self,
        request: &ModelRequest,
        route: &Route,
        (caller, run): (&Caller, Option<&RunBudget>),
        now_ms: i64,
    ) -> Result<Reservation, ReserveError> {
        let budgets = self.rules.iter().flat_map(|rule| {
            let accounts = rule.accounts(caller).into_iter();
            accounts.map(|account| AccountBudget {
                account,
                unit: match rule.most {
                    Most::Tokens(_) => BudgetUnit::Tokens,
                    Most::Micros(_) => BudgetUnit::Micros,
                    Most::Requests(_) => BudgetUnit::Requests,
                },
                limit: match rule.most {
                    Most::Tokens(most) | Most::Micros(most) | Most::Requests(most) => most,
                },
                window_ms: rule.window_ms,
            })
        });
        let mut budgets: Vec<AccountBudget> = budgets.collect();
        if let Some(accounts) = &self.accounts {
            budgets.extend(accounts.budgets(caller));
        }
        budgets.extend(run.into_iter().flat_map(run_accounts));
        let request = ReserveRequest::new(&budgets, self.cost(request, route), now_ms);
        self.counter.acquire(request).await
    }

    /// The most that a call can use. Whichever target serves it, it costs no more than at the dearest.
    fn cost(&self, request: &ModelRequest, route: &Route) -> SpendAmount {
        let (read, wrote) = most(request, self.reply_tokens);
        let prices = route
            .targets()
            .filter_map(|target| self.prices.estimate(request, target));
        SpendAmount {
            tokens: read.saturating_add(wrote),
            micros: prices.max().unwrap_or(0),
            requests: 1,
        }
    }
}

/// Returns the accounts of a run: one for each amount that is bounded.
fn run_accounts(run: &RunBudget) -> impl Iterator<Item = AccountBudget> {
    let bounds = [
        (BudgetUnit::Tokens, run.tokens),
        (BudgetUnit::Micros, run.cost_micros),
    ];
    let bounded = bounds
        .into_iter()
        .filter_map(|(unit, limit)| Some((unit, limit?)));
    bounded.map(|(unit, limit)| {
        let word = match unit {
            BudgetUnit::Micros => "cost",
            BudgetUnit::Tokens | BudgetUnit::Requests => "tokens",
        };
        AccountBudget {
            account: format!("run {} {word}", run.account).into(),
            unit,
            limit,
            window_ms: RUN_WINDOW_MS,
        }
    })
}

/// Returns what a call has used, as budgets count it.
pub(crate) fn spent(tokens: Tokens, cost: Option<u64>) -> SpendAmount {
    let (input, output) = (tokens.input.unwrap_or(0), tokens.output.unwrap_or(0));
    SpendAmount {
        tokens: input.saturating_add(output),
        micros: cost.unwrap_or(0),
        requests: 1,
    }
}

/// Puts what was used, and what it cost, in the place of what was reserved.
pub(crate) fn settle(reservation: Option<Reservation>, tokens: Tokens, cost: Option<u64>) {
    if let Some(reservation) = reservation {
        reservation.settle(spent(tokens, cost));
    }
}

/// Returns the sentence about a budget that does not let a call pass; none where it says nothing of a budget.
pub(crate) fn sentence(error: &ReserveError) -> Option<String> {
    let ReserveError::Exhausted {
        account,
        unit,
        remaining,
        ends_in_ms,
    } = error
    else {
        return None;
    };
    let counted = match unit {
        BudgetUnit::Tokens => "tokens",
        BudgetUnit::Micros => "millionths of a dollar",
        BudgetUnit::Requests => "requests",
    };
    let end = ends_in_ms.map_or_else(
        || "it does not begin again".to_owned(),
        |ms| format!("it begins again in {} s", ms.div_ceil(1_000)),
    );
    Some(format!(
        "refused: this call may use more than the budget \"{account}\" has left ({remaining} {counted}); {end}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dialects::Endpoint;

    fn rule(per: Per, groups: &[&str]) -> BudgetRule {
        BudgetRule {
            name: "b".into(),
            most: Most::Tokens(1_000),
            window_ms: 0,
            per,
            groups: groups.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_caller_is_on_the_accounts_of_its_budgets() {
        let caller = Caller {
            subject: "key:a".into(),
            groups: Arc::from(["dev".into(), "ops".into()]),
            ..Caller::default()
        };
        let cases: [(Per, &[&str], &[&str]); 7] = [
            (Per::Caller, &[], &["b caller key:a"]),
            (Per::Caller, &["ops"], &["b caller key:a"]),
            (Per::Caller, &["law"], &[]),
            (Per::Group, &[], &["b group dev", "b group ops"]),
            (Per::Group, &["ops", "law"], &["b group ops"]),
            (Per::All, &[], &["b"]),
            (Per::All, &["law"], &[]),
        ];
        for (per, groups, expect) in cases {
            let accounts = rule(per, groups).accounts(&caller);
            let accounts: Vec<&str> = accounts.iter().map(AsRef::as_ref).collect();
            assert_eq!(accounts, expect, "{per:?} {groups:?}");
        }
    }

    #[test]
    fn what_is_reserved_is_the_request_and_the_longest_reply() {
        let cost = |endpoint, text: &str| {
            let request = ModelRequest::read(endpoint, text.as_bytes(), &http::HeaderMap::new());
            let (read, wrote) = most(&request.unwrap(), 50);
            assert!(read == 0 || read == u64::try_from(text.len()).unwrap());
            (read > 0, wrote)
        };
        assert_eq!(cost(Endpoint::Chat, r#"{"model":"m"}"#), (true, 50));
        assert_eq!(
            cost(Endpoint::Chat, r#"{"model":"m","max_tokens":7,"n":3}"#),
            (true, 21)
        );
        for unread in [
            r#"{"model":"m","max_tokens":"9000"}"#,
            r#"{"model":"m","n_predict":-1}"#,
            r#"{"model":"m","max_tokens":7,"n":"64"}"#,
        ] {
            assert_eq!(cost(Endpoint::Chat, unread), (true, u64::MAX), "{unread}");
        }
        assert_eq!(
            cost(Endpoint::Messages, r#"{"model":"m","max_tokens":7}"#),
            (true, 7)
        );
        assert_eq!(cost(Endpoint::Embeddings, r#"{"model":"m"}"#), (true, 0));
        assert_eq!(cost(Endpoint::CountTokens, r#"{"model":"m"}"#), (false, 0));
    }
}
