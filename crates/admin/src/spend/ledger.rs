//! Joins decisions about model calls with the outcomes of the calls, and sums them.

use std::collections::HashMap;

use gate::journal::audit::Look;
use gate::journal::{Line, parse_utc};
use serde::Deserialize;
use serde_json::Value;

use super::{ROWS_MAX, SpendDimension, SpendQuery, SpendReport, SpendRow, SpendSums};
use crate::error::AdminError;

/// How long before the range decisions are read, in milliseconds: a call may end long after its decision.
const DECISIONS_BEFORE_MS: i64 = 24 * 3_600_000;

/// Most outcomes that wait for their decisions, which are in an older segment.
const OUTCOMES_MAX: usize = 1_000_000;

/// Members of a record that a report reads.
#[derive(Deserialize)]
struct Body {
    kind: String,
    #[serde(default)]
    time: String,
    op: Option<String>,
    resource_type: Option<String>,
    subject_id: Option<Value>,
    #[serde(default)]
    subject_groups: Value,
    #[serde(default)]
    model: Value,
    agent: Option<Value>,
    run_id: Option<Value>,
    backend_id: Option<Value>,
    client_id: Option<Value>,
    status: Option<String>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    reasoning_tokens: u64,
    counted_tokens: u64,
    cost_micros: Option<u64>,
}

/// Members of a decision about a model call.
struct Decision {
    caller: Option<String>,
    team: Option<String>,
    alias: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    agent: Option<String>,
}

/// Members of the outcome of a call.
struct Outcome {
    day: String,
    provider: Option<String>,
    model: Option<String>,
    run: Option<String>,
    client: Option<String>,
    sums: SpendSums,
}

/// Sums of a report while the journal is read, the newest segment first.
pub(super) struct Ledger<'q> {
    query: &'q SpendQuery,
    rows: HashMap<Vec<Option<String>>, SpendSums>,
    /// Decisions of the segment that is read; `None` for calls of tools.
    decisions: HashMap<String, Option<Decision>>,
    /// Outcomes of newer segments without a decision there.
    outcomes: HashMap<String, Outcome>,
    is_full: bool,
}

impl Look for Ledger<'_> {
    fn not_before_ms(&self) -> Option<i64> {
        let since_ms = self.query.since_ms?;
        Some(since_ms.saturating_sub(DECISIONS_BEFORE_MS))
    }

    fn record(&mut self, _segment: usize, line: &Line<'_>) -> Option<()> {
        let mut body: Body = serde_json::from_slice(line.body).ok()?;
        let Some(op) = body.op.take() else {
            return Some(());
        };
        match body.kind.as_str() {
            "decision" => self.on_decision(op, Decision::read(body)),
            "operation" => self.on_outcome(op, body),
            _ => {}
        }
        Some(())
    }

    fn segment_over(&mut self) {
        // Calls without an outcome are still under way, or were refused.
        self.decisions.clear();
    }
}

impl<'q> Ledger<'q> {
    pub(super) fn new(query: &'q SpendQuery) -> Self {
        Self {
            query,
            rows: HashMap::new(),
            decisions: HashMap::new(),
            outcomes: HashMap::new(),
            is_full: false,
        }
    }

    fn on_decision(&mut self, op: String, decision: Option<Decision>) {
        match (self.outcomes.remove(&op), decision) {
            (Some(outcome), Some(decision)) => self.add(&decision, outcome),
            (Some(_), None) => {}
            (None, decision) => {
                self.decisions.insert(op, decision);
            }
        }
    }

    fn on_outcome(&mut self, op: String, body: Body) {
        let decision = self.decisions.remove(&op);
        if matches!(decision, Some(None)) || !self.is_in_range(&body.time) {
            return;
        }
        let outcome = Outcome::read(body);
        match decision.flatten() {
            Some(decision) => self.add(&decision, outcome),
            None if self.outcomes.len() < OUTCOMES_MAX => {
                self.outcomes.insert(op, outcome);
            }
            None => self.is_full = true,
        }
    }

    fn is_in_range(&self, time: &str) -> bool {
        let Some(time_ms) = parse_utc(time) else {
            return false;
        };
        let is_late = self.query.until_ms.is_some_and(|until| time_ms >= until);
        let is_early = self.query.since_ms.is_some_and(|since| time_ms < since);
        !is_late && !is_early
    }

    fn add(&mut self, decision: &Decision, outcome: Outcome) {
        let value = |dimension| value(dimension, decision, &outcome);
        let only = &self.query.only;
        let is_wanted = |(dimension, wanted): &(SpendDimension, String)| {
            value(*dimension).as_deref() == Some(wanted.as_str())
        };
        if !only.iter().all(is_wanted) {
            return;
        }
        let group: Vec<_> = self.query.by.iter().copied().map(value).collect();
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&group) {
            self.is_full = true;
            return;
        }
        self.rows.entry(group).or_default().add(&outcome.sums);
    }

    pub(super) fn into_report(self) -> Result<SpendReport, AdminError> {
        if self.is_full {
            return Err(AdminError::TooManyRows(ROWS_MAX));
        }
        let by = &self.query.by;
        let is_time = |dimension: &SpendDimension| {
            matches!(dimension, SpendDimension::Day | SpendDimension::Month)
        };
        let time_columns: Vec<usize> = (0..by.len())
            .filter(|&at| by.get(at).is_some_and(is_time))
            .collect();
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        rows.sort_by_cached_key(|(group, sums)| {
            let times: Vec<_> = time_columns
                .iter()
                .map(|&at| group.get(at).cloned())
                .collect();
            let tokens = sums.input_tokens.saturating_add(sums.output_tokens);
            let largest_first = std::cmp::Reverse((sums.cost_micros, tokens, sums.calls));
            (times, largest_first, group.clone())
        });
        let mut total = SpendSums::default();
        let rows = rows.into_iter().map(|(group, sums)| {
            total.add(&sums);
            let group = by.iter().copied().zip(group).collect();
            SpendRow { group, sums }
        });
        let rows = rows.collect();
        Ok(SpendReport {
            by: by.clone(),
            rows,
            total,
        })
    }
}

fn value(dimension: SpendDimension, decision: &Decision, outcome: &Outcome) -> Option<String> {
    let part_of_day = |length| outcome.day.get(..length).map(str::to_owned);
    match dimension {
        SpendDimension::Caller => decision.caller.clone(),
        SpendDimension::Team => decision.team.clone(),
        SpendDimension::Alias => decision.alias.clone(),
        SpendDimension::Model => outcome.model.clone().or_else(|| decision.model.clone()),
        SpendDimension::Provider => outcome
            .provider
            .clone()
            .or_else(|| decision.provider.clone()),
        SpendDimension::Run => outcome.run.clone(),
        SpendDimension::Agent => decision.agent.clone(),
        SpendDimension::Client => outcome.client.clone(),
        SpendDimension::Day => part_of_day("2026-11-28".len()),
        SpendDimension::Month => part_of_day("2026-11".len()),
    }
}

/// Returns a recorded text; of a long one, which the record has as its length, digest and start, the start.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(long) => Some(format!("{}…", long.get("start")?.as_str()?)),
        _ => None,
    }
}

fn texts(value: &Value) -> Vec<String> {
    let list = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    list.iter().filter_map(text).collect()
}

impl Decision {
    /// Returns what a decision says of its call; `None` for a call of something else than a model.
    fn read(body: Body) -> Option<Self> {
        body.resource_type.filter(|kind| kind == "model")?;
        let optional = |value: Option<Value>| value.as_ref().and_then(text);
        let models = texts(&body.model);
        let groups = texts(&body.subject_groups);
        let team = groups.iter().find_map(|group| group.strip_prefix("team:"));
        Some(Self {
            caller: optional(body.subject_id),
            team: team.map(str::to_owned),
            alias: models.first().cloned(),
            model: models.last().cloned(),
            provider: optional(body.backend_id),
            agent: optional(body.agent),
        })
    }
}

impl Outcome {
    fn read(body: Body) -> Self {
        let optional = |value: Option<Value>| value.as_ref().and_then(text);
        let usage = body.usage;
        let has_tokens = usage.input_tokens > 0 || usage.output_tokens > 0;
        Self {
            provider: optional(body.backend_id),
            model: text(&body.model),
            run: optional(body.run_id),
            client: optional(body.client_id),
            sums: SpendSums {
                calls: 1,
                failed: u64::from(body.status.as_deref() != Some("Success")),
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cached_tokens: usage.cached_tokens,
                reasoning_tokens: usage.reasoning_tokens,
                counted_tokens: usage.counted_tokens,
                cost_micros: usage.cost_micros.unwrap_or(0),
                unpriced: u64::from(has_tokens && usage.cost_micros.is_none()),
            },
            day: body.time,
        }
    }
}

#[cfg(test)]
mod tests {
    use gate::journal::EntryHash;
    use serde_json::json;

    use super::*;

    fn decision(op: &str, more: &Value) -> Value {
        let mut body = json!({"kind": "decision", "time": "2026-11-28T00:00:00.000Z", "op": op, "resource_type": "model",
            "subject_id": "user:ada", "model": ["smart", "a/plain", "plain"], "backend_id": "a"});
        extend(&mut body, more);
        body
    }

    fn outcome(op: &str, time: &str, more: &Value) -> Value {
        let mut body = json!({"kind": "operation", "time": time, "op": op, "status": "Success", "backend_id": "a",
            "usage": {"input_tokens": 10, "output_tokens": 2, "cost_micros": 30}});
        extend(&mut body, more);
        body
    }

    fn extend(body: &mut Value, more: &Value) {
        let members = more.as_object().cloned().unwrap_or_default();
        body.as_object_mut().unwrap().extend(members);
    }

    /// Reports on segments, the newest first.
    fn report(query: &SpendQuery, segments: &[&[Value]]) -> SpendReport {
        let mut ledger = Ledger::new(query);
        for segment in segments {
            for record in *segment {
                let body = record.to_string();
                let line = Line {
                    sequence: 0,
                    previous: EntryHash::ZERO,
                    entry: EntryHash::ZERO,
                    body: body.as_bytes(),
                };
                ledger.record(0, &line).unwrap();
            }
            ledger.segment_over();
        }
        ledger.into_report().unwrap()
    }

    fn by(by: &[SpendDimension]) -> SpendQuery {
        SpendQuery {
            by: by.to_vec(),
            ..SpendQuery::default()
        }
    }

    #[test]
    fn a_call_that_ends_in_a_later_segment_is_counted_once() {
        let older = [
            decision("1", &json!({})),
            decision("2", &json!({"resource_type": "tool"})),
            decision("3", &json!({"decision": "deny"})),
        ];
        let newer = [
            outcome("1", "2026-11-28T00:00:01.000Z", &json!({})),
            outcome("2", "2026-11-28T00:00:01.000Z", &json!({})),
            outcome("4", "2026-11-28T00:00:01.000Z", &json!({})),
        ];
        let total = report(&by(&[]), &[&newer, &older]).total;
        assert_eq!((total.calls, total.cost_micros), (1, 30));
    }

    #[test]
    fn rows_are_the_groups_and_add_up_to_the_total() {
        let records = [
            decision("1", &json!({"subject_groups": ["x", "team:red"]})),
            outcome("1", "2026-11-27T23:59:59.999Z", &json!({})),
            decision(
                "2",
                &json!({"subject_id": {"bytes": 2000, "digest": "d", "start": "user:long"}}),
            ),
            outcome(
                "2",
                "2026-11-28T00:00:00.000Z",
                &json!({"usage": {"input_tokens": 1}}),
            ),
            decision("3", &json!({})),
            outcome(
                "3",
                "2026-11-28T00:00:00.000Z",
                &json!({"status": "Failure", "usage": {}}),
            ),
        ];
        let query = by(&[
            SpendDimension::Day,
            SpendDimension::Caller,
            SpendDimension::Team,
        ]);
        let report = report(&query, &[&records]);
        let rows: Vec<Value> = report
            .rows
            .iter()
            .map(|row| {
                let group: Vec<_> = row.group.values().cloned().collect();
                json!([
                    group,
                    row.sums.calls,
                    row.sums.failed,
                    row.sums.unpriced,
                    row.sums.cost_micros
                ])
            })
            .collect();
        // A map orders its dimensions: caller, team, day.
        let expect = json!([
            [["user:ada", "red", "2026-11-27"], 1, 0, 0, 30],
            [["user:long…", null, "2026-11-28"], 1, 0, 1, 0],
            [["user:ada", null, "2026-11-28"], 1, 1, 0, 0],
        ]);
        assert_eq!(Value::from(rows), expect);
        assert_eq!((report.total.calls, report.total.input_tokens), (3, 11));
    }

    #[test]
    fn a_range_takes_calls_by_their_end_and_conditions_choose_among_them() {
        let records = [
            decision("1", &json!({})),
            outcome("1", "2026-11-28T00:00:00.000Z", &json!({})),
            decision("2", &json!({"subject_id": "key:ci"})),
            outcome("2", "2026-11-28T01:00:00.000Z", &json!({})),
        ];
        let calls = |query: SpendQuery| report(&query, &[&records]).total.calls;
        let start_ms = parse_utc("2026-11-28T00:00:00Z");
        let later_ms = parse_utc("2026-11-28T01:00:00Z");
        let range = |since_ms, until_ms| SpendQuery {
            since_ms,
            until_ms,
            ..SpendQuery::default()
        };
        assert_eq!(calls(range(start_ms, later_ms)), 1);
        assert_eq!(calls(range(start_ms, None)), 2);
        assert_eq!(calls(range(later_ms, None)), 1);
        let only = |dimension, wanted: &str| SpendQuery {
            only: vec![(dimension, wanted.to_owned())],
            ..SpendQuery::default()
        };
        assert_eq!(calls(only(SpendDimension::Caller, "key:ci")), 1);
        assert_eq!(calls(only(SpendDimension::Alias, "smart")), 2);
        assert_eq!(calls(only(SpendDimension::Team, "red")), 0);
    }
}
