//! A bell: rung by anybody, heard by one who waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Rung once, it is heard once, also by who comes later; rung twice before it is heard, it is heard once. As
/// `tokio::sync::Notify` with one waiter, for what is waited for anew on the way of every call.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: AtomicBool,
    waiter: Mutex<Option<Waker>>,
}

impl Bell {
    /// Has who waits, or comes to wait, go on.
    pub fn ring(&self) {
        if self.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        let waiter = self
            .waiter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Ready once for each time that it was rung and not yet heard; else `cx` is woken by the next one, and nobody
    /// else who waited before.
    pub fn poll_heard(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.rung.swap(false, Ordering::AcqRel) {
            return Poll::Ready(());
        }
        {
            let mut waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *waiter {
                Some(waiter) => waiter.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
        // Rung between the first look and the note of who waits?
        if self.rung.swap(false, Ordering::AcqRel) {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Waits until it is heard. Cancel-safe.
    pub async fn heard(&self) {
        std::future::poll_fn(|cx| self.poll_heard(cx)).await;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_heard_once_whoever_comes_first() {
        let bell = Arc::new(Bell::default());
        bell.ring();
        bell.ring();
        bell.heard().await;
        let mut waits = Box::pin(bell.heard());
        assert!(futures_are_pending(waits.as_mut()).await);
        bell.ring();
        waits.await;
        let other = Arc::clone(&bell);
        let waits = tokio::spawn(async move { other.heard().await });
        tokio::task::yield_now().await;
        Waker::from(bell).wake();
        waits.await.unwrap();
    }

    async fn futures_are_pending(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        let mut future = future;
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }
}
