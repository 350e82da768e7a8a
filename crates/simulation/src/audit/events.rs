//! From records of the journal to events in the bridge's shape.
//!
//! An event is a call that has ended or was refused, or a job that has ended. The record of the decision has the caller
//! and the digest of the arguments, which is an earlier one, and may be in an earlier segment.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use gate::journal::audit::Look;
use gate::journal::{Line, OpId, RecordedText, parse_utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::EventQuery;
use crate::models::uuid;

/// Decisions of one segment that are remembered.
const DECISIONS_MAX: usize = 200_000;
/// Longest name in an event, in characters: existing tools have shorter ones.
const NAME_CHARS_MAX: usize = 128;

/// Members of a record that are read.
#[derive(Deserialize)]
struct AuditRecord<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    event: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    op: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    backend_id: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    tool_name: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    mcp_method: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    method: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    decision: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    hitl_outcome: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    subject_id: Option<RecordedText<'a>>,
    #[serde(default)]
    subject_groups: Vec<Value>,
    #[serde(borrow, default)]
    arguments_digest: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    response_summary: Option<RecordResponse<'a>>,
    #[serde(default)]
    duration_us: Option<f64>,
    #[serde(default)]
    refusals: Option<u64>,
    #[serde(borrow, default)]
    job_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    job_kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    job_status: Option<Cow<'a, str>>,
    #[serde(default)]
    queue_wait_us: Option<f64>,
    #[serde(default)]
    ran_us: Option<f64>,
}

#[derive(Deserialize)]
struct RecordResponse<'a> {
    #[serde(borrow, default)]
    body_hash: Option<Cow<'a, str>>,
}

/// Facts of a call in its decision.
struct DecisionInfo {
    identity: Value,
    digest: Option<String>,
}

/// Time, segment and sequence of a record: the order of events.
type Place = (i64, usize, u64);

/// An event that is kept.
struct AuditEvent {
    told: Map<String, Value>,
    /// The call that still lacks its decision.
    of: Option<OpId>,
}

/// The newest events, while the journal is read.
pub(super) struct EventWindow<'q> {
    server: &'q str,
    asked: &'q EventQuery,
    kept: BTreeMap<Place, AuditEvent>,
    /// Of the segment that is read.
    decided: HashMap<OpId, DecisionInfo>,
}

impl<'q> EventWindow<'q> {
    pub(super) fn new(server: &'q str, asked: &'q EventQuery) -> Self {
        Self {
            server,
            asked,
            kept: BTreeMap::new(),
            decided: HashMap::new(),
        }
    }

    /// Returns whether there are as many as were asked for.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= self.asked.limit
    }

    /// Returns the events, the newest first.
    pub(super) fn into_values(self) -> Vec<Value> {
        let newest = self.kept.into_values().rev();
        newest.map(|event| event.told.into()).collect()
    }

    fn keep(&mut self, place: Place, event: AuditEvent) {
        self.kept.insert(place, event);
        if self.kept.len() > self.asked.limit {
            self.kept.pop_first();
        }
    }
}

impl Look for EventWindow<'_> {
    fn not_before_ms(&self) -> Option<i64> {
        let ((oldest_ms, ..), _) = self.kept.first_key_value().filter(|_| self.is_full())?;
        // A decision is no older than its call.
        let sought = self.kept.values().filter_map(|event| event.of);
        let sought_ms = sought.map(OpId::time_ms).min();
        Some(sought_ms.map_or(*oldest_ms, |ms| ms.min(*oldest_ms)))
    }

    fn record(&mut self, segment: usize, line: &Line<'_>) -> Option<()> {
        let record: AuditRecord<'_> = serde_json::from_slice(line.body).ok()?;
        if record.backend_id.as_ref().and_then(RecordedText::whole) != Some(self.server) {
            return Some(());
        }
        let time_ms = parse_utc(&record.time)?;
        let op = record.op.as_deref().and_then(OpId::parse);
        let Some((event_type, mut told)) = record.event() else {
            if let (Some(op), "decision") = (op, &*record.kind) {
                if self.decided.len() >= DECISIONS_MAX {
                    self.decided.clear();
                }
                self.decided.insert(op, record.decision_info());
            }
            return Some(());
        };
        let wanted = self.asked.event_type.as_deref();
        if wanted.is_some_and(|wanted| wanted != event_type) {
            return Some(());
        }
        // Made of the record's hash, so that it is the same each time: version 8.
        told.insert("eventId".to_owned(), uuid(&line.entry.0, "8").into());
        told.insert("timestamp".to_owned(), record.time.into());
        told.insert("eventType".to_owned(), event_type.into());
        told.insert("op".to_owned(), op.map(|op| op.to_string()).into());
        let (previous, hash) = (line.previous.to_string(), line.entry.to_string());
        told.insert("previousHash".to_owned(), previous.into());
        told.insert("hash".to_owned(), hash.into());
        let is_known = told.contains_key("identity");
        let mut event = AuditEvent {
            told,
            of: op.filter(|_| !is_known),
        };
        if !is_known {
            event.told.insert("identity".to_owned(), Value::Null);
            event.join(&self.decided);
        }
        self.keep((time_ms, segment, line.sequence), event);
        Some(())
    }

    fn segment_over(&mut self) {
        for event in self.kept.values_mut() {
            event.join(&self.decided);
        }
        self.decided.clear();
    }
}

impl AuditEvent {
    /// Adds the caller, if the decision is known.
    fn join(&mut self, decided: &HashMap<OpId, DecisionInfo>) {
        let Some(decided) = self.of.and_then(|op| decided.get(&op)) else {
            return;
        };
        self.of = None;
        self.told
            .insert("identity".to_owned(), decided.identity.clone());
        for (part, name) in [("tool", "argumentsDigest"), ("request", "bodyDigest")] {
            if let Some(part) = self.told.get_mut(part).and_then(Value::as_object_mut) {
                part.insert(name.to_owned(), decided.digest.clone().into());
            }
        }
    }
}

impl AuditRecord<'_> {
    fn decision_info(&self) -> DecisionInfo {
        DecisionInfo {
            identity: json!({"subject": self.subject_id.as_ref().map(RecordedText::shown), "roles": self.subject_groups}),
            digest: self.arguments_digest.as_deref().map(str::to_owned),
        }
    }

    /// Returns the type of its event, and what only this type has; none if it is no event.
    fn event(&self) -> Option<(String, Map<String, Value>)> {
        match &*self.kind {
            "operation" => {
                let status = match self.status.as_deref()? {
                    "Success" => "success",
                    "Failure" => "error",
                    "Cancelled" => "cancelled",
                    _ => "aborted",
                };
                let error = (status != "success").then(|| self.reason.as_deref().unwrap_or(status));
                Some(self.call(self.method.as_ref(), status, error))
            }
            "decision" => {
                let reason = self.refusal_reason()?;
                let (event_type, mut told) =
                    self.call(self.mcp_method.as_ref(), "refused", Some(reason));
                let DecisionInfo { identity, digest } = self.decision_info();
                told.insert("identity".to_owned(), identity);
                for (part, name) in [("tool", "argumentsDigest"), ("request", "bodyDigest")] {
                    if let Some(part) = told.get_mut(part).and_then(Value::as_object_mut) {
                        part.insert(name.to_owned(), digest.clone().into());
                    }
                }
                if let Some(count) = self.refusals.filter(|count| *count > 0) {
                    told.insert("count".to_owned(), count.into());
                }
                Some((event_type, told))
            }
            "system" if self.event.as_deref() == Some("job_ended") => self.job(),
            _ => None,
        }
    }

    /// Returns why the call was refused; none if it was not.
    fn refusal_reason(&self) -> Option<&str> {
        let outcome = self.hitl_outcome.as_deref();
        match self.decision.as_deref()? {
            "deny" => Some(self.reason.as_deref().unwrap_or("denied")),
            "hitl" if outcome != Some("user_allowed") => {
                Some(outcome.or(self.reason.as_deref()).unwrap_or("not approved"))
            }
            _ => None,
        }
    }

    /// Returns a call of a tool, or another request of the protocol.
    fn call(
        &self,
        method: Option<&RecordedText<'_>>,
        status: &str,
        error: Option<&str>,
    ) -> (String, Map<String, Value>) {
        let duration = self.duration_us.map(|us| us / 1_000.0);
        let answer = self.response_summary.as_ref();
        let digest = answer.and_then(|answer| answer.body_hash.as_deref());
        let (event_type, told) = match self.tool_name.as_ref().map(RecordedText::shown).as_deref() {
            Some(tool) => {
                let tool = short(tool);
                let told = json!({"tool": {
                    "name": tool, "argumentsDigest": null, "resultDigest": digest,
                    "status": status, "durationMs": duration,
                }});
                (format!("tool.{tool}"), told)
            }
            None => {
                let method = method.map(RecordedText::shown);
                let method = short(method.as_deref().unwrap_or("unknown"));
                let told = json!({
                    "request": {"method": method, "bodyDigest": null},
                    "response": {"outcome": status, "bodyDigest": digest, "durationMs": duration},
                });
                (format!("http.mcp.{}", method.replace('/', ".")), told)
            }
        };
        let mut told = members(told);
        told.extend(error.map(|error| ("error".to_owned(), error.into())));
        (event_type, told)
    }

    fn job(&self) -> Option<(String, Map<String, Value>)> {
        let status = self.job_status.as_deref()?;
        let kind = match self.job_kind.as_deref() {
            Some("population") => "population",
            _ => "simulation",
        };
        let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
        let told = json!({"job": {
            "jobId": self.job_id, "jobType": kind, "status": status, "finishedAt": self.time,
            "queueWaitSeconds": seconds(self.queue_wait_us), "runtimeSeconds": seconds(self.ran_us),
        }});
        Some((format!("job.{kind}.{status}"), members(told)))
    }
}

fn members(told: Value) -> Map<String, Value> {
    match told {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Returns a name, cut if it is longer than any existing one.
fn short(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        None => name.into(),
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()).into(),
    }
}
