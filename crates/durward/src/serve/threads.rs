//! How many threads serve.

use state::SyncPolicy;

use crate::failure::Failure;

/// Threads where each waits for the disk at every call: so many calls share one sync.
const WAITING_THREADS: usize = 16;

/// Threads that serve: as many as were asked for, else what is usual here.
pub fn of(asked: Option<u64>, sync: SyncPolicy) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let asked = asked.and_then(|threads| usize::try_from(threads).ok());
    asked.unwrap_or_else(|| usual(processors, sync))
}

/// A runtime with so many threads.
pub fn runtime(threads: usize) -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|e| Failure::other(format!("cannot start the runtime: {e}")))
}

/// What is usual on a machine with so many processors.
///
/// Half of the processors, for clients and servers have work to do as well. A call costs a few system calls and
/// little else: a second thread that finds nothing to do wakes and sleeps more than it helps.
fn usual(processors: usize, sync: SyncPolicy) -> usize {
    match sync {
        SyncPolicy::Every => WAITING_THREADS,
        SyncPolicy::Interval { .. } | SyncPolicy::Never => (processors / 2).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_processors_serve_unless_calls_wait_for_the_disk() {
        let cases = [
            (0, SyncPolicy::default(), 1),
            (1, SyncPolicy::default(), 1),
            (2, SyncPolicy::Never, 1),
            (3, SyncPolicy::default(), 1),
            (8, SyncPolicy::default(), 4),
            (2, SyncPolicy::Every, WAITING_THREADS),
        ];
        for (processors, sync, expect) in cases {
            assert_eq!(usual(processors, sync), expect, "{processors} {sync:?}");
        }
    }
}
