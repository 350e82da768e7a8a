//! Ownership of names on a Redis server.

use std::sync::Arc;

use state::lease::{LEASE_NAME_BYTES_MAX, LeaseError, LeaseRequest, OwnershipLease};
use state::{BoxFuture, LeaseStore, StoreUnavailable};

use super::link::{RedisServer, StoreScript};
use crate::quota::LeaseClock;
use crate::thread::StoreThread;

/// Largest time and duration that a script counts exactly.
const TIME_MAX: i64 = 1 << 53;

/// Leases on a Redis server, with fencing tokens that rise over a loss of its state.
#[derive(Debug)]
pub struct RedisLeases {
    server: Arc<RedisServer>,
    thread: Arc<StoreThread>,
    clock: LeaseClock,
}

/// Reply of the script: status, then token and end, or owner and time left.
type ScriptReply = (u8, String, String, u8);

impl RedisLeases {
    /// Creates the store. Connects to nothing.
    #[must_use]
    pub fn new(server: Arc<RedisServer>, thread: Arc<StoreThread>, clock: LeaseClock) -> Self {
        Self {
            server,
            thread,
            clock,
        }
    }

    fn run(
        &self,
        name: &str,
        (operation, owner, token): (&'static str, &str, String),
        (now_ms, ttl_ms): (i64, u64),
    ) -> impl Future<Output = Result<ScriptReply, StoreUnavailable>> + Send + use<> {
        let now = match self.clock {
            LeaseClock::Server => String::new(),
            LeaseClock::Caller => now_ms.clamp(-TIME_MAX, TIME_MAX).to_string(),
        };
        let ttl = ttl_ms.min(TIME_MAX.unsigned_abs()).to_string();
        let arguments = vec![operation.to_owned(), owner.to_owned(), token, now, ttl];
        let lease = format!("{}:lease:{name}", self.server.prefix);
        let tokens = format!("{}:token", self.server.prefix);
        let server = Arc::clone(&self.server);
        self.thread.run(async move {
            let keys = [lease.as_str(), tokens.as_str()];
            let arguments = |_: &str| arguments.clone();
            server
                .run_script(StoreScript::Lease, &keys, arguments)
                .await
        })
    }
}

/// Returns the lease of a reply.
fn granted(reply: &ScriptReply, name: &str, owner: &str) -> Result<OwnershipLease, LeaseError> {
    let (status, first, second, _) = reply;
    let unreadable = || LeaseError::Unavailable(StoreUnavailable::new("redis: unreadable reply"));
    match status {
        0 => Ok(OwnershipLease {
            name: name.to_owned(),
            owner: owner.to_owned(),
            token: first.parse().map_err(|_| unreadable())?,
            expires_ms: second.parse().map_err(|_| unreadable())?,
        }),
        1 => Err(LeaseError::Held {
            owner: first.clone(),
            ends_in_ms: second.parse().map_err(|_| unreadable())?,
        }),
        _ => Err(LeaseError::Lost),
    }
}

impl LeaseStore for RedisLeases {
    fn acquire<'a>(
        &'a self,
        request: LeaseRequest<'a>,
    ) -> BoxFuture<'a, Result<OwnershipLease, LeaseError>> {
        let is_valid = |text: &str| !text.is_empty() && text.len() <= LEASE_NAME_BYTES_MAX;
        if !is_valid(request.name) || !is_valid(request.owner) {
            return Box::pin(async { Err(LeaseError::InvalidName) });
        }
        let message = ("acquire", request.owner, String::new());
        let reply = self.run(request.name, message, (request.now_ms, request.ttl_ms));
        Box::pin(async move {
            let reply = reply.await.map_err(LeaseError::Unavailable)?;
            granted(&reply, request.name, request.owner)
        })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a OwnershipLease,
        now_ms: i64,
        ttl_ms: u64,
    ) -> BoxFuture<'a, Result<OwnershipLease, LeaseError>> {
        let message = ("renew", lease.owner.as_str(), lease.token.to_string());
        let reply = self.run(&lease.name, message, (now_ms, ttl_ms));
        Box::pin(async move {
            let reply = reply.await.map_err(LeaseError::Unavailable)?;
            granted(&reply, &lease.name, &lease.owner)
        })
    }

    fn release<'a>(&'a self, lease: &'a OwnershipLease) -> BoxFuture<'a, Result<(), LeaseError>> {
        let message = ("release", lease.owner.as_str(), lease.token.to_string());
        let reply = self.run(&lease.name, message, (0, 0));
        Box::pin(async move { reply.await.map(drop).map_err(LeaseError::Unavailable) })
    }
}
