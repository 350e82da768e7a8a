//! How often a server looks after what is there: a few times a second while anything happens, and hardly ever when
//! nothing does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp::http::Activity;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// How often it looks while something happens, in milliseconds.
const TICK_MS: u64 = 250;
/// How long it goes on with that after the last thing that happened, in milliseconds: longer than counts of refusals and
/// checkpoints of refusals may wait.
const LINGER_MS: u64 = 5_000;
/// How often it looks when nothing happens while something is open, in milliseconds: a session whose client may have been
/// idle for too long, a stream to be kept alive.
const OPEN_MS: u64 = 1_000;
/// How often it looks when nothing happens and nothing is open, in milliseconds: whether the journal's file is still there, and what time
/// alone changes.
const REST_MS: u64 = 10_000;

/// Hears that something happens.
#[derive(Debug, Default)]
pub struct Rhythm {
    touched: AtomicBool,
    resting: AtomicBool,
    woken: Notify,
}

impl Rhythm {
    /// Something happens: from now on it is looked after.
    pub fn touch(&self) {
        // Most requests find it so, and write nothing.
        if !self.touched.load(Ordering::SeqCst) {
            self.touched.store(true, Ordering::SeqCst);
        }
        if self.resting.load(Ordering::SeqCst) && self.resting.swap(false, Ordering::SeqCst) {
            self.woken.notify_one();
        }
    }
}

/// The one who looks.
#[derive(Debug)]
pub struct Beat {
    rhythm: Arc<Rhythm>,
    awake_until: Instant,
}

impl Beat {
    /// Begins awake.
    pub fn new(rhythm: Arc<Rhythm>) -> Self {
        Self {
            rhythm,
            awake_until: Instant::now() + Duration::from_millis(LINGER_MS),
        }
    }

    /// Waits until it is time to look again. While something is under way that is soon.
    pub async fn next(&mut self, activity: Activity) {
        if self.is_awake(Instant::now(), activity == Activity::UnderWay) {
            return sleep(Duration::from_millis(TICK_MS)).await;
        }
        let rest_ms = match activity {
            Activity::Open => OPEN_MS,
            Activity::Nothing | Activity::UnderWay => REST_MS,
        };
        tokio::select! {
            () = self.rhythm.woken.notified() => {}
            () = sleep(Duration::from_millis(rest_ms)) => {}
        }
        self.rhythm.resting.store(false, Ordering::SeqCst);
    }

    /// Whether something has happened lately. Where nothing has, whatever happens next wakes.
    fn is_awake(&mut self, now: Instant, busy: bool) -> bool {
        let rhythm = &self.rhythm;
        if rhythm.touched.swap(false, Ordering::SeqCst) || busy {
            self.awake_until = now + Duration::from_millis(LINGER_MS);
        }
        if now < self.awake_until {
            return true;
        }
        rhythm.resting.store(true, Ordering::SeqCst);
        // What happened before that was said did not wake anybody.
        let is_touched = rhythm.touched.load(Ordering::SeqCst);
        if is_touched {
            rhythm.resting.store(false, Ordering::SeqCst);
        }
        is_touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_rests_when_nothing_happens_and_is_woken_by_what_does() {
        let rhythm = Arc::new(Rhythm::default());
        let mut beat = Beat::new(Arc::clone(&rhythm));
        let begun = beat.awake_until - Duration::from_millis(LINGER_MS);
        let at = |ms| begun + Duration::from_millis(ms);
        assert!(beat.is_awake(at(0), false));
        assert!(beat.is_awake(at(LINGER_MS - 1), false));
        assert!(!beat.is_awake(at(LINGER_MS), false));
        // What happens while it rests wakes it, and is looked after for a while.
        rhythm.touch();
        rhythm.woken.notified().await;
        assert!(beat.is_awake(at(60_000), false));
        assert!(beat.is_awake(at(60_000 + LINGER_MS - 1), false));
        assert!(!beat.is_awake(at(60_000 + LINGER_MS), false));
        // Who is busy does not rest.
        assert!(beat.is_awake(at(120_000), true));
        assert!(!beat.is_awake(at(120_000 + LINGER_MS), false));
        // A second thing that happens wakes nobody a second time.
        rhythm.touch();
        rhythm.touch();
        rhythm.woken.notified().await;
        let again = tokio::time::timeout(Duration::ZERO, rhythm.woken.notified());
        assert!(again.await.is_err());
    }
}
