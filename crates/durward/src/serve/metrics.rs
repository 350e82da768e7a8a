//! What `/metrics` says, in the OpenMetrics text format.

use std::fmt;
use std::sync::Arc;

use gate::Gate;
use gate::admit::{TIME_CLASSES_US, Tallied};
use mcp::http::{Counted, Face};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use toolkit::breaker::METRIC;
use toolkit::measure::{Measure, Measured};

/// The text for one scrape.
///
/// # Errors
/// Where it cannot be written.
pub fn text(
    face: &Arc<Face>,
    models: Option<&models::Face>,
    gates: &[Arc<Gate>],
) -> Result<String, fmt::Error> {
    let counts = face.counts();
    let mut breakers = face.breakers();
    breakers.extend(models.iter().flat_map(|models| models.breakers()));
    written(Scrape {
        tallied: gates.iter().map(|gate| gate.tallied()).collect(),
        control: gates.iter().map(|gate| gate.control_counts()).collect(),
        breakers,
        models: models.map_or_else(Vec::new, models::Face::counted),
        measures: face.measures(),
        failed: gates.iter().any(|gate| gate.has_failed()),
        sessions: counts.sessions,
        servers: counts.servers,
        approvals_waiting: gates.iter().map(|gate| gate.approvals().waiting()).sum(),
        limits: gates.iter().map(|gate| in_force(gate)).min(),
    })
}

/// The limits on a caller's calls.
fn in_force(gate: &Gate) -> [u64; 2] {
    let limits = gate.world().limits;
    let a_minute = limits.requests.calls_per_hour() / 60;
    [a_minute, limits.tool_calls_max.into()]
}

fn written(mut scrape: Scrape) -> Result<String, fmt::Error> {
    let of_builtins = OfBuiltins(std::mem::take(&mut scrape.measures));
    let mut registry = Registry::with_prefix("durward");
    registry.register_collector(Box::new(scrape));
    let mut out = String::new();
    encode_registry(&mut out, &registry)?;
    // These have names of their own.
    let mut registry = Registry::default();
    registry.register_collector(Box::new(of_builtins));
    registry.register_collector(Box::new(OfProcess));
    encode(&mut out, &registry)?;
    Ok(out)
}

/// What the built-in servers count.
#[derive(Debug)]
struct OfBuiltins(Vec<Measure>);

impl Collector for OfBuiltins {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut measures = self.0.clone();
        // Two servers of a kind have the same names.
        measures.sort_by_key(|measure| measure.name);
        for family in measures.chunk_by(|a, b| a.name == b.name) {
            let Some(first) = family.first() else {
                continue;
            };
            let kind = match first.value {
                Measured::Count(_) => MetricType::Counter,
                Measured::Level(_) => MetricType::Gauge,
                Measured::Times { .. } => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(first.name, first.about, None, kind)?;
            if let [only] = family
                && only.labels.is_empty()
            {
                write_one(only, metric)?;
                continue;
            }
            for measure in family {
                write_one(measure, metric.encode_family(&measure.labels)?)?;
            }
        }
        Ok(())
    }
}

/// What this process has used.
#[derive(Debug)]
struct OfProcess;

impl Collector for OfProcess {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
        let about = "Processor time that this process has used";
        let kind = MetricType::Counter;
        let metric = encoder.encode_descriptor("process_cpu", about, Some(&Unit::Seconds), kind)?;
        ConstCounter::new(seconds).encode(metric)
    }
}

fn write_one(measure: &Measure, mut of: MetricEncoder<'_>) -> Result<(), fmt::Error> {
    match &measure.value {
        Measured::Count(count) => ConstCounter::new(*count).encode(of),
        Measured::Level(level) => {
            let level = i64::try_from(*level).unwrap_or(i64::MAX);
            ConstGauge::new(level).encode(of)
        }
        Measured::Times { sum_s, classes } => {
            let count = classes.iter().map(|(_, count)| count).sum();
            of.encode_histogram::<NoLabelSet>(*sum_s, count, classes, None)
        }
    }
}

/// Everything at one moment.
#[derive(Debug)]
struct Scrape {
    tallied: Vec<Tallied>,
    control: Vec<Vec<(&'static str, u64)>>,
    breakers: Vec<(String, Counted)>,
    models: Vec<models::Counted>,
    measures: Vec<Measure>,
    failed: bool,
    sessions: usize,
    servers: usize,
    approvals_waiting: usize,
    /// Calls a minute of one caller, and of one tool in its window; the least of all gates.
    limits: Option<[u64; 2]>,
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

impl Scrape {
    fn decisions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Calls by what was decided, and the reason where they were refused";
        let mut metric = encoder.encode_descriptor("decisions", help, None, MetricType::Counter)?;
        let mut sums: Vec<(&str, &str, u64)> = Vec::new();
        for (effect, reason, count) in self.tallied.iter().flat_map(|t| &t.decisions) {
            match sums.iter_mut().find(|(e, r, _)| (e, r) == (effect, reason)) {
                Some((_, _, sum)) => *sum += count,
                None => sums.push((effect, reason, *count)),
            }
        }
        for (effect, reason, sum) in sums {
            let labels = [("effect", effect), ("reason", reason)];
            ConstCounter::new(sum).encode(metric.encode_family(&labels)?)?;
        }
        let help = "The protocol's own traffic by kind";
        let mut metric = encoder.encode_descriptor("control", help, None, MetricType::Counter)?;
        for (kind, sum) in summed(self.control.iter().flatten()) {
            ConstCounter::new(sum).encode(metric.encode_family(&[("kind", kind)])?)?;
        }
        Ok(())
    }

    fn outcomes(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Calls that were let through by how they ended";
        let mut metric =
            encoder.encode_descriptor("operations", help, None, MetricType::Counter)?;
        for (status, sum) in summed(self.tallied.iter().flat_map(|t| &t.outcomes)) {
            ConstCounter::new(sum).encode(metric.encode_family(&[("outcome", status)])?)?;
        }
        Ok(())
    }

    fn breakers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let name = METRIC.strip_prefix("durward_").unwrap_or(METRIC);
        let help = "What happened at the breaker of each server";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (target, counts) in &self.breakers {
            for (event, count) in counts {
                let labels = [("target", target.as_str()), ("event", event.label())];
                ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn models(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if self.models.is_empty() {
            return Ok(());
        }
        let help = "Attempts at model providers by how they ended";
        let mut metric =
            encoder.encode_descriptor("model_attempts", help, None, MetricType::Counter)?;
        for counted in &self.models {
            for (outcome, count) in &counted.attempts {
                let labels = [
                    ("provider", counted.provider.as_str()),
                    ("outcome", outcome),
                ];
                ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "Tokens that models have read and written";
        let mut metric =
            encoder.encode_descriptor("model_tokens", help, None, MetricType::Counter)?;
        for counted in &self.models {
            for (kind, count) in &counted.tokens {
                let labels = [("provider", counted.provider.as_str()), ("kind", kind)];
                ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn times(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut counts = [0_u64; TIME_CLASSES_US.len() + 1];
        let mut time_us = 0_u64;
        for tallied in &self.tallied {
            time_us = time_us.saturating_add(tallied.time_us);
            for (sum, count) in counts.iter_mut().zip(tallied.times) {
                *sum += count;
            }
        }
        let ends = TIME_CLASSES_US.iter().map(|us| seconds(*us));
        let buckets: Vec<(f64, u64)> = ends.chain([f64::INFINITY]).zip(counts).collect();
        let help = "From the first byte of a call to the last of its answer";
        let mut metric = encoder.encode_descriptor(
            "call_time",
            help,
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        metric.encode_histogram::<NoLabelSet>(seconds(time_us), counts.iter().sum(), &buckets, None)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of years fit exactly"
)]
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn summed<'c>(counts: impl Iterator<Item = &'c (&'static str, u64)>) -> Vec<(&'static str, u64)> {
    let mut sums: Vec<(&'static str, u64)> = Vec::new();
    for (label, count) in counts {
        match sums.iter_mut().find(|(known, _)| known == label) {
            Some((_, sum)) => *sum += count,
            None => sums.push((label, *count)),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolkit::breaker::BreakerEvent;

    fn text_of_two_gates() -> String {
        let tallied = Tallied {
            decisions: vec![("allow", "", 3), ("deny", "policy", 1)],
            outcomes: vec![("Success", 3)],
            times: std::array::from_fn(|class| u64::from(class == 0 || class == 12)),
            time_us: 40_000_000,
        };
        written(Scrape {
            tallied: vec![tallied.clone(), tallied],
            control: vec![vec![("list", 2)]],
            breakers: vec![(
                "files".into(),
                BreakerEvent::ALL.map(|event| (event, u64::from(event == BreakerEvent::Opened))),
            )],
            models: vec![models::Counted {
                provider: "a".into(),
                attempts: vec![("served", 2)],
                tokens: vec![("input", 3)],
            }],
            measures: vec![
                Measure::new(
                    "mcp_ssh_commands",
                    "Commands",
                    &[("host", "a\"b\nc")],
                    Measured::Count(2),
                ),
                Measure::new(
                    "mcp_ssh_command_duration_seconds",
                    "Times",
                    &[("host", "a")],
                    Measured::Times {
                        sum_s: 0.5,
                        classes: vec![(0.1, 1), (f64::INFINITY, 1)],
                    },
                ),
                Measure::new("mcp_pool_hits", "Hits", &[], Measured::Count(3)),
            ],
            failed: false,
            sessions: 1,
            servers: 1,
            approvals_waiting: 1,
            limits: Some([3_000, 600]),
        })
        .unwrap()
    }

    /// The rules of <https://prometheus.io/docs/specs/om/open_metrics_spec/> that scrapers enforce.
    #[test]
    fn the_exposition_is_valid() {
        let text = text_of_two_gates();
        let (body, end) = text.split_at(text.len() - "# EOF\n".len());
        assert_eq!(end, "# EOF\n");
        let mut families: Vec<&str> = Vec::new();
        let mut helped = "";
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                helped = rest.split(' ').next().unwrap();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let family = rest.split(' ').next().unwrap();
                assert_eq!(family, helped, "the help stands before the type");
                assert!(!families.contains(&family), "{family} comes twice");
                families.push(family);
            } else if !line.starts_with("# UNIT ") {
                let family = families.last().unwrap();
                assert!(line.starts_with(family), "{line} stands below {family}");
                line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
            }
        }
        assert_eq!(families.len(), 17, "{families:?}");
        for line in [
            "mcp_ssh_commands_total{host=\"a\\\"b\\nc\"} 2",
            "mcp_ssh_command_duration_seconds_bucket{le=\"+Inf\",host=\"a\"} 2",
            "mcp_pool_hits_total 3",
            "durward_limit_requests_per_minute 3000",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let opened = r#"durward_breaker_events_total{target="files",event="opened"} 1"#;
        assert!(text.contains(opened), "{text}");
    }

    #[test]
    fn the_last_class_of_times_has_no_end() {
        let text = text_of_two_gates();
        let ends: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("durward_call_time_seconds_bucket{le=\""))
            .collect();
        assert_eq!(ends.first(), Some(&"0.00005\"} 2"));
        assert_eq!(ends.last(), Some(&"+Inf\"} 4"));
        assert!(
            text.contains("durward_call_time_seconds_count 4\n"),
            "{text}"
        );
    }
}
