//! A call that may not pass.

use std::fmt;

use crate::effect::Effect;
use crate::facts::Facts;
use crate::journal::OpId;
use crate::reason::Reason;

use super::decide::Decided;

/// A call that may not pass, and all that its caller is told.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The operation of its decision record; `None` if it has none of its own.
    pub op: Option<OpId>,
    /// Why.
    pub reason: Reason,
    /// `deny`, or `hitl` where a person would have had to say yes.
    pub decision: Effect,
    /// The rule that decided.
    pub final_rule: String,
    /// The rules that matched, at most [`crate::policy::NAMED_MAX`] and the one that decided.
    pub matched_rules: Vec<String>,
    /// How many more matched.
    pub matched_rules_omitted: usize,
    /// The tool.
    pub tool_name: Option<String>,
    /// The first path, canonical.
    pub path: Option<String>,
    /// When trying again can help, in milliseconds from now, where that is known.
    pub retry_after_ms: Option<u64>,
    /// What the person who said no gave as the reason.
    pub said: Option<String>,
}

impl Refusal {
    /// Of what becomes known of a call that is settled already: nobody judges it any more.
    pub(super) fn over() -> Self {
        let reason = Reason::FactsChanged;
        Decided::refused(reason).refusal(&Facts::default(), reason)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason.sentence(&self.final_rule))?;
        match &self.said {
            Some(said) => write!(f, ": {said}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}
