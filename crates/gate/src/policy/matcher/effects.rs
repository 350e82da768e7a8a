//! Conditions on what a call does. What is not known is no reason to allow, and a reason to refuse or to ask.

use crate::effect::Effect;
use crate::effects::{Operation, OperationSet};
use crate::policy::seen::Seen;
use crate::policy::tri::Tri;

/// Operations that a rule lists.
#[derive(Debug)]
pub(in crate::policy) struct Operations {
    listed: OperationSet,
    lists_unknown: bool,
}

impl Operations {
    pub fn new(texts: &[String]) -> Self {
        let listed = || texts.iter().filter_map(|text| Operation::from_label(text));
        Self {
            listed: listed().fold(OperationSet::NONE, |set, of| set.with(OperationSet::of(of))),
            lists_unknown: listed().any(|of| of == Operation::Unknown),
        }
    }

    /// An allow rule matches a call all of whose operations it lists; another rule matches a call that has, or may
    /// have, one that it lists.
    pub fn hold(&self, seen: &Seen<'_>, effect: Effect) -> Tri {
        let Some(effects) = seen.effects().filter(|_| seen.is_tool_call()) else {
            return match seen.operation() {
                Some(Operation::Unknown) | None => self.lists_unknown.into(),
                Some(operation) => self.listed.meets(OperationSet::of(operation)).into(),
            };
        };
        let known = match effects.is_open {
            true => effects.beyond_reading(),
            false => effects.operations,
        };
        if effect == Effect::Allow {
            let lists_all = known.without(self.listed).is_empty();
            return (lists_all && (self.lists_unknown || !effects.is_open)).into();
        }
        if known.meets(self.listed) || (effects.is_open && self.lists_unknown) {
            return Tri::Yes;
        }
        match effects.may_do_anything() {
            true => Tri::Unknown,
            false => Tri::No,
        }
    }
}

/// Side effects that a rule lists.
#[derive(Debug)]
pub(in crate::policy) struct SideEffects {
    listed: Vec<String>,
}

impl SideEffects {
    pub fn new(texts: &[String]) -> Self {
        Self {
            listed: texts.to_vec(),
        }
    }

    /// Matches a call that has one of the listed effects; a tool of unknown effects may have it.
    pub fn hold(&self, seen: &Seen<'_>, effect: Effect) -> Tri {
        match seen.side_effects() {
            Some(effects) => {
                let is_listed = |effect: &&str| self.listed.iter().any(|listed| listed == effect);
                effects.iter().any(is_listed).into()
            }
            None if effect == Effect::Allow || self.listed.is_empty() => Tri::No,
            None if seen.is_tool_call() => Tri::Unknown,
            None => Tri::No,
        }
    }
}
