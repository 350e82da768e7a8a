//! Decisions that a policy can take about a call of which not all is known.

use gate::policy::{Effect, Policy, Rule};

use super::record::RecordedFacts;

/// Decisions that are possible.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecisionOutlook {
    /// The decisions that are possible, at least one; one means that it is certain.
    pub possible: Vec<Effect>,
    /// The rule that decides, if that is certain.
    pub rule: Option<String>,
}

impl DecisionOutlook {
    /// Judges the recorded facts alone, and with those that were not recorded as unknown. A rule that matches in both
    /// matches; one that becomes unsure may or may not.
    pub(super) fn of(policy: &Policy, known: &RecordedFacts) -> Self {
        let least = policy.judge(&known.least);
        let verdict = least.verdict();
        let Some(most) = &known.most else {
            return Self {
                possible: vec![verdict.effect],
                rule: Some(verdict.final_rule.to_owned()),
            };
        };
        let most = policy.judge(most);
        // With the paths as such unknown, both judgements are of the same facts.
        let hidden_all = known.least.paths.is_unknown();
        let recorded_unsure: Vec<&Rule> = if hidden_all {
            Vec::new()
        } else {
            least.unsure_rules().collect()
        };
        let is_in = |list: &[&Rule], rule: &Rule| list.iter().any(|other| other.id == rule.id);
        let certain = |effect: Effect| {
            most.matched_rules().any(|rule| rule.effect == effect)
                // If the recorded paths of a call leave a rule open, it was decided on the safe side.
                || effect != Effect::Allow
                    && recorded_unsure.iter().any(|rule| rule.effect == effect)
        };
        let open = |effect: Effect| {
            most.unsure_rules()
                .any(|rule| rule.effect == effect && !is_in(&recorded_unsure, rule))
        };
        let mut possible = Vec::new();
        for effect in [Effect::Deny, Effect::Hitl, Effect::Allow] {
            if certain(effect) {
                possible.push(effect);
                break;
            }
            if open(effect) {
                possible.push(effect);
            }
            if effect == Effect::Allow && !possible.contains(&Effect::Deny) {
                // No rule allows it.
                possible.push(Effect::Deny);
            }
        }
        let later = most.verdict().final_rule;
        let rule = (verdict.final_rule == later && possible.len() == 1).then(|| later.to_owned());
        Self { possible, rule }
    }
}
