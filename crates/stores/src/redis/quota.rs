//! Claims on a Redis server, by one script for each kind of message.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, PoisonError};

use state::{BoxFuture, StoreUnavailable};

use super::link::{RedisServer, StoreScript};
use crate::quota::{
    BeatOperation, BeatRequest, FleetState, QuotaAnswer, QuotaExpiry, QuotaOperation, QuotaReply,
    QuotaRequest, QuotaServer,
};

/// Largest amount that a script counts exactly; amounts above it are one amount.
const AMOUNT_MAX: u64 = 1 << 53;
/// Time after its latest sign of life in which the name of a replica is its own, in milliseconds.
const LIFETIME_MS: &str = "5000";
/// Time within which each replica reports, in milliseconds.
const RECALL_MS: &str = "100";

/// Returns an amount as scripts count it.
fn to_script(amount: u64) -> String {
    amount.min(AMOUNT_MAX).to_string()
}

/// Returns an amount of a script; the largest means every larger one.
fn from_script(amount: u64) -> u64 {
    match amount >= AMOUNT_MAX {
        true => u64::MAX,
        false => amount,
    }
}

impl QuotaServer for RedisServer {
    fn exchange(
        &self,
        request: QuotaRequest,
    ) -> BoxFuture<'_, Result<QuotaReply, StoreUnavailable>> {
        Box::pin(async move {
            let account = format!(
                "{}:account:{}:{}",
                self.prefix, request.window, request.account
            );
            let fleet = format!("{}:fleet", self.prefix);
            let (operation, need, wanted) = match request.operation {
                QuotaOperation::Report => ("report", 0, 0),
                QuotaOperation::Return => ("return", 0, 0),
                QuotaOperation::Take { need, wanted } => ("take", need, wanted),
            };
            let expiry = match request.expiry {
                QuotaExpiry::In(ms) => ms.min(AMOUNT_MAX).to_string(),
                QuotaExpiry::Never => "-1".to_owned(),
                QuotaExpiry::Unknown => "-2".to_owned(),
            };
            let (epoch, replicas) = self.epoch();
            let arguments = |run: &str| {
                vec![
                    operation.to_owned(),
                    request.owner.to_string(),
                    run.to_owned(),
                    epoch.to_string(),
                    request.sequence.to_string(),
                    to_script(request.limit),
                    to_script(need),
                    to_script(wanted),
                    to_script(request.settled),
                    to_script(request.held),
                    expiry.clone(),
                    u8::from(request.is_known).to_string(),
                    replicas.max(1).to_string(),
                    RECALL_MS.to_owned(),
                ]
            };
            let keys = [account.as_str(), fleet.as_str()];
            let reply = self.run_script(StoreScript::Account, &keys, arguments);
            let reply: (u8, u64, u64, u64, u64, u8, u8) = reply.await?;
            let (status, granted, others, others_settled, own, is_frozen, is_wanted) = reply;
            Ok(match status {
                0 => QuotaReply::Applied(QuotaAnswer {
                    granted: from_script(granted),
                    others,
                    others_settled,
                    own_settled: own,
                    is_frozen: is_frozen == 1,
                    is_wanted: is_wanted == 1,
                }),
                1 => QuotaReply::NewEpoch,
                _ => QuotaReply::Superseded(own),
            })
        })
    }

    fn beat(&self, request: BeatRequest) -> BoxFuture<'_, Result<FleetState, StoreUnavailable>> {
        Box::pin(async move {
            let fleet = format!("{}:fleet", self.prefix);
            let (operation, declared): (&str, Arc<str>) = match request.operation {
                BeatOperation::Beat => ("beat", "".into()),
                BeatOperation::Declare(epoch) => ("declare", epoch),
                BeatOperation::Leave => ("leave", "".into()),
            };
            let part = || RandomState::new().build_hasher().finish();
            let fresh = format!("{:016x}{:016x}", part(), part());
            let arguments = |run: &str| {
                let mut arguments = vec![
                    operation.to_owned(),
                    request.replica.to_string(),
                    request.owner.to_string(),
                    run.to_owned(),
                    fresh.clone(),
                    LIFETIME_MS.to_owned(),
                    request.replicas.to_string(),
                    declared.to_string(),
                ];
                arguments.extend(request.known.iter().map(ToString::to_string));
                arguments
            };
            let keys = [fleet.as_str()];
            let reply = self.run_script(StoreScript::Fleet, &keys, arguments);
            let reply: (u8, String, u8, u8, i64, Vec<String>) = reply.await?;
            let (status, epoch, is_frozen, has_declared, now_ms, names) = reply;
            let epoch: Arc<str> = epoch.into();
            let replicas: Vec<Arc<str>> = names.into_iter().map(Arc::from).collect();
            if status == 0 {
                let mut known = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
                *known = (Arc::clone(&epoch), replicas.len());
            }
            Ok(FleetState {
                epoch,
                is_frozen: is_frozen == 1,
                has_declared: has_declared == 1,
                is_name_taken: status == 1,
                now_ms,
                replicas,
            })
        })
    }
}
