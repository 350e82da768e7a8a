//! The families of metrics with labels, and the histogram of times.

use std::fmt;

use gate::admit::TIME_CLASSES_US;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use toolkit::breaker::METRIC;

use super::scrape::Scrape;

impl Scrape {
    pub(super) fn decisions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
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

    pub(super) fn outcomes(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Calls that were let through by how they ended";
        let mut metric =
            encoder.encode_descriptor("operations", help, None, MetricType::Counter)?;
        for (status, sum) in summed(self.tallied.iter().flat_map(|t| &t.outcomes)) {
            ConstCounter::new(sum).encode(metric.encode_family(&[("outcome", status)])?)?;
        }
        Ok(())
    }

    pub(super) fn breakers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
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

    pub(super) fn models(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
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

    pub(super) fn times(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
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
