//! Replay of recorded decisions: what would another policy have decided about them?

mod outcomes;
mod record;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use gate::journal::RecordedText;
use gate::journal::audit::{Filter, Kind, each_while};
use gate::policy::{Effect, Policy};
use serde::Serialize;

use crate::error::AdminError;
use crate::progress::OperationWatch;
use outcomes::DecisionOutlook;
use record::{RecordedDecision, RecordedJudgement};

/// Most policies that are counted apart.
const POLICIES_MAX: usize = 1_000;
/// Records between two steps of a replay.
const STEP_RECORDS: u64 = 256;

/// How a decision of the policy compares with the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum ReplayResult {
    /// The same policy names another rule.
    #[serde(rename = "other rule")]
    OtherRule,
    /// The policy decides otherwise.
    #[serde(rename = "changed")]
    Changed,
    /// A fact that decides was not recorded.
    #[serde(rename = "undecidable")]
    Undecidable,
}

impl ReplayResult {
    /// Returns the words for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::OtherRule => "other rule",
            Self::Changed => "changed",
            Self::Undecidable => "undecidable",
        }
    }
}

/// A decision that the policy would not repeat.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ReplayDifference {
    /// How it differs.
    pub result: ReplayResult,
    /// When the decision was recorded, UTC.
    pub time: String,
    /// The call.
    pub op: String,
    /// Method of the protocol.
    pub mcp_method: Option<String>,
    /// Tool.
    pub tool_name: Option<String>,
    /// First path.
    pub path: Option<String>,
    /// The recorded decision.
    pub was: &'static str,
    /// The recorded rule.
    pub was_rule: Option<String>,
    /// The decision of the policy; several if it is undecidable.
    pub now: Vec<&'static str>,
    /// The rule of the policy, if that is certain.
    pub now_rule: Option<String>,
    /// Facts that were not recorded.
    pub missing: Option<&'static str>,
}

/// Counts of a replay.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ReplaySummary {
    /// `summary`: it follows the differences.
    pub result: &'static str,
    /// Recorded decisions.
    pub decisions: u64,
    /// Those that the policy repeats.
    pub same: u64,
    /// Of those, by a rule of another name.
    pub same_by_another_rule: u64,
    /// Those that it changes.
    pub changed: u64,
    /// Those for which a fact that decides was not recorded.
    pub undecidable: u64,
    /// Refusals before any policy was asked.
    pub not_judged: u64,
    /// Records that cannot be read as decisions.
    pub unreadable: u64,
    /// Changes by `WAS -> NOW`.
    pub changes: BTreeMap<String, u64>,
    /// Digest of the policy.
    pub policy_digest: String,
    /// Recorded decisions by the digest of their policy.
    pub recorded_policies: BTreeMap<String, u64>,
    /// Lines of the journal that cannot be read as records.
    #[serde(skip)]
    pub skipped: u64,
}

impl ReplaySummary {
    /// Returns whether a decision is changed or undecidable.
    #[must_use]
    pub fn is_different(&self) -> bool {
        self.changed > 0 || self.undecidable > 0
    }

    /// Counts a decision; returns the difference if it is not the same.
    fn add(
        &mut self,
        recorded: &RecordedDecision<'_>,
        policy: &Policy,
    ) -> Option<ReplayDifference> {
        self.decisions += 1;
        let by = recorded.digest().unwrap_or("unknown");
        if let Some(count) = self.recorded_policies.get_mut(by) {
            *count += 1;
        } else if self.recorded_policies.len() < POLICIES_MAX {
            self.recorded_policies.insert(by.to_owned(), 1);
        }
        match compare(recorded, policy) {
            Comparison::NotJudged => {
                self.not_judged += 1;
                None
            }
            Comparison::Same { rule } => {
                self.same += 1;
                let was = recorded.final_rule.as_deref();
                let is_other = rule.as_deref().is_some_and(|rule| Some(rule) != was);
                self.same_by_another_rule += u64::from(is_other);
                // The same text that names another rule would be a contradiction: it is shown.
                let is_shown = is_other && recorded.by_policy(policy.digest());
                is_shown.then(|| difference(ReplayResult::OtherRule, recorded, &[], rule, None))
            }
            Comparison::Changed { now, rule } => {
                self.changed += 1;
                let change = format!("{} -> {}", label(recorded), now.label());
                *self.changes.entry(change).or_default() += 1;
                let now = [now];
                Some(difference(
                    ReplayResult::Changed,
                    recorded,
                    &now,
                    rule,
                    None,
                ))
            }
            Comparison::Undecidable { possible, missing } => {
                self.undecidable += 1;
                let result = ReplayResult::Undecidable;
                Some(difference(result, recorded, &possible, None, Some(missing)))
            }
        }
    }
}

/// Compares each recorded decision with the policy, and hands over those that differ until `each` breaks.
///
/// # Errors
/// A journal that cannot be read, [`AdminError::Cancelled`].
pub fn replay(
    journal: &Path,
    policy: &Policy,
    each: &mut dyn FnMut(&ReplayDifference) -> ControlFlow<()>,
    watch: &mut OperationWatch<'_>,
) -> Result<ReplaySummary, AdminError> {
    let filter = Filter {
        kind: Some(Kind::Decision),
        ..Filter::default()
    };
    let mut summary = ReplaySummary {
        result: "summary",
        policy_digest: policy.digest().to_owned(),
        ..ReplaySummary::default()
    };
    let mut records = 0_u64;
    let skipped = each_while(journal, &filter, &mut |body| {
        records = records.saturating_add(1);
        match RecordedDecision::parse(body) {
            Some(recorded) => {
                if let Some(difference) = summary.add(&recorded, policy) {
                    each(&difference)?;
                }
            }
            None => summary.unreadable += 1,
        }
        match records.is_multiple_of(STEP_RECORDS) {
            true => watch.step(records, None),
            false => ControlFlow::Continue(()),
        }
    })?;
    summary.skipped = skipped;
    Ok(summary)
}

/// Decision of the policy about a recorded decision.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Comparison {
    /// The same; by which rule, if that is known.
    Same { rule: Option<String> },
    /// Another one.
    Changed { now: Effect, rule: Option<String> },
    /// A fact that decides was not recorded: it is one of these.
    Undecidable {
        possible: Vec<Effect>,
        missing: &'static str,
    },
    /// No policy was asked.
    NotJudged,
}

fn compare(recorded: &RecordedDecision<'_>, policy: &Policy) -> Comparison {
    let (was, facts) = match recorded.to_judgement() {
        RecordedJudgement::NotByPolicy => return Comparison::NotJudged,
        RecordedJudgement::Protected => return Comparison::Same { rule: None },
        RecordedJudgement::Incomplete { missing } => {
            return Comparison::Undecidable {
                possible: vec![Effect::Allow, Effect::Hitl, Effect::Deny],
                missing,
            };
        }
        RecordedJudgement::Facts { was, facts } => (was, facts),
    };
    let outlook = DecisionOutlook::of(policy, &facts);
    match outlook.possible.as_slice() {
        [now] if *now == was => Comparison::Same { rule: outlook.rule },
        [now] => Comparison::Changed {
            now: *now,
            rule: outlook.rule,
        },
        // The same text decided so about the same call, and it is among what it can decide.
        several if recorded.by_policy(policy.digest()) && several.contains(&was) => {
            Comparison::Same { rule: None }
        }
        several => Comparison::Undecidable {
            possible: several.to_vec(),
            missing: facts.missing,
        },
    }
}

fn label(recorded: &RecordedDecision<'_>) -> &'static str {
    recorded.effect().map_or("unknown", Effect::label)
}

fn difference(
    result: ReplayResult,
    recorded: &RecordedDecision<'_>,
    now: &[Effect],
    now_rule: Option<String>,
    missing: Option<&'static str>,
) -> ReplayDifference {
    let text = |text: &Option<RecordedText<'_>>| {
        let text = text.as_ref();
        text.map(|text| text.shown().into_owned())
    };
    ReplayDifference {
        result,
        time: recorded.time.to_string(),
        op: recorded.op.to_string(),
        mcp_method: text(&recorded.mcp_method),
        tool_name: text(&recorded.tool_name),
        path: text(&recorded.path),
        was: label(recorded),
        was_rule: recorded.final_rule.as_deref().map(str::to_owned),
        now: now.iter().map(|effect| effect.label()).collect(),
        now_rule,
        missing,
    }
}
