//! What the policy says of a tool before anybody calls it.

use gate::policy::{DEFAULT_RULE, Effect, PROTECTED_RULE, Policy, Tri};
use serde_json::{Value, json};

use crate::builtin::Configured;
use crate::local::LocalView;
use crate::places::Places;
use crate::policy::question::Question;

/// What becomes of a call of a tool, as far as that is known without its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub word: &'static str,
    /// The rules that decide it.
    pub rules: Vec<String>,
}

/// Passes whatever its arguments are.
pub(crate) const PASSES: &str = "passes";
/// A person is asked whatever its arguments are.
pub(crate) const ASKS: &str = "asks";
/// What happens depends on the arguments.
pub(crate) const DEPENDS: &str = "depends";
/// No arguments could make it pass, so clients are not shown it.
pub(crate) const HIDDEN: &str = "hidden";

impl Verdict {
    /// Judges a tool of a server by its name.
    pub fn of(
        policy: &Policy,
        server: &str,
        builtin: Option<&Configured>,
        tool: &str,
        places: &Places,
    ) -> Option<Self> {
        let question = Question {
            method: "tools/call",
            name: Some(tool),
            backend: server,
            builtin: builtin.map(|builtin| (builtin, places)),
            subject: &places.user,
            ..Question::default()
        };
        let facts = question.listed(&LocalView::new(places))?;
        let judgement = policy.judge(&facts);
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
            return Some(Self::new(HIDDEN, decided));
        }
        let mut unsure: Vec<String> = judgement.unsure_rules().map(|r| r.id.clone()).collect();
        // Protected places are refused whatever the rules say: that a path may be one is no rule's verdict.
        let first = |effect: Effect| judgement.matched_rules().find(|rule| rule.effect == effect);
        if unsure.is_empty() {
            return Some(match (first(Effect::Hitl), first(Effect::Allow)) {
                (Some(rule), _) => Self::new(ASKS, vec![rule.id.clone()]),
                (None, Some(rule)) => Self::new(PASSES, vec![rule.id.clone()]),
                (None, None) => Self::new(HIDDEN, decided),
            });
        }
        unsure.extend(judgement.matched_rules().map(|rule| rule.id.clone()));
        Some(Self::new(DEPENDS, unsure))
    }

    fn new(word: &'static str, rules: Vec<String>) -> Self {
        Self { word, rules }
    }

    pub fn json(&self) -> Value {
        json!({ "verdict": self.word, "rules": self.rules })
    }
}
