//! From a call to its span.
//!
//! Names are those of OpenTelemetry's conventions for MCP and generative AI where they have one, else `durward.*`.

use gate::admit::End;
use gate::facts::{Direction, FactId, ResourceType, Value};
use gate::journal::{Micros, OpId, Operation, Status as Outcome};
use gate::{Observed, Parent};
use otlp::{Attribute, Span, SpanEvent, SpanKind, SpanStatus};
use ring::digest::{SHA256, digest};

/// Longest text of an attribute, in bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Hexadecimal digits of a trace id.
const TRACE_ID_DIGITS: usize = 32;

/// The names of a span.
#[derive(Debug, Clone, Copy)]
pub struct Ids {
    trace: u128,
    span: u64,
    parent: Option<Parent>,
}

impl Ids {
    /// The trace is the caller's, else that of the run, else one of its own. Calls of one run share one trace.
    pub fn of(call: &Observed<'_>) -> Self {
        let run = call.origin.run.as_ref();
        let parent = run.and_then(gate::RunId::parent);
        let trace = match (parent, run) {
            (Some(parent), _) => parent.trace,
            (None, Some(run)) => of_run(run.as_str()),
            (None, None) => hashed(&call.op.0.to_be_bytes()),
        };
        Self {
            trace,
            span: span_id(call.op),
            parent,
        }
    }

    /// Whether the span is kept: as the caller has decided for its trace, else for this part of all traces.
    pub fn is_sampled(&self, part: f64) -> bool {
        match self.parent {
            Some(parent) => parent.is_sampled,
            // The last 56 bits are random (W3C Trace Context level 2).
            None => unit(self.trace) < part,
        }
    }
}

/// The last 56 bits as a number from 0 to 1, 1 excluded.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "of 56 bits a double keeps 53, which is as exact as the part that is asked for"
)]
fn unit(trace: u128) -> f64 {
    ((trace as u64) & 0x00ff_ffff_ffff_ffff) as f64 / 72_057_594_037_927_936.0
}

/// A run that is named like a trace is that trace.
fn of_run(run: &str) -> u128 {
    let is_trace = run.len() == TRACE_ID_DIGITS && run.bytes().all(|b| b.is_ascii_hexdigit());
    let trace = u128::from_str_radix(run, 16)
        .ok()
        .filter(|trace| is_trace && *trace != 0);
    trace.unwrap_or_else(|| hashed(run.as_bytes()))
}

fn hashed(bytes: &[u8]) -> u128 {
    let digest = digest(&SHA256, bytes);
    let first = digest.as_ref().first_chunk();
    first.map_or(1, |first| u128::from_be_bytes(*first).max(1))
}

/// Time, counter and instance of the call's name, folded: no two calls of a month have the same.
fn span_id(op: OpId) -> u64 {
    let bytes = op.0.to_be_bytes();
    let half = |from: usize| {
        let part = bytes
            .get(from..from + 8)
            .and_then(|part| part.try_into().ok());
        u64::from_be_bytes(part.unwrap_or_default())
    };
    (half(0) ^ half(8)).max(1)
}

/// The span of a call that ended now.
pub fn of(call: &Observed<'_>, ids: Ids, now_ns: u64) -> Span {
    let mut attributes = Vec::with_capacity(16);
    let name = match call.facts.resource_type {
        Some(ResourceType::Model) => model(call, &mut attributes),
        _ => message(call, &mut attributes),
    };
    common(call, &mut attributes);
    let mut events = Vec::new();
    if let End::Operation(operation) = call.end {
        ended(operation, &mut attributes);
        attempts(operation, now_ns, &mut events);
    }
    let why = call.reason().unwrap_or("failed");
    let status = match call.end {
        End::Refused(_) => SpanStatus::Error(why.into()),
        End::Operation(operation) => match operation.status {
            Outcome::Success => SpanStatus::Ok,
            Outcome::Failure => SpanStatus::Error(why.into()),
            Outcome::Cancelled | Outcome::Aborted => SpanStatus::Unset,
        },
    };
    Span {
        trace: ids.trace,
        id: ids.span,
        parent: ids.parent.map(|parent| parent.span),
        name,
        kind: SpanKind::Server,
        start_ns: now_ns.saturating_sub(call.duration.nanos()),
        end_ns: now_ns,
        attributes,
        events,
        status,
    }
}

/// A call over MCP: a tool, a prompt, a resource, or what a server asks of its client.
fn message(call: &Observed<'_>, out: &mut Vec<Attribute>) -> String {
    let facts = call.facts;
    out.push(Attribute::text("mcp.method.name", bounded(&facts.method)));
    if facts.direction == Direction::ToClient {
        out.push(Attribute::text(
            "durward.direction",
            facts.direction.label(),
        ));
    }
    let Some(tool) = facts.tool_name.known() else {
        return bounded(&facts.method);
    };
    out.push(Attribute::text("gen_ai.operation.name", "execute_tool"));
    out.push(Attribute::text("gen_ai.tool.name", bounded(tool)));
    format!("{} {}", bounded(&facts.method), bounded(tool))
}

/// A call of a model.
fn model(call: &Observed<'_>, out: &mut Vec<Attribute>) -> String {
    let facts = call.facts;
    let path = facts.method.as_str();
    // Every path is one of those that the models' face has.
    let what = match path.rsplit('/').next().unwrap_or_default() {
        "completions" if path.contains("chat/") => "chat",
        "messages" | "responses" => "chat",
        "completions" => "text_completion",
        other => other,
    };
    out.push(Attribute::text("gen_ai.operation.name", bounded(what)));
    out.push(Attribute::text("http.route", bounded(&facts.method)));
    out.push(Attribute::text(
        "gen_ai.provider.name",
        bounded(&facts.backend_id),
    ));
    let models = facts.get(FactId::Model);
    let asked = models.known().and_then(|names| names.texts().next());
    match asked {
        Some(asked) => {
            out.push(Attribute::text("gen_ai.request.model", bounded(asked)));
            format!("{what} {}", bounded(asked))
        }
        None => what.to_owned(),
    }
}

/// What every call has.
fn common(call: &Observed<'_>, out: &mut Vec<Attribute>) {
    let facts = call.facts;
    out.push(Attribute::text("durward.op", call.op.to_string()));
    out.push(Attribute::text(
        "durward.server",
        bounded(&facts.backend_id),
    ));
    out.push(Attribute::text("durward.outcome", call.outcome()));
    out.push(Attribute::text("durward.rule", bounded(call.rule)));
    if let Some(run) = &call.origin.run {
        out.push(Attribute::text("durward.run", run.as_str().to_owned()));
    }
    if let Some(reason) = call.reason() {
        out.push(Attribute::text("durward.reason", reason));
        out.push(Attribute::text("error.type", reason));
    }
    if call.approval.nanos() > 0 {
        out.push(micros("durward.approval_us", call.approval));
    }
    for (fact, name) in [
        (FactId::Host, "server.address"),
        (FactId::Simulation, "durward.simulation"),
    ] {
        let value = facts.get(fact);
        if let Some(text) = value.known().and_then(Value::text) {
            out.push(Attribute::text(name, bounded(text)));
        }
    }
}

/// What is known of a call that was let through.
fn ended(operation: &Operation<'_>, out: &mut Vec<Attribute>) {
    let stages = &operation.stages;
    for (name, time) in [
        ("durward.policy_us", stages.policy_us),
        ("durward.journal_us", stages.journal_us),
        ("durward.upstream_us", stages.upstream_us),
    ] {
        out.push(micros(name, time));
    }
    if let Some(transport) = operation.transport {
        out.push(Attribute::text("durward.transport", transport.label()));
    }
    let usage = &operation.usage;
    for (name, number) in [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            usage.written_tokens,
        ),
        ("durward.cost_micros", usage.cost_micros),
    ] {
        if let Some(number) = number {
            out.push(Attribute::int(name, number));
        }
    }
}

/// Tries at one peer after the other. The records say how long each took, not when.
fn attempts(operation: &Operation<'_>, now_ns: u64, out: &mut Vec<SpanEvent>) {
    for attempt in operation.attempts {
        let mut attributes = vec![
            Attribute::text("durward.peer", bounded(attempt.peer)),
            Attribute::text("durward.outcome", attempt.status.name()),
            micros("durward.duration_us", attempt.duration_us),
        ];
        if let Some(reason) = attempt.reason {
            attributes.push(Attribute::text("durward.reason", reason.as_str()));
        }
        out.push(SpanEvent {
            at_ns: now_ns,
            name: "attempt",
            attributes,
        });
    }
}

fn micros(name: &'static str, time: Micros) -> Attribute {
    Attribute::int(name, time.nanos() / 1_000)
}

/// The beginning of a text, so far as an attribute may be long.
fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
