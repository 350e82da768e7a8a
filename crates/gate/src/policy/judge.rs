//! The one function that judges, and its two readings: may this call pass, may this tool be seen.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::effect::Effect;
use crate::facts::{Fact, FactId, Facts, Operation};

use super::Policy;
use super::guarded::GuardedPaths;
use super::rule::Rule;
use super::seen::Seen;
use super::tri::Tri;

/// Names the decision where no rule matched.
pub const DEFAULT_RULE: &str = "default";
/// Names the decision where a protected path was touched.
pub const PROTECTED_RULE: &str = "built_in_protected_path";
/// Names the decision where a directory above a protected path may be moved, and a person is asked.
pub const ANCESTOR_RULE: &str = "built_in_protected_ancestor";
/// Names the decision where the arguments hold more than is looked through for protected paths.
pub const UNREAD_RULE: &str = "built_in_unread_arguments";

/// Most rules that a record names beside the one that decided: a call that hundreds of rules match is no
/// better explained by all of their names, and each has to be written before the call goes on.
pub const NAMED_MAX: usize = 16;

/// Rules by their numbers: few match a call.
pub(super) type Numbers = SmallVec<[u32; 8]>;

/// The rules that a record names, and what each wants: their names are shared with the policy.
pub type Named = SmallVec<[(Arc<str>, Effect); 2]>;

/// What the policy says of a set of facts.
#[derive(Debug)]
pub struct Judgement<'p> {
    policy: &'p Policy,
    protected: Tri,
    /// The call names a directory above a protected path, and nothing says that it leaves the directory where it is.
    may_move_ancestor: bool,
    /// The arguments hold more than was looked through.
    unread: bool,
    /// Rules that match, and rules of which nobody can say.
    matched: Numbers,
    unsure: Numbers,
    /// What the call does, where that is known.
    pub operation: Option<Operation>,
    /// Its side effects, where they are known.
    pub side_effects: Option<&'static [&'static str]>,
}

/// The answer for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict<'p> {
    /// Allow, deny or ask.
    pub effect: Effect,
    /// The rule that decided, or [`DEFAULT_RULE`], [`PROTECTED_RULE`], [`ANCESTOR_RULE`] or [`UNREAD_RULE`].
    pub final_rule: &'p str,
    /// The decision was taken on the safe side, because a fact could not be known.
    pub unsure: bool,
}

impl Policy {
    /// Judges facts against every rule that can match them.
    #[must_use]
    pub fn judge(&self, facts: &Facts) -> Judgement<'_> {
        let seen = Seen::new(facts);
        let commands = seen.commands();
        let candidates = self.index.candidates(&seen);
        let (matched, unsure) = self.matching(candidates.into_iter(), &seen, &commands);
        Judgement {
            policy: self,
            protected: self.touches_protected(&seen),
            may_move_ancestor: self.guards(&seen) && self.protected.may_be_moved(&seen),
            unread: facts.reach.unread,
            matched,
            unsure,
            operation: seen.operation(),
            side_effects: seen.side_effects(),
        }
    }

    /// Returns the rules that match and those that may, in the policy's order, so that what matched is named in it.
    ///
    /// Several commands are judged one by one: what refuses or asks about one of them does so for the call, and the
    /// call is allowed where each of them is, be it by different rules.
    pub(super) fn matching(
        &self,
        numbers: impl Iterator<Item = u32>,
        seen: &Seen<'_>,
        commands: &[Seen<'_>],
    ) -> (Numbers, Numbers) {
        let (mut matched, mut unsure) = (Numbers::new(), Numbers::new());
        let mut allowed = vec![false; commands.len()];
        let mut allowing = Numbers::new();
        for number in numbers {
            let Some(compiled) = self.compiled.get(number as usize) else {
                continue;
            };
            let outcome = match commands {
                [] => compiled.matches(seen),
                several => compiled.matches_each(several),
            };
            match outcome {
                Tri::Yes => matched.push(number),
                Tri::Unknown => unsure.push(number),
                Tri::No if compiled.effect != Effect::Allow => {}
                Tri::No => {
                    let mut allows_one = false;
                    for (command, allowed) in commands.iter().zip(&mut allowed) {
                        let allows = compiled.matches(command) == Tri::Yes;
                        *allowed |= allows;
                        allows_one |= allows;
                    }
                    if allows_one {
                        allowing.push(number);
                    }
                }
            }
        }
        if !allowing.is_empty() && allowed.iter().all(|allowed| *allowed) {
            matched.extend(allowing);
            matched.sort_unstable();
        }
        (matched, unsure)
    }

    /// Whether a path leads to a protected place, or something that is read or taken away with all below it
    /// holds one; for places that may be read, only where the call may do more.
    fn touches_protected(&self, seen: &Seen<'_>) -> Tri {
        let facts = seen.facts();
        let guarded = [Some(&self.protected), self.unchangeable(seen)];
        let mut guarded = guarded
            .into_iter()
            .flatten()
            .filter(|places| !places.is_empty())
            .peekable();
        if !self.guards(seen) || guarded.peek().is_none() {
            return Tri::No;
        }
        let paths = match &facts.paths {
            Fact::Known(paths) => paths,
            Fact::Unknown => return Tri::Unknown,
            Fact::Absent => return Tri::No,
        };
        if guarded.any(|places| places.are_reached(seen)) {
            return Tri::Yes;
        }
        if facts.reach.unread {
            return Tri::Unknown;
        }
        Tri::any(paths.iter().map(|argument| {
            if argument.meaning.uncertain && !argument.content {
                Tri::Unknown
            } else {
                Tri::No
            }
        }))
    }

    /// Returns whether the paths of a call are those of this machine, which has the protected ones.
    fn guards(&self, seen: &Seen<'_>) -> bool {
        self.local && !seen.facts().is_elsewhere
    }

    /// Returns the places that this call must not reach because it may change them; none for a call that only reads.
    fn unchangeable(&self, seen: &Seen<'_>) -> Option<&GuardedPaths> {
        if self.read_only.is_empty() {
            return None;
        }
        let only_reads = match seen.get(FactId::ReadsOnly) {
            Fact::Known(said) => said.texts().any(|word| word == "yes"),
            Fact::Unknown | Fact::Absent => false,
        };
        (!only_reads).then_some(&self.read_only)
    }
}

impl<'p> Judgement<'p> {
    /// The answer for a call: what is not known counts against it.
    #[must_use]
    pub fn verdict(&self) -> Verdict<'p> {
        match self.protected {
            Tri::Yes => {
                return Verdict {
                    effect: Effect::Deny,
                    final_rule: PROTECTED_RULE,
                    unsure: false,
                };
            }
            Tri::Unknown => {
                return Verdict {
                    effect: Effect::Deny,
                    final_rule: match self.unread {
                        true => UNREAD_RULE,
                        false => PROTECTED_RULE,
                    },
                    unsure: true,
                };
            }
            Tri::No => {}
        }
        let by_rules = self.by_rules();
        match self.may_move_ancestor && by_rules.effect != Effect::Deny {
            true => Verdict {
                effect: Effect::Hitl,
                final_rule: ANCESTOR_RULE,
                unsure: true,
            },
            false => by_rules,
        }
    }

    /// The answer of the rules alone.
    fn by_rules(&self) -> Verdict<'p> {
        for effect in [Effect::Deny, Effect::Hitl] {
            if let Some(rule) = self.best(&self.matched, effect) {
                return Verdict {
                    effect,
                    final_rule: &rule.id,
                    unsure: false,
                };
            }
            if let Some(rule) = self.best(&self.unsure, effect) {
                return Verdict {
                    effect,
                    final_rule: &rule.id,
                    unsure: true,
                };
            }
        }
        match self.best(&self.matched, Effect::Allow) {
            Some(rule) => Verdict {
                effect: Effect::Allow,
                final_rule: &rule.id,
                unsure: false,
            },
            None => Verdict {
                effect: Effect::Deny,
                final_rule: DEFAULT_RULE,
                unsure: false,
            },
        }
    }

    /// The answer for a listing: hidden only where no arguments could make the call pass.
    #[must_use]
    pub fn may_be_listed(&self) -> bool {
        let certainly_refused =
            self.protected == Tri::Yes || self.best(&self.matched, Effect::Deny).is_some();
        let could_pass = [&self.matched, &self.unsure].into_iter().any(|list| {
            [Effect::Allow, Effect::Hitl]
                .into_iter()
                .any(|effect| self.best(list, effect).is_some())
        });
        !certainly_refused && could_pass
    }

    /// The rules that match, in the policy's order.
    pub fn matched_rules(&self) -> impl Iterator<Item = &'p Rule> {
        let rules = &self.policy.rules;
        self.matched
            .iter()
            .filter_map(|number| rules.get(*number as usize))
    }

    /// What a record names of the rules that match: the first [`NAMED_MAX`] in the policy's order and the
    /// one that decided, and how many more there are.
    #[must_use]
    pub fn named_rules(&self, decided: &str) -> (Named, usize) {
        let compiled = &self.policy.compiled;
        let mut rest = self
            .matched
            .iter()
            .filter_map(|number| compiled.get(*number as usize))
            .map(|rule| (Arc::clone(&rule.id), rule.effect));
        let mut named: Named = rest.by_ref().take(NAMED_MAX).collect();
        if self.matched.len() > NAMED_MAX && !named.iter().any(|(id, _)| **id == *decided) {
            named.extend(rest.find(|(id, _)| **id == *decided));
        }
        let omitted = self.matched.len().saturating_sub(named.len());
        (named, omitted)
    }

    /// The rules of which nobody can say whether they match, in no order.
    pub fn unsure_rules(&self) -> impl Iterator<Item = &'p Rule> {
        let rules = &self.policy.rules;
        self.unsure
            .iter()
            .filter_map(|number| rules.get(*number as usize))
    }

    /// Whether the call may move a directory above a protected path.
    #[must_use]
    pub fn may_move_ancestor(&self) -> bool {
        self.may_move_ancestor
    }

    /// Whether the call touches a protected place.
    #[must_use]
    pub fn protected(&self) -> Tri {
        self.protected
    }

    /// The rule that decided, where it is one of the policy's.
    #[must_use]
    pub fn deciding_rule(&self) -> Option<&'p Rule> {
        let id = self.verdict().final_rule;
        self.policy.rules.iter().find(|rule| rule.id == id)
    }

    /// The most specific rule of an effect; the first of equals.
    fn best(&self, numbers: &[u32], effect: Effect) -> Option<&'p Rule> {
        let compiled = &self.policy.compiled;
        let best = numbers
            .iter()
            .filter_map(|number| Some((*number, compiled.get(*number as usize)?)))
            .filter(|(_, rule)| rule.effect == effect)
            .max_by_key(|(number, rule)| (rule.specificity, std::cmp::Reverse(*number)));
        best.and_then(|(number, _)| self.policy.rules.get(number as usize))
    }
}
