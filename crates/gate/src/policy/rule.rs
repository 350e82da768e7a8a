//! A rule as written: effect and conditions.

use super::conditions::Conditions;
use crate::channel::Channel;
use crate::effect::Effect;

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Unique in the policy.
    pub id: String,
    /// For people.
    pub description: Option<String>,
    /// What it does.
    pub effect: Effect,
    /// What it asks of a call: all of these.
    pub conditions: Conditions,
    /// Side effects up to which an approval may be remembered (hitl only).
    pub cache_side_effects: Vec<String>,
    /// Who may answer (hitl only).
    pub approvers: Vec<Channel>,
}
