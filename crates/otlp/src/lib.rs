//! Spans and metrics as the bytes of the OpenTelemetry protocol (OTLP 1.x, binary protobuf).
//!
//! Invariants, as absences: this crate does no I/O, knows no call, and has no text of its own. The tests decode its
//! output with the protocol's own Python package.

mod common;
mod metrics;
mod protobuf;
mod trace;

pub use common::{Attribute, AttributeValue, ProcessResource};
pub use metrics::{DataPoint, Histogram, Metric, MetricData, metrics_request};
pub use trace::{Span, SpanEvent, SpanKind, SpanStatus, trace_request};
