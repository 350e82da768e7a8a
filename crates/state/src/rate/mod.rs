//! Rate limits: a token bucket for each caller, a sliding window for each of its tools.
//!
//! [`RateStore`] is the seam, [`MemoryRates`] the embedded implementation. A request is counted by its bucket first and
//! by its window after that, in one step. A call that the window rejects has used up its token: a rejected
//! attempt costs as much as a call.

mod bucket;
mod call_rate;
mod memory;
mod monotonic;
mod window;

pub use call_rate::CallRate;
pub use memory::{BUCKETS_MAX, MARKS_MAX, MemoryRates, WINDOWS_MAX};
pub use window::EXACT_MAX;

use crate::store::{BoxFuture, StoreUnavailable};

/// Key of a bucket or a window: a keyed hash, so that the length of a name costs no memory, and a caller cannot
/// choose names that collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateKey(pub u64);

impl RateKey {
    /// Returns the key of a further bucket of the same owner.
    #[must_use]
    pub fn lane(self, number: u8) -> Self {
        Self(self.0 ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Limit of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketLimit {
    /// Rate at which tokens are earned.
    pub rate: CallRate,
    /// Maximum number of calls at once.
    pub burst: u32,
}

/// Limit of a sliding window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimit {
    /// Maximum number of calls within the window.
    pub calls_max: u32,
    /// Length of the window, in milliseconds.
    pub window_ms: u64,
}

/// Request for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateRequest {
    /// Bucket that the call is taken from.
    pub bucket: (RateKey, BucketLimit),
    /// Window that counts the call as well.
    pub window: Option<(RateKey, WindowLimit)>,
    /// Reading of a monotonic clock, in nanoseconds. A store that is shared by machines uses a clock of its own.
    pub now_ns: u64,
}

/// Decision about one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateDecision {
    /// The call is counted and may go on.
    Allowed,
    /// The bucket is empty. The call is not counted.
    BucketEmpty {
        /// Time until a token is available, in nanoseconds.
        wait_ns: u64,
    },
    /// The window is full. The call has used up its token and is not counted by the window.
    WindowFull {
        /// Time until the window has room, in nanoseconds.
        wait_ns: u64,
    },
}

/// Store of rate limits.
///
/// A shared implementation holds a part of each limit here, serves [`RateStore::try_local`] from it, and fetches more
/// in the background or in [`RateStore::take`].
pub trait RateStore: Send + Sync {
    /// Returns the key of a name. Stores that share their state use the same secret for it.
    fn key(&self, parts: &[&str]) -> RateKey;

    /// Decides without waiting. Returns `None` if only [`RateStore::take`] can decide.
    fn try_local(&self, request: &RateRequest) -> Option<RateDecision>;

    /// Decides about one call. Dropping the future may leave the call counted; it never counts it twice.
    fn take(&self, request: RateRequest) -> BoxFuture<'_, Result<RateDecision, StoreUnavailable>>;

    /// Empties a window and counts one call in it. Never waits: a shared store queues the change.
    fn restart_window(&self, key: RateKey, limit: WindowLimit, now_ns: u64);
}

impl dyn RateStore + '_ {
    /// Decides about one call, and waits only if the store has no local answer.
    ///
    /// # Errors
    /// [`StoreUnavailable`].
    pub async fn acquire(&self, request: RateRequest) -> Result<RateDecision, StoreUnavailable> {
        match self.try_local(&request) {
            Some(decision) => Ok(decision),
            None => self.take(request).await,
        }
    }
}
