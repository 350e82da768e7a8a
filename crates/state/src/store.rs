//! Types that all stores share: futures of their methods, and the error of an unavailable store.

use std::fmt;
use std::pin::Pin;

/// Boxed future of a trait method: the stores are used as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Error of a store that can neither confirm nor reject a request.
///
/// The caller decides what this means: a budget of money is refused, a cache entry counts as missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUnavailable {
    reason: String,
}

impl StoreUnavailable {
    /// Creates the error. `reason` names what failed and contains no secret.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl fmt::Display for StoreUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store is unavailable: {}", self.reason)
    }
}

impl std::error::Error for StoreUnavailable {}
