//! Rules made ready: each condition that is asked, as a test.

use std::sync::Arc;

use super::conditions::Conditions;
use super::matcher::{OtherPaths, Part, Test};
use super::pattern::Pattern;
use super::rule::Rule;
use super::seen::Seen;
use super::tri::Tri;
use crate::effect::Effect;
use crate::paths::PathView;

/// Names the demand that an allow rule about sources or destinations makes of every other path.
pub const OTHER_PATHS: &str = "other paths";

/// A rule with its conditions compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    /// The rule's, shared with the decisions that name it.
    pub(super) id: Arc<str>,
    pub(super) effect: Effect,
    /// As [`Conditions::specificity`] has it: every decision asks for it.
    pub(super) specificity: usize,
    /// By their keys, in the order in which they are held against a call: cheap ones first.
    tests: Vec<(&'static str, Test)>,
}

impl Compiled {
    pub fn new(rule: &Rule, view: Option<&dyn PathView>) -> Result<Self, String> {
        let conditions: &Conditions = &rule.conditions;
        let mut tests = Vec::with_capacity(conditions.count());
        for asked in conditions.all() {
            let (row, said) = (asked.row, (asked.texts.as_slice(), asked.when.as_ref()));
            let test = row.matcher.compile(row.fact, said, rule.effect, view)?;
            tests.push((row.key, test));
        }
        if rule.effect == Effect::Allow
            && let Some(others) = OtherPaths::of(tests.iter().filter_map(|(_, test)| test.paths()))
        {
            let last = tests.iter().rposition(|(_, test)| test.paths().is_some());
            let behind = last.map_or(tests.len(), |at| at + 1);
            tests.insert(behind, (OTHER_PATHS, Test::OtherPaths(others)));
        }
        Ok(Self {
            id: rule.id.as_str().into(),
            effect: rule.effect,
            specificity: conditions.specificity(),
            tests,
        })
    }

    /// Whether the rule matches: all its conditions, cheap ones first.
    pub fn matches(&self, seen: &Seen<'_>) -> Tri {
        let mut out = Tri::Yes;
        // One after the other: a condition that does not hold spares the rest.
        for (_, test) in &self.tests {
            out = out.min(test.holds(seen, self.effect));
            if out == Tri::No {
                break;
            }
        }
        out
    }

    /// The same for a call that runs several commands: a rule that refuses or asks matches where it matches one of
    /// them, and a rule that allows where it matches all.
    pub fn matches_each(&self, commands: &[Seen<'_>]) -> Tri {
        self.over(commands, |seen| self.matches(seen))
    }

    /// Every condition by its key, and whether it holds.
    pub fn readings(
        &self,
        seen: &Seen<'_>,
        commands: &[Seen<'_>],
    ) -> impl Iterator<Item = (&'static str, Tri)> {
        self.tests.iter().map(move |(key, test)| {
            let holds = |seen: &Seen<'_>| test.holds(seen, self.effect);
            match commands {
                [] => (*key, holds(seen)),
                several => (*key, self.over(several, holds)),
            }
        })
    }

    fn over(&self, commands: &[Seen<'_>], holds: impl Fn(&Seen<'_>) -> Tri) -> Tri {
        let each = commands.iter().map(holds);
        match self.effect {
            Effect::Allow => Tri::all(each),
            Effect::Deny | Effect::Hitl => Tri::any(each),
        }
    }

    /// The patterns over the tool's name, where the rule asks for it.
    pub fn tool_names(&self) -> Option<&[Pattern]> {
        let mut tests = self.tests.iter();
        tests.find(|(key, _)| *key == "tool_name")?.1.names()
    }

    /// The patterns of each condition over paths, those over every path first.
    pub fn path_patterns(&self) -> impl Iterator<Item = &[Pattern]> {
        [Part::Any, Part::Source, Part::Destination]
            .into_iter()
            .filter_map(|part| {
                let mut tests = self.tests.iter().filter_map(|(_, test)| test.paths());
                tests
                    .find(|(of, _)| *of == part)
                    .map(|(_, patterns)| patterns)
            })
    }
}
