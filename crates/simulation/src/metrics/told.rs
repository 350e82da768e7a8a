//! Export of the counts, under the bridge's names.

use toolkit::measure::{Measure, Measured, Times};

use super::{CallMetrics, CountedKind, EndKind};

impl CallMetrics {
    /// Everything, for a scrape; the values of one name one after the other.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        let counted = self.lock_counts();
        let mut out = Vec::new();
        for names in [&TOOLS, &REQUESTS] {
            let is_of =
                |what: &CountedKind| matches!(what, CountedKind::Tool(_)) == names.is_of_tools;
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

struct MetricNames {
    is_of_tools: bool,
    under_way: Named,
    total: Named,
    times: Named,
}

static TOOLS: MetricNames = MetricNames {
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

static REQUESTS: MetricNames = MetricNames {
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

fn measure(
    (name, about): Named,
    what: CountedKind,
    end: Option<EndKind>,
    value: Measured,
) -> Measure {
    let status = match end {
        Some(EndKind::Status(status)) => status.to_string(),
        Some(EndKind::Success) => "success".to_owned(),
        Some(EndKind::Error) | None => "error".to_owned(),
    };
    let mut labels = match what {
        CountedKind::Tool(tool) => vec![("tool", tool), ("status", &*status)],
        CountedKind::Request(method, route) => vec![
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
