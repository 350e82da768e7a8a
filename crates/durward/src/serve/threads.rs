//! How many threads serve.

use net::http::server::Threads;
use state::SyncPolicy;

use crate::failure::Failure;

/// Threads where each waits for the disk at every call: so many calls share one sync.
const WAITING_THREADS: usize = 16;
/// Most threads unless more are asked for: the journal is one for all of them.
const USUAL_THREADS_MAX: usize = 16;

/// The threads that serve: as many as were asked for, else what is usual here.
pub fn started(asked: Option<u64>, sync: SyncPolicy) -> Result<Threads, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let asked = asked.and_then(|threads| usize::try_from(threads).ok());
    let count = asked.unwrap_or_else(|| usual(processors, sync));
    Threads::start(count).map_err(|error| not_started(&error))
}

/// The runtime of all that is no connection.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| not_started(&error))
}

fn not_started(error: &std::io::Error) -> Failure {
    Failure::other(format!("cannot start the runtime: {error}"))
}

/// What is usual on a machine with so many processors: one for each. A thread that finds nothing to do sleeps, and no other
/// one wakes it.
fn usual(processors: usize, sync: SyncPolicy) -> usize {
    match sync {
        SyncPolicy::Every => WAITING_THREADS,
        SyncPolicy::Interval { .. } | SyncPolicy::Never => processors.clamp(1, USUAL_THREADS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_has_a_thread_unless_calls_wait_for_the_disk() {
        let cases = [
            (0, SyncPolicy::default(), 1),
            (1, SyncPolicy::default(), 1),
            (2, SyncPolicy::Never, 2),
            (8, SyncPolicy::default(), 8),
            (128, SyncPolicy::default(), USUAL_THREADS_MAX),
            (2, SyncPolicy::Every, WAITING_THREADS),
        ];
        for (processors, sync, expect) in cases {
            assert_eq!(usual(processors, sync), expect, "{processors} {sync:?}");
        }
    }
}
