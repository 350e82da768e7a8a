//! The text of one scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use toolkit::measure::{Measure, Measured};

use super::scrape::Scrape;

/// The whole text.
///
/// # Errors
/// Where it cannot be written.
pub(super) fn written(mut scrape: Scrape) -> Result<String, fmt::Error> {
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
