//! Metrics: values at one moment, counted since the process began.

use crate::common::{Attribute, ProcessResource, write_attributes};
use crate::protobuf::WireMessage;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: counts go on since the start.
const CUMULATIVE: u64 = 2;

/// A named measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The name.
    pub name: String,
    /// Description, a sentence.
    pub about: String,
    /// In UCUM, such as `s`; empty for numbers of things.
    pub unit: String,
    /// The values.
    pub data: MetricData,
}

/// Values of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricData {
    /// Those that go up and down.
    Gauge(Vec<DataPoint<f64>>),
    /// Those that only grow.
    Sum(Vec<DataPoint<f64>>),
    /// Distributions.
    Histogram(Vec<DataPoint<Histogram>>),
}

/// A value and its attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct DataPoint<V> {
    /// Attributes of the value.
    pub attributes: Vec<Attribute>,
    /// The value.
    pub value: V,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// Of all values.
    pub sum: f64,
    /// Upper ends of the classes, growing; the last class has none.
    pub bounds: Vec<f64>,
    /// How many values fell into each class: one more than there are bounds.
    pub counts: Vec<u64>,
}

/// Returns the body of a request to `/v1/metrics` (`ExportMetricsServiceRequest`). Times are nanoseconds since 1970:
/// when counting began, and now.
#[must_use]
pub fn metrics_request(
    resource: &ProcessResource,
    metrics: &[Metric],
    times_ns: (u64, u64),
) -> Vec<u8> {
    let mut out = WireMessage::default();
    out.message(1, |of_resource| {
        resource.write(of_resource, |scoped| {
            for metric in metrics {
                scoped.message(2, |out| metric.write(out, times_ns));
            }
        });
    });
    out.into_bytes()
}

impl Metric {
    fn write(&self, out: &mut WireMessage, times_ns: (u64, u64)) {
        out.bytes(1, self.name.as_bytes());
        out.bytes(2, self.about.as_bytes());
        out.bytes(3, self.unit.as_bytes());
        match &self.data {
            MetricData::Gauge(points) => out.message(5, |gauge| numbers(gauge, points, times_ns)),
            MetricData::Sum(points) => out.message(7, |sum| {
                numbers(sum, points, times_ns);
                sum.varint(2, CUMULATIVE);
                sum.varint(3, 1);
            }),
            MetricData::Histogram(points) => out.message(9, |histogram| {
                for point in points {
                    histogram.message(1, |out| point.write(out, times_ns));
                }
                histogram.varint(2, CUMULATIVE);
            }),
        }
    }
}

fn numbers(out: &mut WireMessage, points: &[DataPoint<f64>], (begun_ns, now_ns): (u64, u64)) {
    for point in points {
        out.message(1, |out| {
            out.fixed64(2, begun_ns);
            out.fixed64(3, now_ns);
            out.double_always(4, point.value);
            write_attributes(out, 7, &point.attributes);
        });
    }
}

impl DataPoint<Histogram> {
    fn write(&self, out: &mut WireMessage, (begun_ns, now_ns): (u64, u64)) {
        out.fixed64(2, begun_ns);
        out.fixed64(3, now_ns);
        let all = self
            .value
            .counts
            .iter()
            .fold(0_u64, |sum, count| sum.saturating_add(*count));
        out.fixed64(4, all);
        out.double_always(5, self.value.sum);
        out.packed64(6, self.value.counts.iter().copied());
        out.packed64(7, self.value.bounds.iter().map(|bound| bound.to_bits()));
        write_attributes(out, 9, &self.attributes);
    }
}
