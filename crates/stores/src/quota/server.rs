//! Seam between the leases of a replica and the server that grants them.

use std::sync::Arc;

use state::{BoxFuture, StoreUnavailable};

/// Change of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaOperation {
    /// Reports use and repeats the claim.
    Report,
    /// Raises the claim to at least `need`, and to `wanted` and a reserve if the budget has them.
    Take {
        /// Claim that the next call needs.
        need: u64,
        /// Claim that all waiting calls need.
        wanted: u64,
    },
    /// Lowers the claim to what the request says is held.
    Return,
}

/// Time until the server may delete an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaExpiry {
    /// The window never ends.
    Never,
    /// The window ends within the time, in milliseconds.
    In(u64),
    /// The length of the window is not known; an earlier expiry stays.
    Unknown,
}

/// Message about one account in one window. All amounts are absolute.
#[derive(Debug, Clone)]
pub struct QuotaRequest {
    /// Name of the account.
    pub account: Arc<str>,
    /// Number of the window.
    pub window: i64,
    /// Holder of the claim: a replica and the identity of its ledger.
    pub owner: Arc<str>,
    /// Number of the message; the server ignores a message that is older than the owner's latest.
    pub sequence: u64,
    /// Maximum use within the window.
    pub limit: u64,
    /// Change of the claim.
    pub operation: QuotaOperation,
    /// Settled use of the owner.
    pub settled: u64,
    /// Claim that the owner has.
    pub held: u64,
    /// Time until the account may be deleted.
    pub expiry: QuotaExpiry,
    /// The server has confirmed a claim of this owner on the account before.
    pub is_known: bool,
}

/// State of an account after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaAnswer {
    /// Claim of the owner.
    pub granted: u64,
    /// Claims of all others.
    pub others: u64,
    /// Settled use of all others.
    pub others_settled: u64,
    /// Settled use of the owner, as the server knows it.
    pub own_settled: u64,
    /// Nothing is granted now.
    pub is_frozen: bool,
    /// A replica has got less than it needed a short time ago.
    pub is_wanted: bool,
}

/// Reply to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaReply {
    /// The message was applied.
    Applied(QuotaAnswer),
    /// The server has another state than the one that the replica has declared itself to.
    NewEpoch,
    /// The message is older than this number.
    Superseded(u64),
}

/// Kind of a sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeatOperation {
    /// The replica is alive.
    Beat,
    /// The replica has repeated all of its claims in this epoch.
    Declare(Arc<str>),
    /// The replica has returned its claims and ends.
    Leave,
}

/// Sign of life of a replica.
#[derive(Debug, Clone)]
pub struct BeatRequest {
    /// Name of the replica.
    pub replica: Arc<str>,
    /// Holder of its claims.
    pub owner: Arc<str>,
    /// Kind of the message.
    pub operation: BeatOperation,
    /// Number of replicas that have to declare themselves before a new epoch grants anything.
    pub replicas: u64,
    /// Names of replicas that this one has seen.
    pub known: Vec<Arc<str>>,
}

/// State of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetState {
    /// Identity of the server's state.
    pub epoch: Arc<str>,
    /// Nothing is granted until the replicas of the fleet have declared themselves.
    pub is_frozen: bool,
    /// This replica has declared itself in this epoch.
    pub has_declared: bool,
    /// Another process has the name of this replica.
    pub is_name_taken: bool,
    /// Time of the server, in milliseconds since 1970.
    pub now_ms: i64,
    /// Names of all replicas.
    pub replicas: Vec<Arc<str>>,
}

/// Server that grants claims.
pub trait QuotaServer: Send + Sync {
    /// Applies a message about an account.
    fn exchange(
        &self,
        request: QuotaRequest,
    ) -> BoxFuture<'_, Result<QuotaReply, StoreUnavailable>>;

    /// Applies a sign of life.
    fn beat(&self, request: BeatRequest) -> BoxFuture<'_, Result<FleetState, StoreUnavailable>>;
}
