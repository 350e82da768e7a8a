//! What was decided about a call.

use super::members::{Members, key, push_label, push_text};
use super::{Digest, Micros, OpId};
use crate::effect::Effect;
use crate::facts::Value;
use crate::journal::hex::push_decimal;
use crate::label::Label;
use crate::reason::Reason;

/// One path argument: its part in the call and the places it may lead to. Class: plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedPath<'a> {
    /// `path`, `source`, `destination` or `shape`.
    pub role: &'a str,
    /// Canonical places, the plain reading first.
    pub places: &'a [String],
    /// Where its parts lead if it is read as a list.
    pub parts: &'a [String],
    /// There are places that nobody could name.
    pub uncertain: bool,
    /// It can be read as something else than one path.
    pub ambiguous: bool,
    /// The URI scheme that the argument began with.
    pub scheme: Option<&'a str>,
}

/// A fact under its name in the table of facts. Class: plain.
#[derive(Debug, Clone)]
pub struct RecordedFact<'a> {
    /// The member.
    pub name: &'static str,
    /// The value.
    pub value: Value<'a>,
}

/// A rule that matched. Class: plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchedRule<'a> {
    /// The rule's name in the policy.
    pub id: &'a str,
    /// What it wants.
    pub effect: Effect,
}

/// The decision record: written before anything leaves. All text is class plain; arguments appear as a digest only.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decision<'a> {
    /// The call.
    pub op: OpId,
    /// The verdict.
    pub decision: Effect,
    /// Why the call was refused.
    pub reason: Option<Reason>,
    /// The rule that decided: an id, `default`, `built_in_protected_path`, `rate_limit_breach`…
    pub final_rule: Option<&'a str>,
    /// The rules that matched, in the policy's order; the one that decided is among them.
    pub matched_rules: &'a [MatchedRule<'a>],
    /// How many more matched.
    pub matched_rules_omitted: u64,
    /// MCP method, such as `tools/call`.
    pub mcp_method: Option<&'a str>,
    /// What the call reaches for: `tool`, `resource`, `prompt` or `server`.
    pub resource_type: Option<&'a str>,
    /// The tool's own name, without a server's prefix.
    pub tool_name: Option<&'a str>,
    /// The first path argument, canonical.
    pub path: Option<&'a str>,
    /// All path arguments, canonical.
    pub paths: &'a [&'a str],
    /// The path arguments as the policy saw them, so that another policy can be held against the call.
    pub path_arguments: &'a [RecordedPath<'a>],
    /// How many path arguments found no room in the record.
    pub path_arguments_omitted: u64,
    /// How many path-like strings stood in contents. Class never: their number only. `None` where the
    /// arguments were not known.
    pub content_paths: Option<u64>,
    /// Where a copy or move reads.
    pub source_path: Option<&'a str>,
    /// Where it writes.
    pub dest_path: Option<&'a str>,
    /// The resource's URI.
    pub uri: Option<&'a str>,
    /// The URI's scheme.
    pub scheme: Option<&'a str>,
    /// Who asks.
    pub subject_id: Option<&'a str>,
    /// Which server is asked.
    pub backend_id: Option<&'a str>,
    /// What the tool does to the world.
    pub side_effects: &'a [&'a str],
    /// Which operations its name implies.
    pub operations: &'a [&'a str],
    /// Who asks whom: `to_server` or `to_client`.
    pub direction: Option<&'a str>,
    /// Protocol era.
    pub era: Option<Label>,
    /// The policy's version.
    pub policy_version: Option<&'a str>,
    /// Digest of the policy in force, as the policy states it.
    pub policy_digest: Option<&'a str>,
    /// Time that the policy took.
    pub policy_eval_us: Option<Micros>,
    /// The client's own id of the request, as text.
    pub request_id: Option<&'a str>,
    /// The client's session.
    pub session_id: Option<&'a str>,
    /// The run that the call belongs to.
    pub run_id: Option<&'a str>,
    /// The call on whose behalf this one is made.
    pub parent_op: Option<OpId>,
    /// Class digest: the arguments.
    pub arguments_digest: Option<Digest>,
    /// `user_allowed`, `user_denied`, `timeout`, `withdrawn`.
    pub hitl_outcome: Option<&'a str>,
    /// The answer was an earlier one that still holds.
    pub hitl_cache_hit: Option<bool>,
    /// Who answered.
    pub hitl_approver_id: Option<&'a str>,
    /// On which channel.
    pub hitl_channel: Option<&'a str>,
    /// How long the call waited for a person.
    pub policy_hitl_us: Option<Micros>,
    /// Names of the facts that could not be known.
    pub unknown_facts: &'a [&'a str],
    /// How many refusals of this caller for this reason the record stands for, where they are counted:
    /// they came within a second behind one that has a record of its own. 0: the record is of one call.
    pub refusals: u64,
    /// Facts that have no member of their own.
    pub facts: &'a [RecordedFact<'a>],
}

impl Decision<'_> {
    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.label(key!("event"), "policy_decision");
        members.op(key!("op"), self.op);
        members.label(key!("decision"), self.decision.label());
        members.maybe_label(key!("reason"), self.reason.map(Reason::label));
        members.maybe(key!("final_rule"), self.final_rule);
        members.each(key!("matched_rules"), self.matched_rules, MatchedRule::push);
        if self.matched_rules_omitted > 0 {
            members.count(key!("matched_rules_omitted"), self.matched_rules_omitted);
        }
        members.maybe_fact(key!("mcp_method"), self.mcp_method);
        members.maybe(key!("resource_type"), self.resource_type);
        members.maybe_fact(key!("tool_name"), self.tool_name);
        members.maybe_fact(key!("path"), self.path);
        members.facts(key!("paths"), self.paths.iter().copied());
        members.each(
            key!("path_arguments"),
            self.path_arguments,
            RecordedPath::push,
        );
        if self.path_arguments_omitted > 0 {
            members.count(key!("path_arguments_omitted"), self.path_arguments_omitted);
        }
        if let Some(count) = self.content_paths {
            members.count(key!("content_paths"), count);
        }
        members.maybe_fact(key!("source_path"), self.source_path);
        members.maybe_fact(key!("dest_path"), self.dest_path);
        members.maybe_fact(key!("uri"), self.uri);
        members.maybe_fact(key!("scheme"), self.scheme);
        members.maybe_fact(key!("subject_id"), self.subject_id);
        members.maybe_fact(key!("backend_id"), self.backend_id);
        members.list(key!("side_effects"), self.side_effects);
        members.list(key!("operations"), self.operations);
        members.maybe(key!("direction"), self.direction);
        members.maybe_label(key!("era"), self.era.map(Label::as_str));
        members.maybe(key!("policy_version"), self.policy_version);
        members.maybe(key!("policy_digest"), self.policy_digest);
        if let Some(micros) = self.policy_eval_us {
            members.micros(key!("policy_eval_us"), micros);
        }
        members.maybe_fact(key!("request_id"), self.request_id);
        members.maybe_fact(key!("session_id"), self.session_id);
        members.maybe_fact(key!("run_id"), self.run_id);
        if let Some(parent) = self.parent_op {
            members.op(key!("parent_op"), parent);
        }
        members.digest(key!("arguments_digest"), self.arguments_digest);
        members.maybe(key!("hitl_outcome"), self.hitl_outcome);
        if let Some(hit) = self.hitl_cache_hit {
            members.flag(key!("hitl_cache_hit"), hit);
        }
        members.maybe_fact(key!("hitl_approver_id"), self.hitl_approver_id);
        members.maybe(key!("hitl_channel"), self.hitl_channel);
        if let Some(micros) = self.policy_hitl_us {
            members.micros(key!("policy_hitl_us"), micros);
        }
        members.list(key!("unknown_facts"), self.unknown_facts);
        if self.refusals > 0 {
            members.count(key!("refusals"), self.refusals);
        }
        self.write_facts(members);
    }

    fn write_facts(&self, members: &mut Members<'_>) {
        for fact in self.facts {
            match &fact.value {
                Value::Text(text) => members.named_fact(fact.name, text),
                Value::Number(number) => push_decimal(members.named(fact.name), *number),
                list => members.named_facts(fact.name, list.texts()),
            }
        }
    }
}

impl RecordedPath<'_> {
    fn push(out: &mut Vec<u8>, path: &Self) {
        out.extend_from_slice(b"{\"role\":");
        push_text(out, path.role);
        out.extend_from_slice(b",\"places\":[");
        push_list(out, path.places);
        out.push(b']');
        if !path.parts.is_empty() {
            out.extend_from_slice(b",\"parts\":[");
            push_list(out, path.parts);
            out.push(b']');
        }
        if path.uncertain {
            out.extend_from_slice(b",\"uncertain\":true");
        }
        if path.ambiguous {
            out.extend_from_slice(b",\"ambiguous\":true");
        }
        if let Some(scheme) = path.scheme {
            out.extend_from_slice(b",\"scheme\":");
            push_text(out, scheme);
        }
        out.push(b'}');
    }
}

fn push_list(out: &mut Vec<u8>, texts: &[String]) {
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_text(out, text);
    }
}

impl MatchedRule<'_> {
    fn push(out: &mut Vec<u8>, rule: &Self) {
        out.extend_from_slice(b"{\"id\":");
        push_text(out, rule.id);
        out.extend_from_slice(b",\"effect\":");
        push_label(out, rule.effect.label());
        out.push(b'}');
    }
}
