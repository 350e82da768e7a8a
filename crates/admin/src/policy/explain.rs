//! Explanation of a decision, rule by rule.

use gate::facts::{Fact, Facts};
use gate::policy::{
    ANCESTOR_RULE, DEFAULT_RULE, Operation, PROTECTED_RULE, Policy, Reading, Tri, UNREAD_RULE,
    Verdict,
};
use gate::urls::UrlReading;
use serde::Serialize;

use super::{by_precedence, to_texts};

/// Decision about a call, and how each rule compares with it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// `allow`, `deny` or `hitl`.
    pub decision: &'static str,
    /// The rule that decides, or a built-in one.
    pub final_rule: String,
    /// Whether the rule only may match.
    pub unsure: bool,
    /// Why, in a sentence.
    pub because: String,
    /// Whether a protected path is touched: `yes`, `no` or `unknown`.
    pub protected: &'static str,
    /// Whether the call may move or delete a directory above protected paths.
    pub may_move_ancestor: bool,
    /// Operation of the call: `read`, `write`, `delete` or `unknown`.
    pub operation: &'static str,
    /// Side effects; null if they are unknown.
    pub side_effects: Option<Vec<&'static str>>,
    /// Whether the tool is shown in lists; null if the call is of no tool.
    pub listed: Option<bool>,
    /// Paths among the arguments.
    pub paths: Vec<ExplainedPath>,
    /// Rules in the order in which they decide.
    pub rules: Vec<ExplainedRule>,
    /// Digest of the policy.
    pub policy_digest: String,
    /// The call.
    #[serde(skip)]
    pub call: ExplainedCall,
}

/// The call that is explained.
#[derive(Debug, Default)]
pub struct ExplainedCall {
    /// Method of the protocol.
    pub method: String,
    /// Tool.
    pub tool: Option<String>,
    /// Resource.
    pub uri: Option<String>,
    /// Server.
    pub server: String,
    /// Caller.
    pub caller: String,
    /// Further facts by name.
    pub further: Vec<(&'static str, Vec<String>)>,
    /// URLs among the arguments.
    pub urls: Vec<ExplainedUrl>,
}

/// A URL among the arguments.
#[derive(Debug)]
pub struct ExplainedUrl {
    /// Canonical forms that it may have.
    pub texts: Vec<String>,
    /// Whether there may be others.
    pub uncertain: bool,
}

/// A path among the arguments.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ExplainedPath {
    /// As it was written.
    pub text: String,
    /// Role of the argument.
    pub role: &'static str,
    /// Whether it is in content.
    pub content: bool,
    /// Canonical forms that it may have.
    pub places: Vec<String>,
    /// Whether there may be others.
    pub uncertain: bool,
}

/// How a rule compares with the call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ExplainedRule {
    /// Id.
    pub id: String,
    /// `allow`, `deny` or `hitl`.
    pub effect: &'static str,
    /// Whether it matches: `yes`, `no` or `unknown`.
    pub outcome: &'static str,
    /// Its conditions.
    pub conditions: Vec<ConditionOutcome>,
}

/// How a condition compares with the call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ConditionOutcome {
    /// Name.
    pub condition: &'static str,
    /// Its patterns; null if it has none of its own.
    pub asked: Option<Vec<String>>,
    /// Whether it is met: `yes`, `no` or `unknown`.
    pub outcome: &'static str,
}

/// Explains the decision about a call; `listed` are the facts of its tool in a list.
#[must_use]
pub fn explain(policy: &Policy, facts: &Facts, listed: Option<&Facts>) -> Explanation {
    let judgement = policy.judge(facts);
    let verdict = judgement.verdict();
    let readings = by_precedence(policy.readings(facts), |reading| reading.rule);
    let paths = facts.paths.known().into_iter().flatten();
    let paths = paths.map(|argument| ExplainedPath {
        text: argument.text.clone(),
        role: argument.role.label(),
        content: argument.content,
        places: argument.meaning.places.clone(),
        uncertain: argument.meaning.uncertain,
    });
    Explanation {
        decision: verdict.effect.label(),
        final_rule: verdict.final_rule.to_owned(),
        unsure: verdict.unsure,
        because: because(&verdict),
        protected: word(judgement.protected()),
        may_move_ancestor: judgement.may_move_ancestor(),
        operation: judgement.operation.map_or("unknown", Operation::label),
        side_effects: judgement.side_effects.map(<[_]>::to_vec),
        listed: listed.map(|facts| policy.judge(facts).may_be_listed()),
        paths: paths.collect(),
        rules: readings.iter().map(ExplainedRule::new).collect(),
        policy_digest: policy.digest().to_owned(),
        call: ExplainedCall::new(facts),
    }
}

impl ExplainedCall {
    fn new(facts: &Facts) -> Self {
        let known = |fact: &Fact<String>| match fact {
            Fact::Known(text) => Some(text.clone()),
            Fact::Unknown | Fact::Absent => None,
        };
        let further = facts.kept_beside().map(|(row, value)| {
            let known = value.known();
            let texts = known.iter().flat_map(|value| value.texts());
            (row.name, texts.map(str::to_owned).collect())
        });
        let urls = facts.reach.urls.list().iter().map(|url| ExplainedUrl {
            texts: url.readings.iter().flat_map(UrlReading::texts).collect(),
            uncertain: url.uncertain || url.ambiguous,
        });
        Self {
            method: facts.method.clone(),
            tool: known(&facts.tool_name),
            uri: known(&facts.uri),
            server: facts.backend_id.clone(),
            caller: facts.subject_id.clone(),
            further: further.collect(),
            urls: urls.collect(),
        }
    }
}

impl ExplainedRule {
    fn new(reading: &Reading<'_>) -> Self {
        let rule = reading.rule;
        let conditions = reading.conditions.iter();
        let conditions = conditions.map(|(name, value)| ConditionOutcome {
            condition: name,
            asked: rule.conditions.list(name).map(to_texts),
            outcome: word(*value),
        });
        Self {
            id: rule.id.clone(),
            effect: rule.effect.label(),
            outcome: word(reading.outcome),
            conditions: conditions.collect(),
        }
    }
}

/// Returns the word for a truth value.
fn word(value: Tri) -> &'static str {
    match value {
        Tri::Yes => "yes",
        Tri::No => "no",
        Tri::Unknown => "unknown",
    }
}

/// Returns why a verdict is as it is, in a sentence.
pub(super) fn because(verdict: &Verdict<'_>) -> String {
    let rule = verdict.final_rule;
    match (verdict.final_rule, verdict.unsure) {
        (DEFAULT_RULE, _) => "no rule allows it".into(),
        (PROTECTED_RULE, false) => "it touches a protected path".into(),
        (PROTECTED_RULE, true) => {
            "it may touch a protected path, and a path cannot be resolved".into()
        }
        (ANCESTOR_RULE, _) => {
            "it may move a directory that holds protected paths, and nothing says what the tool does".into()
        }
        (UNREAD_RULE, _) => {
            "its arguments are too large to be searched for protected places".into()
        }
        (_, false) => format!("rule \"{rule}\""),
        (_, true) => format!(
            "rule \"{rule}\" may match, and a path cannot be resolved or its when cannot be judged"
        ),
    }
}
