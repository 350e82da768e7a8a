//! What was asked of this server since the process began, under the bridge's names of metrics.
//!
//! Labels are words of this program, never a caller's: tools by their names, paths as they stand in the document of paths.

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

/// What is counted as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A call of this tool.
    Tool(&'static str),
    /// A request with this method at this path.
    Request(&'static str, &'static str),
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Success,
    Error,
    /// With this status.
    Status(u16),
}

/// The counts.
#[derive(Default)]
pub struct Metrics(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    under_way: BTreeMap<What, u64>,
    ended: BTreeMap<(What, End), Times>,
}

/// One that is under way. Where it is dropped before it has ended, nobody waits for it any more, which counts as an error.
pub struct Counting<'m> {
    metrics: &'m Metrics,
    what: What,
    since: Instant,
    end: Option<End>,
}

impl Metrics {
    /// A call of a tool begins.
    #[must_use]
    pub fn tool(&self, tool: &'static str) -> Counting<'_> {
        self.begin(What::Tool(tool))
    }

    /// A request begins, at a path as it stands in the document.
    #[must_use]
    pub fn request(&self, method: &'static str, route: &'static str) -> Counting<'_> {
        self.begin(What::Request(method, route))
    }

    fn begin(&self, what: What) -> Counting<'_> {
        *self.counted().under_way.entry(what).or_default() += 1;
        Counting {
            metrics: self,
            what,
            since: Instant::now(),
            end: None,
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counting<'_> {
    /// The call has ended.
    pub fn ended(mut self, well: bool) {
        self.end = Some(if well { End::Success } else { End::Error });
    }

    /// The request is answered with this status.
    pub fn answered(mut self, status: u16) {
        self.end = Some(End::Status(status));
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        let took = self.since.elapsed();
        // What is dropped without an answer has no status: 499 is the one that servers log for it.
        let gone = match self.what {
            What::Tool(_) => End::Error,
            What::Request(..) => End::Status(499),
        };
        let key = (self.what, self.end.unwrap_or(gone));
        let mut counted = self.metrics.counted();
        let ended = counted.ended.entry(key);
        ended.or_insert_with(|| Times::new(&CLASSES_S)).add(took);
        if let Some(under_way) = counted.under_way.get_mut(&self.what) {
            *under_way = under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
