//! Resources of the processes over time.

use super::page::PageSection;
use super::svg::{Chart, ChartLine, LineChart};
use crate::run::ResourceSample;
use std::collections::BTreeMap;

/// Returns a section about the samples; `None` if there are too few for a line.
pub(super) fn section(samples: &[ResourceSample], series: &[String]) -> Option<PageSection> {
    let moments: std::collections::BTreeSet<u64> = samples.iter().map(|s| s.elapsed_ms).collect();
    if moments.len() < 2 {
        return None;
    }
    let cpu = lines(samples, series, |s| s.cpu_percent);
    let memory = lines(samples, series, |s| Some(s.rss_kib as f64 / 1_024.0));
    let chart = |title: &str, y_name: &str, lines| {
        Chart::Lines(LineChart {
            title: title.into(),
            x_name: "seconds since the beginning".into(),
            y_name: y_name.into(),
            counts: false,
            lines,
        })
    };
    Some(PageSection {
        title: "Resources".into(),
        note: "Sampled once a second. A variant is its whole tree of processes; the generator is the lab itself."
            .into(),
        charts: vec![
            chart("processor time of each variant", "% of one core", cpu),
            chart("resident memory of each variant", "MiB resident", memory),
        ],
        table: None,
    })
}

/// One line per variant: the sum over its processes at each moment.
fn lines(
    samples: &[ResourceSample],
    series: &[String],
    of: fn(&ResourceSample) -> Option<f64>,
) -> Vec<ChartLine> {
    let mut sums: BTreeMap<&str, BTreeMap<u64, f64>> = BTreeMap::new();
    for sample in samples {
        if let Some(value) = of(sample) {
            let at = sums.entry(&sample.who).or_default();
            *at.entry(sample.elapsed_ms).or_default() += value;
        }
    }
    let mut found: Vec<ChartLine> = sums
        .into_iter()
        .map(|(who, values)| ChartLine {
            name: who.to_owned(),
            // The generator has the colour behind the variants'.
            series: series.iter().position(|s| s == who).unwrap_or(series.len()),
            points: values
                .into_iter()
                .map(|(ms, value)| (ms as f64 / 1_000.0, value))
                .collect(),
        })
        .collect();
    found.sort_by_key(|line| line.series);
    found
}
