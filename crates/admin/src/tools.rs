//! Tools of a server, with what the policy decides about them.

use gate::facts::Facts;
use gate::policy::{DEFAULT_RULE, Effect, PROTECTED_RULE, Policy, Tri};
use serde::Serialize;
use serde_json::{Map, Value};

/// The tools that a server lists.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ServerTools {
    /// The server.
    pub server: String,
    /// In the order of its list.
    pub tools: Vec<ListedTool>,
}

/// A tool, and what the policy decides about it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ListedTool {
    /// Name.
    #[serde(skip)]
    pub name: String,
    /// The definition as the server sent it.
    #[serde(flatten)]
    pub tool: Map<String, Value>,
    /// Result of calls; absent if that cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<ToolVerdict>,
}

/// Result of calls of a tool, as far as that is known without arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ToolVerdict {
    /// The result.
    pub verdict: ToolOutcome,
    /// The rules that decide it.
    pub rules: Vec<String>,
}

/// Result of calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum ToolOutcome {
    /// Calls pass with any arguments.
    Passes,
    /// A person is asked, with any arguments.
    Asks,
    /// The arguments decide.
    Depends,
    /// No arguments make a call pass, so clients are not shown the tool.
    Hidden,
}

impl ToolOutcome {
    /// Returns the word for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Asks => "asks",
            Self::Depends => "depends",
            Self::Hidden => "hidden",
        }
    }
}

impl ToolVerdict {
    /// Judges a tool by the facts that are known before a call of it.
    #[must_use]
    pub fn of(policy: &Policy, facts: &Facts) -> Self {
        let judgement = policy.judge(facts);
        let denied = judgement
            .matched_rules()
            .find(|rule| rule.effect == Effect::Deny);
        let decided = match (denied, judgement.protected()) {
            (_, Tri::Yes) => PROTECTED_RULE,
            (Some(rule), _) => &rule.id,
            (None, _) => DEFAULT_RULE,
        };
        let decided = vec![decided.to_owned()];
        if !judgement.may_be_listed() {
            return Self::new(ToolOutcome::Hidden, decided);
        }
        let mut unsure: Vec<String> = judgement
            .unsure_rules()
            .map(|rule| rule.id.clone())
            .collect();
        // Protected paths are refused by no rule: that a path may be one is no rule's verdict.
        let first = |effect: Effect| judgement.matched_rules().find(|rule| rule.effect == effect);
        if unsure.is_empty() {
            return match (first(Effect::Hitl), first(Effect::Allow)) {
                (Some(rule), _) => Self::new(ToolOutcome::Asks, vec![rule.id.clone()]),
                (None, Some(rule)) => Self::new(ToolOutcome::Passes, vec![rule.id.clone()]),
                (None, None) => Self::new(ToolOutcome::Hidden, decided),
            };
        }
        unsure.extend(judgement.matched_rules().map(|rule| rule.id.clone()));
        Self::new(ToolOutcome::Depends, unsure)
    }

    fn new(verdict: ToolOutcome, rules: Vec<String>) -> Self {
        Self { verdict, rules }
    }
}
