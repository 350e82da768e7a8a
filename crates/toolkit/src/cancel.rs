//! Telling work that nobody waits for it any more.

use std::sync::Arc;

use tokio::sync::watch;

/// One end of a piece of work: whoever holds it can cancel, ask, or wait. All clones are one token.
///
/// A thread that computes asks [`Cancel::is_cancelled`] in its loop; a task waits for
/// [`Cancel::cancelled`] beside its work.
#[derive(Debug, Clone)]
pub struct Cancel {
    flag: Arc<watch::Sender<bool>>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self {
            flag: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Cancel {
    /// Cancels. A second time changes nothing.
    pub fn cancel(&self) {
        self.flag.send_replace(true);
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.flag.borrow()
    }

    /// Whether this is the same token.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.flag, &other.flag)
    }

    /// Returns when it is cancelled; at once where it was before.
    pub async fn cancelled(&self) {
        let mut seen = self.flag.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = seen.wait_for(|cancelled| *cancelled).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_clone_sees_it() {
        let cancel = Cancel::default();
        let others: Vec<_> = (0..3).map(|_| cancel.clone()).collect();
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.cancelled().await }
        });
        assert!(!cancel.is_cancelled());
        others[1].cancel();
        others[2].cancel();
        waiting.await.unwrap();
        assert!(others[0].is_cancelled());
        cancel.cancelled().await;
    }
}
