//! What was decided about a call.

use serde::Serialize;

use super::{Digest, Micros, OpId, none};

/// The verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may go.
    Allow,
    /// It may not.
    #[default]
    Deny,
    /// A person decides; `hitl_outcome` says how.
    Hitl,
}

/// What a rule wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Let it go.
    Allow,
    /// Refuse it.
    Deny,
    /// Ask a person.
    Hitl,
}

/// A rule that matched. Class: plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MatchedRule<'a> {
    /// The rule's name in the policy.
    pub id: &'a str,
    /// What it wants.
    pub effect: Effect,
}

/// The decision record: written before anything leaves. All text is class plain; arguments appear as a digest only.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(tag = "event", rename = "policy_decision")]
pub struct Decision<'a> {
    /// The call.
    pub op: OpId,
    /// The verdict.
    pub decision: Verdict,
    /// The closed label of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// The rule that decided: an id, `default`, `built_in_protected_path`, `rate_limit_breach`…
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_rule: Option<&'a str>,
    /// All rules that matched.
    #[serde(skip_serializing_if = "none")]
    pub matched_rules: &'a [MatchedRule<'a>],
    /// MCP method, such as `tools/call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_method: Option<&'a str>,
    /// The tool's own name, without a server's prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// The first path argument, canonical.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    /// All path arguments, canonical.
    #[serde(skip_serializing_if = "none")]
    pub paths: &'a [&'a str],
    /// Where a copy or move reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_path: Option<&'a str>,
    /// Where it writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest_path: Option<&'a str>,
    /// The resource's URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<&'a str>,
    /// The URI's scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<&'a str>,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<&'a str>,
    /// Which server is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_id: Option<&'a str>,
    /// What the tool does to the world.
    #[serde(skip_serializing_if = "none")]
    pub side_effects: &'a [&'a str],
    /// Which operations its name implies.
    #[serde(skip_serializing_if = "none")]
    pub operations: &'a [&'a str],
    /// Who asks whom: `client_to_server` or `server_to_client`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<&'a str>,
    /// Protocol era.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<&'a str>,
    /// The policy's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<&'a str>,
    /// Digest of the policy in force, as the policy states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_digest: Option<&'a str>,
    /// Time that the policy took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_eval_us: Option<Micros>,
    /// The client's own id of the request, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    /// The client's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    /// Class digest: the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<Digest>,
    /// `user_allowed`, `user_denied`, `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hitl_outcome: Option<&'a str>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hitl_approver_id: Option<&'a str>,
    /// On which channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hitl_channel: Option<&'a str>,
    /// Names of the facts that could not be known.
    #[serde(skip_serializing_if = "none")]
    pub unknown_facts: &'a [&'a str],
}
