//! Counters of this server's requests since the process began, under the bridge's names of metrics.
//!
//! Labels are words of this program, never a caller's: tools by their names, paths as in the document of paths.

mod told;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use toolkit::measure::Times;

/// The bounds of the classes of times, in seconds: the bridge's, and finer ones below.
const CLASSES_S: [f64; 19] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
];

/// Kind of counted unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CountedKind {
    /// A call of this tool.
    Tool(&'static str),
    /// A request with this method at this path.
    Request(&'static str, &'static str),
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EndKind {
    Success,
    Error,
    /// With this status.
    Status(u16),
}

/// The counts.
#[derive(Default)]
pub struct CallMetrics(Mutex<MetricCounts>);

#[derive(Default)]
struct MetricCounts {
    under_way: BTreeMap<CountedKind, u64>,
    ended: BTreeMap<(CountedKind, EndKind), Times>,
}

/// Count of a request or call in progress. A drop before its end counts as an error: the client has gone.
pub struct ActiveCount<'m> {
    metrics: &'m CallMetrics,
    what: CountedKind,
    since: Instant,
    end: Option<EndKind>,
}

impl CallMetrics {
    /// Begins the count of a tool call.
    #[must_use]
    pub fn tool(&self, tool: &'static str) -> ActiveCount<'_> {
        self.begin(CountedKind::Tool(tool))
    }

    /// Begins the count of a request, at a path as in the document.
    #[must_use]
    pub fn request(&self, method: &'static str, route: &'static str) -> ActiveCount<'_> {
        self.begin(CountedKind::Request(method, route))
    }

    fn begin(&self, what: CountedKind) -> ActiveCount<'_> {
        *self.lock_counts().under_way.entry(what).or_default() += 1;
        ActiveCount {
            metrics: self,
            what,
            since: Instant::now(),
            end: None,
        }
    }

    fn lock_counts(&self) -> MutexGuard<'_, MetricCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveCount<'_> {
    /// The call has ended.
    pub fn end(mut self, well: bool) {
        self.end = Some(if well {
            EndKind::Success
        } else {
            EndKind::Error
        });
    }

    /// The request is answered with this status.
    pub fn end_with_status(mut self, status: u16) {
        self.end = Some(EndKind::Status(status));
    }
}

impl Drop for ActiveCount<'_> {
    fn drop(&mut self) {
        let took = self.since.elapsed();
        // A request that is dropped without an answer has no status: servers log 499 for it.
        let gone = match self.what {
            CountedKind::Tool(_) => EndKind::Error,
            CountedKind::Request(..) => EndKind::Status(499),
        };
        let key = (self.what, self.end.unwrap_or(gone));
        let mut counted = self.metrics.lock_counts();
        let ended = counted.ended.entry(key);
        ended.or_insert_with(|| Times::new(&CLASSES_S)).add(took);
        if let Some(under_way) = counted.under_way.get_mut(&self.what) {
            *under_way = under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
