//! From a judgement to a decision and its record.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::approval::{self, Answer};
use crate::channel::Channel;
use crate::effect::Effect;
use crate::facts::{Facts, Operation, ResourceType, scheme_of};
use crate::inspect::RULE_PREFIX;
use crate::journal::{
    Appending, Decision, JournalError, MatchedRule, Micros, OpId, RecordedFact, RecordedPath,
};
use crate::limits::{BREACH_RULE, Counted, Standing};
use crate::paths::Role;
use crate::policy::{
    ANCESTOR_RULE, DEFAULT_RULE, Judgement, Named, PROTECTED_RULE, UNREAD_RULE, Verdict,
};
use crate::reason::Reason;
use crate::run::RunId;

use super::World;
use super::call::Origin;
use super::observer::{End, Observed};
use super::path_facts::{self, PathFact};
use super::recorder::Recorder;
use super::refusal::Refusal;

/// When a call whose places are unsettled may be made again, in milliseconds.
const UNSETTLED_RETRY_MS: u64 = 1_000;

/// A decision, owned: the world may change while a person thinks.
#[derive(Debug)]
pub(super) struct Decided {
    pub effect: Effect,
    /// Set where the call may not pass.
    pub reason: Option<Reason>,
    pub final_rule: Arc<str>,
    pub matched: Named,
    /// How many more rules matched than are named.
    pub matched_omitted: usize,
    pub operation: Option<Operation>,
    pub side_effects: &'static [&'static str],
    pub policy_us: Micros,
    /// A tool was called too often: a person is asked each time, and no earlier answer counts.
    pub escalated: bool,
    /// When trying again can help, in milliseconds from now.
    pub retry_after_ms: Option<u64>,
    /// Hitl only: a yes may be remembered.
    pub remember: bool,
    /// Hitl only: how it was answered.
    pub hitl: Option<Hitl>,
    /// How its call was counted when it arrived.
    pub counted: Option<Counted>,
}

/// How a person, or an earlier answer of one, decided.
#[derive(Debug)]
pub(super) struct Hitl {
    /// `user_allowed`, `user_denied`, `timeout`, `withdrawn`.
    outcome: &'static str,
    approver: Option<String>,
    channel: Option<Channel>,
    cache_hit: bool,
    waited: Option<Micros>,
}

impl Hitl {
    pub fn answered(outcome: &'static str, answer: &Answer, waited: Micros) -> Self {
        Self {
            outcome,
            approver: Some(answer.approver.clone()),
            channel: Some(answer.channel),
            cache_hit: false,
            waited: Some(waited),
        }
    }

    pub fn without_answer(outcome: &'static str, waited: Micros) -> Self {
        Self {
            outcome,
            approver: None,
            channel: None,
            cache_hit: false,
            waited: Some(waited),
        }
    }

    pub fn remembered(channel: Channel, approver: String) -> Self {
        Self {
            outcome: "user_allowed",
            approver: Some(approver),
            channel: Some(channel),
            cache_hit: true,
            waited: None,
        }
    }
}

impl Decided {
    pub fn by_policy(world: &World, facts: &Facts) -> Self {
        let judgement = world.policy.judge(facts);
        let Verdict {
            effect,
            final_rule,
            unsure,
        } = judgement.verdict();
        let reason = match (effect, final_rule) {
            (Effect::Allow | Effect::Hitl, _) => None,
            (Effect::Deny, PROTECTED_RULE) => Some(Reason::ProtectedPath),
            (Effect::Deny, UNREAD_RULE) => Some(Reason::ArgumentsUnread),
            (Effect::Deny, DEFAULT_RULE) => Some(Reason::NoRule),
            (Effect::Deny, _) if unsure => Some(Reason::Undecidable),
            (Effect::Deny, _) => Some(Reason::DenyRule),
        };
        let (matched, matched_omitted) = judgement.named_rules(final_rule);
        let named = matched.iter().find(|(id, _)| **id == *final_rule);
        let mut decided = Self {
            effect,
            reason,
            final_rule: named.map_or_else(|| final_rule.into(), |(id, _)| Arc::clone(id)),
            matched,
            matched_omitted,
            operation: judgement.operation,
            side_effects: judgement.side_effects.unwrap_or_default(),
            policy_us: Micros::default(),
            escalated: false,
            retry_after_ms: None,
            remember: effect == Effect::Hitl && may_be_remembered(&judgement),
            hitl: None,
            counted: None,
        };
        if final_rule == ANCESTOR_RULE {
            decided.matched.push((ANCESTOR_RULE.into(), effect));
            decided.remember = false;
        }
        // A person knows no more of a tool that its server does not list than a rule does.
        if facts.unlisted && effect != Effect::Deny {
            decided.stop(Reason::UnknownTool);
        } else if facts.unsettled && effect == Effect::Allow {
            decided.stop(Reason::PlaceUnsettled);
            decided.retry_after_ms = Some(UNSETTLED_RETRY_MS);
        }
        decided
    }

    /// Joins what the limits say to what the rules say: beyond its tool's window a call that could
    /// pass waits for a person. What is refused anyway stays refused; a flood opens no door.
    pub fn joined_by(mut self, standing: Standing) -> Self {
        if standing == Standing::Breach && self.effect != Effect::Deny {
            self.effect = Effect::Hitl;
            self.final_rule = BREACH_RULE.into();
            self.matched.push((BREACH_RULE.into(), Effect::Hitl));
            self.escalated = true;
            self.remember = false;
        }
        self
    }

    /// Joins what the inspection found in the call to what the rules say. It only tightens: what is refused
    /// anyway stays refused, and no earlier yes is for what was found now.
    pub fn joined_by_finding(mut self, facts: &Facts) -> Self {
        let Some(finding) = &facts.inspected else {
            return self;
        };
        if self.effect == Effect::Deny {
            return self;
        }
        if let Some(rule) = finding.denied_by() {
            self.stop(finding.reason());
            self.final_rule = format!("{RULE_PREFIX}{rule}").into();
        } else if let Some(rule) = finding.asked_by() {
            self.effect = Effect::Hitl;
            self.final_rule = format!("{RULE_PREFIX}{rule}").into();
            self.matched.push((self.final_rule.clone(), Effect::Hitl));
            self.remember = false;
        }
        self
    }

    /// A call that the rules let pass is refused after all.
    pub fn stop(&mut self, reason: Reason) {
        self.effect = Effect::Deny;
        self.reason = Some(reason);
        self.final_rule = reason.label().into();
    }

    /// A refusal that no rule was asked about.
    pub fn refused(reason: Reason) -> Self {
        Self {
            effect: Effect::Deny,
            reason: Some(reason),
            final_rule: reason.label().into(),
            matched: Named::new(),
            matched_omitted: 0,
            operation: None,
            side_effects: &[],
            policy_us: Micros::default(),
            escalated: false,
            retry_after_ms: None,
            remember: false,
            hitl: None,
            counted: None,
        }
    }

    pub fn refusal(self, facts: &Facts, reason: Reason) -> Refusal {
        Refusal {
            op: None,
            reason,
            decision: self.effect,
            final_rule: self.final_rule.as_ref().to_owned(),
            matched_rules: self
                .matched
                .iter()
                .map(|(id, _)| id.as_ref().to_owned())
                .collect(),
            matched_rules_omitted: self.matched_omitted,
            tool_name: facts.tool_name.known().cloned(),
            path: facts.primary_path().map(str::to_owned),
            retry_after_ms: self.retry_after_ms,
            said: None,
        }
    }

    /// Writes the decision record.
    pub fn write(
        &self,
        recorder: &Recorder,
        world: &World,
        facts: &Facts,
        origin: &Origin,
    ) -> Result<OpId, JournalError> {
        let (op, begun) = self.begin(recorder, world, facts, origin)?;
        recorder.finish(begun, (self.effect, self.reason))?;
        Ok(op)
    }

    /// Tells the observer that the call ends here, refused.
    pub fn observe(
        &self,
        op: OpId,
        (recorder, world): (&Recorder, &World),
        facts: &Facts,
        origin: &Origin,
    ) {
        let facts = &*world.hidden(facts);
        let Some(reason) = self.reason else {
            return;
        };
        let now_ns = recorder.clock.mono_ns();
        let waited = self.hitl.as_ref().and_then(|hitl| hitl.waited);
        recorder.observe(&Observed {
            op,
            facts,
            origin,
            rule: &self.final_rule,
            approval: waited.unwrap_or_default(),
            duration: Micros::from_nanos(now_ns.saturating_sub(origin.received_ns)),
            end: End::Refused(reason),
        });
    }

    /// Begins to write it.
    pub fn begin(
        &self,
        recorder: &Recorder,
        world: &World,
        facts: &Facts,
        origin: &Origin,
    ) -> Result<(OpId, Appending), JournalError> {
        let now = recorder.clock.wall_ms();
        let op = recorder.next_op(now);
        let write = |record: &Decision<'_>| recorder.begin(now, record);
        let begun = self.with_record(op, world, facts, origin, write)?;
        recorder.charge(&facts.subject_id, facts.direction, begun.bytes());
        Ok((op, begun))
    }

    /// Builds the decision record over borrowed text and hands it to `write`.
    fn with_record(
        &self,
        op: OpId,
        world: &World,
        facts: &Facts,
        origin: &Origin,
        write: impl FnOnce(&Decision<'_>) -> Result<Appending, JournalError>,
    ) -> Result<Appending, JournalError> {
        let facts = &*world.hidden(facts);
        let matched: SmallVec<[MatchedRule<'_>; 4]> = self
            .matched
            .iter()
            .map(|(id, effect)| MatchedRule {
                id,
                effect: *effect,
            })
            .collect();
        let paths: Vec<&str> = facts.places().take(PATHS_LISTED_MAX).collect();
        let (path_arguments, path_arguments_omitted) = path_facts::recorded(facts);
        let path_arguments: Vec<RecordedPath<'_>> =
            path_arguments.iter().map(PathFact::borrowed).collect();
        let operation = self.operation.map(Operation::label);
        let uri = facts.uri.known().map(String::as_str);
        let scheme = uri.and_then(scheme_of);
        let more: SmallVec<[RecordedFact<'_>; 4]> = path_facts::more(facts).collect();
        let hitl = self.hitl.as_ref();
        let paths_unknown = uncertain(facts).then_some("paths").into_iter();
        let unknown: Vec<&str> = paths_unknown.chain(path_facts::unknown(facts)).collect();
        write(&Decision {
            op,
            decision: self.effect,
            reason: self.reason,
            final_rule: Some(&self.final_rule),
            matched_rules: &matched,
            matched_rules_omitted: self.matched_omitted as u64,
            mcp_method: Some(&facts.method),
            resource_type: facts.resource_type.map(ResourceType::label),
            tool_name: facts.tool_name.known().map(String::as_str),
            path: facts.primary_path(),
            paths: if paths.len() > 1 { &paths } else { &[] },
            path_arguments: &path_arguments,
            path_arguments_omitted,
            content_paths: path_facts::contents(facts),
            source_path: facts.path_of(Role::Source),
            dest_path: facts.path_of(Role::Destination),
            uri,
            scheme: scheme.as_deref(),
            subject_id: Some(&facts.subject_id),
            backend_id: Some(&facts.backend_id),
            side_effects: self.side_effects,
            operations: operation.as_slice(),
            direction: Some(facts.direction.label()),
            era: origin.era,
            policy_version: Some(&world.version),
            policy_digest: Some(world.policy.digest()),
            policy_eval_us: Some(self.policy_us),
            request_id: Some(&world.hidden_text(facts, &origin.request_id)),
            session_id: Some(&origin.session_id),
            run_id: origin.run.as_ref().map(RunId::as_str),
            parent_op: origin.parent_op,
            arguments_digest: origin.arguments_digest,
            hitl_outcome: hitl.map(|h| h.outcome),
            hitl_cache_hit: hitl.map(|h| h.cache_hit),
            hitl_approver_id: hitl.and_then(|h| h.approver.as_deref()),
            hitl_channel: hitl.and_then(|h| h.channel).map(Channel::label),
            policy_hitl_us: hitl.and_then(|h| h.waited),
            unknown_facts: &unknown,
            refusals: 0,
            facts: &more,
        })
    }
}

/// Whether every rule that asks, or may ask, bears that a yes is remembered.
fn may_be_remembered(judgement: &Judgement<'_>) -> bool {
    let asking = judgement
        .matched_rules()
        .chain(judgement.unsure_rules())
        .filter(|rule| rule.effect == Effect::Hitl);
    approval::may_be_remembered(
        judgement.side_effects,
        asking.map(|rule| rule.cache_side_effects.as_slice()),
    )
}

/// Most paths that one decision record lists.
const PATHS_LISTED_MAX: usize = 32;

fn uncertain(facts: &Facts) -> bool {
    facts
        .paths
        .known()
        .is_some_and(|paths| paths.iter().any(|a| a.meaning.uncertain))
}
