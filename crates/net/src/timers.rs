//! Timers that a thread of their own keeps.
//!
//! A thread with a timer of its own waits for the kernel until that timer's time at most. The kernel then sets a timer as well,
//! and takes it back, for each wait: 0.1 to 0.2 µs. So the threads that serve calls
//! set none for what looks at something every now and then, or ends what takes too long: it is woken from here.

use std::future::pending;
use std::sync::OnceLock;
use std::thread;

use tokio::runtime::{Builder, Handle};

/// The thread's stack, in bytes.
const STACK_BYTES: usize = 256 * 1024;

/// Makes what waits for a time (`tokio::time::Sleep`, an `Interval`), so that it is kept by that thread. Meant for timers
/// that live long and fire seldom; who waits for them may be on any thread.
pub fn kept<T>(make: impl FnOnce() -> T) -> T {
    // Without a thread the present runtime keeps it.
    let _inside = keeper().map(Handle::enter);
    make()
}

fn keeper() -> Option<&'static Handle> {
    static KEEPER: OnceLock<Option<Handle>> = OnceLock::new();
    KEEPER
        .get_or_init(|| {
            let runtime = Builder::new_current_thread().enable_time().build().ok()?;
            let handle = runtime.handle().clone();
            thread::Builder::new()
                .name("timers".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || runtime.block_on(pending::<()>()))
                .ok()?;
            Some(handle)
        })
        .as_ref()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A runtime without a clock: a timer of its own would panic.
    #[test]
    fn a_timer_that_is_kept_elsewhere_wakes_who_waits_for_it() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let begun = Instant::now();
        runtime.block_on(async {
            let wait = Duration::from_millis(20);
            let mut ticks = kept(|| tokio::time::interval(wait));
            for _ in 0..3 {
                ticks.tick().await;
            }
            kept(|| tokio::time::sleep(wait)).await;
        });
        assert!(begun.elapsed() >= Duration::from_millis(60));
    }
}
