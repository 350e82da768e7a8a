//! What was asked of this server since the process began, under the bridge's names of metrics.
//!
//! Labels are words of this program, never a caller's: tools by their names, paths as they stand in the document of paths.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use toolkit::measure::{Measure, Measured, Times};

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

    /// Everything, for a scrape; the values of one name one after the other.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        let counted = self.counted();
        let mut out = Vec::new();
        for names in [&TOOLS, &REQUESTS] {
            let is_of = |what: &What| matches!(what, What::Tool(_)) == names.is_of_tools;
            for (what, count) in counted.under_way.iter().filter(|(what, _)| is_of(what)) {
                out.push(measure(
                    names.under_way,
                    *what,
                    None,
                    Measured::Level(*count),
                ));
            }
            let ended = || counted.ended.iter().filter(|((what, _), _)| is_of(what));
            for ((what, end), times) in ended() {
                let count = Measured::Count(count(times));
                out.push(measure(names.total, *what, Some(*end), count));
            }
            for ((what, end), times) in ended() {
                out.push(measure(names.times, *what, Some(*end), times.measured()));
            }
        }
        out
    }
}

/// A name of a metric, and what it says.
type Named = (&'static str, &'static str);

struct Names {
    is_of_tools: bool,
    under_way: Named,
    total: Named,
    times: Named,
}

static TOOLS: Names = Names {
    is_of_tools: true,
    under_way: (
        "mcp_tool_invocations_in_progress",
        "Calls of tools that are under way",
    ),
    total: (
        "mcp_tool_invocations",
        "Calls of tools that were let through, by how they ended",
    ),
    times: (
        "mcp_tool_duration_seconds",
        "How long tools took, from when a call was let through",
    ),
};

static REQUESTS: Names = Names {
    is_of_tools: false,
    under_way: (
        "mcp_http_requests_in_progress",
        "Requests at the bridge's paths that are under way",
    ),
    total: (
        "mcp_http_requests",
        "Requests at the bridge's paths, by the status of the answer",
    ),
    times: (
        "mcp_http_request_duration_seconds",
        "From a request at a path of the bridge until its answer, of a stream until it begins",
    ),
};

fn measure((name, about): Named, what: What, end: Option<End>, value: Measured) -> Measure {
    let status = match end {
        Some(End::Status(status)) => status.to_string(),
        Some(End::Success) => "success".to_owned(),
        Some(End::Error) | None => "error".to_owned(),
    };
    let mut labels = match what {
        What::Tool(tool) => vec![("tool", tool), ("status", &*status)],
        What::Request(method, route) => vec![
            ("method", method),
            ("route", route),
            ("status_code", &*status),
        ],
    };
    if end.is_none() {
        labels.pop();
    }
    Measure::new(name, about, &labels, value)
}

fn count(times: &Times) -> u64 {
    match times.measured() {
        Measured::Times { classes, .. } => classes.iter().map(|(_, count)| count).sum(),
        Measured::Count(_) | Measured::Level(_) => 0,
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
mod tests {
    use super::*;

    fn told(metrics: &Metrics) -> Vec<(&'static str, Vec<String>, Option<u64>)> {
        let all = metrics.measures().into_iter();
        all.map(|measure| {
            let labels = measure.labels.iter();
            let labels = labels.map(|(name, value)| format!("{name}={value}"));
            let number = match measure.value {
                Measured::Count(number) | Measured::Level(number) => Some(number),
                Measured::Times { .. } => None,
            };
            (measure.name, labels.collect(), number)
        })
        .collect()
    }

    #[test]
    fn what_ends_is_counted_once_and_what_is_dropped_too() {
        let metrics = Metrics::default();
        metrics.tool("get_results").ended(true);
        metrics.tool("get_results").ended(true);
        drop(metrics.tool("get_results"));
        let under_way = metrics.tool("get_results");
        metrics.request("GET", "/openapi.json").answered(200);
        let of = |labels: &[&str]| labels.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (good, bad) = (
            of(&["tool=get_results", "status=success"]),
            of(&["tool=get_results", "status=error"]),
        );
        let route = of(&["method=GET", "route=/openapi.json", "status_code=200"]);
        assert_eq!(
            told(&metrics),
            [
                (
                    "mcp_tool_invocations_in_progress",
                    of(&["tool=get_results"]),
                    Some(1)
                ),
                ("mcp_tool_invocations", good.clone(), Some(2)),
                ("mcp_tool_invocations", bad.clone(), Some(1)),
                ("mcp_tool_duration_seconds", good, None),
                ("mcp_tool_duration_seconds", bad, None),
                (
                    "mcp_http_requests_in_progress",
                    of(&["method=GET", "route=/openapi.json"]),
                    Some(0)
                ),
                ("mcp_http_requests", route.clone(), Some(1)),
                ("mcp_http_request_duration_seconds", route, None),
            ]
        );
        drop(under_way);
    }
}
