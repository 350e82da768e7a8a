//! Operations for operators: accounts and claims, the release of a replica that is gone, the end of a freeze.

use std::collections::BTreeMap;

use state::StoreUnavailable;

use super::link::{RedisServer, StoreScript};

/// Accounts that one call reads, at most.
pub const ACCOUNTS_SHOWN_MAX: usize = 10_000;
/// Keys that one step of a scan looks through.
const SCAN_COUNT: u32 = 500;

/// Claim of one ledger of a replica.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerClaim {
    /// Name of the replica.
    pub replica: String,
    /// Use that it may reach.
    pub claim: u64,
    /// Settled use.
    pub settled: u64,
}

/// Account in one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedAccount {
    /// Name of the account.
    pub account: String,
    /// Number of the window.
    pub window: i64,
    /// Claims on it, by replica.
    pub claims: Vec<OwnerClaim>,
}

/// Replica of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetReplica {
    /// Name.
    pub name: String,
    /// Time since its latest sign of life, in milliseconds.
    pub seen_ms: u64,
    /// It has declared its claims in the present epoch.
    pub has_declared: bool,
}

/// Fleet and its accounts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedBudgets {
    /// Nothing is granted until all replicas have reported.
    pub is_frozen: bool,
    /// Replicas by name.
    pub replicas: Vec<FleetReplica>,
    /// Accounts by name and window, at most [`ACCOUNTS_SHOWN_MAX`].
    pub accounts: Vec<SharedAccount>,
    /// There are more accounts.
    pub has_more: bool,
}

/// Result of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// Unused quota was returned on so many accounts.
    Released(usize),
    /// The replica is alive, so it returns its quota itself.
    IsAlive,
}

impl RedisServer {
    fn fleet_key(&self) -> String {
        format!("{}:fleet", self.prefix)
    }

    async fn account_keys(&self) -> Result<(Vec<String>, bool), StoreUnavailable> {
        let pattern = format!("{}:account:*", self.prefix);
        let (mut keys, mut cursor) = (Vec::new(), 0_u64);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern);
            scan.arg("COUNT").arg(SCAN_COUNT);
            let (next, found): (u64, Vec<String>) = self.query(&scan).await?;
            keys.extend(found);
            if next == 0 || keys.len() > ACCOUNTS_SHOWN_MAX {
                let has_more = keys.len() > ACCOUNTS_SHOWN_MAX;
                keys.truncate(ACCOUNTS_SHOWN_MAX);
                // A scan can give a key twice.
                keys.sort_unstable();
                keys.dedup();
                return Ok((keys, has_more));
            }
            cursor = next;
        }
    }

    /// Returns the fleet and its accounts.
    ///
    /// # Errors
    /// [`StoreUnavailable`].
    pub async fn shared_budgets(&self) -> Result<SharedBudgets, StoreUnavailable> {
        let mut read = redis::cmd("HGETALL");
        let read = read.arg(self.fleet_key());
        let fleet: BTreeMap<String, String> = self.query(read).await?;
        let (seconds, micros): (u64, u64) = self.query(&redis::cmd("TIME")).await?;
        let now_ms = seconds.saturating_mul(1_000).saturating_add(micros / 1_000);
        let epoch = fleet.get("epoch");
        let replicas = fleet.iter().filter_map(|(field, value)| {
            let name = field.strip_prefix("r:")?;
            let (_, at) = value.rsplit_once(' ')?;
            Some(FleetReplica {
                name: name.to_owned(),
                seen_ms: now_ms.saturating_sub(at.parse().ok()?),
                has_declared: epoch.is_some() && fleet.get(&format!("d:{name}")) == epoch,
            })
        });
        let replicas = replicas.collect();
        let (keys, has_more) = self.account_keys().await?;
        let mut accounts = Vec::with_capacity(keys.len());
        for key in keys {
            let mut read = redis::cmd("HGETALL");
            let fields: BTreeMap<String, String> = self.query(read.arg(&key)).await?;
            accounts.extend(self.account(&key, &fields));
        }
        accounts
            .sort_by(|a: &SharedAccount, b| (&a.account, a.window).cmp(&(&b.account, b.window)));
        Ok(SharedBudgets {
            is_frozen: fleet.get("frozen").is_some_and(|frozen| frozen != "0"),
            replicas,
            accounts,
            has_more,
        })
    }

    fn account(&self, key: &str, fields: &BTreeMap<String, String>) -> Option<SharedAccount> {
        let name = key.strip_prefix(&format!("{}:account:", self.prefix))?;
        let (window, account) = name.split_once(':')?;
        let mut claims: BTreeMap<&str, OwnerClaim> = BTreeMap::new();
        for (field, value) in fields {
            let Some((kind, owner)) = field.split_once(':') else {
                continue;
            };
            let Some((replica, _)) = owner.split_once('/') else {
                continue;
            };
            let claim = claims.entry(replica).or_default();
            claim.replica = replica.to_owned();
            let amount: u64 = value.parse().unwrap_or(0);
            match kind {
                "c" => claim.claim = claim.claim.saturating_add(amount),
                "u" => claim.settled = claim.settled.saturating_add(amount),
                _ => {}
            }
        }
        Some(SharedAccount {
            account: account.to_owned(),
            window: window.parse().ok()?,
            claims: claims.into_values().collect(),
        })
    }

    /// Returns the unused quota of a replica that is gone, and forgets its name. Use that it had not reported is not
    /// counted then.
    ///
    /// # Errors
    /// [`StoreUnavailable`].
    pub async fn release(&self, replica: &str) -> Result<ReleaseOutcome, StoreUnavailable> {
        let fleet = self.fleet_key();
        let arguments = |_: &str| vec!["forget".to_owned(), replica.to_owned()];
        let is_gone: u8 = self
            .run_script(StoreScript::Operator, &[&fleet], arguments)
            .await?;
        if is_gone == 0 {
            return Ok(ReleaseOutcome::IsAlive);
        }
        let mut released = 0;
        let (keys, _) = self.account_keys().await?;
        for key in keys {
            let arguments = |_: &str| vec!["release".to_owned(), replica.to_owned()];
            let returned: u8 = self
                .run_script(StoreScript::Operator, &[&key], arguments)
                .await?;
            released += usize::from(returned);
        }
        Ok(ReleaseOutcome::Released(released))
    }

    /// Ends a freeze without the replicas that have not reported. Returns false if nothing was frozen.
    ///
    /// # Errors
    /// [`StoreUnavailable`].
    pub async fn thaw(&self) -> Result<bool, StoreUnavailable> {
        let fleet = self.fleet_key();
        let arguments = |_: &str| vec!["thaw".to_owned(), String::new()];
        let thawed: u8 = self
            .run_script(StoreScript::Operator, &[&fleet], arguments)
            .await?;
        Ok(thawed == 1)
    }
}
