//! Spans.

use std::borrow::Cow;

use crate::common::{Attribute, ProcessResource, write_attributes};
use crate::protobuf::WireMessage;

/// Role of a span towards the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// It answers somebody's request.
    Server,
    /// It waits for somebody's answer.
    Client,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    /// Unknown.
    Unset,
    /// Well.
    Ok,
    /// Not well, and why.
    Error(Cow<'static, str>),
}

/// One piece of work.
#[derive(Debug, Clone)]
pub struct Span {
    /// The trace; not zero.
    pub trace: u128,
    /// The span; not zero.
    pub id: u64,
    /// The caller's span, if it is known.
    pub parent: Option<u64>,
    /// A name with few values.
    pub name: String,
    /// Role towards the other side.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What else is known.
    pub attributes: Vec<Attribute>,
    /// What happened within it.
    pub events: Vec<SpanEvent>,
    /// How it ended.
    pub status: SpanStatus,
}

/// Something that happened within a span.
#[derive(Debug, Clone)]
pub struct SpanEvent {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// What.
    pub name: &'static str,
    /// More of it.
    pub attributes: Vec<Attribute>,
}

/// Returns the body of a request to `/v1/traces` (`ExportTraceServiceRequest`).
#[must_use]
pub fn trace_request(resource: &ProcessResource, spans: &[Span]) -> Vec<u8> {
    let mut out = WireMessage::default();
    out.message(1, |of_resource| {
        resource.write(of_resource, |scoped| {
            for span in spans {
                scoped.message(2, |out| span.write(out));
            }
        });
    });
    out.into_bytes()
}

impl Span {
    fn write(&self, out: &mut WireMessage) {
        out.bytes(1, &self.trace.to_be_bytes());
        out.bytes(2, &self.id.to_be_bytes());
        if let Some(parent) = self.parent {
            out.bytes(4, &parent.to_be_bytes());
        }
        out.bytes(5, self.name.as_bytes());
        let kind = match self.kind {
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        };
        out.varint(6, kind);
        out.fixed64(7, self.start_ns);
        out.fixed64(8, self.end_ns);
        write_attributes(out, 9, &self.attributes);
        for event in &self.events {
            out.message(11, |out| {
                out.fixed64(1, event.at_ns);
                out.bytes(2, event.name.as_bytes());
                write_attributes(out, 3, &event.attributes);
            });
        }
        match &self.status {
            SpanStatus::Unset => {}
            SpanStatus::Ok => out.message(15, |status| status.varint(3, 1)),
            SpanStatus::Error(why) => out.message(15, |status| {
                status.bytes(2, why.as_bytes());
                status.varint(3, 2);
            }),
        }
    }
}
