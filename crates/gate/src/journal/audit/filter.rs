//! Which records are wanted.

use std::borrow::Cow;

use serde::Deserialize;

use crate::journal::{RecordedText, parse_utc};

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Decisions.
    Decision,
    /// Operations.
    Operation,
    /// Credentials and sessions.
    Auth,
    /// The program, and the journal itself.
    System,
    /// Configuration and policy.
    Config,
}

impl Kind {
    /// The kind as it stands in a line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Decision => "decision",
            Kind::Operation => "operation",
            Kind::Auth => "auth",
            Kind::System => "system",
            Kind::Config => "config",
        }
    }
}

/// Conditions that a record must meet, all of them; the default takes every record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this kind.
    pub kind: Option<Kind>,
    /// Decisions with this verdict: `allow`, `deny`, `hitl`.
    pub decision: Option<String>,
    /// Not before this time, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Not after this time, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// Of this call.
    pub op: Option<String>,
    /// Of this session.
    pub session_id: Option<String>,
    /// Of this run.
    pub run_id: Option<String>,
    /// About this part of the program, or of the configuration.
    pub component: Option<String>,
    /// Refusals alone, of every kind: calls that a rule, a limit or a person refused or that nobody answered for, and
    /// credentials that were not accepted.
    pub refused: bool,
    /// Of this caller.
    pub subject_id: Option<String>,
    /// About this tool.
    pub tool_name: Option<String>,
    /// About this server.
    pub backend_id: Option<String>,
    /// Decided by this rule.
    pub rule: Option<String>,
    /// With this reason, or this outcome of a question to a person.
    pub reason: Option<String>,
}

#[derive(Deserialize)]
struct Facts<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    decision: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    op: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    session_id: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    run_id: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    component: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    subject_id: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    tool_name: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    backend_id: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    final_rule: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    hitl_outcome: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
}

impl Facts<'_> {
    fn is_refusal(&self) -> bool {
        match (&*self.kind, self.decision.as_deref()) {
            (_, Some("deny")) => true,
            // Asked, and nobody said yes: denied, timed out, withdrawn, or nobody could be asked.
            (_, Some("hitl")) => self.hitl_outcome.as_deref() != Some("user_allowed"),
            ("auth", _) => self.status.as_deref() == Some("Failure"),
            _ => false,
        }
    }
}

impl Filter {
    /// Whether a record's body meets the conditions; `None` when it cannot be read.
    #[must_use]
    pub fn takes(&self, body: &[u8]) -> Option<bool> {
        let facts: Facts<'_> = serde_json::from_slice(body).ok()?;
        let is = |wanted: &Option<String>, found: &Option<Cow<'_, str>>| {
            wanted
                .as_deref()
                .is_none_or(|wanted| found.as_deref() == Some(wanted))
        };
        // A text that is not recorded whole is no one's that can be asked for.
        let is_text = |wanted: &Option<String>, found: &Option<RecordedText<'_>>| {
            wanted
                .as_deref()
                .is_none_or(|wanted| found.as_ref().and_then(RecordedText::whole) == Some(wanted))
        };
        let kind = self.kind.is_none_or(|kind| kind.name() == facts.kind);
        let in_time = match (self.since_ms, self.until_ms) {
            (None, None) => true,
            (since_ms, until_ms) => {
                let time_ms = parse_utc(&facts.time)?;
                since_ms.is_none_or(|since_ms| time_ms >= since_ms)
                    && until_ms.is_none_or(|until_ms| time_ms <= until_ms)
            }
        };
        Some(
            kind && in_time
                && is(&self.decision, &facts.decision)
                && is(&self.op, &facts.op)
                && is_text(&self.session_id, &facts.session_id)
                && is_text(&self.run_id, &facts.run_id)
                && is(&self.component, &facts.component)
                && (!self.refused || facts.is_refusal())
                && is_text(&self.subject_id, &facts.subject_id)
                && is_text(&self.tool_name, &facts.tool_name)
                && is_text(&self.backend_id, &facts.backend_id)
                && is(&self.rule, &facts.final_rule)
                && (is(&self.reason, &facts.reason) || is(&self.reason, &facts.hitl_outcome)),
        )
    }
}
