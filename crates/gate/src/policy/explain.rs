//! Every rule held against a call, condition by condition, for people who want to know why.

use crate::facts::Facts;

use super::Policy;
use super::compiled::OTHER_PATHS;
use super::rule::Rule;
use super::seen::Seen;
use super::tri::Tri;

/// One rule held against a call.
#[derive(Debug)]
pub struct Reading<'p> {
    /// The rule.
    pub rule: &'p Rule,
    /// Whether it matches.
    pub outcome: Tri,
    /// The conditions that it asks, by their keys, and
    /// [`super::OTHER_PATHS`] where a path that no condition names stands in the way.
    pub conditions: Vec<(&'static str, Tri)>,
}

impl Policy {
    /// Holds every rule against `facts`, in the policy's order. The outcome of each is the one that
    /// [`Policy::judge`] counts.
    #[must_use]
    pub fn readings(&self, facts: &Facts) -> Vec<Reading<'_>> {
        let seen = Seen::new(facts);
        let commands = seen.commands();
        let all = (0_u32..).take(self.rules.len());
        let (matched, unsure) = self.matching(all, &seen, &commands);
        let outcome = |number: u32| match (matched.contains(&number), unsure.contains(&number)) {
            (true, _) => Tri::Yes,
            (false, true) => Tri::Unknown,
            (false, false) => Tri::No,
        };
        (0_u32..)
            .zip(self.rules.iter().zip(&self.compiled))
            .map(|(number, (rule, compiled))| {
                let told = |(key, value): &(&str, Tri)| *key != OTHER_PATHS || *value != Tri::Yes;
                Reading {
                    rule,
                    outcome: outcome(number),
                    conditions: compiled.readings(&seen, &commands).filter(told).collect(),
                }
            })
            .collect()
    }
}
