//! From the text of `/metrics` to the metrics of OTLP: both say the same, because one is read from the other.
//!
//! Read is what `crate::serve::metrics` writes; a line that is none of it is passed over.

use otlp::{Attribute, DataPoint, Histogram, Metric, MetricData};

/// Reads the OpenMetrics text format.
pub fn read(text: &str) -> Vec<Metric> {
    let mut out: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (Some(what), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            let said = words.next().unwrap_or_default();
            if out.last().is_none_or(|family| family.name != name) {
                out.push(Family::of(name));
            }
            let Some(family) = out.last_mut() else {
                continue;
            };
            match what {
                "TYPE" => family.kind = said,
                "HELP" => family.about = said,
                "UNIT" => family.unit = said,
                _ => {}
            }
        } else if let (Some(family), Some(sample)) = (out.last_mut(), Sample::of(line)) {
            family.samples.push(sample);
        }
    }
    out.into_iter().filter_map(Family::metric).collect()
}

type Labels = Vec<(String, String)>;

/// A name with its samples.
struct Family<'t> {
    name: &'t str,
    kind: &'t str,
    about: &'t str,
    unit: &'t str,
    samples: Vec<Sample>,
}

/// One line.
struct Sample {
    name: String,
    labels: Labels,
    value: f64,
}

impl<'t> Family<'t> {
    fn of(name: &'t str) -> Self {
        Self {
            name,
            kind: "",
            about: "",
            unit: "",
            samples: Vec::new(),
        }
    }

    fn metric(self) -> Option<Metric> {
        let data = match self.kind {
            "counter" => MetricData::Sum(points(self.samples)),
            "gauge" | "info" | "unknown" => MetricData::Gauge(points(self.samples)),
            "histogram" => MetricData::Histogram(histograms(self.name, self.samples)),
            _ => return None,
        };
        let unit = match self.unit {
            "seconds" => "s",
            "bytes" => "By",
            other => other,
        };
        Some(Metric {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            unit: unit.to_owned(),
            data,
        })
    }
}

fn points(samples: Vec<Sample>) -> Vec<DataPoint<f64>> {
    let point = |sample: Sample| DataPoint {
        attributes: attributes(sample.labels),
        value: sample.value,
    };
    samples.into_iter().map(point).collect()
}

fn attributes(labels: Labels) -> Vec<Attribute> {
    let attribute = |(name, value): (String, String)| Attribute::text(name, value);
    labels.into_iter().map(attribute).collect()
}

fn histograms(family: &str, samples: Vec<Sample>) -> Vec<DataPoint<Histogram>> {
    let mut out: Vec<(Labels, Histogram, f64)> = Vec::new();
    for mut sample in samples {
        let end = sample.labels.iter().position(|(name, _)| name == "le");
        let end = end.map(|at| sample.labels.swap_remove(at).1);
        let known = out.iter().position(|(labels, ..)| *labels == sample.labels);
        let at = known.unwrap_or_else(|| {
            out.push((sample.labels, Histogram::default(), 0.0));
            out.len() - 1
        });
        let Some((_, histogram, below)) = out.get_mut(at) else {
            continue;
        };
        match (sample.name.strip_prefix(family), end) {
            (Some("_sum"), _) => histogram.sum = sample.value,
            (Some("_bucket"), Some(end)) => {
                histogram.counts.push(whole(sample.value - *below));
                *below = sample.value;
                if let Some(end) = end.parse().ok().filter(|end: &f64| end.is_finite()) {
                    histogram.bounds.push(end);
                }
            }
            _ => {}
        }
    }
    let point = |(labels, value, _)| DataPoint {
        attributes: attributes(labels),
        value,
    };
    out.into_iter().map(point).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are whole, and a cast of what is not saturates"
)]
fn whole(count: f64) -> u64 {
    count as u64
}

impl Sample {
    /// `name{label="value",…} 1.0`.
    fn of(line: &str) -> Option<Self> {
        let name_end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at_checked(name_end)?;
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (Vec::new(), rest),
        };
        Some(Self {
            name: name.to_owned(),
            labels,
            value: rest.split_whitespace().next()?.parse().ok()?,
        })
    }
}

/// Labels up to the brace, and what comes after it.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut out = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(after) = rest.strip_prefix('}') {
            return Some((out, after));
        }
        let (name, value) = rest.split_once("=\"")?;
        let mut text = String::new();
        let mut letters = value.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    other => text.push(other),
                },
                (_, other) => text.push(other),
            }
        };
        out.push((name.to_owned(), text));
        rest = value.get(end + 1..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP durward_decisions What was decided.
# TYPE durward_decisions counter
durward_decisions_total{effect=\"deny\",reason=\"a \\\"b\\\" \\\\ c\\nd\"} 3
# HELP durward_call_time_seconds How long.
# TYPE durward_call_time_seconds histogram
# UNIT durward_call_time_seconds seconds
durward_call_time_seconds_sum 40.5
durward_call_time_seconds_count 4
durward_call_time_seconds_bucket{le=\"0.5\"} 1
durward_call_time_seconds_bucket{le=\"1.0\"} 1
durward_call_time_seconds_bucket{le=\"+Inf\"} 4
# HELP durward_sessions Open.
# TYPE durward_sessions gauge
durward_sessions 2
# EOF
";

    #[test]
    fn counters_gauges_and_histograms_are_read() {
        let read = read(TEXT);
        let names: Vec<&str> = read.iter().map(|metric| metric.name.as_str()).collect();
        let seconds = "durward_call_time_seconds";
        assert_eq!(names, ["durward_decisions", seconds, "durward_sessions"]);
        let decisions = DataPoint {
            attributes: vec![
                Attribute::text("effect", "deny"),
                Attribute::text("reason", "a \"b\" \\ c\nd"),
            ],
            value: 3.0,
        };
        assert_eq!(read[0].data, MetricData::Sum(vec![decisions]));
        let times = Histogram {
            sum: 40.5,
            bounds: vec![0.5, 1.0],
            counts: vec![1, 0, 3],
        };
        let times = DataPoint {
            attributes: Vec::new(),
            value: times,
        };
        assert_eq!(read[1].data, MetricData::Histogram(vec![times]));
        assert_eq!(
            (read[1].unit.as_str(), read[1].about.as_str()),
            ("s", "How long.")
        );
        let open = DataPoint {
            attributes: Vec::new(),
            value: 2.0,
        };
        assert_eq!(read[2].data, MetricData::Gauge(vec![open]));
    }

    #[test]
    fn what_is_no_sample_is_passed_over() {
        for line in [
            "a",
            "a{",
            "a{b",
            "a{b=\"c",
            "a{b=\"c\\",
            "a{b=\"c\"}",
            "a x",
            "{} 1x",
        ] {
            let text = format!("# TYPE a gauge\n{line}\n# EOF\n");
            let MetricData::Gauge(points) = &read(&text)[0].data else {
                panic!("{line}");
            };
            assert!(points.is_empty(), "{line}: {points:?}");
        }
    }
}
