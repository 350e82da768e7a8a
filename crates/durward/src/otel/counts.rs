//! What became of spans and of requests to the collector.

use std::sync::atomic::{AtomicU64, Ordering};

use toolkit::measure::{Measure, Measured};

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Counts {
    spans: [AtomicU64; SPANS.len()],
    requests: [AtomicU64; REQUESTS.len()],
}

/// What became of a span.
const SPANS: [&str; 3] = ["exported", "dropped", "failed"];
/// What became of a request.
const REQUESTS: [&str; 4] = ["accepted", "refused", "unavailable", "unreachable"];

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It was taken.
    Accepted,
    /// It will never be taken.
    Refused,
    /// It may be taken later.
    Unavailable,
    /// Nobody answered.
    Unreachable,
}

impl Counts {
    pub fn exported(&self, number: usize) {
        add(self.spans.first(), number);
    }

    /// A span found no place in the queue.
    pub fn dropped(&self) {
        add(self.spans.get(1), 1);
    }

    /// Spans were sent and not taken.
    pub fn failed(&self, number: usize) {
        add(self.spans.get(2), number);
    }

    pub fn sent(&self, how: Sent) {
        let at = match how {
            Sent::Accepted => 0,
            Sent::Refused => 1,
            Sent::Unavailable => 2,
            Sent::Unreachable => 3,
        };
        add(self.requests.get(at), 1);
    }

    pub fn measures(&self) -> Vec<Measure> {
        let of = |name, about, label, labels: &[&str], counts: &[AtomicU64]| {
            let pairs = labels.iter().zip(counts);
            let made = pairs.map(|(value, count)| {
                let count = Measured::Count(count.load(Ordering::Relaxed));
                Measure::new(name, about, &[(label, *value)], count)
            });
            made.collect::<Vec<_>>()
        };
        let mut out = of(
            "durward_otel_spans",
            "Spans by what became of them; those dropped found no place in the queue",
            "result",
            &SPANS,
            &self.spans,
        );
        out.extend(of(
            "durward_otel_requests",
            "Requests to the OpenTelemetry collector by how they ended",
            "result",
            &REQUESTS,
            &self.requests,
        ));
        out
    }
}

fn add(count: Option<&AtomicU64>, number: usize) {
    if let Some(count) = count {
        count.fetch_add(number as u64, Ordering::Relaxed);
    }
}
