//! What the gates, servers and models count, at one moment.

use std::fmt;

use gate::admit::Tallied;
use mcp::http::Counted;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use toolkit::measure::Measure;

/// Everything at one moment.
#[derive(Debug)]
pub(super) struct Scrape {
    pub tallied: Vec<Tallied>,
    pub control: Vec<Vec<(&'static str, u64)>>,
    pub breakers: Vec<(String, Counted)>,
    pub models: Vec<models::Counted>,
    pub measures: Vec<Measure>,
    pub failed: bool,
    pub sessions: usize,
    pub servers: usize,
    pub approvals_waiting: usize,
    /// Calls a minute of one caller, and of one tool in its window; the least of all gates.
    pub limits: Option<[u64; 2]>,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.decisions(&mut encoder)?;
        self.outcomes(&mut encoder)?;
        self.times(&mut encoder)?;
        self.breakers(&mut encoder)?;
        self.models(&mut encoder)?;
        let gauges = [
            ("sessions", "Legacy sessions that are open", self.sessions),
            (
                "servers",
                "Server processes that run, and sessions that are open with servers over HTTP",
                self.servers,
            ),
            (
                "approvals_waiting",
                "Calls that wait for a person",
                self.approvals_waiting,
            ),
            (
                "journal_failed",
                "1 once the journal has failed",
                usize::from(self.failed),
            ),
        ];
        let limits = self.limits.into_iter().flat_map(|[requests, tool_calls]| {
            let helped = [
                "Judged calls that a caller may make in a minute",
                "Calls of one tool that a caller may make within its window",
            ];
            let named = ["limit_requests_per_minute", "limit_tool_calls"];
            let counts =
                [requests, tool_calls].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
            named
                .into_iter()
                .zip(helped)
                .zip(counts)
                .map(|((name, help), count)| (name, help, count))
        });
        for (name, help, value) in gauges.into_iter().chain(limits) {
            let value = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            value.encode(metric)?;
        }
        Ok(())
    }
}
