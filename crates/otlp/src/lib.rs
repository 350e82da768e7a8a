//! Spans and metrics as the bytes of the OpenTelemetry protocol (OTLP 1.x, binary protobuf).
//!
//! Invariants, as absences: this crate does no I/O, knows no call, and has no text that it was not given. What it
//! writes is decoded in the tests by the protocol's own Python package.

mod common;
mod metrics;
mod protobuf;
mod trace;

pub use common::{Attribute, Resource, Value};
pub use metrics::{Data, Histogram, Metric, Point, metrics_request};
pub use trace::{Event, Kind, Span, Status, trace_request};
